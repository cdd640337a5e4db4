import re

print(re.findall(r"(?P<year>\d{4})-(\d\d)", "on 2024-05 and 1999-12"), re.split(r"[,;]\s*", "a, b;c"))
print(re.sub(r"(\w+) (\w+)", r"\2 \1", "hello world"), re.sub(r"\b(\w)", lambda m: m[1].upper(), "the quick fox"))
match = re.search(r"(?i)(?P<word>[a-z]+)\s+(?P=word)", "say The the end")
print(match.group("word"), match.span(), match.groupdict(), re.fullmatch(r"\w+", "é_1") is not None)
print(re.compile(r"(?<=a)b+(?!c)").findall("abbbc abb"), re.escape("a.b*c"), re.match(r"(a|b)*?c", "abac").groups())
pattern = re.compile(r"""
    ^ (\d+)   # digits
    (?: \. (\d+) )? $
""", re.VERBOSE | re.MULTILINE)
print([m.groups() for m in pattern.finditer("12\n3.4\nx")], re.subn("a", "b", "aaa", count=2))
try:
    re.compile("(unclosed")
except re.error as error:
    print(error)
