import abc
import contextlib
import weakref


class Meta(type):
    def __new__(meta, name, bases, namespace, **keywords):
        namespace["keywords"] = keywords
        return super().__new__(meta, name, bases, namespace)

    def __init__(cls, name, bases, namespace, **keywords):
        super().__init__(name, bases, namespace)


class A(metaclass=Meta, z=1):
    __slots__ = ("a", "__weakref__")

    def __init__(self):
        self.a = 1

    def __init_subclass__(cls, **keywords):
        print("subclass", cls.__name__)

    def __getattr__(self, name):
        return "missing " + name


class B(A):
    pass


b = B()
reference = weakref.ref(b)
print(A.keywords, b.zz, [c.__name__ for c in B.__mro__], reference() is b)
del b
print(reference())


class Descriptor:
    def __set_name__(self, owner, name):
        print("named", name)

    def __get__(self, thing, owner):
        return 42


class Owner:
    d = Descriptor()


print(Owner.d, Owner().d)


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


try:
    Shape()
except TypeError as error:
    print(error)


@contextlib.contextmanager
def block():
    print("enter")
    try:
        yield "value"
    except KeyError:
        print("swallowed")
    finally:
        print("leave")


with block() as value, contextlib.suppress(ValueError):
    raise KeyError(value)


def f(x):
    match x:
        case {"a": [1, *rest]}:
            return rest
        case [a, b] if a == b:
            return "equal"
        case int(n) | float(n):
            return n * 2
        case str():
            return "text"
        case _:
            return None


print(f({"a": [1, 2, 3]}), f([4, 4]), f(5), f("x"), f(None))


def generator():
    try:
        got = yield 1
        print("got", got)
        yield from [2, 3]
    finally:
        print("closed")


g = generator()
print(next(g), g.send("s"), list(g))
print(sum(i * i for i in range(5)), (n := 10) + n, [*range(3), *"ab"], {**{"a": 1}, "b": 2})
