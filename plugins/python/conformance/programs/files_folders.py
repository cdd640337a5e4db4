import os
import os.path

print(os.getcwd() == os.path.abspath("."))
os.mkdir("one")
os.makedirs("two/three/four", exist_ok=True)
for name in ("one/a", "one/b", "two/c"):
    with open(name, "w") as file:
        file.write(name)
print(sorted(os.listdir("one")), sorted(os.listdir("two")))
os.rename("one/a", "one/z")
os.replace("one/b", "two/three/b")
print(sorted(os.listdir("one")), sorted(os.listdir("two/three")))
for folder, folders, files in sorted(os.walk("two")):
    print(folder, sorted(folders), sorted(files))
with os.scandir("two") as entries:
    print(sorted((entry.name, entry.is_dir(), entry.is_file()) for entry in entries))
try:
    os.rmdir("two")
except OSError as error:
    print(type(error).__name__)
try:
    os.mkdir("one")
except FileExistsError as error:
    print("exists", error.filename)
os.remove("one/z")
os.rmdir("one")
os.removedirs("two/three/four") if os.listdir("two/three") == ["four"] else None
print(os.path.exists("one"), os.path.isdir("two"), os.path.isfile("two/c"))
try:
    os.listdir("one")
except FileNotFoundError:
    print("gone")
os.chdir("two")
print(os.path.basename(os.getcwd()), open("c").read())
