"""What an e-graph knows of the tensors of a network: shape, element type, whether it is constant.

    ?x of f32(1, 8, 14, 14);  ?w of f32(16, 8, 3, 3), a constant
    conv2d[1, 1, same, none](?x, ?w)     f32(1, 16, 14, 14)
    relu(?w)                             f32(16, 8, 3, 3), constant: computed once, when compiled

Unlike a proof's, the extents are numbers, so every fact about them is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from tensorwright.base import DType
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.egraph import INPUT, Analysis, Applies, Scope, Value, listed
from tensorwright.rewriting.networks.opaque import CALL, OpaqueOperators
from tensorwright.rewriting.operators import IntShape, operator_named
from tensorwright.rewriting.prove import concrete_rule, longest_list, most_dimensions, reduced_at
from tensorwright.rewriting.shapes import Misfit, Needs
from tensorwright.rewriting.terms import AtLeast, Divides, Equal, Fact, Param, Rule

MOST_DIMENSIONS = 8
"""Tensors of more are none of rules' concern."""


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor of a network.

    is_constant   its value is known when the network is compiled
    selects_rows  its rows have zeros and a one at most: their product with a matrix are rows of it
    """

    shape: tuple[int, ...]
    dtype: DType = DType.F32
    is_constant: bool = False
    selects_rows: bool = False

    @property
    def elements(self) -> int:
        """How many elements it has."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def bytes(self) -> int:
        """The bytes of its elements."""
        return self.elements * self.dtype.size_bytes


@dataclass(frozen=True, slots=True)
class TypedOperator:
    """An operator with parameters at arguments of some types."""

    operator: str
    params: tuple[Param, ...]
    args: tuple[TensorData, ...]
    result: TensorData


def has_rules(data: TensorData) -> bool:
    """Whether rules speak of such a tensor."""
    has_elements = min(data.shape, default=1) > 0
    return data.dtype is DType.F32 and len(data.shape) <= MOST_DIMENSIONS and has_elements


class NetworkAnalysis(Analysis[TensorData]):
    """The data of terms over the inputs and constants of a network.

    Rules speak of numbers in f32.  They are proved for few dimensions, and applied to more where
    it follows from that (`prove/ranks.py`).
    """

    def __init__(self, inputs: Mapping[str, TensorData], opaque: OpaqueOperators) -> None:
        self._inputs = dict(inputs)
        self._opaque = opaque

    def make(
        self, operator: str, params: tuple[Param, ...], args: tuple[TensorData, ...]
    ) -> TensorData | None:
        """The tensor of an application; None where there is none."""
        if operator == INPUT:
            return self._inputs.get(str(params[0]))
        is_constant = all(arg.is_constant for arg in args)
        if operator == CALL:
            word, output = str(params[0]), params[1]
            assert isinstance(output, int), "an output is a number"
            types = self._opaque.infer(word, tuple((arg.dtype, arg.shape) for arg in args))
            if types is None or output >= len(types):
                return None
            selects_rows = self._opaque.is_row_selector(word)
            return TensorData(types[output].extents, types[output].dtype, is_constant, selects_rows)
        shape = self._shape(operator, params, args)
        if shape is None:
            return None
        selects_rows = (
            operator == "reshape" and args[0].selects_rows and shape[-1:] == args[0].shape[-1:]
        )
        made = TensorData(shape, DType.F32, is_constant, selects_rows)
        return made if all(map(has_rules, (*args, made))) else None

    def _shape(
        self, operator: str, params: tuple[Param, ...], args: tuple[TensorData, ...]
    ) -> tuple[int, ...] | None:
        shapes = tuple(arg.shape for arg in args)
        shape = operator_named(operator).result(params, shapes, Needs())
        if isinstance(shape, Misfit):
            return None
        numbers = tuple(extent for extent in shape if isinstance(extent, int))
        return numbers if len(numbers) == len(shape) else None

    def merge(self, kept: TensorData, lost: TensorData) -> TensorData:
        """Either: they are equal; what equals a constant is one."""
        return replace(
            kept,
            is_constant=kept.is_constant or lost.is_constant,
            selects_rows=kept.selects_rows or lost.selects_rows,
        )

    def may_merge(self, left: TensorData, right: TensorData) -> bool:
        """Whether they have one shape and one element type."""
        return (left.shape, left.dtype) == (right.shape, right.dtype)

    def admits(self, rule: Rule, scope: Scope[TensorData]) -> Applies:
        """Whether the rule at these shapes follows from one of few dimensions."""
        few = rule_of_few(rule, scope)
        return few if isinstance(few, Applies) else Applies.YES

    def shape_of(self, data: TensorData) -> Shape:
        """The shape of a tensor."""
        return data.shape

    def normal(self, size: Size) -> Size:
        """A size, which is a number where all extents are."""
        return size

    def entails(self, fact: Fact) -> bool:
        """Whether a fact is true of numbers."""
        match fact:
            case Equal(left, right):
                return left == right
            case AtLeast(int(left), int(right)):
                return left >= right
            case Divides(int(divisor), int(number)):
                return divisor != 0 and number % divisor == 0
        return False


def is_of_few(rule: Rule, values: Mapping[str, Value], shapes: Mapping[str, IntShape]) -> bool:
    """Whether no tensor of an application has more dimensions than those for which it is proved."""
    lists = tuple((name, each) for name, each in values.items() if isinstance(each, tuple))
    ranks = (len(shape) for shape in shapes.values())
    return max(_longest_list(rule, lists), *ranks, 0) <= most_dimensions(rule)


@lru_cache(maxsize=1 << 12)
def _longest_list(rule: Rule, lists: tuple[tuple[str, tuple[Param, ...]], ...]) -> int:
    return longest_list(concrete_rule(rule, dict(lists)) if lists else rule)


def rule_of_few(rule: Rule, scope: Scope[TensorData]) -> Rule | Applies:
    """The rule that holds for few dimensions just where this application does, itself if it is one
    of few; NO or UNKNOWN where there is none.

    relu(concat[3](?x, ?y)) == ...  at (2, 3, 4, 5, 6), (2, 3, 4, 7, 6)
    follows from                    relu(concat[1](?x, ?y)) == ... at (24, 5, 6), (24, 7, 6)
    """
    shapes = {name: data.shape for name, data in scope.data.items()}
    if is_of_few(rule, scope.values, shapes):
        return rule
    return _rule_of_few(rule, tuple(sorted(scope.values.items())), tuple(sorted(shapes.items())))


@lru_cache(maxsize=1 << 12)
def _rule_of_few(
    rule: Rule, values: tuple[tuple[str, Value], ...], shapes: tuple[tuple[str, IntShape], ...]
) -> Rule | Applies:
    given = {name: listed(value) for name, value in values}
    return reduced_at(concrete_rule(rule, given), dict(shapes))
