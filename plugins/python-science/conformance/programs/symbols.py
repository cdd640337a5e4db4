import sympy as sp

x, y = sp.symbols("x y")
print(sp.solve(x**2 - 5 * x + 6, x), sp.diff(sp.sin(x) * sp.exp(x), x), sp.integrate(sp.sin(x) ** 2, (x, 0, sp.pi)))
print(sp.factor(x**3 - x), sp.limit(sp.sin(x) / x, x, 0), sp.Matrix([[1, 2], [3, 4]]).det(), sp.factorint(360))
print(sp.solve([x + y - 3, x - y - 1], [x, y]), sp.Rational(1, 3) + sp.Rational(1, 6), sp.pi.evalf(15))
