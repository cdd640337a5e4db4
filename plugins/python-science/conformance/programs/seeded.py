import random

import numpy as np

first = np.random.rand(2).tolist(), np.random.default_rng().integers(1000), random.random()
np.random.seed(7)
print(np.random.randint(0, 100, 3).tolist(), np.random.default_rng(7).normal(size=2).round(6).tolist())
print(first)
