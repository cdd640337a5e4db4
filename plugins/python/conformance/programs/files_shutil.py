import glob
import os
import shutil
import zipfile

os.makedirs("from/sub")
for name in ("from/a.txt", "from/sub/b.txt"):
    with open(name, "w") as file:
        file.write(name)
shutil.copy("from/a.txt", "copied.txt")
shutil.copytree("from", "to")
shutil.move("copied.txt", "to/moved.txt")
print(sorted(glob.glob("to/**", recursive=True)))
shutil.rmtree("from")
print(os.path.exists("from"), open("to/moved.txt").read())
with zipfile.ZipFile("all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.write("to/a.txt")
    archive.writestr("made.txt", "x" * 1000)
with zipfile.ZipFile("all.zip") as archive:
    print(archive.namelist(), archive.read("to/a.txt"), archive.getinfo("made.txt").file_size, archive.testzip())
print(os.path.getsize("all.zip") < 1000)
