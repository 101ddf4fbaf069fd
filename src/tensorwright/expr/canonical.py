"""A text that two expressions share exactly when they differ in names only.

Tensors are numbered in the order in which the outputs reach them, axes by their position. Of an
input, only the shape, the type and whether it is constant are kept.  The keys of the record store
and of the kernel cache are hashes of this text, so a change here makes old records useless.

All classes of which a tensor expression consists, for code that writes and reads it as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, assert_never

from tensorwright.base import DType, Kinds, kinds_of
from tensorwright.expr.functions import Fn
from tensorwright.expr.index.nodes import (
    And,
    Compare,
    Condition,
    Decision,
    Element,
    ExactDiv,
    FloorDiv,
    Index,
    IndexExpr,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Poly,
    Relation,
    Symbol,
    Var,
)
from tensorwright.expr.index.sizes import NamedSize
from tensorwright.expr.tensor import Axis, Combiner, Compute, Placeholder, Reduction, Tensor
from tensorwright.expr.value import Apply, Cast, Const, FromIndex, Load, Select, Value, ValueExpr


def canonical_text(outputs: Sequence[Tensor], constants: Set[Placeholder] = frozenset()) -> str:
    """The whole graph below the outputs, one tensor a line, without names.

    Example:
        >>> from tensorwright.expr import compute, placeholder
        >>> x = placeholder("x", (4,))
        >>> print(canonical_text([compute("y", (4,), lambda i: x[i] + 1.0)]))
        t0 = input f32 (4)
        t1 = f32 (4) add(t0[i0], 1.0:f32)
        outputs t1
    """
    writer = _Writer(constants)
    names = [writer.tensor(output) for output in outputs]
    return "\n".join([*writer.lines, f"outputs {' '.join(names)}"])


class _Writer:
    """Numbers tensors as it reaches them; mutable, used inside one function."""

    def __init__(self, constants: Set[Placeholder]) -> None:
        self.lines: list[str] = []
        self._constants = constants
        self._names: dict[Tensor, str] = {}
        self._variables: Mapping[Var, str] = {}

    def tensor(self, tensor: Tensor) -> str:
        """The number of a tensor, whose line is written the first time."""
        if tensor not in self._names:
            line = self._input(tensor) if isinstance(tensor, Placeholder) else self._compute(tensor)
            self._names[tensor] = f"t{len(self._names)}"
            self.lines.append(f"{self._names[tensor]} = {line}")
        return self._names[tensor]

    def _input(self, tensor: Placeholder) -> str:
        kind = "constant" if tensor in self._constants else "input"
        return f"{kind} {tensor.dtype} ({', '.join(map(str, tensor.shape))})"

    def _compute(self, tensor: Compute) -> str:
        outer = self._variables
        names = {axis.var: f"i{n}" for n, axis in enumerate(tensor.axes)}
        names |= {axis.var: f"r{n}" for n, axis in enumerate(tensor.reduce_axes)}
        self._variables = names
        fold = ""
        if tensor.reduction is not None:
            extents = ", ".join(self.index(axis.extent) for axis in tensor.reduction.axes)
            fold = f"{tensor.reduction.combiner.value}({extents}) "
        shape = ", ".join(self.index(extent) for extent in tensor.shape)
        line = f"{tensor.dtype} ({shape}) {fold}{self.value(tensor.body)}"
        self._variables = outer
        return line

    def value(self, value: Value) -> str:
        """A value, without ambiguity: every constant carries its type."""
        match value:
            case Const(number, dtype):
                return f"{number}:{dtype}"
            case Load(source, indices):
                return self._element(source, indices)
            case FromIndex(index, dtype):
                return f"number({self.index(index)}):{dtype}"
            case Apply(fn, args):
                return f"{fn.name.lower()}({', '.join(self.value(arg) for arg in args)})"
            case Cast(operand, dtype):
                return f"cast({self.value(operand)}):{dtype}"
            case Select(condition, then, otherwise):
                if isinstance(condition, ValueExpr):
                    chosen = self.value(condition)
                else:
                    chosen = self.condition(condition)
                return f"select({chosen}, {self.value(then)}, {self.value(otherwise)})"
        assert_never(value)

    def condition(self, condition: Condition) -> str:
        """A condition of the index sort."""
        match condition:
            case bool():
                return str(condition)
            case Compare(relation, left, right):
                return f"{self.index(left)} {relation.value} {self.index(right)}"
            case And(parts):
                return f"all({', '.join(self.condition(part) for part in parts)})"
            case Or(parts):
                return f"any({', '.join(self.condition(part) for part in parts)})"
            case Not(part):
                return f"not({self.condition(part)})"
        assert_never(condition)

    def index(self, index: Index) -> str:
        """An index expression; the terms of sums are sorted anew, since their order is by name."""
        match index:
            case int():
                return str(index)
            case Var():
                return self._variables.get(index, index.name)
            case Symbol():
                return str(index)
            case Poly(terms):
                ordered = sorted(
                    ((sorted(monomial, key=self._shape_of), scale) for monomial, scale in terms),
                    key=lambda term: [*(self._shape_of(atom) for atom in term[0]), str(term[1])],
                )
                texts = [
                    "*".join([*map(self.index, atoms), str(scale)]) for atoms, scale in ordered
                ]
                return f"({' + '.join(texts)})"
            case FloorDiv(a, b) | ExactDiv(a, b) | Mod(a, b) | Min(a, b) | Max(a, b):
                return f"{type(index).__name__.lower()}({self.index(a)}, {self.index(b)})"
            case Element(source, indices):
                return self._element(source, indices)
        raise TypeError(f"not an index expression: {index!r}")

    def _element(self, source: Any, indices: tuple[Index, ...]) -> str:
        return f"{self.tensor(source)}[{', '.join(map(self.index, indices))}]"

    def _shape_of(self, atom: IndexExpr) -> str:
        """A text to sort by, which numbers no tensor: a tensor is written as its hash."""
        aside = _Writer(self._constants)
        aside._variables = self._variables
        text = aside.index(atom)
        return text if not aside.lines else f"{text} where {'; '.join(aside.lines)}"


EXPRESSION_KINDS: Kinds = kinds_of(
    *(Var, Decision, NamedSize, Poly, ExactDiv, FloorDiv, Mod, Min, Max, Element),
    *(Compare, Relation, And, Or, Not),
    *(Const, Load, FromIndex, Apply, Fn, Select, Cast),
    *(Axis, Combiner, Reduction, Placeholder, Compute, DType),
)
