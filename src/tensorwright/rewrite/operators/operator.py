"""What the families of operators share: the record, parameters, and steps of a meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.ops import Attributes
from tensorwright.rewrite.dims import Shape, Size
from tensorwright.rewrite.shapes import IllTyped, ShapeRule
from tensorwright.rewrite.terms import Param

__all__ = [
    "AXIS",
    "PLACE",
    "SIZES",
    "IntShape",
    "MeaningRule",
    "Parameter",
    "RewriteOperator",
    "Step",
    "axis_of",
    "number",
    "plain",
    "replaced",
    "size",
]

IntShape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter.

    words     the words it may be; empty for a number
    is_size   whether it may be a size over the inputs' extents, and not only a number
    repeats   whether it takes all parameters that are left
    """

    name: str
    words: tuple[str, ...] = ()
    is_size: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One application of an operator of `ops`."""

    operator: str
    attributes: Attributes


MeaningRule: TypeAlias = Callable[[tuple[Param, ...], tuple[IntShape, ...]], tuple[Step, ...]]


@dataclass(frozen=True, slots=True)
class RewriteOperator:
    """An operator of rewriting.

    arity           number of arguments
    is_commutative  whether op(a, b) = op(b, a): the generator then tries one order only
    shape           see `shapes.py`
    meaning         the chain of `ops` applications at concrete parameters and shapes
    """

    name: str
    arity: int
    parameters: tuple[Parameter, ...]
    shape: ShapeRule
    meaning: MeaningRule
    is_commutative: bool = False

    def check_params(self, params: tuple[Param, ...]) -> None:
        """Refuse parameters of the wrong number or kind.

        Raises:  IllTyped
        """
        is_open = bool(self.parameters) and self.parameters[-1].repeats
        least = len(self.parameters) - is_open
        if len(params) < least or (len(params) > least and not is_open):
            raise IllTyped(f"{self.name} takes {least} parameters, not {len(params)}")
        for param, wanted in zip(params, self.kinds_of(params), strict=True):
            if isinstance(param, str):
                if param not in wanted.words:
                    raise IllTyped(f"{self.name} does not know {wanted.name} {param!r}")
            elif wanted.words or not (isinstance(param, int) or wanted.is_size):
                raise IllTyped(f"{wanted.name} of {self.name} cannot be {param}")

    def kinds_of(self, params: tuple[Param, ...]) -> tuple[Parameter, ...]:
        """Which parameter each of these is: the last one may repeat."""
        last = len(self.parameters) - 1
        return tuple(self.parameters[min(place, last)] for place in range(len(params)))


AXIS = Parameter("axis")
PLACE = Parameter("at", is_size=True)
SIZES = (Parameter("size", is_size=True, repeats=True),)


def number(param: Param) -> int:
    """A parameter that is a number.

    Raises:  IllTyped for another.
    """
    if not isinstance(param, int):
        raise IllTyped(f"{param} is no number")
    return param


def size(param: Param) -> Size:
    """A parameter that is a number or a size.

    Raises:  IllTyped for a word.
    """
    if isinstance(param, str):
        raise IllTyped(f"{param} is no size")
    return param


def axis_of(param: Param, shape: Shape) -> int:
    """A parameter that names a dimension of a shape.

    Raises:  IllTyped where the shape has no such dimension.
    """
    axis = number(param)
    if not 0 <= axis < len(shape):
        raise IllTyped(f"there is no dimension {axis}")
    return axis


def replaced(shape: Shape, axis: int, extent: Size) -> Shape:
    """The shape with another extent along one dimension."""
    return (*shape[:axis], extent, *shape[axis + 1 :])


def plain(name: str) -> MeaningRule:
    """The meaning that is one operator of `ops` without attributes."""
    return lambda params, shapes: (Step(name, {}),)
