import io
import os

with open("a.txt", "w") as file:
    print(file.write("hello\nworld\n"), file.tell(), file.name, file.mode)
with open("a.txt", "a") as file:
    file.write("more\n")
with open("a.txt") as file:
    print(file.readline(), file.readlines(), repr(file.read()))
with open("a.txt", "r+") as file:
    file.write("HE")
    file.seek(0)
    print(repr(file.read()))
with open("a.txt", "w+b") as file:
    file.write(b"0123456789")
    file.seek(-3, os.SEEK_END)
    print(file.read(), file.tell())
    file.seek(2)
    file.truncate()
print(os.stat("a.txt").st_size, open("a.txt", "rb").read())
try:
    open("a.txt", "x")
except FileExistsError as error:
    print(error.strerror, error.filename)
with open("new.txt", "x") as file:
    file.write("x")
try:
    open("missing.txt")
except FileNotFoundError as error:
    print(error.errno == 2 or error.errno == 44, error.strerror, error.filename)
try:
    open("new.txt").write("no")
except io.UnsupportedOperation as error:
    print(error)
try:
    open("no/such/folder.txt", "w")
except OSError as error:
    print(type(error).__name__)
with open("sparse", "wb") as file:
    file.seek(5)
    file.write(b"end")
print(open("sparse", "rb").read())
print(open("crlf", "w", newline="\r\n").write("a\nb\n"), open("crlf", "rb").read(), open("crlf").read())
