"""Value expressions: what one element of a tensor is, over any number domain.

Grammar
    v ::= Const(number, dtype) | Load(source, (e, ...)) | FromIndex(e, dtype) | Apply(fn, (v, ...))
        | Select(c | v, v, v) | Cast(v, dtype)

Semantics.  A value has a dtype; `Apply` takes arguments of one dtype (comparisons and logic give
bool).  Integers wrap; integer DIV truncates towards zero and MOD follows it in sign for ints and
floats alike (C's fmod); FLOORMOD has the sign of the divisor.  Floats are IEEE; no reassociation
happens except where a schedule asks for it.  `Select` with an index condition never reads the
branch that is not taken; MIN and MAX propagate NaN.  `source` is a tensor in a tensor expression
and a buffer in the loop-nest IR; every index must lie inside its shape wherever the load is
executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorwright.base import DType
from tensorwright.expr.condition import condition_sides
from tensorwright.expr.functions import Fn
from tensorwright.expr.index import Condition, Element, Index, Var
from tensorwright.expr.traversal import atoms_of, substitute, substitute_condition


def _of_two(fn: Fn, is_right: bool = False) -> Callable[[ValueExpr, Operand], Value]:
    """The operator of a value and another operand; `is_right`: the value stands on the right."""
    if is_right:
        return lambda self, other: apply(fn, other, self)
    return lambda self, other: apply(fn, self, other)


class ValueExpr:
    """Base of every value node: carries the arithmetic operators.

    Beside a node stand the loads below it, once somebody has asked for them.
    """

    __slots__ = ("_loads",)

    _loads: tuple[Load, ...]

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        raise TypeError(f"{type(self).__name__} has no dtype")

    __add__, __radd__ = _of_two(Fn.ADD), _of_two(Fn.ADD, is_right=True)
    __sub__, __rsub__ = _of_two(Fn.SUB), _of_two(Fn.SUB, is_right=True)
    __mul__, __rmul__ = _of_two(Fn.MUL), _of_two(Fn.MUL, is_right=True)
    __truediv__, __rtruediv__ = _of_two(Fn.DIV), _of_two(Fn.DIV, is_right=True)
    __lt__, __gt__ = _of_two(Fn.LT), _of_two(Fn.LT, is_right=True)
    __le__, __ge__ = _of_two(Fn.LE), _of_two(Fn.LE, is_right=True)

    def __neg__(self) -> Value:
        return apply(Fn.NEG, self)


@dataclass(frozen=True, slots=True)
class Const(ValueExpr):
    """A number; bools are 0 and 1 of dtype bool."""

    value: float | int | bool
    type: DType

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        return self.type

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Load(ValueExpr):
    """One element of a tensor (tensor expressions) or of a buffer (loop nests)."""

    source: Any  # Tensor | Buffer, both with .name, .dtype, .shape
    indices: tuple[Index, ...]

    @property
    def dtype(self) -> DType:
        """The element type of the source."""
        found: DType = self.source.dtype
        return found

    def __str__(self) -> str:
        return f"{self.source.name}[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True, slots=True)
class FromIndex(ValueExpr):
    """An index expression as a number."""

    index: Index
    type: DType

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        return self.type

    def __str__(self) -> str:
        return f"{self.type}({self.index})"


@dataclass(frozen=True, slots=True)
class Apply(ValueExpr):
    """A function of values; build it with the operators or the functions of `tensorwright.expr`."""

    fn: Fn
    args: tuple[Value, ...]

    @property
    def dtype(self) -> DType:
        """That of the arguments, or bool."""
        return DType.BOOL if self.fn.gives_bool else self.args[0].dtype

    def __str__(self) -> str:
        parts = [str(arg) for arg in self.args]
        if self.fn.is_infix:
            parts = [
                f"({part})" if isinstance(arg, Apply) and arg.fn.is_infix else part
                for part, arg in zip(parts, self.args, strict=True)
            ]
            return f"{parts[0]} {self.fn.text} {parts[1]}"
        return f"{self.fn.text}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Select(ValueExpr):
    """`then` where the condition holds, else `otherwise`; an index condition guards loads."""

    condition: Condition | Value
    then: Value
    otherwise: Value

    @property
    def dtype(self) -> DType:
        """That of both branches."""
        return self.then.dtype

    def __str__(self) -> str:
        return f"select({self.condition}, {self.then}, {self.otherwise})"


@dataclass(frozen=True, slots=True)
class Cast(ValueExpr):
    """Conversion: float to int truncates towards zero, to bool is `!= 0`; build with `cast`."""

    operand: Value
    type: DType

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        return self.type

    def __str__(self) -> str:
        return f"{self.type}({self.operand})"


Value: TypeAlias = Const | Load | FromIndex | Apply | Select | Cast
Operand: TypeAlias = ValueExpr | int | float | bool


def constant(value: float | int | bool, dtype: DType) -> Const:
    """A constant of the given dtype; floats are stored as Python floats, ints as ints."""
    if dtype is DType.BOOL:
        return Const(bool(value), dtype)
    return Const(float(value) if dtype.is_float else int(value), dtype)


def cast(operand: Value, dtype: DType) -> Value:
    """Convert to `dtype`; nothing happens where it already is."""
    return operand if operand.dtype is dtype else Cast(operand, dtype)


def select(condition: Condition | Value, then: Value, otherwise: Operand) -> Value:
    """`then` where the condition holds, else `otherwise`; decided at once for a plain bool."""
    other = as_value(otherwise, then.dtype)
    if isinstance(condition, bool):
        return then if condition else other
    if then.dtype is not other.dtype:
        raise TypeError(f"select between {then.dtype} and {other.dtype}")
    return Select(condition, then, other)


def as_value(operand: Operand, dtype: DType) -> Value:
    """A value from a value or a Python number."""
    if isinstance(operand, ValueExpr):
        return operand  # type: ignore[return-value]  # ValueExpr's subclasses are exactly Value
    return constant(operand, dtype)


def apply(fn: Fn, *operands: Operand) -> Value:
    """Apply a function; Python numbers take the dtype of the other operand.

    Raises: TypeError for a wrong number of arguments, for mixed dtypes, or without any value.
    """
    if len(operands) != fn.arity:
        raise TypeError(f"{fn.text} takes {fn.arity} arguments, not {len(operands)}")
    dtype = next((o.dtype for o in operands if isinstance(o, ValueExpr)), None)
    if dtype is None:
        raise TypeError(f"{fn.text} of plain numbers: at least one operand must be a value")
    args = tuple(as_value(operand, dtype) for operand in operands)
    if any(arg.dtype is not dtype for arg in args):
        found = ", ".join(str(arg.dtype) for arg in args)
        raise TypeError(f"{fn.text} of mixed dtypes {found}: cast the operands first")
    return Apply(fn, args)


def children(value: Value) -> tuple[Value, ...]:
    """The direct value operands (not those inside index expressions)."""
    match value:
        case Apply(_, args):
            return args
        case Select(condition, then, otherwise):
            first = (condition,) if isinstance(condition, ValueExpr) else ()
            return (*first, then, otherwise)
        case Cast(operand, _):
            return (operand,)
        case _:
            return ()


def indices_of(value: Value) -> tuple[Index, ...]:
    """The index expressions of the node itself, without those of its operands."""
    match value:
        case Load(_, indices):
            return indices
        case FromIndex(index, _):
            return (index,)
        case Select(condition, _, _) if not isinstance(condition, ValueExpr):
            return tuple(condition_sides(condition))
        case _:
            return ()


def rebuild(
    value: Value,
    on_load: Callable[[Load], Value],
    on_index: Callable[[Index], Index],
    on_condition: Callable[[Condition], Condition],
) -> Value:
    """Copy a value bottom-up, its parts through the functions (a load's indices come mapped)."""
    return _Rebuilding(on_load, on_index, on_condition).of(value)


class _Rebuilding:
    """Mutable working state of one copy; no closures, which would hold each other."""

    def __init__(
        self,
        on_load: Callable[[Load], Value],
        on_index: Callable[[Index], Index],
        on_condition: Callable[[Condition], Condition],
    ) -> None:
        self.on_load = on_load
        self.on_index = on_index
        self.on_condition = on_condition
        self.done: dict[int, Value] = {}

    def of(self, node: Value) -> Value:
        """The copy of a node; nodes that are shared stay shared."""
        found = self.done.get(id(node))
        if found is None:
            found = self.done[id(node)] = self._copy(node)
        return found

    def _copy(self, node: Value) -> Value:
        match node:
            case Const():
                return node
            case Load(source, indices):
                return self.on_load(Load(source, tuple(map(self.on_index, indices))))
            case FromIndex(index, dtype):
                return FromIndex(self.on_index(index), dtype)
            case Apply(fn, args):
                return Apply(fn, tuple(map(self.of, args)))
            case Cast(operand, dtype):
                return Cast(self.of(operand), dtype)
            case Select(condition, then, otherwise):
                if not isinstance(condition, ValueExpr):
                    chosen = self.on_condition(condition)
                    if isinstance(chosen, bool):
                        return self.of(then if chosen else otherwise)
                    return Select(chosen, self.of(then), self.of(otherwise))
                return Select(self.of(condition), self.of(then), self.of(otherwise))


def substitute_value(value: Value, mapping: Mapping[Any, Index]) -> Value:
    """Replace loop variables and decisions everywhere in a value."""
    return rebuild(
        value,
        lambda load: load,
        lambda index: substitute(index, mapping),
        lambda condition: substitute_condition(condition, mapping),
    )


def map_loads(value: Value, on_load: Callable[[Load], Value]) -> Value:
    """Replace every load (not those inside index expressions) by what `on_load` returns."""
    return rebuild(value, on_load, lambda index: index, lambda condition: condition)


def loads_of(value: Value) -> Iterator[Load]:
    """Every load below a value, in order; elements used as indices come as loads too.

    A node that is shared inside the value (the same object) is visited once.
    """
    try:
        return iter(value._loads)
    except AttributeError:
        found: list[Load] = []
        _collect_loads(value, set(), found, found)
        object.__setattr__(value, "_loads", tuple(found))
        return iter(found)


def index_tensors_of(value: Value) -> frozenset[str]:
    """The names of the tensors whose elements are used as indices below a value."""
    found: list[Load] = []
    _collect_loads(value, set(), [], found)
    return frozenset(load.source.name for load in found)


def _collect_loads(value: Value, seen: set[int], loads: list[Load], elements: list[Load]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Load):
        loads.append(value)
    for index in indices_of(value):
        _collect_elements(index, elements)
    for child in children(value):
        _collect_loads(child, seen, loads, elements)


def _collect_elements(index: Index, found: list[Load]) -> None:
    if isinstance(index, (int, Var)):
        return
    found.extend(
        Load(atom.source, atom.indices) for atom in atoms_of(index) if isinstance(atom, Element)
    )
