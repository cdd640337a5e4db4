import numpy as np
from numpy.lib.stride_tricks import as_strided

wide = as_strided(np.zeros(4), shape=(2**27,), strides=(8,))
print("before", flush=True)
wide[:] = 1.0
print("after")
