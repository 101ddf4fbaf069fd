"""The record of an operator, its parts, and steps of a meaning, for all families.

relu = RewriteOperator("relu", same_shape, plain("relu"), merging=ALIKE)
relu.check_params(())        fine; `check_params((1,))` raises IllTyped
operator_named("relu")       the record, which the prover and the generator use
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

IntShape: TypeAlias = tuple[int, ...]


class ArgumentRole(Enum):
    """The role of an argument of an operator."""

    TENSOR = "tensor"
    NUMBER = "number"  # of rank 0
    KERNEL = "kernel"  # of a convolution
    VARIANCE = "variance"  # not negative


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
    """The result of a chain: the first step gets the arguments, each later one a result."""
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
    """An operator of rewriting.

    shape       see `assumptions.py`; `result` asks it
    meaning     the chain of `ops` applications at given parameters and shapes, which may be sizes
                where `ops` takes them; raises IllTyped where a size cannot be
    arguments   the role of each argument
    output_of   the operator with several outputs of which this is one
    merging     which dimensions it does not tell apart, see `parameters.py`; None where nothing is
                known
    rank        how many dimensions its arguments have, where that is always the same
    """

    name: str
    shape: ShapeRule
    meaning: MeaningRule
    _: KW_ONLY
    arguments: tuple[ArgumentRole, ...] = (ArgumentRole.TENSOR,)
    parameters: tuple[Parameter, ...] = ()
    output_of: str = ""
    merging: Merging | None = None
    rank: int = 0

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return len(self.arguments)

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
        """Refuse parameters of the wrong number or kind."""
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
