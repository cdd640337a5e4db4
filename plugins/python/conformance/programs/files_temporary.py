import os
import shutil
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "file")
    with open(path, "w") as file:
        file.write("x")
    print(os.path.exists(path))
print(os.path.exists(folder))
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as file:
    file.write("temporary")
    file.flush()
    print(open(file.name).read(), file.name.endswith(".txt"))
print(os.path.exists(file.name))
with tempfile.TemporaryFile() as file:
    file.write(b"abc")
    file.seek(0)
    print(file.read())
with tempfile.SpooledTemporaryFile(max_size=10) as file:
    file.write(b"more than ten bytes")
    file.seek(0)
    print(len(file.read()))
folder = tempfile.mkdtemp()
shutil.rmtree(folder)
print(os.path.exists(folder), tempfile.gettempdir())
