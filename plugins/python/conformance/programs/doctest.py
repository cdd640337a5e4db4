"""Module.

>>> double(2)
4
>>> double("a")
'aa'
>>> double(None)
Traceback (most recent call last):
    ...
TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'
"""


def double(x):
    """Twice.

    >>> double(5)
    11
    """
    return x * 2


import doctest

print(doctest.testmod())
