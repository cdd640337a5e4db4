import math
import sys

print(3**500 % 10**40, pow(3, -1, 1000007), pow(2, 10**6, 10**9 + 7), (1 << 200) - 1, hex(2**127), (2**100).bit_length())
print(int("7" * 300) // int("3" * 100), len(str(math.factorial(1000))), (10**50).to_bytes(21, "big").hex())
a, b = 0, 1
for _ in range(1000):
    a, b = b, a + b
print(a)
try:
    str(10**5000)
except ValueError as error:
    print(error)
sys.set_int_max_str_digits(0)
print(len(str(10**5000)), int.from_bytes(b"\xff" * 9, "little", signed=True), (5).bit_count())
print(2**31, 2**32 + 1, 2**63, 2**64 - 1, -(2**31) - 1, 10**18 * 10**18, [0] * 3, len(range(2**31 - 1)))
