import math
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

getcontext().prec = 50
print(Decimal(2).sqrt(), Decimal(1) / 7, Decimal("1.1") + Decimal("2.2"), Decimal("NaN"), Decimal(10).ln())
with localcontext() as context:
    context.prec = 5
    print(Decimal(1) / 3, Decimal("2.675").quantize(Decimal("0.01")), Decimal("1E+3").normalize())
print(Fraction(1, 3) + Fraction(1, 6), Fraction("0.125"), Fraction(3.5).limit_denominator(10), sum(Fraction(1, i) for i in range(1, 30)))
print(0.1 + 0.2, 1e308 * 10, float("nan"), math.pi, math.e, round(2.675, 2), 1 / 3, 2**0.5, math.fsum([0.1] * 10), sum([0.1] * 10))
print(math.gcd(12, 18, 27), math.lcm(4, 6), math.comb(60, 30), math.perm(5, 2), math.isqrt(10**41), math.prod(range(1, 10)))
print((0.1).hex(), float.fromhex("0x1.8p3"), math.nextafter(1, 2), math.hypot(3, 4), math.dist((0, 0), (1, 1)), math.copysign(1, -0.0))
print(math.sin(1), math.exp(1), math.log(10), math.log2(8), math.factorial(20), math.floor(-2.5), math.ceil(2.1), math.trunc(-2.7))
print(-7 // 2, -7 % 3, divmod(-17, 5), 7.5 // 2, -7.5 % 2, round(0.5), round(1.5), round(-2.5), round(1234.5678, -2), complex(1, 2) ** 2)
for make in (lambda: 1 / 0, lambda: math.sqrt(-1), lambda: math.exp(1000), lambda: int("x"), lambda: Decimal("y")):
    try:
        make()
    except (ArithmeticError, ValueError) as error:
        print(type(error).__name__)
