import numpy as np

print(np.arange(100_000).sum(), np.arange(100_000, dtype=np.int64).sum(), np.array([1]).dtype)
try:
    print(np.array([2**40]).dtype)
except OverflowError as error:
    print(error)
