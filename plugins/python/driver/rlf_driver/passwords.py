"""`hashlib.pbkdf2_hmac`, which CPython has from OpenSSL only."""

from .sound import __builtins__  # isort: skip

import hashlib
import hmac
import operator

_new = hashlib.new


def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
    """Password based key derivation function 2 (PKCS #5 v2.0) with HMAC as pseudorandom function."""
    if not isinstance(hash_name, str):
        raise TypeError(f"pbkdf2_hmac() argument 'hash_name' must be str, not {type(hash_name).__name__}")
    password, salt = _data(password), _data(salt)
    iterations = operator.index(iterations)
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    inner, outer = _new(hash_name), _new(hash_name)
    if not inner.digest_size:
        raise ValueError(f"{hash_name} has no length that a key could have")
    length = inner.digest_size if dklen is None else operator.index(dklen)
    if length < 1:
        raise ValueError("key length must be greater than 0.")
    size = inner.block_size
    if len(password) > size:
        password = _new(hash_name, password).digest()
    password = password.ljust(size, b"\0")
    inner.update(password.translate(hmac.trans_36))
    outer.update(password.translate(hmac.trans_5C))

    def code(message):
        """The HMAC of `message`, whose key both hashes have read."""
        first, second = inner.copy(), outer.copy()
        first.update(message)
        second.update(first.digest())
        return second.digest()

    key = b""
    while len(key) < length:
        block = code(salt + (len(key) // inner.digest_size + 1).to_bytes(4))
        total = int.from_bytes(block)
        for _ in range(iterations - 1):
            block = code(block)
            total ^= int.from_bytes(block)
        key += total.to_bytes(inner.digest_size)
    return key[:length]


def _data(value):
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(f"a bytes-like object is required, not {type(value).__name__!r}") from None


def install():
    """Adds the function where it is missing."""
    if not hasattr(hashlib, "pbkdf2_hmac"):
        hashlib.pbkdf2_hmac = pbkdf2_hmac
        hashlib.__all__ += ("pbkdf2_hmac",)
