"""Tensor expressions: what every element of a tensor is, in terms of elements of other tensors.

Grammar
    T ::= Placeholder(name, shape, dtype)
        | Compute(name, axes, body, reduction)
    T[axes] = body, or the fold of body over the reduction's axes

Semantics.  A `Compute` is a function on the box of its axes: no order among elements, no effects.
A reduction folds its body over the box of its own axes, starting from the combiner's identity; the
order is free for every combiner but floats differ in the last bits with it, and ARGMAX and ARGMIN
give the smallest index among equals, and the first NaN if there is one.  An empty box gives the
identity.  Tensors compare by identity: a `Compute` is a node of a graph (a DAG), not a value.

Example
    >>> from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
    >>> a, b = placeholder("a", (4, 8)), placeholder("b", (8, 5))
    >>> k = reduce_axis("k", 8)
    >>> c = compute("c", (4, 5), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    >>> print(c)
    c[i, j] = sum over k in 0..8 of a[i, k] * b[k, j]    for i in 0..4, j in 0..5
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import symbolic
from tensorwright.expr.functions import Fn
from tensorwright.expr.index.nodes import Element, Index, IndexExpr, Var, mod
from tensorwright.expr.value import (
    Apply,
    Const,
    FromIndex,
    Load,
    Value,
    ValueExpr,
    apply,
    cast,
    constant,
    loads_of,
    select,
)


def _of_var(operation: Callable[[Any, Any], Any], is_right: bool = False) -> Callable[..., Any]:
    """An operator of axes: in indices an axis stands for its variable, x[i * 2 + k]."""
    if is_right:
        return lambda self, other: operation(_index(other), self.var)
    return lambda self, other: operation(self.var, _index(other))


@symbolic.equal_by_fields
@dataclass(frozen=True, slots=True)
class Axis(symbolic.Symbolic):
    """A loop variable with the number of values it takes: 0..extent-1."""

    noun = "an axis"
    as_value = IndexExpr.as_value

    var: Var
    extent: Index

    @property
    def name(self) -> str:
        """The name of the variable."""
        return self.var.name

    @property
    def length(self) -> int:
        """The extent as a number.

        Raises:  ValueError where it still holds a decision.
        """
        if not isinstance(self.extent, int):
            raise ValueError(
                f"the extent {self.extent} of {self.name} has no value: bind decisions"
            )
        return self.extent

    def __str__(self) -> str:
        return f"{self.var} in 0..{self.extent}"

    def compares(self, sign: str, other: object) -> Any:
        """The condition on the variable."""
        return self.var == _index(other) if sign == "==" else self.var != _index(other)

    __add__, __radd__ = _of_var(operator.add), _of_var(operator.add, is_right=True)
    __sub__, __rsub__ = _of_var(operator.sub), _of_var(operator.sub, is_right=True)
    __mul__, __rmul__ = _of_var(operator.mul), _of_var(operator.mul, is_right=True)
    __truediv__, __rtruediv__ = _of_var(operator.truediv), _of_var(operator.truediv, is_right=True)
    __floordiv__ = _of_var(operator.floordiv)
    __rfloordiv__ = _of_var(operator.floordiv, is_right=True)
    __mod__, __rmod__ = _of_var(operator.mod), _of_var(operator.mod, is_right=True)
    __pow__ = _of_var(operator.pow)
    __lt__, __le__ = _of_var(operator.lt), _of_var(operator.le)
    __gt__, __ge__ = _of_var(operator.gt), _of_var(operator.ge)

    def __neg__(self) -> Index:
        return -self.var

    def __pos__(self) -> Index:
        return self.var

    def __abs__(self) -> Index:
        return abs(self.var)


def _index(operand: Any) -> Any:
    return operand.var if isinstance(operand, Axis) else operand


class Combiner(Enum):
    """How a reduction folds its body."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"
    ARGMAX = "argmax"
    ARGMIN = "argmin"

    @property
    def fn(self) -> Fn:
        """The binary function of the fold (ARGMAX and ARGMIN: on the values compared)."""
        return _COMBINER_FN[self]

    @property
    def is_arg(self) -> bool:
        """Whether the result is the position of the chosen value and not the value."""
        return self in (Combiner.ARGMAX, Combiner.ARGMIN)


_COMBINER_FN = {
    Combiner.SUM: Fn.ADD,
    Combiner.PROD: Fn.MUL,
    Combiner.MAX: Fn.MAX,
    Combiner.MIN: Fn.MIN,
    Combiner.ANY: Fn.OR,
    Combiner.ALL: Fn.AND,
    Combiner.ARGMAX: Fn.MAX,
    Combiner.ARGMIN: Fn.MIN,
}


@dataclass(frozen=True, slots=True)
class Reduction:
    """A fold over the box of `axes`."""

    combiner: Combiner
    axes: tuple[Axis, ...]


@symbolic.equal_by_fields
@dataclass(frozen=True, slots=True)
class Reduce(symbolic.Symbolic):
    """The result of a fold such as `sum_over`: the body of a `compute` before it has a name."""

    noun = "a fold"
    as_value = "a fold is all of a body: give it a compute of its own, and read that"

    combiner: Combiner
    body: Value
    axes: tuple[Axis, ...]

    def __str__(self) -> str:
        return _fold_text(self.combiner, self.axes) + str(self.body)


def _fold_text(combiner: Combiner, axes: tuple[Axis, ...]) -> str:
    return f"{combiner.value} over {', '.join(map(str, axes))} of "


class _Readable(symbolic.Symbolic):
    """Base of tensors: x[i, j] is an element."""

    __slots__ = ()

    noun = "a tensor"
    as_value = "one of its elements, with an index for each dimension: x[i, j]"

    def __getitem__(self, indices: object) -> Load:
        return _load(self, indices)

    def __setitem__(self, indices: object, value: object) -> NoReturn:
        _store(self, indices, value)

    if not TYPE_CHECKING:  # a type checker must see the attributes that there are

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # what Python asks: not a mistake
                raise AttributeError(name)
            raise symbolic.no_attribute(self, name)


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder(_Readable):
    """An input tensor: name, shape, dtype."""

    name: str
    shape: tuple[Index, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} ({', '.join(map(str, self.shape))})"


@dataclass(frozen=True, slots=True, eq=False)
class Compute(_Readable):
    """A tensor whose elements are given by an expression; see the module docstring."""

    name: str
    axes: tuple[Axis, ...]
    body: Value
    reduction: Reduction | None = None
    _dtype: DType = field(init=False, repr=False)  # derived once: graphs may be deep

    def __post_init__(self) -> None:
        is_position = self.reduction is not None and self.reduction.combiner.is_arg
        object.__setattr__(self, "_dtype", DType.I64 if is_position else self.body.dtype)

    @property
    def shape(self) -> tuple[Index, ...]:
        """The extents of the axes."""
        return tuple(axis.extent for axis in self.axes)

    @property
    def dtype(self) -> DType:
        """The element type: the body's, or i64 for positions."""
        return self._dtype

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        """The axes that are folded away; empty without a reduction."""
        return self.reduction.axes if self.reduction is not None else ()

    def __str__(self) -> str:
        left = f"{self.name}[{', '.join(a.name for a in self.axes)}]" if self.axes else self.name
        fold = ""
        if self.reduction is not None:
            fold = _fold_text(self.reduction.combiner, self.reduction.axes)
        ranges = f"    for {', '.join(map(str, self.axes))}" if self.axes else ""
        return f"{left} = {fold}{self.body}{ranges}"


Tensor: TypeAlias = Placeholder | Compute


def _store(tensor: Any, indices: object, value: object) -> NoReturn:
    listed = ", ".join(map(symbolic.text_of, indices if isinstance(indices, tuple) else (indices,)))
    reason = "a tensor is defined by its body, and nothing is stored into it"
    remedy = "return the value from the body; select(condition, a, b) chooses between two"
    raise symbolic.refused(f"{tensor.name}[{listed}] = {symbolic.text_of(value)}", reason, remedy)


def _load(tensor: Any, indices: object) -> Load:
    listed = indices if isinstance(indices, tuple) else (indices,)
    if len(listed) != len(tensor.shape):
        given = ", ".join(map(symbolic.text_of, listed))
        reason = f"{tensor.name} has {len(tensor.shape)} dimensions, not {len(listed)}"
        raise symbolic.refused(
            f"{tensor.name}[{given}]", reason, "give one index for each dimension"
        )
    places = zip(listed, tensor.shape, strict=True)
    return Load(tensor, tuple(_index_in(tensor, index, extent) for index, extent in places))


def _index_in(tensor: Any, index: Any, extent: Index) -> Index:
    """An index of a user; an element of a tensor of integers is taken modulo the extent."""
    if isinstance(index, IndexExpr) or type(index) is int:
        return index
    if isinstance(index, Axis):
        return index.var
    if isinstance(index, np.integer):
        return int(index)
    if isinstance(index, Load) and index.dtype.is_int:
        return at_position(index.source, index.indices, extent)
    if isinstance(index, ValueExpr):
        reason = (
            f"a value of {index.dtype} is not an index; an element of a tensor of integers is one"
        )
        remedy = "compute it as a tensor t of DType.I32, and read x[t[i]]"
    else:
        reason = f"{symbolic.noun_of(index)} is not an index"
        remedy = "an index is an integer, or + - * // % of the variables of the body and of axes"
        if isinstance(index, slice) or index is Ellipsis:
            remedy += "; for all of a dimension, a variable of the body, or an axis that is folded"
    raise symbolic.refused(f"{tensor.name}[{symbolic.text_of(index)}]", reason, remedy)


def at_position(positions: Tensor, indices: Sequence[Index], extent: Index) -> Index:
    """An element of an integer tensor as an index into a dimension of this extent.

    Taken modulo the extent: negative ones count from the end, and none reads outside the tensor.
    """
    divisor = max(extent, 1) if isinstance(extent, int) else extent
    return mod(Element(positions, tuple(indices)), divisor)


def identity_of(combiner: Combiner, dtype: DType) -> Const:
    """The value that a fold starts from: 0, 1, the least or the greatest value of the dtype."""
    match combiner:
        case Combiner.SUM | Combiner.ANY:
            return constant(0, dtype)
        case Combiner.PROD | Combiner.ALL:
            return constant(1, dtype)
        case Combiner.MAX | Combiner.ARGMAX:
            return constant(dtype.lowest, dtype)
        case Combiner.MIN | Combiner.ARGMIN:
            return constant(dtype.highest, dtype)


def multiplied_loads(tensor: Compute) -> tuple[Load, Load] | None:
    """The two elements whose products a tensor sums; None where it is something else."""
    reduction, body = tensor.reduction, tensor.body
    if reduction is None or reduction.combiner is not Combiner.SUM:
        return None
    if not (isinstance(body, Apply) and body.fn is Fn.MUL):
        return None
    left, right = body.args
    return (left, right) if isinstance(left, Load) and isinstance(right, Load) else None


def decompose_arg_reduction(tensor: Compute) -> tuple[Compute, Compute, Compute]:
    """Rewrite argmax (argmin) as two reductions that a loop nest can vectorise.

    Rewrite:  t[i] = argmax over k of x
          ->  t_best[i] = max over k of x
              t_place[i] = min over k of select(x == t_best[i] or x is NaN, k, extent of k - 1)
              t[i] = t_place[i] as i64
    Positions are compared as i32, of which a vector holds as many as of f32.
    Theorem: t_best is NaN if and only if some x is; then x == t_best holds nowhere and the first
    NaN is chosen, else no x is NaN and the first of the greatest is.
    """
    reduction = tensor.reduction
    if reduction is None or not reduction.combiner.is_arg:
        raise TypeError(f"{tensor.name} is not an argmax or argmin")
    value_fold = Combiner.MAX if reduction.combiner is Combiner.ARGMAX else Combiner.MIN
    (axis,) = reduction.axes
    best = Compute(f"{tensor.name}_best", tensor.axes, tensor.body, Reduction(value_fold, (axis,)))
    is_best = apply(Fn.EQ, tensor.body, Load(best, tuple(a.var for a in tensor.axes)))
    if tensor.body.dtype.is_float:
        is_best = apply(Fn.OR, is_best, apply(Fn.ISNAN, tensor.body))
    position = FromIndex(axis.var, DType.I32)
    last = FromIndex(axis.extent - 1, DType.I32)
    chosen = select(is_best, position, last)
    fold = Reduction(Combiner.MIN, (axis,))
    at_best = Compute(f"{tensor.name}_place", tensor.axes, chosen, fold)
    whole = cast(Load(at_best, tuple(a.var for a in tensor.axes)), DType.I64)
    return best, at_best, Compute(tensor.name, tensor.axes, whole)


def topological_order(*outputs: Tensor) -> tuple[Tensor, ...]:
    """Every tensor that the outputs depend on, inputs first, each once."""
    order: dict[Tensor, None] = {}
    pending: list[tuple[Tensor, bool]] = [(output, False) for output in reversed(outputs)]
    while pending:
        tensor, is_ready = pending.pop()
        if is_ready or isinstance(tensor, Placeholder):
            order.setdefault(tensor)
        elif tensor not in order:
            pending.append((tensor, True))
            sources = [load.source for load in loads_of(tensor.body)]
            pending += [(source, False) for source in reversed(sources) if source not in order]
    return tuple(order)
