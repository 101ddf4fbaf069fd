"""Parameters of operators: numbers, sizes, dimensions, and words.

AXIS                          a number that names a dimension
number_word(0.01)             f0p01: a number that is not a size is a word; fm1p5 is -1.5
axis_of(2, (3, 4))            IllTyped: there is no dimension 2
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tensorwright.expr import IndexExpr
from tensorwright.ops import AttributeValue
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.shapes import IllTyped
from tensorwright.rewriting.terms import Param


class SizeGuess(Enum):
    """The likely expression of a size in a rule, where only its value at some shapes is known."""

    EXTENT = "extent"  # an extent of an input, a sum of two
    NUMBER = "number"  # that number, whatever the shapes
    PRODUCT = "product"  # an extent, a product of some
    STRETCHED = "stretched"  # the extent of the argument's dimension, if that is not stretched
    SPLIT = "split"  # a position along the axis: where parts meet, or the middle
    BOUND = "bound"  # a position along the axis: where parts meet, or that number


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter.

    words     the words it may be; empty for a number, or where a form says which words
    form      a regular expression of other words that it may be; samples   some of these
    size      what it is likely to be, if it may be a size over the inputs' extents; None if it is
              a number only
    repeats   whether it takes all parameters that are left
    is_open   whether a proof may leave it open: the shape rule takes any size for a number that is
              at least 1.  A word with a form may always be left open: as a word that begins and
              ends with an underscore
    least     the least number that it may be where it is a size or open
    apart     the words for which an open one does not stand
    is_beside_shape  whether no shape depends on which of its words it is
    """

    name: str
    words: tuple[str, ...] = ()
    size: SizeGuess | None = None
    repeats: bool = False
    form: str = ""
    samples: tuple[str, ...] = ()
    is_open: bool = False
    least: int = 1
    apart: tuple[str, ...] = ()
    is_beside_shape: bool = False

    @property
    def is_size(self) -> bool:
        """Whether it may be a size, and not only a number."""
        return self.size is not None

    @property
    def may_be_size(self) -> bool:
        """Whether its shape rule takes a size for it."""
        return self.is_size or self.is_open

    @property
    def is_axis(self) -> bool:
        """Whether it names a dimension."""
        return self.name == "axis"

    @property
    def is_order(self) -> bool:
        """Whether it is a permutation, with all parameters that are left."""
        return self.repeats and not self.is_size

    @property
    def is_word(self) -> bool:
        """Whether it is a word, not a number."""
        return bool(self.words or self.form)

    def has_form(self, word: str) -> bool:
        """Whether a word has the form of those that it may be."""
        return re.fullmatch(self.form, word) is not None


def is_open_word(word: str) -> bool:
    """Whether a word stands for all that a parameter may be."""
    return word.startswith("_") and word.endswith("_")


_NUMBER = r"f(m?\d+p\d+|m?\d+(p\d+)?em?\d+|m?inf)"


def number_word(value: float) -> str:
    """The word of a number: 0.01 is f0p01, -1.5 is fm1p5, infinity finf."""
    return "f" + repr(float(value)).replace(".", "p").replace("-", "m").replace("+", "")


def number_of_word(word: Param) -> float:
    """The number that a word is.

    Raises:  ValueError for another word.
    """
    text = str(word)
    if not re.fullmatch(_NUMBER, text):
        raise ValueError(f"{text} is not a word of a number")
    return float(text[1:].replace("p", ".").replace("m", "-"))


def attribute_of(param: Param) -> AttributeValue:
    """A parameter that is not a size, as an attribute of an operator of `ops`."""
    if isinstance(param, int):
        return param
    return number_of_word(param) if re.fullmatch(_NUMBER, str(param)) else str(param)


def number_parameter(name: str, *samples: float) -> Parameter:
    """A parameter that is a number, not a size; it is tried at the samples."""
    return Parameter(
        name, form=_NUMBER, samples=tuple(map(number_word, samples)), is_beside_shape=True
    )


AXIS = Parameter("axis")
PLACE = Parameter("at", size=SizeGuess.SPLIT)
SIZES = (Parameter("size", size=SizeGuess.PRODUCT, repeats=True),)


def number(param: Param) -> int:
    """A parameter that is a number.

    Raises:  IllTyped for another.
    """
    if not isinstance(param, int):
        raise IllTyped(f"{param} is not a number")
    return param


def numbers(params: tuple[Param, ...]) -> tuple[int, ...]:
    """Parameters, or extents, that are numbers.

    Raises:  IllTyped for others.
    """
    return tuple(map(number, params))


def size(param: Param) -> Size:
    """A parameter that is a number or a size.

    Raises:  IllTyped for a word.
    """
    if not isinstance(param, int | IndexExpr):
        raise IllTyped(f"{param} is not a size")
    return param


def axis_of(param: Param, shape: Shape) -> int:
    """A parameter that names a dimension of a shape.

    Raises:  IllTyped where the shape has no such dimension.
    """
    axis = number(param)
    if not 0 <= axis < len(shape):
        raise IllTyped(f"there is no dimension {axis}")
    return axis
