import numpy as np


class Outside:
    __array_interface__ = {"shape": (1000,), "typestr": "<i4", "data": (0xFFFF_0000, False), "version": 3}


print("before", flush=True)
print(np.array(Outside()).sum())
