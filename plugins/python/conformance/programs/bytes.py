import array
import base64
import binascii
import gzip
import hashlib
import hmac
import io
import struct
import zlib

print(struct.pack("<IhQ?d", 1, -2, 3, True, 1.5), struct.unpack(">H", b"\x01\x02"), struct.calcsize("<bhiq"))
print(base64.b64encode(b"hello"), base64.b32encode(b"x"), base64.b85encode(b"abcd"), base64.urlsafe_b64decode("_-8="), binascii.hexlify(b"ab"))
print(binascii.crc32(b"abc"), zlib.adler32(b"abc"), zlib.decompress(zlib.compress(b"a" * 1000)) == b"a" * 1000, len(zlib.compress(b"a" * 1000)))
print(gzip.decompress(gzip.compress(b"text")), array.array("i", [1, 2]).tobytes(), bytearray(b"ab").hex(" "), memoryview(b"abc")[1:].tobytes())
for name in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b"):
    print(name, hashlib.new(name, b"a").hexdigest()[:32])
print(hmac.new(b"k", b"m", "sha256").hexdigest()[:32])
stream = io.BytesIO(b"abc")
print(stream.read(2), stream.seek(0), stream.getvalue(), io.StringIO("a\nb").readlines(), bytes.fromhex("00ff"), b"a".join([b"1", b"2"]))
try:
    zlib.decompress(b"not compressed")
except zlib.error as error:
    print(error)
