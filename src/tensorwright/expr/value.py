"""Value expressions: what one element of a tensor is, over any number domain.

Grammar
    v ::= Const(number, dtype) | Load(source, (e, ...)) | FromIndex(e, dtype) | Apply(fn, (v, ...))
        | Select(c | v, v, v) | Cast(v, dtype)

Semantics.  A value has a dtype; `Apply` takes arguments of one dtype (comparisons and logic give
bool).  Integers wrap; integer DIV truncates towards zero and MOD follows it in sign for ints and
floats alike (C's fmod); FLOORMOD has the sign of the divisor.  Floats are IEEE; no reassociation
happens except where a schedule asks for it.  As operators, `//` rounds down and `%` has the sign
of the divisor as in NumPy, `/` is of floats only, and `&`, `|`, `^`, `~` are logic for bools and of
bits for ints.  `Select` with an index condition never reads the branch that is not taken, one with
a value condition reads both; MIN and MAX propagate NaN.  `source` is a tensor in a tensor
expression and a buffer in the loop-nest IR; every index must lie inside its shape wherever the load
is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorwright.base import DType, ExpressionError
from tensorwright.expr.functions import Fn
from tensorwright.expr.index.nodes import Condition, Element, Index, IndexExpr, Logic, Var
from tensorwright.expr.index.traversal import (
    atoms_of,
    condition_sides,
    free_vars,
    substitute,
    substitute_condition,
)
from tensorwright.expr.symbolic import (
    Symbolic,
    as_number,
    equal_by_fields,
    noun_of,
    refused,
    remedy_of,
)


def _of_two(fn: Fn, is_right: bool = False) -> Callable[[ValueExpr, Operand], Value]:
    """The operator of a value and another operand; `is_right`: the value stands on the right."""
    if is_right:
        return lambda self, other: apply(fn, other, self)
    return lambda self, other: apply(fn, self, other)


def _joined(of_bools: Fn, of_ints: Fn, is_right: bool = False) -> Callable[[Any, Any], Value]:
    """An operator that is logic for bools and works on the bits of ints."""

    def operation(self: ValueExpr, other: Operand) -> Value:
        fn = of_bools if self.dtype is DType.BOOL else of_ints
        return apply(fn, other, self) if is_right else apply(fn, self, other)

    return operation


class ValueExpr(Symbolic):
    """Base of every value node: carries the operators.

    A node keeps the loads below it after the first question for them.
    """

    __slots__ = ("_loads",)

    noun = "a value"
    as_value = "read it as an index from a tensor of integers: x[t[i]]"
    instead_of_truth = (
        "select(v > 0, then, otherwise) for if; &, |, ~ for and, or, not; max_of and min_of for "
        "max and min"
    )

    _loads: tuple[Load, ...]

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        raise TypeError(f"{type(self).__name__} has no dtype")

    __add__, __radd__ = _of_two(Fn.ADD), _of_two(Fn.ADD, is_right=True)
    __sub__, __rsub__ = _of_two(Fn.SUB), _of_two(Fn.SUB, is_right=True)
    __mul__, __rmul__ = _of_two(Fn.MUL), _of_two(Fn.MUL, is_right=True)
    __mod__, __rmod__ = _of_two(Fn.FLOORMOD), _of_two(Fn.FLOORMOD, is_right=True)
    __lshift__, __rlshift__ = _of_two(Fn.SHL), _of_two(Fn.SHL, is_right=True)
    __rshift__, __rrshift__ = _of_two(Fn.SHR), _of_two(Fn.SHR, is_right=True)
    __lt__, __gt__ = _of_two(Fn.LT), _of_two(Fn.LT, is_right=True)
    __le__, __ge__ = _of_two(Fn.LE), _of_two(Fn.LE, is_right=True)
    __and__, __rand__ = _joined(Fn.AND, Fn.BITAND), _joined(Fn.AND, Fn.BITAND, is_right=True)
    __or__, __ror__ = _joined(Fn.OR, Fn.BITOR), _joined(Fn.OR, Fn.BITOR, is_right=True)
    __xor__, __rxor__ = _joined(Fn.XOR, Fn.BITXOR), _joined(Fn.XOR, Fn.BITXOR, is_right=True)

    def __truediv__(self, other: Operand) -> Value:
        return _true_division(self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return _true_division(other, self)

    def __floordiv__(self, other: Operand) -> Value:
        return floor_division(self, other)

    def __rfloordiv__(self, other: Operand) -> Value:
        return floor_division(other, self)

    def __divmod__(self, other: Operand) -> tuple[Value, Value]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Value, Value]:
        return other // self, other % self

    def __pow__(self, other: Operand) -> Value:
        return power(self, other)

    def __rpow__(self, other: Operand) -> Value:
        return power(other, self)

    def __neg__(self) -> Value:
        return apply(Fn.NEG, self)

    def __pos__(self) -> Value:
        return self  # type: ignore[return-value]  # ValueExpr's subclasses are exactly Value

    def __abs__(self) -> Value:
        return apply(Fn.ABS, self)

    def __invert__(self) -> Value:
        return apply(Fn.NOT if self.dtype is DType.BOOL else Fn.BITNOT, self)

    def __round__(self, digits: int | None = None) -> Value:
        if digits:
            raise refused(f"round({self}, {digits})", "a value is rounded to an integer")
        return apply(Fn.ROUND, self)

    def __floor__(self) -> Value:
        return apply(Fn.FLOOR, self)

    def __ceil__(self) -> Value:
        return apply(Fn.CEIL, self)

    def __trunc__(self) -> Value:
        return apply(Fn.TRUNC, self)

    def compares(self, sign: str, other: Any) -> Value:
        """Whether the elements are equal."""
        return apply(Fn.EQ if sign == "==" else Fn.NE, self, other)


@equal_by_fields
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


@equal_by_fields
@dataclass(frozen=True, slots=True)
class Load(ValueExpr):
    """One element of a tensor (tensor expressions) or of a buffer (loop nests)."""

    source: Any  # Tensor | Buffer, both with .name, .dtype, .shape
    indices: tuple[Index, ...]

    @property
    def dtype(self) -> DType:
        """The element type of the source."""
        dtype: DType = self.source.dtype
        return dtype

    def __str__(self) -> str:
        return f"{self.source.name}[{', '.join(map(str, self.indices))}]"


@equal_by_fields
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


@equal_by_fields
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


@equal_by_fields
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


@equal_by_fields
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

_MOST_BITS = 64  # of an integer that messages write out
_NUMBER_OF_CONDITION = "cast(condition, DType.{}) makes 1 or 0 of it; or select(condition, v, 0)"


def constant(value: float | int | bool, dtype: DType) -> Const:
    """A constant of the given dtype; floats are stored as Python floats, ints as ints.

    Raises: ExpressionError for what is not a number, and for a fraction among integers.
    """
    number = as_number(value)
    if number is None:
        raise refused(noun_of(value), "it is not a constant", remedy_of(value))
    require_dtype(dtype)
    if dtype is DType.BOOL:
        return Const(bool(number), dtype)
    if dtype.is_float:
        try:
            return Const(float(number), dtype)
        except OverflowError:
            raise _misfit(number, dtype) from None
    if isinstance(number, float) and not number.is_integer():
        raise refused(f"the number {number}", f"{dtype} has no such number")
    return Const(int(number), dtype)


def require_dtype(dtype: object) -> None:
    """Refuse what is not a type of elements.  Raises: ExpressionError."""
    if not isinstance(dtype, DType):
        dtypes = ", ".join(f"DType.{each.name}" for each in DType)
        raise refused(f"dtype {dtype!r}", "it is not a DType of tensorwright.base", dtypes)


def cast(operand: Value | Index | Condition | float, dtype: DType) -> Value:
    """Convert to `dtype`; nothing happens where it already is.

    An index becomes a number, a condition on indices 1 or 0; float to int truncates towards zero.
    """
    if isinstance(operand, ValueExpr):
        if operand.dtype is dtype:
            return operand
        require_dtype(dtype)
        return Cast(operand, dtype)
    if isinstance(operand, Logic):
        return select(operand, constant(1, dtype), constant(0, dtype))
    index = getattr(operand, "var", None)  # an axis stands for its variable
    if not isinstance(index, IndexExpr):  # a number of NumPy has a function of that name
        index = operand
    if isinstance(index, IndexExpr):
        require_dtype(dtype)
        return FromIndex(index, dtype)
    return constant(index, dtype)


def select(condition: Condition | Value, then: Operand, otherwise: Operand) -> Value:
    """`then` where the condition holds, else `otherwise`; decided at once for a plain bool.

    Raises: ExpressionError for anything else than a condition or a value of type bool, for branches
            of different types, and where none of them is a value.
    """
    dtype = next((o.dtype for o in (then, otherwise) if isinstance(o, ValueExpr)), None)
    if dtype is None:
        numbers = as_number(then), as_number(otherwise)
        usual = DType.F32 if None in numbers else _usual_dtype(numbers)
        number = 1.0 if numbers[0] is None else numbers[0]
        remedy = f"constant({number}, DType.{usual.name}) says of which type a number is"
        raise refused("select", "one of its branches has to be a value", remedy)
    first, second = as_value(then, dtype), as_value(otherwise, dtype)
    if first.dtype is not second.dtype:
        reason = f"select between {first.dtype} and {second.dtype}"
        raise refused(f"{first} and {second}", reason, "cast one of them")
    if isinstance(condition, (bool, np.bool_)):
        return first if condition else second
    is_value = isinstance(condition, ValueExpr)
    if not isinstance(condition, Logic) and not (is_value and condition.dtype is DType.BOOL):
        kind = f"a value of {condition.dtype}" if is_value else noun_of(condition)
        raise refused(condition, f"select by {kind}", "a comparison says what is meant: v != 0")
    return Select(condition, first, second)


def _usual_dtype(numbers: tuple[float | None, ...]) -> DType:
    """The type that two numbers without one usually have."""
    if all(isinstance(each, bool) for each in numbers):
        return DType.BOOL
    return DType.F32 if any(isinstance(each, float) for each in numbers) else DType.I32


def as_value(operand: Operand, dtype: DType) -> Value:
    """A value from a value, or from a number that the type has.

    Raises: ExpressionError for anything else.
    """
    if isinstance(operand, ValueExpr):
        return operand  # type: ignore[return-value]  # ValueExpr's subclasses are exactly Value
    number = as_number(operand)
    if number is None:
        reason = f"{noun_of(operand)} stands where a value of {dtype} is needed"
        raise refused(operand, reason, remedy_of(operand))
    if dtype is DType.BOOL and not isinstance(number, bool):
        raise _misfit(number, dtype)
    if dtype.is_int and (isinstance(number, float) or not dtype.lowest <= number <= dtype.highest):
        raise _misfit(number, dtype)
    return constant(number, dtype)


def _misfit(number: float, dtype: DType) -> ExpressionError:
    bits = number.bit_length() if isinstance(number, int) else 0
    text = f"an integer of {bits} bits" if bits > _MOST_BITS else f"the number {number}"
    remedy = "cast the value first: cast(v, DType.F32)"
    if dtype is DType.BOOL:
        remedy = _NUMBER_OF_CONDITION.format(DType.F32.name)
    elif dtype.is_float:
        remedy = "give a smaller number"
    return refused(text, f"it meets a value of {dtype}, which has no such number", remedy)


def apply(fn: Fn, *operands: Operand) -> Value:
    """Apply a function; Python numbers take the dtype of the other operand.

    Raises: ExpressionError for a wrong number of arguments, for mixed dtypes, for a dtype that does
            not have the function, or without any value.
    """
    if len(operands) != fn.arity:
        reason = f"{fn.text} takes {fn.arity} arguments, not {len(operands)}"
        raise refused(fn.text, reason)
    dtype = next((o.dtype for o in operands if isinstance(o, ValueExpr)), None)
    if dtype is None:
        raise _no_value(fn, operands)
    args = tuple(as_value(operand, dtype) for operand in operands)
    if any(arg.dtype is not dtype for arg in args):
        kinds = ", ".join(str(arg.dtype) for arg in args)
        reason = f"{fn.text} of mixed dtypes {kinds}: cast the operands first"
        raise refused(Apply(fn, args), reason, _common_remedy([arg.dtype for arg in args]))
    if not fn.takes(dtype):
        reason = f"{fn.text} of {dtype}: the type does not have it"
        raise refused(Apply(fn, args), reason, "cast the operands first: cast(v, DType.F32)")
    return Apply(fn, args)


def _common_remedy(dtypes: list[DType]) -> str:
    """How operands of several types get one: that of a float among them, else the largest."""
    common = max(dtypes, key=lambda d: (d is not DType.BOOL, d.is_float, d.size_bytes)).name
    if DType.BOOL in dtypes:
        return _NUMBER_OF_CONDITION.format(common)
    return f"cast(v, DType.{common})"


def _no_value(fn: Fn, operands: tuple[object, ...]) -> ExpressionError:
    strange = next((each for each in operands if as_number(each) is None), None)
    if strange is None:
        reason = "at least one operand must be a value"
        return refused(f"{fn.text} of plain numbers", reason, "constant(2.0, DType.F32)")
    return refused(strange, f"{fn.text} of {noun_of(strange)}", remedy_of(strange))


def power(base: Operand, exponent: Operand) -> Value:
    """base to the power exponent.

    Raises: ExpressionError as `apply`, and for an integer to a negative number.
    """
    number = as_number(exponent)
    is_integral = isinstance(base, ValueExpr) and base.dtype.is_int
    if number is not None and number < 0 and is_integral:
        reason = "an integer to a negative power is not an integer"
        raise refused(f"{base} ** {number}", reason, "cast the value first: cast(v, DType.F32)")
    return apply(Fn.POW, base, exponent)


def _true_division(a: Operand, b: Operand) -> Value:
    quotient = apply(Fn.DIV, a, b)
    if not quotient.dtype.is_float:
        remedy = "// rounds down; cast the operands for a fraction: cast(v, DType.F32)"
        raise refused(f"{a} / {b}", f"/ of {quotient.dtype} would not be an integer", remedy)
    return quotient


def floor_division(a: Operand, b: Operand) -> Value:
    """a / b rounded down, as NumPy's `//`: 0 for an integer divided by 0.

    Theorem:  a - (the remainder with the sign of a) is a multiple of b, up to a rounding error; so
              the rounded quotient of both is a / b rounded towards zero.
    """
    rest = apply(Fn.MOD, a, b)
    dtype = rest.dtype
    if dtype in (DType.F16, DType.BF16):
        wide = [cast(as_value(each, dtype), DType.F32) for each in (a, b)]
        return cast(floor_division(*wide), dtype)
    zero = constant(0, dtype)
    is_below = apply(
        Fn.AND,
        apply(Fn.NE, rest, zero),
        apply(Fn.XOR, apply(Fn.LT, rest, zero), apply(Fn.LT, as_value(b, dtype), zero)),
    )
    if dtype.is_int:
        quotient = apply(Fn.DIV, a, b)
        return select(is_below, quotient - 1, quotient) if dtype.is_signed else quotient
    quotient = (a - rest) / b
    rounded = apply(Fn.ROUND, select(is_below, quotient - 1.0, quotient))
    return select(apply(Fn.EQ, as_value(b, dtype), zero), apply(Fn.DIV, a, b), rounded)


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
        copy = self.done.get(id(node))
        if copy is None:
            copy = self.done[id(node)] = self._copy(node)
        return copy

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


def factors_of(value: Value) -> Iterator[Value]:
    """The factors of a product, in order; the value itself where it is not one."""
    if isinstance(value, Apply) and value.fn is Fn.MUL:
        for arg in value.args:
            yield from factors_of(arg)
    else:
        yield value


def values_below(value: Value) -> Iterator[Value]:
    """A value and all its operands, shared ones once."""
    seen: set[int] = set()
    pending = [value]
    while pending:
        part = pending.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            pending += children(part)


def variables_of(value: Value) -> frozenset[Var]:
    """The loop variables on which a value depends."""
    indices = {index for part in values_below(value) for index in indices_of(part)}
    return frozenset(free_vars(*indices))


def loads_of(value: Value) -> Iterator[Load]:
    """Every load below a value, in order; elements used as indices come as loads too.

    A node that is shared inside the value (the same object) is visited once.
    """
    try:
        return iter(value._loads)
    except AttributeError:
        loads: list[Load] = []
        _collect_loads(value, set(), loads, loads)
        object.__setattr__(value, "_loads", tuple(loads))
        return iter(loads)


def index_tensors_of(value: Value) -> frozenset[str]:
    """The names of the tensors whose elements are used as indices below a value."""
    loads: list[Load] = []
    _collect_loads(value, set(), [], loads)
    return frozenset(load.source.name for load in loads)


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


def _collect_elements(index: Index, loads: list[Load]) -> None:
    if isinstance(index, (int, Var)):
        return
    loads.extend(
        Load(atom.source, atom.indices) for atom in atoms_of(index) if isinstance(atom, Element)
    )
