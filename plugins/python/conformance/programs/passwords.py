import hashlib

for name in ("sha1", "sha256", "sha512", "md5"):
    print(name, hashlib.pbkdf2_hmac(name, b"password", b"salt", 1000).hex())
print(hashlib.pbkdf2_hmac("sha256", b"p" * 300, b"", 3, dklen=70).hex())
print(hashlib.pbkdf2_hmac("sha256", bytearray(b"p"), memoryview(b"s"), iterations=50_000, dklen=8).hex())
for wrong in (("sha256", b"p", b"s", 0), ("sha256", b"p", b"s", 1, 0), (1, b"p", b"s", 1), ("sha256", "p", b"s", 1), ("sha256", b"p", b"s", 1.5)):
    try:
        hashlib.pbkdf2_hmac(*wrong)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
hashlib.pbkdf2_hmac("sha256", b"p", b"s", -1)
