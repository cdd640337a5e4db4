import sympy

x = sympy.symbols("x")
print(sympy.solve(x**2 - 5 * x + 6, x), sympy.diff(sympy.sin(x) * x, x))
