import numpy as np

for shape in [(40_000, 40_000), (2**29,), (2**31 - 1,), (2**20, 2**20)]:
    try:
        print(np.ones(shape).shape)
    except (MemoryError, ValueError) as error:
        print(type(error).__name__)
print(np.ones(1000).sum())
