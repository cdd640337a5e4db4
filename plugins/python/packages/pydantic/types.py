"""Types with rules, by name."""

from typing import Annotated, List, Set

from .fields import Constraint, StringConstraints

PositiveInt = Annotated[int, Constraint(gt=0)]
NegativeInt = Annotated[int, Constraint(lt=0)]
NonNegativeInt = Annotated[int, Constraint(ge=0)]
NonPositiveInt = Annotated[int, Constraint(le=0)]
PositiveFloat = Annotated[float, Constraint(gt=0)]
NegativeFloat = Annotated[float, Constraint(lt=0)]
NonNegativeFloat = Annotated[float, Constraint(ge=0)]
NonPositiveFloat = Annotated[float, Constraint(le=0)]
FiniteFloat = Annotated[float, Constraint(allow_inf_nan=False)]
StrictInt = Annotated[int, Constraint(strict=True)]
StrictFloat = Annotated[float, Constraint(strict=True)]
StrictStr = Annotated[str, Constraint(strict=True)]
StrictBool = Annotated[bool, Constraint(strict=True)]
StrictBytes = Annotated[bytes, Constraint(strict=True)]


def conint(**rules):
    """A whole number with rules."""
    return Annotated[int, Constraint(**rules)]


def confloat(**rules):
    """A real number with rules."""
    return Annotated[float, Constraint(**rules)]


def constr(**rules):
    """A text with rules."""
    return Annotated[str, StringConstraints(**rules)]


def conlist(item_type, *, min_length=None, max_length=None):
    """A list with rules."""
    return Annotated[List[item_type], Constraint(min_length=min_length, max_length=max_length)]


def conset(item_type, *, min_length=None, max_length=None):
    """A set with rules."""
    return Annotated[Set[item_type], Constraint(min_length=min_length, max_length=max_length)]
