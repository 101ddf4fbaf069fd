"""A sum of products as a product of matrices: axes that always occur together become one axis.

Rewrite:  y[n, o, h, w] = sum over c, kh, kw of x[n, c, h*s + kh, w*s + kw] * g[o, c, kh, kw]
      ->  y_left[kh, kw, c, o] = g[o, c, kh, kw]
          y_right[kh, kw, c, p] = x[n, c, h*s + kh, w*s + kw]    where p = (n*H + h)*W + w
          y_product[o, p] = sum over kh, kw, c of y_left[kh, kw, c, o] * y_right[kh, kw, c, p]
          y[n, o, h, w] = y_product[o, (n*H + h)*W + w]
The axes that only one operand has are joined; those that both have stay as they are.  The right
operand has the last axis of the result, so that neighbours of a row are stored together.  Both
operands have the terms of the sum as their outer dimensions, so that threads read neighbours of one
term.  The operands are stages that are computed part by part, where the product needs them; neither
is ever stored as a whole.  Joined axes that no good tile divides repeat their last element: 49
pixels are 56.
Source:   Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014, section 3.

The record of an algorithm.

Windows written out as columns of a matrix: a convolution becomes a plain product of matrices.

Rewrite:  y[.., h, w, ..] = sum over c, kh, kw of x[.., h*s + kh, w*s + kw, c] * g[kh, kw, c, ..]
      ->  y_columns[h, w, kh, kw, c] = x[.., h*s + kh, w*s + kw, c]
          y[h, w, ..] = sum over c, kh, kw of y_columns[h, w, kh, kw, c] * g[kh, kw, c, ..]
The columns have the layout of the data: its last dimension stays the last.  They hold an element
once for each window that contains it; the same terms are summed.
Source:   Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for Document
          Processing", 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from tensorwright import expr


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Another tensor expression for what a tensor means.

    name     what a trace calls it
    rewrite  the tensor by this algorithm, or None where it does not apply: a tensor of the same
             name and axes, whose new intermediate tensors are called <name>_...; the operands stay
             the same
    rounds   whether it rounds otherwise; else the same terms are multiplied and summed
    """

    name: str
    rewrite: Callable[[expr.Compute], expr.Compute | None]
    rounds: bool = True


def rewrite_as_im2col(tensor: expr.Compute) -> expr.Compute | None:
    """The tensor by columns; None unless exactly one operand is read by windows.

    The columns hold all windows, so it is None, too, where some begin or end outside of the data
    and a condition leaves that out.
    """
    windows = {load for load in expr.loads_of(tensor.body) if _is_window(load, tensor)}
    if len(windows) != 1:
        return None
    (window,) = windows
    if not _is_inside(window, tensor):
        return None
    axes = _axes_of(window, tensor)
    columns = expr.Compute(f"{tensor.name}_columns", axes, window)
    copy = expr.Load(columns, tuple(axis.var for axis in axes))

    def on_load(load: expr.Load) -> expr.Value:
        return copy if load == window else load

    body = expr.rebuild(tensor.body, on_load, lambda index: index, lambda condition: condition)
    return expr.Compute(tensor.name, tensor.axes, body, tensor.reduction)


def _is_window(load: expr.Load, tensor: expr.Compute) -> bool:
    """Whether a tap moves along an operand together with a position, and some axis does not."""
    taps = {axis.var for axis in tensor.reduce_axes if axis.extent != 1}
    places = {axis.var for axis in tensor.axes}
    read = expr.free_vars(*load.indices)
    slides = any(expr.free_vars(i) & taps and expr.free_vars(i) & places for i in load.indices)
    return slides and bool(places - read)


def _is_inside(load: expr.Load, tensor: expr.Compute) -> bool:
    """Whether an operand has all elements that are read, whatever the conditions of the reads."""
    axes = (*tensor.axes, *tensor.reduce_axes)
    bounds = {axis.var: expr.Range.of_extent(axis.extent) for axis in axes}
    return all(
        expr.is_nonnegative(index, bounds) and expr.is_nonnegative(extent - 1 - index, bounds)
        for index, extent in zip(load.indices, load.source.shape, strict=True)
    )


def _axes_of(window: expr.Load, tensor: expr.Compute) -> tuple[expr.Axis, ...]:
    """The axes of the columns: positions and taps, in the order of the data's dimensions."""
    order = [var for index in window.indices for var in sorted(expr.free_vars(index), key=str)]
    axes = {axis.var: axis for axis in (*tensor.axes, *tensor.reduce_axes)}
    taps = [axes[var] for var in dict.fromkeys(order) if axes[var] in tensor.reduce_axes]
    places = [axes[var] for var in dict.fromkeys(order) if axes[var] in tensor.axes]
    is_last = bool(order) and axes[order[-1]] in tensor.reduce_axes
    is_last = is_last and len(expr.free_vars(window.indices[-1])) == 1
    return (*places, *taps) if is_last else (*taps, *places)


IM2COL = Algorithm("im2col", rewrite_as_im2col)


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A tensor as a product of matrices.

    left, right   the factors               rows, columns   the axes that only this one depends on
    both          the axes on which both depend
    """

    left: expr.Value
    right: expr.Value
    rows: tuple[expr.Axis, ...]
    columns: tuple[expr.Axis, ...]
    both: tuple[expr.Axis, ...]

    @property
    def height(self) -> int:
        """The extent of the joined rows."""
        return _joined(self.rows).length

    @property
    def width(self) -> int:
        """The extent of the joined columns."""
        return _joined(self.columns).length


def find_matrix_product(tensor: expr.Compute) -> MatrixProduct | None:
    """The two factors of a sum and the axes of each; None where one has no axis to itself."""
    loads = expr.multiplied_loads(tensor)
    if loads is None or loads[0].source is loads[1].source:
        return None
    left, right = loads
    if not tensor.dtype.is_float or {left.dtype, right.dtype} != {tensor.dtype}:
        return None
    axes = [axis for axis in tensor.axes if axis.extent != 1]
    if not axes or not all(isinstance(axis.extent, int) for axis in axes):
        return None
    if axes[-1].var not in expr.free_vars(*right.indices):
        left, right = right, left
    of_left, of_right = expr.free_vars(*left.indices), expr.free_vars(*right.indices)
    rows = tuple(axis for axis in axes if axis.var not in of_right)
    columns = tuple(axis for axis in axes if axis.var not in of_left)
    both = tuple(axis for axis in axes if axis not in (*rows, *columns))
    has_all = {axis.var for axis in axes} <= of_left | of_right
    return MatrixProduct(left, right, rows, columns, both) if rows and columns and has_all else None


def rewrite_as_matrices(tensor: expr.Compute) -> expr.Compute | None:
    """The tensor as a product of matrices; None where that is not possible."""
    matrices = find_matrix_product(tensor)
    return None if matrices is None else _Rewriting(tensor, matrices).run()


class _Rewriting:
    """One rewriting: its stages share these variables."""

    def __init__(self, tensor: expr.Compute, matrices: MatrixProduct) -> None:
        self.tensor = tensor
        self.matrices = matrices
        self.units = {axis.var: 0 for axis in tensor.axes if axis.extent == 1}
        short = [axis for axis in tensor.reduce_axes if axis.extent == 1]
        self.units |= {axis.var: 0 for axis in short}
        long = (axis for axis in tensor.reduce_axes if axis.extent != 1)
        # the longest last: parts of it have the others in common
        self.terms = tuple(sorted(long, key=lambda axis: axis.length))

    def run(self) -> expr.Compute:
        matrices = self.matrices
        rows, columns = _joined(matrices.rows), _joined(matrices.columns)
        left = self._operand("left", matrices.left, matrices.rows, rows)
        right = self._operand("right", matrices.right, matrices.columns, columns)
        name = f"{self.tensor.name}_product"
        body = _element(left) * _element(right)
        fold = expr.Reduction(expr.Combiner.SUM, self.terms or self.tensor.reduce_axes)
        product = expr.Compute(name, (*matrices.both, rows, columns), body, fold)
        indices = (
            *(axis.var for axis in matrices.both),
            _number(matrices.rows),
            _number(matrices.columns),
        )
        return expr.Compute(self.tensor.name, self.tensor.axes, expr.Load(product, indices))

    def _operand(
        self, suffix: str, factor: expr.Value, own: tuple[expr.Axis, ...], joined: expr.Axis
    ) -> expr.Compute:
        """A factor, its terms outside and its own axes joined."""
        used = expr.free_vars(*factor.indices) if isinstance(factor, expr.Load) else frozenset()
        kept = (axis for axis in (*self.matrices.both, *self.terms) if axis.var in used)
        count = prod(axis.length for axis in own)
        number = joined.var if joined.length == count else expr.minimum(joined.var, count - 1)
        body = expr.substitute_value(factor, {**self.units, **_parts(own, number)})
        return expr.Compute(f"{self.tensor.name}_{suffix}", (*kept, joined), body)


def _element(tensor: expr.Compute) -> expr.Load:
    return expr.Load(tensor, tuple(axis.var for axis in tensor.axes))


_QUAD, _EIGHT = 4, 8
_GOOD_TILES = (16, 128)  # how long good tiles are


def _joined(axes: tuple[expr.Axis, ...]) -> expr.Axis:
    """One axis for several, extended to a multiple of a good tile."""
    extent = prod(axis.length for axis in axes)
    return expr.Axis(expr.Var("_".join(axis.name for axis in axes)), _tiled_extent(extent))


def _tiled_extent(extent: int) -> int:
    """The next extent that has a good tile, of whole vectors of four; small ones are a few."""
    least, most = _GOOD_TILES
    if extent <= least:
        return extent if extent <= _QUAD else -(-extent // _QUAD) * _QUAD
    while not any(extent % tile == 0 for tile in range(least, most + 1, _QUAD)):
        extent = (extent // _EIGHT + 1) * _EIGHT
    return extent


def _number(axes: tuple[expr.Axis, ...]) -> expr.Index:
    """The number of an element along joined axes."""
    number: expr.Index = 0
    for axis in axes:
        number = number * axis.extent + axis.var
    return number


def _parts(axes: tuple[expr.Axis, ...], number: expr.Index) -> dict[expr.Var, expr.Index]:
    """Where the element with a number lies along each axis."""
    parts: dict[expr.Var, expr.Index] = {}
    for axis in reversed(axes[1:]):
        parts[axis.var] = expr.mod(number, axis.extent)
        number = expr.floor_div(number, axis.extent)
    parts[axes[0].var] = number
    return parts


IMPLICIT_GEMM = Algorithm("implicit_gemm", rewrite_as_matrices, rounds=False)
