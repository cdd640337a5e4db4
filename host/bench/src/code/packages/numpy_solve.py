import numpy as np

generator = np.random.default_rng(1)
a = generator.random((200, 200))
b = generator.random(200)
x = np.linalg.solve(a @ a.T + np.eye(200), b)
print(np.allclose((a @ a.T + np.eye(200)) @ x, b))
