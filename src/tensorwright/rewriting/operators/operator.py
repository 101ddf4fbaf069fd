"""The record of an operator, its parts, and steps of a meaning, for all families.

relu = RewriteOperator("relu", same_shape, plain("relu"), structure=StructureKind.POINTWISE)
relu.check_params(())        fine; `check_params((1,))` raises IllTyped
operator_named("relu")       the record: prover, generator and pruning use it, not its name

The positions where tensors were put together, at which the generator splits them.

    concat[0](a, b), a (2, 3), b (4, 3)         ((2,), ())     split in rows before row 2
    relu of it                                  ((2,), ())     element-wise operators keep them
    matmul(concat[0](a, b), w)                  ((2,), ())     rows of the left argument

Split points are, per dimension, positions in rising order.  They are sizes, so that one rule serves
numbers and expressions over the inputs' extents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

from tensorwright.ops import Attributes
from tensorwright.rewriting.assumptions import IllTyped, Misfit, Needs, Params, ShapeRule, Shapes
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.operators.parameters import (
    Merging,
    Parameter,
    attribute_of,
    axis_of,
    is_open_word,
    size,
)

SplitPoints: TypeAlias = tuple[tuple[Size, ...], ...]
Points: TypeAlias = tuple[SplitPoints, ...]
SplitPointRule: TypeAlias = Callable[[Params, Shapes, Points, int], SplitPoints]
"""The split points of a result from parameters, shapes and split points of the arguments, and the
rank of the result."""


def no_split_points(rank: int) -> SplitPoints:
    """Those of a tensor that was not put together."""
    return ((),) * rank


def no_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result counts as not put together."""
    return no_split_points(rank)


def first_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result has those of the first argument."""
    return points[0]


def common_points(params: Params, shapes: Shapes, points: Points, rank: int) -> SplitPoints:
    """The result has those that all arguments have."""
    first, *others = points
    return tuple(
        tuple(point for point in places if all(point in other[axis] for other in others))
        for axis, places in enumerate(first)
    )


IntShape: TypeAlias = tuple[int, ...]


class ArgumentRole(Enum):
    """The role of an argument of an operator."""

    TENSOR = "tensor"
    NUMBER = "number"  # of rank 0
    KERNEL = "kernel"  # of a convolution
    VARIANCE = "variance"  # not negative


class StructureKind(Enum):
    """How a result depends on the arguments, for fingerprints.

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
    AFFINE = "affine"  # the first argument scaled and shifted by the others
    MAXIMUM = "maximum"  # the greatest of some elements
    ANY = "any"  # no structure is used


@dataclass(frozen=True, slots=True)
class Step:
    """One application of an operator of `ops`.

    argument  the one argument that it is applied to and that its result replaces; None for all
    """

    operator: str
    attributes: Attributes
    argument: int | None = None


MeaningRule: TypeAlias = Callable[[Params, Shapes], tuple[Step, ...]]

Value = TypeVar("Value")


def follow(
    steps: Iterable[Step],
    arguments: tuple[Value, ...],
    apply: Callable[[Step, tuple[Value, ...]], Value],
) -> tuple[Value, ...]:
    """The result of a chain of steps: the first gets the arguments, each later one the result
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
    """An operator of rewriting, with all facts that prover, generator and pruning need.

    shape               see `assumptions.py`; `result` asks it
    meaning             the chain of `ops` applications at given parameters and shapes, which may
                        be sizes where `ops` takes them; raises IllTyped where a size cannot be
    arguments           the role of each argument
    structure           how its values are computed in the field, see `generate/fingerprint`
    split_points        where the result may be split, see `operator.py`
    is_commutative      whether op(a, b) = op(b, a): the generator then tries one order only
    contains_arguments  whether the channels of the result are those of its arguments, in turn
    output_of           the operator with several outputs of which this is one
    short_name          its name in names of rules; "" for its own name
    merging             which dimensions it does not tell apart, see `parameters.py`; None where
                        nothing is known
    rank                how many dimensions its arguments have, where that is always the same
    """

    name: str
    shape: ShapeRule
    meaning: MeaningRule
    _: KW_ONLY
    arguments: tuple[ArgumentRole, ...] = (ArgumentRole.TENSOR,)
    parameters: tuple[Parameter, ...] = ()
    structure: StructureKind = StructureKind.ANY
    split_points: SplitPointRule = no_points
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
        """Its name in names of rules."""
        return self.short_name or self.output_of or self.name.replace("_", "-")

    def result(self, params: Params, shapes: Shapes, needs: Needs) -> Shape | Misfit:
        """The shape of an application, or why there is none; what it needs besides is added.

        The shape rule raises; here its refusal becomes a value.
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
        return tuple(self.parameters[min(number, last)] for number in range(len(params)))


TENSOR = ArgumentRole.TENSOR


def replaced(shape: Shape, axis: int, extent: Size) -> Shape:
    """The shape with another extent along one dimension."""
    return (*shape[:axis], extent, *shape[axis + 1 :])


def same_shape(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    """The shape that all arguments have."""
    for other in shapes[1:]:
        needs.equal_shapes(shapes[0], other)
    return shapes[0]


def shape_with_axis(params: Params, shapes: Shapes, needs: Needs) -> Shape:
    """The shape of the argument, which has the dimension that the first parameter names."""
    axis_of(params[0], shapes[0])
    return shapes[0]


def plain(name: str, *attributes: str) -> MeaningRule:
    """The meaning that is one operator of `ops`, with the parameters as attributes in turn."""

    def rule(params: Params, shapes: Shapes) -> tuple[Step, ...]:
        return (Step(name, dict(zip(attributes, map(attribute_of, params), strict=True))),)

    return rule


def listed(name: str, attribute: str) -> MeaningRule:
    """The meaning that is one operator of `ops`, with all parameters as one attribute."""
    return lambda params, shapes: (Step(name, {attribute: tuple(map(size, params))}),)
