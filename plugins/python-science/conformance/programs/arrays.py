import numpy as np

x = np.linspace(0, 1, 5)
a = np.arange(12, dtype=np.int64).reshape(3, 4)
print(x.mean(), x.std().round(6), a.sum(axis=0), a.T @ a)
print(np.linalg.solve(np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([9.0, 8.0])), np.linalg.det(np.eye(3) * 2).round(9))
print(np.where(a > 5, a, 0).tolist(), np.unique([3, 1, 3]).tolist(), np.concatenate([x, x]).shape)
print(np.fft.fft(np.ones(4)).real.tolist(), np.array(["b", "a"]).tolist(), np.datetime64("2024-02-28") + np.timedelta64(2, "D"))
