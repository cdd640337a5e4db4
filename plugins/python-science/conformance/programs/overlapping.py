import numpy as np

a = np.arange(16.0).reshape(4, 4)
expected = a @ a
np.matmul(a, a, out=a)
print((a == expected).all())
b = np.arange(10.0)
b[1:] += b[:-1]
print(b.tolist())
c = np.arange(6.0)
np.dot(c.reshape(2, 3), c[:3], out=c[4:6])
print(c.tolist())
