from collections.abc import Callable, Iterable
from typing import Annotated, Any, Dict, Generic, List, Literal, Optional, Tuple, TypeVar, cast, overload

T = TypeVar("T")


class Stack(Generic[T]):
    def __init__(self) -> None:
        self.items: List[T] = []

    def push(self, item: T) -> None:
        self.items.append(item)


def first[S](values: Iterable[S]) -> S:
    return next(iter(values))


type Pairs = list[tuple[str, int]]


@overload
def g(x: int) -> int: ...
@overload
def g(x: str) -> str: ...
def g(x):
    return x


stack = Stack[int]()
stack.push(1)
print(stack.items, first("abc"), Pairs.__value__, g(1), cast(int, "x"), first.__type_params__)
print(List[int], Dict[str, Any], Tuple[int, ...], Callable[[int], str], Literal["a"], Annotated[int, 5], list[int])


def annotated(a: "int", b: Optional[str] = None, *args: int, key: float = 1.5, **rest: bytes) -> None: ...


print({name: getattr(kind, "__name__", str(kind)) for name, kind in annotated.__annotations__.items() if name != "b"})
