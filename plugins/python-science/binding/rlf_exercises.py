"""What the snapshot has imported, and programs that use it before the snapshot is taken.

A library fills caches of many kinds when it is first used: sympy a hundred milliseconds' worth. What is warm in the snapshot is
warm in every run.
"""

WITH_NUMPY = ("numpy", "pandas", "scipy", "sklearn")
"""The packages that compute with numpy. They begin with its generator seeded by the run."""

KNOWN = ("numpy", "pandas", "scipy", "sympy", "scikit-learn", "networkx", "statsmodels")
"""What a program is told that it can import."""

PRELOADED = """
numpy numpy.fft numpy.linalg numpy.random numpy.polynomial numpy.testing
pandas
scipy scipy.constants scipy.fft scipy.integrate scipy.interpolate scipy.linalg scipy.optimize scipy.signal scipy.sparse
scipy.sparse.linalg scipy.spatial scipy.special scipy.stats
sympy
sklearn sklearn.cluster sklearn.datasets sklearn.ensemble sklearn.linear_model sklearn.metrics sklearn.model_selection
sklearn.neighbors sklearn.preprocessing sklearn.tree
""".split()
"""Imported for the snapshot."""

PROGRAMS = (
    """\
import numpy as np
x = np.linspace(0, 1, 50)
a = np.arange(12).reshape(3, 4)
print(x.mean(), x.std(), a.sum(axis=0), a.T @ a, np.dot(x, x), np.sort(x[::-1])[:3], np.where(a > 5, a, 0))
print(np.linalg.solve(np.eye(3) + 1, np.ones(3)), np.linalg.eigvalsh(np.diag([1.0, 2.0])), a.astype(float), repr(x[:2]))
print(np.random.default_rng(1).normal(size=3), np.random.rand(2), np.unique([3, 1, 3]), np.concatenate([x, x]).shape)
""",
    """\
import numpy as np
import pandas as pd
frame = pd.DataFrame({"key": ["a", "b", "a", "c"] * 25, "value": np.arange(100.0), "n": range(100)})
print(frame.groupby("key")["value"].agg(["mean", "sum"]))
print(frame[frame["value"] > 50].sort_values("n", ascending=False).head(2))
print(frame.describe(), frame.merge(frame.head(3), on="key").shape, frame.pivot_table(index="key", values="n"))
print(pd.Series([1, 2, 3]).rolling(2).mean().tolist(), frame.to_csv(index=False)[:20], frame.dtypes)
print(pd.date_range("2024-01-01", periods=3).strftime("%d %b").tolist(), frame.isna().sum().to_dict())
""",
    """\
import sympy as sp
x, y = sp.symbols("x y")
print(sp.solve(x**2 - 5 * x + 6, x), sp.diff(sp.sin(x) * sp.exp(x), x), sp.integrate(sp.sin(x) ** 2, (x, 0, sp.pi)))
print(sp.factor(x**3 - x), sp.expand((x + y) ** 3), sp.simplify(sp.sin(x) ** 2 + sp.cos(x) ** 2), sp.limit(sp.sin(x) / x, x, 0))
print(sp.Matrix([[1, 2], [3, 4]]).inv(), sp.solve([x + y - 3, x - y - 1], [x, y]), sp.series(sp.exp(x), x, 0, 4))
print(sp.diff(sp.sin(x) * x, x), sp.integrate(x**2 + 1, x), sp.Sum(x, (x, 1, 10)).doit(), sp.Eq(x, 1), sp.nsolve(x**2 - 2, x, 1))
print(sp.solve(x**2 - 2, x), sp.Poly(x**2 - 1, x).factor_list(), sp.lambdify(x, x**2)(3), sp.symbols("n", integer=True) + 1)
print(sp.sqrt(8), sp.Rational(1, 3) + 1, sp.pi.evalf(20), sp.latex(x / y), sp.factorint(360), sp.isprime(97))
""",
    """\
import numpy as np
from scipy import integrate, linalg, optimize, sparse, stats
print(optimize.minimize(lambda v: (v[0] - 1) ** 2 + v[1] ** 2, [0.0, 1.0]).x.round(3), optimize.brentq(lambda t: t**2 - 2, 0, 2))
print(integrate.quad(np.sin, 0, np.pi)[0], linalg.det(np.eye(2) * 3), stats.norm.cdf(1.96), stats.ttest_ind([1, 2, 3], [2, 3, 5]).pvalue)
print(sparse.csr_matrix(np.eye(3)).dot(np.ones(3)))
""",
    """\
import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
X = np.random.RandomState(0).rand(60, 3)
y = (X[:, 0] > 0.5).astype(int)
train, test, y_train, y_test = train_test_split(X, y, random_state=0)
print(LinearRegression().fit(train, y_train).coef_.round(2), LogisticRegression().fit(train, y_train).score(test, y_test))
print(DecisionTreeClassifier(random_state=0).fit(train, y_train).predict(test)[:3])
""",
)
"""Programs of the warm-up."""
