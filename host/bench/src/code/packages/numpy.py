import numpy as np

x = np.linspace(0, 1, 1000)
print(f"{x.mean():.3f} {x.std():.3f} {np.dot(x, x):.3f}")
