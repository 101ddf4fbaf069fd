"""What the families of operators share: the record, its parts, and steps of a meaning.

relu = RewriteOperator("relu", (TENSOR,), (), same shape, Step("relu"), POINTWISE, keep_common)
relu.check_params(())        fine; `check_params((1,))` raises IllTyped
operator_named("relu")       the record: prover, generator and pruning ask it, not its name
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

from tensorwright.expr import IndexExpr
from tensorwright.ops import Attributes
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.operators.dimensions import Merging
from tensorwright.rewriting.operators.split_points import SplitPointRule
from tensorwright.rewriting.shapes import IllTyped, Misfit, Needs, Params, ShapeRule, Shapes
from tensorwright.rewriting.terms import Param

IntShape: TypeAlias = tuple[int, ...]


class SizeGuess(Enum):
    """What a size in a rule is likely to be, where only its value at some shapes is known."""

    EXTENT = "extent"  # an extent of an input, a sum of two
    NUMBER = "number"  # that number, whatever the shapes
    PRODUCT = "product"  # an extent, a product of some
    STRETCHED = "stretched"  # the extent of the argument's dimension, if that is not stretched
    SPLIT = "split"  # a place along the axis: where parts meet, or the middle
    BOUND = "bound"  # a place along the axis: where parts meet, or that number


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
        """Whether it is a word, and no number."""
        return bool(self.words or self.form)

    def has_form(self, word: str) -> bool:
        """Whether a word has the form of those that it may be."""
        return re.fullmatch(self.form, word) is not None


class ArgumentRole(Enum):
    """What an argument is."""

    TENSOR = "tensor"
    NUMBER = "number"  # of rank 0
    KERNEL = "kernel"  # of a convolution
    VARIANCE = "variance"  # not negative


class StructureKind(Enum):
    """How a result depends on the arguments: what the fingerprints make use of.

    Planes are the rows and columns of (n, c, h, w).
    """

    CONSTANT = "constant"  # there are no arguments
    GATHER = "gather"  # sums of elements, one of each argument at most, negated or not
    LINEAR = "linear"
    BILINEAR = "bilinear"  # sums of products of an element of each argument
    QUOTIENT = "quotient"  # the same with the inverse of the second argument
    CONVOLUTION = "convolution"  # bilinear, alike for each image and each output channel
    POINTWISE = "pointwise"  # a function of one element
    PLANE_SUM = "plane sum"  # linear, alike on each plane
    PLANE_MAXIMUM = "plane maximum"  # the greatest of some elements, alike on each plane
    AFFINE = "affine"  # the first argument scaled and shifted by what the others say
    MAXIMUM = "maximum"  # the greatest of some elements
    ANY = "any"  # nothing is made use of


@dataclass(frozen=True, slots=True)
class Step:
    """One application of an operator of `ops`.

    argument  the one argument that it is applied to and that its result replaces; None for all
    """

    operator: str
    attributes: Attributes
    argument: int | None = None


MeaningRule: TypeAlias = Callable[[Params, tuple[IntShape, ...]], tuple[Step, ...]]

Value = TypeVar("Value")


def follow(
    steps: Iterable[Step],
    arguments: tuple[Value, ...],
    apply: Callable[[Step, tuple[Value, ...]], Value],
) -> tuple[Value, ...]:
    """What a chain of steps makes of arguments: the first gets them, each later one the result
    before it.
    """
    for step in steps:
        at = step.argument
        if at is None:
            arguments = (apply(step, arguments),)
        else:
            changed = apply(step, (arguments[at],))
            arguments = (*arguments[:at], changed, *arguments[at + 1 :])
    return arguments


@dataclass(frozen=True, slots=True)
class RewriteOperator:
    """An operator of rewriting, with all that prover, generator and pruning ask about it.

    arguments           what each argument is
    shape               see `shapes.py`; `result` asks it
    meaning             the chain of `ops` applications at concrete parameters and shapes
    structure           how its values are computed in the field, see `generate/fingerprint`
    split_points        where the result may be split, see `split_points.py`
    is_commutative      whether op(a, b) = op(b, a): the generator then tries one order only
    contains_arguments  whether the channels of the result are those of its arguments, in turn
    output_of           the operator with several outputs of which this is one
    short_name          what names of rules call it; "" for its own name
    merging             which dimensions it does not tell apart, see `dimensions.py`; None where
                        nothing is known
    rank                how many dimensions its arguments have, where that is always the same
    """

    name: str
    arguments: tuple[ArgumentRole, ...]
    parameters: tuple[Parameter, ...]
    shape: ShapeRule
    meaning: MeaningRule
    structure: StructureKind
    split_points: SplitPointRule
    is_commutative: bool = False
    contains_arguments: bool = False
    output_of: str = ""
    short_name: str = ""
    merging: Merging | None = None
    rank: int = 0

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return len(self.arguments)

    @property
    def word(self) -> str:
        """What names of rules call it."""
        return self.short_name or self.output_of or self.name.replace("_", "-")

    def result(self, params: Params, shapes: Shapes, needs: Needs) -> Shape | Misfit:
        """The shape of an application, or why there is none; what it needs besides is added.

        All who ask whether terms fit ask here: a refusal of the shape rule becomes a value.
        """
        if len(shapes) != self.arity:
            return Misfit(f"{self.name} takes {self.arity} arguments")
        try:
            self.check_params(params)
            return self.shape(params, shapes, needs)
        except IllTyped as fault:
            return Misfit(str(fault))
        except ZeroDivisionError:
            return Misfit(f"a size of {self.name} is divided by zero")

    def check_params(self, params: Params) -> None:
        """Refuse parameters of the wrong number or kind.

        Raises:  IllTyped
        """
        is_open = bool(self.parameters) and self.parameters[-1].repeats
        least = len(self.parameters) - is_open
        if len(params) < least or (len(params) > least and not is_open):
            raise IllTyped(f"{self.name} takes {least} parameters, not {len(params)}")
        for param, wanted in zip(params, self.kinds_of(params), strict=True):
            if isinstance(param, str):
                is_any = bool(wanted.form) and is_open_word(param)
                if param not in wanted.words and not is_any and not wanted.has_form(param):
                    raise IllTyped(f"{self.name} does not know {wanted.name} {param!r}")
            elif wanted.is_word or not (isinstance(param, int) or wanted.may_be_size):
                raise IllTyped(f"{wanted.name} of {self.name} cannot be {param}")

    def kinds_of(self, params: Params) -> tuple[Parameter, ...]:
        """Which parameter each of these is: the last one may repeat."""
        last = len(self.parameters) - 1
        return tuple(self.parameters[min(place, last)] for place in range(len(params)))


def is_open_word(word: str) -> bool:
    """Whether a word stands for all that a parameter may be."""
    return word.startswith("_") and word.endswith("_")


TENSOR = ArgumentRole.TENSOR
AXIS = Parameter("axis")
PLACE = Parameter("at", size=SizeGuess.SPLIT)
SIZES = (Parameter("size", size=SizeGuess.PRODUCT, repeats=True),)


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
    if not isinstance(param, int | IndexExpr):
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
