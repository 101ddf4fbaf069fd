"""What an e-graph knows of the tensors of a network: shape, element type, whether it is constant.

    ?x of f32(1, 8, 14, 14);  ?w of f32(16, 8, 3, 3), a constant
    conv2d[1, 1, same, none](?x, ?w)     f32(1, 16, 14, 14)
    relu(?w)                             f32(16, 8, 3, 3), constant: computed once, when compiled

Unlike a proof's, the extents are numbers, so every fact about them is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tensorwright.base import DType
from tensorwright.rewriting.dims import Extent, Size, atoms_of, value_of
from tensorwright.rewriting.egraph import INPUT, Applies, Scope, Value, axis_in
from tensorwright.rewriting.networks.few_dimensions import (
    MOST_DIMENSIONS,
    is_of_few,
    rule_of_few,
)
from tensorwright.rewriting.networks.opaque import CALL, OpaqueOperators
from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.shapes import Misfit, Needs
from tensorwright.rewriting.terms import (
    AtLeast,
    ConditionAtom,
    Different,
    Divides,
    Equal,
    Param,
    Rank,
    Rule,
)


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


class NetworkAnalysis:
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

    def size(self, size: Size, scope: Scope[TensorData] | None) -> Size | None:
        """The number that a size is; None where it is none."""
        if isinstance(size, int) or scope is None:
            return size
        extents: dict[Extent, Size] = {}
        for extent in atoms_of(size):
            value: Value | None = scope.values.get(extent.name)
            if not extent.name.startswith("_"):
                data = scope.data.get(extent.name)
                shape, axis = () if data is None else data.shape, axis_in(extent, scope)
                value = shape[axis] if axis is not None and axis < len(shape) else None
            if not isinstance(value, int):
                return None
            extents[extent] = value
        try:
            return value_of(size, extents)
        except ZeroDivisionError:
            return None

    def admits(self, rule: Rule, scope: Scope[TensorData]) -> Applies:
        """Whether the rule at these shapes follows from one of few dimensions."""
        shapes = {name: data.shape for name, data in scope.data.items()}
        if is_of_few(rule, scope.values, shapes):
            return Applies.YES
        few = rule_of_few(rule, scope.values, shapes)
        return few if isinstance(few, Applies) else Applies.YES

    def holds(self, fact: ConditionAtom, scope: Scope[TensorData]) -> bool:
        """Whether an atom of a condition is true."""
        if isinstance(fact, Rank):
            return len(scope.data[fact.name].shape) == fact.rank
        if isinstance(fact, Different):
            return scope.values[fact.left] != scope.values[fact.right]
        first, second = (
            (fact.divisor, fact.number) if isinstance(fact, Divides) else (fact.left, fact.right)
        )
        one, other = self.size(first, scope), self.size(second, scope)
        if not isinstance(one, int) or not isinstance(other, int):
            return False
        match fact:
            case Equal():
                return one == other
            case AtLeast():
                return one >= other
            case Divides():
                return one != 0 and other % one == 0
