import os

os.makedirs("results/deep")
with open("results/deep/out.txt", "w") as file:
    file.write("line\n" * 3)
with open("bytes.bin", "wb") as file:
    file.write(bytes([0, 1, 2, 65]))
open("empty", "w").close()
unclosed = open("unclosed.txt", "w")
unclosed.write("flushed at the end")
with open("in.txt", "a") as file:
    file.write(" and more")
