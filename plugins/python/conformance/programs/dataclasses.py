from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from enum import Enum, Flag, IntEnum, auto
from typing import NamedTuple, Protocol, TypedDict, get_type_hints


@dataclass(order=True, frozen=True, slots=True)
class A:
    x: int
    y: list = field(default_factory=list, compare=False)


a = A(1)
print(a, a < A(2), replace(a, x=5), asdict(a), fields(a)[0].name, hash(a) == hash(A(1)))
try:
    a.x = 3
except FrozenInstanceError as error:
    print(type(error).__name__, error)


class Colour(Enum):
    RED = 1
    GREEN = auto()


class Permission(Flag):
    R = 1
    W = 2
    X = 4


class Level(IntEnum):
    LOW = 1


print(list(Colour), Colour(1), Colour["GREEN"].value, Permission.R | Permission.X, Permission(7), Level.LOW + 1)


class Row(NamedTuple):
    id: int
    name: str = "x"


class Options(TypedDict, total=False):
    a: int


class Speaks(Protocol):
    def speak(self) -> str: ...


print(Row(1), Row(1)._asdict(), Options(a=1), get_type_hints(Row))
