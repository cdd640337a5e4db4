import codecs
import string
import textwrap
import unicodedata

print("%s|%5d|%-5s|%05.1f|%x|%r" % ("s", 42, "ab", 3.14159, 255, "q"), "{:>10}|{:^7}|{!r:<5}|{:,}".format("r", "c", "x", 1234567))
print(f"{3.14159:10.4f}|{12345678:_}|{0.000012:g}|{255:#x}|{'a':*>5}|{True!r}|{1+1=}|{1e10:e}|{0.256:.1%}|{-5:+d}|{5:08b}")
print("Straße".upper(), "ǅ".lower(), "İ".casefold(), "abc".translate({97: "X"}), "a,b,c".rsplit(",", 1), "x".center(5, "*"))
print(unicodedata.name("é"), unicodedata.normalize("NFD", "é").encode(), unicodedata.category("1"), unicodedata.lookup("SNOWMAN"))
print("你好".encode("utf-16-le"), "é".encode("latin-1"), b"\x93".decode("cp1252"), "你".encode("gbk"), "é".encode("ascii", "xmlcharrefreplace"))
print("日本".encode("shift_jis"), "bücher".encode("idna"), codecs.encode("hello", "rot13"), "a\u0301".isidentifier(), len("🎉"), "🎉".encode())
for text, encoding in (("é", "ascii"), ("\ud800", "utf-8")):
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        print(error)
try:
    b"\xff\xfe".decode()
except UnicodeDecodeError as error:
    print(error)
print(string.ascii_letters, string.Template("$a-${b}").substitute(a=1, b=2), textwrap.fill("the quick brown fox jumps " * 3, 30))
print(textwrap.dedent("  a\n    b"), "\N{GREEK SMALL LETTER ALPHA}", r"\n", b"bytes \x00\xff", repr("tab\t'\""), ascii("é"))
print("a-b_c d".title(), "abc".zfill(6), "mississippi".count("ss"), "x=1".partition("="), "ab\ncd\r\n".splitlines(), "  x ".strip())
print("abc" < "abd", sorted(["b", "A", "a"]), sorted(["b", "A", "a"], key=str.lower), "é" == "e\u0301", "%d%%" % 5)
