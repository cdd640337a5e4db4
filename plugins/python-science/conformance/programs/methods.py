import networkx as nx
import numpy as np
from scipy import integrate, optimize, stats
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

print(optimize.minimize(lambda v: (v[0] - 1) ** 2 + v[1] ** 2, [0.0, 1.0]).x.round(3).tolist())
print(round(integrate.quad(np.sin, 0, np.pi)[0], 6), stats.norm.cdf(1.96).round(4), round(optimize.brentq(lambda t: t**2 - 2, 0, 2), 6))
X, y = load_iris(return_X_y=True)
print(X.shape, LogisticRegression(max_iter=500).fit(X, y).score(X, y) > 0.95)
print(nx.shortest_path(nx.path_graph(5), 0, 4))
