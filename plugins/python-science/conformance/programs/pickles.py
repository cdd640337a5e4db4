import pickle

import numpy as np


class Evil:
    def __reduce__(self):
        import os

        return os.system, ("echo out",)


try:
    print(pickle.loads(pickle.dumps(Evil())))
except Exception as error:
    print(type(error).__name__)
print(pickle.loads(pickle.dumps(np.arange(3, dtype=np.int64))).tolist())
try:
    import ctypes
except ImportError as error:
    print(error)
