import os

os.makedirs("out")
with open("out/kept.txt", "w") as file:
    file.write("kept")
