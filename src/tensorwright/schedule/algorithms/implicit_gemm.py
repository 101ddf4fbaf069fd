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
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tensorwright.expr import (
    Axis,
    Combiner,
    Compute,
    Index,
    Load,
    Reduction,
    Value,
    Var,
    floor_div,
    free_vars,
    minimum,
    mod,
    multiplied_loads,
    substitute_value,
)
from tensorwright.schedule.algorithms.algorithm import Algorithm


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A tensor as a product of matrices.

    left, right   the factors               rows, columns   the axes that only this one depends on
    both          the axes on which both depend
    """

    left: Value
    right: Value
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    both: tuple[Axis, ...]

    @property
    def height(self) -> int:
        """The extent of the joined rows."""
        return _joined(self.rows).length

    @property
    def width(self) -> int:
        """The extent of the joined columns."""
        return _joined(self.columns).length


def find_matrix_product(tensor: Compute) -> MatrixProduct | None:
    """The two factors of a sum and the axes of each; None where one has no axis to itself."""
    loads = multiplied_loads(tensor)
    if loads is None or loads[0].source is loads[1].source:
        return None
    left, right = loads
    if not tensor.dtype.is_float or {left.dtype, right.dtype} != {tensor.dtype}:
        return None
    axes = [axis for axis in tensor.axes if axis.extent != 1]
    if not axes or not all(isinstance(axis.extent, int) for axis in axes):
        return None
    if axes[-1].var not in free_vars(*right.indices):
        left, right = right, left
    of_left, of_right = free_vars(*left.indices), free_vars(*right.indices)
    rows = tuple(axis for axis in axes if axis.var not in of_right)
    columns = tuple(axis for axis in axes if axis.var not in of_left)
    both = tuple(axis for axis in axes if axis not in (*rows, *columns))
    has_all = {axis.var for axis in axes} <= of_left | of_right
    return MatrixProduct(left, right, rows, columns, both) if rows and columns and has_all else None


def rewrite_as_matrices(tensor: Compute) -> Compute | None:
    """The tensor as a product of matrices; None where that is not possible."""
    matrices = find_matrix_product(tensor)
    return None if matrices is None else _Rewriting(tensor, matrices).run()


class _Rewriting:
    """One rewriting: its stages share these variables."""

    def __init__(self, tensor: Compute, matrices: MatrixProduct) -> None:
        self.tensor = tensor
        self.matrices = matrices
        self.units = {axis.var: 0 for axis in tensor.axes if axis.extent == 1}
        short = [axis for axis in tensor.reduce_axes if axis.extent == 1]
        self.units |= {axis.var: 0 for axis in short}
        self.terms = _by_length(axis for axis in tensor.reduce_axes if axis.extent != 1)

    def run(self) -> Compute:
        matrices = self.matrices
        rows, columns = _joined(matrices.rows), _joined(matrices.columns)
        left = self._operand("left", matrices.left, matrices.rows, rows)
        right = self._operand("right", matrices.right, matrices.columns, columns)
        name = f"{self.tensor.name}_product"
        body = _element(left) * _element(right)
        fold = Reduction(Combiner.SUM, self.terms or self.tensor.reduce_axes)
        product = Compute(name, (*matrices.both, rows, columns), body, fold)
        indices = (
            *(axis.var for axis in matrices.both),
            _number(matrices.rows),
            _number(matrices.columns),
        )
        return Compute(self.tensor.name, self.tensor.axes, Load(product, indices))

    def _operand(self, suffix: str, factor: Value, own: tuple[Axis, ...], joined: Axis) -> Compute:
        """A factor, its terms outside and its own axes joined."""
        used = free_vars(*factor.indices) if isinstance(factor, Load) else frozenset()
        kept = (axis for axis in (*self.matrices.both, *self.terms) if axis.var in used)
        count = prod(axis.length for axis in own)
        number = joined.var if joined.length == count else minimum(joined.var, count - 1)
        body = substitute_value(factor, {**self.units, **_parts(own, number)})
        return Compute(f"{self.tensor.name}_{suffix}", (*kept, joined), body)


def _element(tensor: Compute) -> Load:
    return Load(tensor, tuple(axis.var for axis in tensor.axes))


def _by_length(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes of a sum, the longest last: parts of it have the others in common."""
    return tuple(sorted(axes, key=lambda axis: axis.length))


_QUAD, _EIGHT = 4, 8
_GOOD_TILES = (16, 128)  # how long good tiles are


def _joined(axes: tuple[Axis, ...]) -> Axis:
    """One axis for several, extended to a multiple of a good tile."""
    extent = prod(axis.length for axis in axes)
    return Axis(Var("_".join(axis.name for axis in axes)), _tiled_extent(extent))


def _tiled_extent(extent: int) -> int:
    """The next extent that has a good tile, of whole vectors of four; small ones are a few."""
    least, most = _GOOD_TILES
    if extent <= least:
        return extent if extent <= _QUAD else -(-extent // _QUAD) * _QUAD
    while not any(extent % tile == 0 for tile in range(least, most + 1, _QUAD)):
        extent = (extent // _EIGHT + 1) * _EIGHT
    return extent


def _number(axes: tuple[Axis, ...]) -> Index:
    """The number of an element along joined axes."""
    number: Index = 0
    for axis in axes:
        number = number * axis.extent + axis.var
    return number


def _parts(axes: tuple[Axis, ...], number: Index) -> dict[Var, Index]:
    """Where the element with a number lies along each axis."""
    parts: dict[Var, Index] = {}
    for axis in reversed(axes[1:]):
        parts[axis.var] = mod(number, axis.extent)
        number = floor_div(number, axis.extent)
    parts[axes[0].var] = number
    return parts


IMPLICIT_GEMM = Algorithm("implicit_gemm", rewrite_as_matrices, rounds=False)
