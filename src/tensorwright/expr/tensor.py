"""Tensor expressions: what every element of a tensor is, in terms of elements of other tensors.

Grammar
    T ::= Placeholder(name, shape, dtype)
        | Compute(name, axes, body, reduction)
    T[axes] = body, or the fold of body over the reduction's axes

Semantics.  A `Compute` is a function on the box of its axes: no order among elements, no effects.
A reduction folds its body over the box of its own axes, starting from the combiner's identity; the
order is free for every combiner but floats differ in the last bits with it, and ARGMAX and ARGMIN
give the smallest index among equals.  An empty box gives the identity.  Tensors compare by
identity: a `Compute` is a node of a graph (a DAG), not a value.

Example
    >>> a, b = placeholder("a", (4, 8)), placeholder("b", (8, 5))
    >>> k = reduce_axis("k", 8)
    >>> c = compute("c", (4, 5), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    >>> print(c)
    c[i, j] = sum over k in 0..8 of a[i, k] * b[k, j]    for i in 0..4, j in 0..5
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from tensorwright.base import DType
from tensorwright.expr.functions import Fn
from tensorwright.expr.index import Condition, Index, Var
from tensorwright.expr.value import (
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


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop variable with the number of values it takes: 0..extent-1."""

    var: Var
    extent: Index

    @property
    def name(self) -> str:
        """The name of the variable."""
        return self.var.name

    def __str__(self) -> str:
        return f"{self.var} in 0..{self.extent}"

    # In the indices of a tensor expression an axis stands for its variable: x[i * 2 + k].

    def __add__(self, other: Index | Axis) -> Index:
        return self.var + _index(other)

    def __radd__(self, other: Index | Axis) -> Index:
        return _index(other) + self.var

    def __sub__(self, other: Index | Axis) -> Index:
        return self.var - _index(other)

    def __rsub__(self, other: Index | Axis) -> Index:
        return _index(other) - self.var

    def __mul__(self, other: Index | Axis) -> Index:
        return self.var * _index(other)

    def __rmul__(self, other: Index | Axis) -> Index:
        return _index(other) * self.var

    def __floordiv__(self, other: Index | Axis) -> Index:
        return self.var // _index(other)

    def __mod__(self, other: Index | Axis) -> Index:
        return self.var % _index(other)

    def __lt__(self, other: Index | Axis) -> Condition:
        return self.var < _index(other)

    def __le__(self, other: Index | Axis) -> Condition:
        return self.var <= _index(other)

    def __gt__(self, other: Index | Axis) -> Condition:
        return self.var > _index(other)

    def __ge__(self, other: Index | Axis) -> Condition:
        return self.var >= _index(other)

    def __neg__(self) -> Index:
        return -self.var


def _index(operand: Index | Axis) -> Index:
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


@dataclass(frozen=True, slots=True)
class Reduce:
    """What `sum_over` and its kin return: the body of a `compute` before it has a name."""

    combiner: Combiner
    body: Value
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder:
    """An input tensor: name, shape, dtype."""

    name: str
    shape: tuple[Index, ...]
    dtype: DType

    def __getitem__(self, indices: object) -> Load:
        return _load(self, indices)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} ({', '.join(map(str, self.shape))})"


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
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

    def __getitem__(self, indices: object) -> Load:
        return _load(self, indices)

    def __str__(self) -> str:
        left = f"{self.name}[{', '.join(a.name for a in self.axes)}]" if self.axes else self.name
        fold = ""
        if self.reduction is not None:
            over = ", ".join(map(str, self.reduction.axes))
            fold = f"{self.reduction.combiner.value} over {over} of "
        ranges = f"    for {', '.join(map(str, self.axes))}" if self.axes else ""
        return f"{left} = {fold}{self.body}{ranges}"


Tensor: TypeAlias = Placeholder | Compute


def _load(tensor: Tensor, indices: object) -> Load:
    listed = indices if isinstance(indices, tuple) else (indices,)
    if len(listed) != len(tensor.shape):
        raise TypeError(f"{tensor.name} has {len(tensor.shape)} dimensions, not {len(listed)}")
    return Load(tensor, tuple(i.var if isinstance(i, Axis) else i for i in listed))


def placeholder(name: str, shape: Sequence[Index], dtype: DType = DType.F32) -> Placeholder:
    """Declare an input tensor."""
    return Placeholder(name, tuple(shape), dtype)


def reduce_axis(name: str, extent: Index) -> Axis:
    """Declare an axis to reduce over."""
    return Axis(Var(name), extent)


def compute(
    name: str,
    shape: Sequence[Index],
    body: Callable[..., Value | Reduce],
    names: Sequence[str] = (),
) -> Compute:
    """Define a tensor by a function from its index variables to a value or a reduction.

    Shapes:  `shape` gives the extents; the function gets one `Var` per dimension, named by
             `names`, by the function's own parameters, or i0, i1, ...
    Raises:  TypeError if the function takes another number of parameters or returns something else.
    """
    labels = tuple(names) or _parameter_names(body, len(shape))
    axes = tuple(Axis(Var(label), n) for label, n in zip(labels, shape, strict=True))
    result = body(*(axis.var for axis in axes))
    if isinstance(result, Reduce):
        return Compute(name, axes, result.body, Reduction(result.combiner, result.axes))
    if not isinstance(result, ValueExpr):
        raise TypeError(f"the body of {name} gives {type(result).__name__}, not a value")
    return Compute(name, axes, result)


def _parameter_names(body: Callable[..., object], count: int) -> tuple[str, ...]:
    listed = inspect.signature(body).parameters.values()
    parameters = tuple(p for p in listed if p.default is inspect.Parameter.empty)
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return tuple(f"i{n}" for n in range(count))
    if len(parameters) != count:
        raise TypeError(
            f"a body for {count} dimensions takes {count} parameters, not {len(parameters)}"
        )
    return tuple(p.name for p in parameters)


def _reduce(combiner: Combiner, body: Value, axes: tuple[Axis, ...]) -> Reduce:
    if not axes:
        raise TypeError(f"{combiner.value} over no axis")
    return Reduce(combiner, body, axes)


def sum_over(body: Value, *axes: Axis) -> Reduce:
    """The sum of the body over the axes."""
    return _reduce(Combiner.SUM, body, axes)


def prod_over(body: Value, *axes: Axis) -> Reduce:
    """The product of the body over the axes."""
    return _reduce(Combiner.PROD, body, axes)


def max_over(body: Value, *axes: Axis) -> Reduce:
    """The largest value of the body over the axes; NaN if one is NaN."""
    return _reduce(Combiner.MAX, body, axes)


def min_over(body: Value, *axes: Axis) -> Reduce:
    """The smallest value of the body over the axes; NaN if one is NaN."""
    return _reduce(Combiner.MIN, body, axes)


def any_over(body: Value, *axes: Axis) -> Reduce:
    """Whether the (bool) body holds somewhere."""
    return _reduce(Combiner.ANY, body, axes)


def all_over(body: Value, *axes: Axis) -> Reduce:
    """Whether the (bool) body holds everywhere."""
    return _reduce(Combiner.ALL, body, axes)


def argmax_over(body: Value, axis: Axis) -> Reduce:
    """The position (i64) of the first largest value along one axis."""
    return _reduce(Combiner.ARGMAX, body, (axis,))


def argmin_over(body: Value, axis: Axis) -> Reduce:
    """The position (i64) of the first smallest value along one axis."""
    return _reduce(Combiner.ARGMIN, body, (axis,))


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


def decompose_arg_reduction(tensor: Compute) -> tuple[Compute, Compute, Compute]:
    """Rewrite argmax (argmin) as two reductions that a loop nest can vectorise.

    Rewrite:  t[i] = argmax over k of x
          ->  t_best[i] = max over k of x
              t_place[i] = min over k of select(x == t_best[i], k, extent of k - 1)
              t[i] = t_place[i] as i64
    Places are compared as i32, of which a vector holds as many as of f32.
    A position is found for every input without NaN; among NaNs the last position (extent - 1) is
    returned.
    """
    reduction = tensor.reduction
    if reduction is None or not reduction.combiner.is_arg:
        raise TypeError(f"{tensor.name} is no argmax or argmin")
    value_fold = Combiner.MAX if reduction.combiner is Combiner.ARGMAX else Combiner.MIN
    (axis,) = reduction.axes
    best = Compute(f"{tensor.name}_best", tensor.axes, tensor.body, Reduction(value_fold, (axis,)))
    found = apply(Fn.EQ, tensor.body, Load(best, tuple(a.var for a in tensor.axes)))
    position = FromIndex(axis.var, DType.I32)
    last = FromIndex(axis.extent - 1, DType.I32)
    chosen = select(found, position, last)
    fold = Reduction(Combiner.MIN, (axis,))
    place = Compute(f"{tensor.name}_place", tensor.axes, chosen, fold)
    whole = cast(Load(place, tuple(a.var for a in tensor.axes)), DType.I64)
    return best, place, Compute(tensor.name, tensor.axes, whole)


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
