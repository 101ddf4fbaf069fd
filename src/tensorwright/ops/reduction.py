"""Folds over axes.

Folds of the elements up to each position.

More elements than a block has are cut into blocks. Each block is folded, and so are the folds of
the blocks before each one. An element is the fold of these and of the elements before it in its own
block (Blelloch, Prefix Sums and Their Applications, 1990, section 1.2). The longest chain has as
many steps as a block has elements, and rounding errors grow with the logarithm of the extent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tensorwright import expr
from tensorwright.base import Attributes, DType, TensorType
from tensorwright.ops import operator
from tensorwright.ops.named_sizes import is_certain, is_equal, number_or_value, product_of, sizes_of
from tensorwright.ops.shapes import axes_in, axis_in, axis_names, pointwise

FoldFunction = Callable[..., expr.Reduce]


def reduced_shape(
    shape: Sequence[expr.Index], axes: Sequence[int], keepdims: bool
) -> tuple[expr.Index, ...]:
    """The shape without the axes, or with extent 1 there."""
    if keepdims:
        return tuple(1 if at in axes else extent for at, extent in enumerate(shape))
    return tuple(extent for at, extent in enumerate(shape) if at not in axes)


def folded_indices(indices: Sequence[expr.Index], axes: Sequence[int]) -> tuple[expr.Index, ...]:
    """The indices into what is folded over the axes, which are kept with extent 1."""
    return tuple(0 if at in axes else index for at, index in enumerate(indices))


def fold_axes(
    name: str,
    tensor: expr.Tensor,
    axes: Sequence[int],
    fold: FoldFunction,
    rule: Callable[..., expr.Value] = lambda value, indices: value,
    *,
    keepdims: bool = True,
) -> expr.Compute:
    """Fold rule(element, its indices) over some axes of a tensor.

    Without axes the rule is applied to every element.
    """
    shape = tensor.shape
    names = axis_names(len(shape))
    folded = {at: expr.reduce_axis(f"r{names[at]}", shape[at]) for at in axes}
    kept = [at for at in range(len(shape)) if keepdims or at not in folded]

    def body(*outer: expr.Index) -> expr.Value | expr.Reduce:
        by_axis = dict(zip(kept, outer, strict=True))
        indices = tuple(folded[at].var if at in folded else by_axis[at] for at in range(len(shape)))
        value: expr.Value = rule(expr.Load(tensor, indices), indices)
        return fold(value, *folded.values()) if folded else value

    return expr.compute(
        name, reduced_shape(shape, tuple(axes), keepdims), body, tuple(names[at] for at in kept)
    )


def _axes(attributes: Attributes, rank: int) -> tuple[int, ...]:
    return axes_in(operator.ints_of(attributes, "axes"), rank) or tuple(range(rank))


Meaning = Callable[[str, expr.Tensor, tuple[int, ...], bool], expr.Compute]


def _reduction(
    name: str, doc: str, meaning_of: Meaning, accepts: frozenset[DType] = operator.NUMBERS
) -> operator.Operator:
    def infer(types: operator.Types, attributes: Attributes) -> operator.Types:
        (given,) = types
        operator.require_dtype("x", given, accepts)
        axes = _axes(attributes, len(given.shape))
        shape = reduced_shape(sizes_of(given), axes, operator.bool_of(attributes, "keepdims"))
        return (TensorType(given.dtype, shape),)

    def meaning(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
        (tensor,) = tensors
        axes = _axes(attributes, len(tensor.shape))
        return (meaning_of(name, tensor, axes, operator.bool_of(attributes, "keepdims")),)

    return operator.tensor_operator(
        name,
        doc,
        ("x",),
        (operator.Attribute("axes", (), "the dimensions to fold; empty: all"), operator.KEEPDIMS),
        infer,
        meaning,
        operator.Pattern.REDUCTION,
        fold=operator.Fold.AXES,
    )


def _simple(
    fold: FoldFunction, rule: Callable[[expr.Value], expr.Value] = lambda value: value
) -> Meaning:
    def build(
        name: str, tensor: expr.Tensor, axes: tuple[int, ...], keepdims: bool
    ) -> expr.Compute:
        return fold_axes(name, tensor, axes, fold, lambda v, _: rule(v), keepdims=keepdims)

    return build


def _after(first: Meaning, suffix: str, rule: Callable[[expr.Value], expr.Value]) -> Meaning:
    def build(
        name: str, tensor: expr.Tensor, axes: tuple[int, ...], keepdims: bool
    ) -> expr.Compute:
        inner = first(f"{name}_{suffix}", tensor, axes, keepdims)
        return pointwise(name, (inner,), inner.shape, rule)

    return build


def divided(value: expr.Value, count: expr.Index) -> expr.Value:
    """A float divided by how many elements it is the sum of."""
    if isinstance(count, int):
        return value * (1 / count if count else float("nan"))
    return value / expr.FromIndex(count, value.dtype)


def mean_of(name: str, total: expr.Compute, count: expr.Index) -> expr.Compute:
    """A total divided by how many elements it has; integers are truncated."""

    def rule(value: expr.Value) -> expr.Value:
        if value.dtype.is_float:
            return divided(value, count)
        wide = value.dtype if value.dtype.size_bytes >= DType.I32.size_bytes else DType.I64
        quotient = expr.apply(expr.Fn.DIV, expr.cast(value, wide), number_or_value(count, wide))
        return expr.cast(quotient, value.dtype)

    return pointwise(name, (total,), total.shape, rule)


def _mean(name: str, tensor: expr.Tensor, axes: tuple[int, ...], keepdims: bool) -> expr.Compute:
    total = fold_axes(f"{name}_sum", tensor, axes, expr.sum_over, keepdims=keepdims)
    return mean_of(name, total, product_of(tensor.shape[at] for at in axes))


def _square(value: expr.Value) -> expr.Value:
    return value * value


def _root(value: expr.Value) -> expr.Value:
    """The square root; that of an integer loses its fraction."""
    wide = value.dtype if value.dtype.is_float else DType.F64
    return expr.cast(expr.apply(expr.Fn.SQRT, expr.cast(value, wide)), value.dtype)


def _log_sum_exp(
    name: str, tensor: expr.Tensor, axes: tuple[int, ...], keepdims: bool
) -> expr.Compute:
    best = fold_axes(f"{name}_max", tensor, axes, expr.max_over)

    def finite(value: expr.Value) -> expr.Value:
        return expr.select(expr.apply(expr.Fn.ISINF, value), expr.constant(0, value.dtype), value)

    shift = pointwise(f"{name}_shift", (best,), best.shape, finite)

    def shifted(value: expr.Value, indices: tuple[expr.Index, ...]) -> expr.Value:
        return expr.apply(expr.Fn.EXP, value - expr.Load(shift, folded_indices(indices, axes)))

    total = fold_axes(f"{name}_sum", tensor, axes, expr.sum_over, shifted)
    if keepdims:
        return pointwise(
            name, (total, shift), total.shape, lambda a, b: expr.apply(expr.Fn.LOG, a) + b
        )
    kept = tuple(at for at in range(len(tensor.shape)) if at not in axes)

    def squeezed(*outer: expr.Index) -> expr.Value:
        by_axis = dict(zip(kept, outer, strict=True))
        at = tuple(by_axis.get(axis, 0) for axis in range(len(tensor.shape)))
        return expr.apply(expr.Fn.LOG, expr.Load(total, at)) + expr.Load(shift, at)

    shape = tuple(tensor.shape[at] for at in kept)
    return expr.compute(name, shape, squeezed, axis_names(len(shape)))


def _extreme(fold: FoldFunction, on_bool: FoldFunction) -> Meaning:
    def build(
        name: str, tensor: expr.Tensor, axes: tuple[int, ...], keepdims: bool
    ) -> expr.Compute:
        chosen = on_bool if tensor.dtype is DType.BOOL else fold
        return fold_axes(name, tensor, axes, chosen, keepdims=keepdims)

    return build


def _arg(
    name: str, doc: str, fold: Callable[[expr.Value, expr.Axis], expr.Reduce], worst: float
) -> operator.Operator:
    def infer(types: operator.Types, attributes: Attributes) -> operator.Types:
        (given,) = types
        operator.require_dtype("x", given, operator.NUMBERS)
        axis = axis_in(operator.int_of(attributes, "axis"), len(given.shape))
        if is_equal(sizes_of(given)[axis], 0):
            raise operator.fault(
                f"dimension {axis} of input x is empty: there is no position to give"
            )
        shape = reduced_shape(sizes_of(given), (axis,), operator.bool_of(attributes, "keepdims"))
        return (TensorType(DType.I64, shape),)

    def meaning(tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
        (tensor,) = tensors
        axis = axis_in(operator.int_of(attributes, "axis"), len(tensor.shape))
        keepdims = operator.bool_of(attributes, "keepdims")
        is_mirrored = operator.bool_of(attributes, "select_last_index")
        skips_nan = operator.bool_of(attributes, "skip_nan") and tensor.dtype.is_float
        last = tensor.shape[axis] - 1

        def element(_: expr.Value, indices: tuple[expr.Index, ...]) -> expr.Value:
            if is_mirrored:
                indices = tuple(last - i if at == axis else i for at, i in enumerate(indices))
            value: expr.Value = expr.Load(tensor, indices)
            if not skips_nan:
                return value
            number = expr.select(expr.is_nan(value), expr.constant(worst, value.dtype), value)
            return expr.select(expr.compare(expr.Relation.EQ, indices[axis], 0), value, number)

        label = f"{name}_mirrored" if is_mirrored else name
        chosen = fold_axes(label, tensor, (axis,), fold, element, keepdims=keepdims)
        if not is_mirrored:
            return (chosen,)
        return (
            pointwise(name, (chosen,), chosen.shape, lambda v: number_or_value(last, v.dtype) - v),
        )

    return operator.tensor_operator(
        name,
        doc,
        ("x",),
        (
            operator.Attribute("axis", 0, "the dimension to search; negative counts from the last"),
            operator.KEEPDIMS,
            operator.Attribute("select_last_index", default=False, doc="the last among equals"),
            operator.Attribute(
                "skip_nan", default=False, doc="NaN counts only as the first element"
            ),
        ),
        infer,
        meaning,
        operator.Pattern.REDUCTION,
        fold=operator.Fold.AXIS,
    )


_MAX = _extreme(expr.max_over, expr.any_over)
_MIN = _extreme(expr.min_over, expr.all_over)
_L2 = _after(_simple(expr.sum_over, _square), "sum", _root)
_LOG_SUM = _after(_simple(expr.sum_over), "sum", partial(expr.apply, expr.Fn.LOG))

REDUCTION_OPERATORS = (
    _reduction("reduce_sum", "sum over the axes", _simple(expr.sum_over)),
    _reduction("reduce_mean", "arithmetic mean over the axes", _mean),
    _reduction("reduce_prod", "product over the axes", _simple(expr.prod_over)),
    _reduction("reduce_max", "greatest over the axes", _MAX, operator.NUMBERS | operator.BOOLS),
    _reduction("reduce_min", "least over the axes", _MIN, operator.NUMBERS | operator.BOOLS),
    _reduction("reduce_any", "whether one holds", _simple(expr.any_over), operator.BOOLS),
    _reduction("reduce_all", "whether all hold", _simple(expr.all_over), operator.BOOLS),
    _reduction("reduce_l1", "sum of |x|", _simple(expr.sum_over, partial(expr.apply, expr.Fn.ABS))),
    _reduction("reduce_l2", "square root of the sum of x * x", _L2),
    _reduction("reduce_sum_square", "sum of x * x", _simple(expr.sum_over, _square)),
    _reduction("reduce_log_sum", "log of the sum", _LOG_SUM, operator.FLOATS),
    _reduction("reduce_log_sum_exp", "log of the sum of exp(x)", _log_sum_exp, operator.FLOATS),
    _arg("argmax", "position (i64) of the greatest along an axis", expr.argmax_over, -math.inf),
    _arg("argmin", "position (i64) of the least along an axis", expr.argmin_over, math.inf),
)


_BLOCK = 16  # elements
_MOST_LEVELS = 3  # of blocks of blocks, where the extent is a size: 65536 elements in short folds

_ATTRIBUTES = (
    operator.Attribute("axis", 0, "the dimension; negative counts from the last"),
    operator.Attribute("exclusive", default=False, doc="without the element itself"),
    operator.Attribute("reverse", default=False, doc="from the end"),
)


@dataclass(frozen=True, slots=True)
class _Running:
    """A fold by `fn` of the elements up to each position; those behind it count as `start`."""

    name: str
    fold: Callable[..., expr.Reduce]
    fn: expr.Fn
    start: int

    def meaning(self, tensors: operator.Tensors, attributes: Attributes) -> operator.Computes:
        (x,) = tensors
        axis = axis_in(operator.int_of(attributes, "axis"), len(x.shape))
        exclusive, reverse = (
            operator.bool_of(attributes, "exclusive"),
            operator.bool_of(attributes, "reverse"),
        )
        return (self.along(x, axis, exclusive=exclusive, reverse=reverse),)

    def along(
        self, x: expr.Tensor, axis: int, *, exclusive: bool, reverse: bool, depth: int = 0
    ) -> expr.Compute:
        """The running fold along an axis, of which `depth` levels of blocks are taken."""
        is_short = is_certain(x.shape[axis] <= _BLOCK)
        if is_short or (depth == _MOST_LEVELS and not isinstance(x.shape[axis], int)):
            return self._at_once(x, axis, exclusive=exclusive, reverse=reverse)
        blocks = _Blocks(x, axis, self.start, reverse=reverse)
        own = self._in_own_blocks(blocks, exclusive=exclusive)
        inner = self._of_blocks(blocks)
        before = self.along(inner, axis, exclusive=True, reverse=False, depth=depth + 1)

        def body(*at: expr.Index) -> expr.Value:
            number = blocks.number(at[axis])
            block, inner = (*at[:axis], number // _BLOCK), (number % _BLOCK,)
            others = at[axis + 1 :]
            return expr.apply(
                self.fn, expr.Load(before, block + others), expr.Load(own, block + inner + others)
            )

        return expr.compute(self.name, x.shape, body, axis_names(len(x.shape)))

    def _at_once(
        self, x: expr.Tensor, axis: int, *, exclusive: bool, reverse: bool
    ) -> expr.Compute:
        k = expr.reduce_axis("k", x.shape[axis])

        def body(*at: expr.Index) -> expr.Reduce:
            first, last = (at[axis], k.var) if reverse else (k.var, at[axis])
            inside = first < last if exclusive else first <= last
            value = expr.Load(x, (*at[:axis], k.var, *at[axis + 1 :]))
            return self.fold(expr.select(inside, value, self.start), k)

        return expr.compute(self.name, x.shape, body, axis_names(len(x.shape)))

    def _in_own_blocks(self, blocks: _Blocks, *, exclusive: bool) -> expr.Compute:
        """(..., block, position in it, ...): the fold of a block up to a position."""
        axis, shape = blocks.axis, blocks.shape
        k = expr.reduce_axis("k", _BLOCK)

        def body(*at: expr.Index) -> expr.Reduce:
            last = at[axis + 1]
            inside = k.var < last if exclusive else k.var <= last
            value = blocks.element((*at[: axis + 1], *at[axis + 2 :]), k.var)
            return self.fold(expr.select(inside, value, self.start), k)

        inner = (*shape[: axis + 1], _BLOCK, *shape[axis + 1 :])
        return expr.compute(f"{self.name}_own", inner, body, axis_names(len(inner)))

    def _of_blocks(self, blocks: _Blocks) -> expr.Compute:
        """(..., block, ...): the fold of all elements of each block."""
        k = expr.reduce_axis("k", _BLOCK)
        names = axis_names(len(blocks.shape))
        return expr.compute(
            f"{self.name}_block",
            blocks.shape,
            lambda *at: self.fold(blocks.element(at, k.var), k),
            names,
        )


class _Blocks:
    """A tensor whose elements along an axis are cut into blocks; the last is filled up."""

    def __init__(self, x: expr.Tensor, axis: int, start: int, *, reverse: bool) -> None:
        self.x, self.axis, self.start, self.reverse = x, axis, start, reverse
        self.extent = x.shape[axis]
        count = expr.ceil_div(self.extent, _BLOCK)
        self.shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])

    def number(self, position: expr.Index) -> expr.Index:
        """How many elements a running fold takes before the one at a position, and the inverse."""
        return self.extent - 1 - position if self.reverse else position

    def element(self, at: tuple[expr.Index, ...], offset: expr.Index) -> expr.Value:
        """The element of a block at an offset."""
        axis = self.axis
        number = at[axis] * _BLOCK + offset
        value = expr.Load(self.x, (*at[:axis], self.number(number), *at[axis + 1 :]))
        is_whole = expr.is_same(expr.mod(self.extent, _BLOCK), 0)
        return value if is_whole else expr.select(number < self.extent, value, self.start)


def _infer(types: operator.Types, attributes: Attributes) -> operator.Types:
    operator.require_dtype("x", types[0], operator.NUMBERS)
    axis_in(operator.int_of(attributes, "axis"), len(types[0].shape))
    return types


def _operator(doc: str, running: _Running) -> operator.Operator:
    return operator.tensor_operator(
        running.name,
        doc,
        ("x",),
        _ATTRIBUTES,
        _infer,
        running.meaning,
        operator.Pattern.REDUCTION,
        fold=operator.Fold.OTHER,
    )


RUNNING_OPERATORS = (
    _operator(
        "sum of the elements up to each position along the axis",
        _Running("cumsum", expr.sum_over, expr.Fn.ADD, 0),
    ),
    _operator(
        "product of the elements up to each position along the axis",
        _Running("cumprod", expr.prod_over, expr.Fn.MUL, 1),
    ),
)
