"""Models to compare with pydantic's: one small one per thing that a model can say, and inputs for all of them."""

import datetime
import enum
import itertools
import random
from typing import Annotated, Any, Dict, FrozenSet, List, Literal, Optional, Set, Tuple, Union

from pydantic import (
    AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, PrivateAttr, RootModel, StrictInt,
    computed_field, conint, constr, field_serializer, field_validator, model_validator,
)  # fmt: skip


class Color(str, enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Shape(enum.Enum):
    """A form."""

    ROUND = "round"
    FLAT = 3


class Text(BaseModel):
    value: str


class RuledText(BaseModel):
    value: str = Field(..., min_length=2, max_length=5, description="Some text")


class PatternText(BaseModel):
    value: str = Field(pattern=r"^[a-z]+(-\d+)?$")


class Whole(BaseModel):
    value: int


class RuledWhole(BaseModel):
    value: int = Field(ge=0, lt=100, multiple_of=2, examples=[4])


class Real(BaseModel):
    value: float


class RuledReal(BaseModel):
    value: float = Field(gt=0, le=9.5)


class Truth(BaseModel):
    value: bool


class Anything(BaseModel):
    value: Any


class Untyped(BaseModel):
    value: dict
    more: list = []


class Texts(BaseModel):
    value: List[str] = Field(min_length=1, max_length=2)


class Numbers(BaseModel):
    value: Dict[str, float]


class ByNumber(BaseModel):
    value: Dict[int, List[int]]


class Pair(BaseModel):
    value: Tuple[int, str]


class Many(BaseModel):
    value: Tuple[int, ...] = ()


class Distinct(BaseModel):
    value: Set[int]


class Frozen(BaseModel):
    value: FrozenSet[str] = frozenset()


class Maybe(BaseModel):
    value: Optional[int] = Field(None, ge=1, title="Perhaps")


class MaybeText(BaseModel):
    value: str = None


class NumberOrText(BaseModel):
    value: Union[int, str]


class NumberOrList(BaseModel):
    value: Union[float, List[int], Dict[str, int], None]


class NewStyle(BaseModel):
    value: "int | None | list[str]" = None


class Word(BaseModel):
    value: Literal["a", "b", 3]


class One(BaseModel):
    value: Literal["only"] = "only"


class Colored(BaseModel):
    value: Color
    level: Level = Level.LOW
    shape: Optional[Shape] = None


class Moment(BaseModel):
    value: datetime.datetime


class Day(BaseModel):
    value: datetime.date


class Clock(BaseModel):
    value: datetime.time


class Span(BaseModel):
    value: datetime.timedelta


class Bytes(BaseModel):
    value: bytes


class Inner(BaseModel):
    """What lies inside."""

    x: int
    y: str = "y"


class Outer(BaseModel):
    value: Inner
    more: List[Inner] = Field(default_factory=list)
    by_name: Dict[str, Inner] = {}
    maybe: Optional[Inner] = Field(None, description="Perhaps one")


class EitherModel(BaseModel):
    value: Union[Inner, Text, int]


class Tree(BaseModel):
    value: int
    children: List["Tree"] = []
    parent: Optional["Tree"] = None


class Forbids(BaseModel):
    model_config = ConfigDict(extra="forbid")
    value: int = 1


class Allows(BaseModel):
    model_config = ConfigDict(extra="allow", title="Anything goes")
    value: int = 1


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    value: float
    text: str = ""


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    value: str = Field(min_length=1)


class Aliased(BaseModel):
    value: int = Field(alias="valueOf")
    other: str = Field("o", serialization_alias="otherOne")


class Populated(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    value: int = Field(alias="valueOf")


class Assigned(BaseModel):
    model_config = ConfigDict(validate_assignment=True)
    value: int


class Still(BaseModel):
    model_config = ConfigDict(frozen=True)
    value: int


class Validated(BaseModel):
    value: int
    twice: int = 0

    @field_validator("value", mode="before")
    @classmethod
    def no_text(cls, value):
        if value == "x":
            raise ValueError("no x please")
        return value

    @field_validator("value")
    @classmethod
    def small(cls, value):
        assert value < 10, "too much"
        return value

    @model_validator(mode="after")
    def doubled(self):
        if self.value == 7:
            raise ValueError("not seven")
        self.twice = self.value * 2
        return self


class Beforehand(BaseModel):
    value: int

    @model_validator(mode="before")
    @classmethod
    def wrapped(cls, data):
        return {"value": data["valued"]} if isinstance(data, dict) and "valued" in data else data


class Marked(BaseModel):
    value: Annotated[int, BeforeValidator(lambda v: v or 0), AfterValidator(lambda v: v + 1)]


class Computed(BaseModel):
    value: int
    _secret: int = PrivateAttr(default=3)

    @computed_field
    @property
    def squared(self) -> int:
        """The square."""
        return self.value**2

    @field_serializer("value")
    def shown(self, value):
        return f"<{value}>"


class Derived(Inner):
    z: float = 0


class Named(BaseModel):
    value: PositiveInt
    strict: StrictInt = 1
    bounded: conint(ge=1, le=3) = 2
    text: constr(max_length=3) = "abc"
    kept: int = Field(3, exclude=True)
    shown: int = Field(4, repr=False)


class Root(RootModel[List[int]]):
    pass


MODELS = [kind for kind in list(globals().values()) if isinstance(kind, type) and issubclass(kind, (BaseModel,)) and kind.__module__ == __name__ and "[" not in kind.__name__]  # fmt: skip

VALUES = [
    None, True, False, 0, 1, 2, 3, 7, -1, 99, 100, 10**20, 1.0, 2.5, -0.0, 9.5, 1e20, float("inf"), "", "a", "b", "only", "x",
    "abc", "abc-12", "abc\n", "abcdef", "é", "1", " 2 ", "3.0", "3.5", "1_000", "_1", "1e3", "inf", "nan", "true", "Yes", "off",
    "red", "BLUE", "round", "2024-01-15", "2024-1-5", "2024-13-01", "2024-02-30", "2024-01-15T10:20:30", "2024-01-15 10:20",
    "2024-01-15T10:20:30.123456Z", "2024-01-15T10:20:30+02:00", "2024-01-15T25:00:00", "2024-01-15X10:20", "2024-01-15T",
    "12:30", "12:30:15.5", "1700000000", 1700000000, 1700000000000, "P1DT2H", "01:30:00", "3 days", b"ab", b"\xff", [], [1],
    ["1", "2"], ["a"], [1, "b"], [1, 2, 3], ["x", None], (1, "b"), (1, 2), {1, 2}, frozenset(("a",)), {}, {"a": 1}, {"a": "1"},
    {"a": None}, {"1": [1, "2"]}, {1: [1]}, {"k.z": "bad"}, {"x": 1}, {"x": "5", "y": "t"}, {"x": "no"}, {"value": "t"},
    {"x": 1, "extra": 2}, {"value": 1, "children": [{"value": 2}]}, Color.RED, Level.HIGH, Shape.FLAT,
    datetime.datetime(2024, 1, 15), datetime.datetime(2024, 1, 15, 3, 4, 5, 6, datetime.timezone.utc), datetime.date(2024, 1, 15),
    datetime.time(3, 4), datetime.timedelta(days=1, seconds=2), Inner(x=1), Derived(x=2), Text(value="t"), object, "l" * 70,
]  # fmt: skip


def inputs():
    """`(model, data)`: every value for every model, and generated ones."""
    chance = random.Random(5)
    for model, value in itertools.product(MODELS, VALUES):
        yield model, {"value": value} if model not in (Aliased, Root) else {"valueOf": value} if model is Aliased else value
    for model in MODELS:
        for odd in ({}, {"valued": 3}, {"valueOf": 3}, {"value": 1, "extra": [1]}, {"value": 1, 3: 4}, [], "x", 3, None):
            yield model, odd
        names = list(model.model_fields)
        for _ in range(25):
            data = {chance.choice(names): chance.choice(VALUES) for _ in range(3)}
            yield model, data
        for _ in range(10):
            nested = [{"x": chance.choice(VALUES), "y": chance.choice(VALUES)} for _ in range(2)]
            yield model, {"value": nested[0], "more": nested, "children": nested, "by_name": {"k": nested[1]}}
