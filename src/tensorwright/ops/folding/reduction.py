"""Folds over axes.

| operators | inputs | attributes |
|---|---|---|
| reduce_sum reduce_mean reduce_prod reduce_max reduce_min | x | axes=() (all), keepdims=True |
| reduce_l1 reduce_l2 reduce_sum_square reduce_log_sum reduce_log_sum_exp | x | same |
| reduce_any reduce_all | x (bool) | same |
| argmax argmin | x | axis=0, keepdims=True, select_last_index=False, skip_nan=False |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from tensorwright.base import Attributes, DType, TensorType
from tensorwright.expr import (
    Axis,
    Compute,
    Fn,
    FromIndex,
    Index,
    Load,
    Reduce,
    Relation,
    Tensor,
    Value,
    all_over,
    any_over,
    apply,
    argmax_over,
    argmin_over,
    cast,
    compare,
    compute,
    constant,
    is_nan,
    max_over,
    min_over,
    prod_over,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.ops.access import axis_names, pointwise
from tensorwright.ops.attributes import (
    BOOLS,
    FLOATS,
    KEEPDIMS,
    NUMBERS,
    bool_of,
    fault,
    int_of,
    ints_of,
    require_dtype,
)
from tensorwright.ops.named_sizes import is_equal, number_or_value, product_of, sizes_of
from tensorwright.ops.operator import Attribute, Fold, Operator, Pattern, tensor_operator
from tensorwright.ops.shapes import axes_in, axis_in

FoldFunction = Callable[..., Reduce]


def reduced_shape(shape: Sequence[Index], axes: Sequence[int], keepdims: bool) -> tuple[Index, ...]:
    """The shape without the axes, or with extent 1 there."""
    if keepdims:
        return tuple(1 if at in axes else extent for at, extent in enumerate(shape))
    return tuple(extent for at, extent in enumerate(shape) if at not in axes)


def folded_indices(indices: Sequence[Index], axes: Sequence[int]) -> tuple[Index, ...]:
    """The indices into what is folded over the axes, which are kept with extent 1."""
    return tuple(0 if at in axes else index for at, index in enumerate(indices))


def fold_axes(
    name: str,
    tensor: Tensor,
    axes: Sequence[int],
    fold: FoldFunction,
    rule: Callable[..., Value] = lambda value, indices: value,
    *,
    keepdims: bool = True,
) -> Compute:
    """Fold rule(element, its indices) over some axes of a tensor.

    Without axes the rule is applied to every element.
    """
    shape = tensor.shape
    names = axis_names(len(shape))
    folded = {at: reduce_axis(f"r{names[at]}", shape[at]) for at in axes}
    kept = [at for at in range(len(shape)) if keepdims or at not in folded]

    def body(*outer: Index) -> Value | Reduce:
        by_axis = dict(zip(kept, outer, strict=True))
        indices = tuple(folded[at].var if at in folded else by_axis[at] for at in range(len(shape)))
        value: Value = rule(Load(tensor, indices), indices)
        return fold(value, *folded.values()) if folded else value

    return compute(
        name, reduced_shape(shape, tuple(axes), keepdims), body, tuple(names[at] for at in kept)
    )


def _axes(attributes: Attributes, rank: int) -> tuple[int, ...]:
    return axes_in(ints_of(attributes, "axes"), rank) or tuple(range(rank))


Meaning = Callable[[str, Tensor, tuple[int, ...], bool], Compute]


def _reduction(
    name: str, doc: str, meaning_of: Meaning, accepts: frozenset[DType] = NUMBERS
) -> Operator:
    def infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
        (given,) = types
        require_dtype("x", given, accepts)
        axes = _axes(attributes, len(given.shape))
        shape = reduced_shape(sizes_of(given), axes, bool_of(attributes, "keepdims"))
        return (TensorType(given.dtype, shape),)

    def meaning(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
        (tensor,) = tensors
        axes = _axes(attributes, len(tensor.shape))
        return (meaning_of(name, tensor, axes, bool_of(attributes, "keepdims")),)

    return tensor_operator(
        name,
        doc,
        ("x",),
        (Attribute("axes", (), "the dimensions to fold; empty: all"), KEEPDIMS),
        infer,
        meaning,
        Pattern.REDUCTION,
        fold=Fold.AXES,
    )


def _simple(fold: FoldFunction, rule: Callable[[Value], Value] = lambda value: value) -> Meaning:
    def build(name: str, tensor: Tensor, axes: tuple[int, ...], keepdims: bool) -> Compute:
        return fold_axes(name, tensor, axes, fold, lambda v, _: rule(v), keepdims=keepdims)

    return build


def _after(first: Meaning, suffix: str, rule: Callable[[Value], Value]) -> Meaning:
    def build(name: str, tensor: Tensor, axes: tuple[int, ...], keepdims: bool) -> Compute:
        inner = first(f"{name}_{suffix}", tensor, axes, keepdims)
        return pointwise(name, (inner,), inner.shape, rule)

    return build


def divided(value: Value, count: Index) -> Value:
    """A float divided by how many elements it is the sum of."""
    if isinstance(count, int):
        return value * (1 / count if count else float("nan"))
    return value / FromIndex(count, value.dtype)


def mean_of(name: str, total: Compute, count: Index) -> Compute:
    """A total divided by how many elements it has; integers are truncated."""

    def rule(value: Value) -> Value:
        if value.dtype.is_float:
            return divided(value, count)
        wide = value.dtype if value.dtype.size_bytes >= DType.I32.size_bytes else DType.I64
        quotient = apply(Fn.DIV, cast(value, wide), number_or_value(count, wide))
        return cast(quotient, value.dtype)

    return pointwise(name, (total,), total.shape, rule)


def _mean(name: str, tensor: Tensor, axes: tuple[int, ...], keepdims: bool) -> Compute:
    total = fold_axes(f"{name}_sum", tensor, axes, sum_over, keepdims=keepdims)
    return mean_of(name, total, product_of(tensor.shape[at] for at in axes))


def _square(value: Value) -> Value:
    return value * value


def _root(value: Value) -> Value:
    """The square root; that of an integer loses its fraction."""
    wide = value.dtype if value.dtype.is_float else DType.F64
    return cast(apply(Fn.SQRT, cast(value, wide)), value.dtype)


def _log_sum_exp(name: str, tensor: Tensor, axes: tuple[int, ...], keepdims: bool) -> Compute:
    best = fold_axes(f"{name}_max", tensor, axes, max_over)

    def finite(value: Value) -> Value:
        return select(apply(Fn.ISINF, value), constant(0, value.dtype), value)

    shift = pointwise(f"{name}_shift", (best,), best.shape, finite)

    def shifted(value: Value, indices: tuple[Index, ...]) -> Value:
        return apply(Fn.EXP, value - Load(shift, folded_indices(indices, axes)))

    total = fold_axes(f"{name}_sum", tensor, axes, sum_over, shifted)
    if keepdims:
        return pointwise(name, (total, shift), total.shape, lambda a, b: apply(Fn.LOG, a) + b)
    kept = tuple(at for at in range(len(tensor.shape)) if at not in axes)

    def squeezed(*outer: Index) -> Value:
        by_axis = dict(zip(kept, outer, strict=True))
        at = tuple(by_axis.get(axis, 0) for axis in range(len(tensor.shape)))
        return apply(Fn.LOG, Load(total, at)) + Load(shift, at)

    shape = tuple(tensor.shape[at] for at in kept)
    return compute(name, shape, squeezed, axis_names(len(shape)))


def _extreme(fold: FoldFunction, on_bool: FoldFunction) -> Meaning:
    def build(name: str, tensor: Tensor, axes: tuple[int, ...], keepdims: bool) -> Compute:
        chosen = on_bool if tensor.dtype is DType.BOOL else fold
        return fold_axes(name, tensor, axes, chosen, keepdims=keepdims)

    return build


def _arg(name: str, doc: str, fold: Callable[[Value, Axis], Reduce], worst: float) -> Operator:
    def infer(types: tuple[TensorType, ...], attributes: Attributes) -> tuple[TensorType, ...]:
        (given,) = types
        require_dtype("x", given, NUMBERS)
        axis = axis_in(int_of(attributes, "axis"), len(given.shape))
        if is_equal(sizes_of(given)[axis], 0):
            raise fault(f"dimension {axis} of input x is empty: there is no position to give")
        shape = reduced_shape(sizes_of(given), (axis,), bool_of(attributes, "keepdims"))
        return (TensorType(DType.I64, shape),)

    def meaning(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
        (tensor,) = tensors
        axis = axis_in(int_of(attributes, "axis"), len(tensor.shape))
        keepdims = bool_of(attributes, "keepdims")
        is_mirrored = bool_of(attributes, "select_last_index")
        skips_nan = bool_of(attributes, "skip_nan") and tensor.dtype.is_float
        last = tensor.shape[axis] - 1

        def element(_: Value, indices: tuple[Index, ...]) -> Value:
            if is_mirrored:
                indices = tuple(last - i if at == axis else i for at, i in enumerate(indices))
            value: Value = Load(tensor, indices)
            if not skips_nan:
                return value
            number = select(is_nan(value), constant(worst, value.dtype), value)
            return select(compare(Relation.EQ, indices[axis], 0), value, number)

        label = f"{name}_mirrored" if is_mirrored else name
        chosen = fold_axes(label, tensor, (axis,), fold, element, keepdims=keepdims)
        if not is_mirrored:
            return (chosen,)
        return (
            pointwise(name, (chosen,), chosen.shape, lambda v: number_or_value(last, v.dtype) - v),
        )

    return tensor_operator(
        name,
        doc,
        ("x",),
        (
            Attribute("axis", 0, "the dimension to search; negative counts from the last"),
            KEEPDIMS,
            Attribute("select_last_index", default=False, doc="the last among equals"),
            Attribute("skip_nan", default=False, doc="NaN counts only as the first element"),
        ),
        infer,
        meaning,
        Pattern.REDUCTION,
        fold=Fold.AXIS,
    )


_MAX = _extreme(max_over, any_over)
_MIN = _extreme(min_over, all_over)
_L2 = _after(_simple(sum_over, _square), "sum", _root)
_LOG_SUM = _after(_simple(sum_over), "sum", partial(apply, Fn.LOG))

REDUCTION_OPERATORS = (
    _reduction("reduce_sum", "sum over the axes", _simple(sum_over)),
    _reduction("reduce_mean", "arithmetic mean over the axes", _mean),
    _reduction("reduce_prod", "product over the axes", _simple(prod_over)),
    _reduction("reduce_max", "greatest over the axes", _MAX, NUMBERS | BOOLS),
    _reduction("reduce_min", "least over the axes", _MIN, NUMBERS | BOOLS),
    _reduction("reduce_any", "whether one holds", _simple(any_over), BOOLS),
    _reduction("reduce_all", "whether all hold", _simple(all_over), BOOLS),
    _reduction("reduce_l1", "sum of |x|", _simple(sum_over, partial(apply, Fn.ABS))),
    _reduction("reduce_l2", "square root of the sum of x * x", _L2),
    _reduction("reduce_sum_square", "sum of x * x", _simple(sum_over, _square)),
    _reduction("reduce_log_sum", "log of the sum", _LOG_SUM, FLOATS),
    _reduction("reduce_log_sum_exp", "log of the sum of exp(x)", _log_sum_exp, FLOATS),
    _arg("argmax", "position (i64) of the greatest along an axis", argmax_over, -math.inf),
    _arg("argmin", "position (i64) of the least along an axis", argmin_over, math.inf),
)
