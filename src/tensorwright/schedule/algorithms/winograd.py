"""Winograd's algorithm for convolutions of 3 x 3 taps, stride 1: fewer multiplications.

Rewrite:  y[.., h, w, ..] = sum over c, kh, kw of x[.., h + kh, w + kw, ..] * g[.., kh, kw]
      ->  for tiles of m x m outputs, in the notation of `winograd.py`, with n = m + 2:
          U[u, v, ..]    = sum over kh, kw of G[u, kh] G[v, kw] g[.., kh, kw]
          R[u, t, j]     = sum over i of B^T[u, i] x[t*m + i, j]
          V[u, v, t, s]  = sum over j of B^T[v, j] R[u, t, s*m + j]
          M[u, v, t, s]  = sum over c of V[u, v, t, s] U[u, v]
          Z[p, v, t, s]  = sum over u of A^T[p, u] M[u, v, t, s]
          y[h, w]        = sum over v of A^T[w % m, v] Z[h % m, v, h//m, w//m]
A product of n x n parts stands for m x m outputs of 9 multiplications each: 2.25 times fewer for
m = 2, 4 times for m = 4.  All sums but those over c are written out with their constants folded.
Where the kernel slides in a third direction too, its taps there are summed beside the channels:
          M[u, v, z, t, s]  = sum over c, kz of V[u, v, z + kz, t, s] U[u, v, kz]
Accuracy: about 5e-7 (m = 2) and 2e-6 (m = 4) of the largest output in f32.
Source:   Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.

The matrices of Toom and Cook's products of polynomials, transposed into short filters.

Theorem:  for m outputs of a filter of r taps, and m + r - 2 different points a,
              y = A^T ((G g) * (B^T d)),     y[i] = sum over k of g[k] d[i + k],  i in 0..m
          with A^T[i, j] = a_j^i,  G[j, k] = a_j^k / prod over l != j of (a_j - a_l),
          B^T[j] the coefficients of prod over l != j of (x - a_l), and a last point at infinity:
          A^T[m-1, last] = 1, G[last, r-1] = 1, B^T[last] those of prod over all l of (x - a_l).
Source:   Winograd, "Arithmetic Complexity of Computations", SIAM 1980; Lavin and Gray, "Fast
          Algorithms for Convolutional Neural Networks", CVPR 2016.  Points that round less: Alam et
          al., "Winograd Convolution for Deep Neural Networks: Efficient Point Selection", 2022.

Products with constant matrices, written out without loops, zeros and ones; shared parts once.

Rows of a matrix that differ only in signs sum their terms of equal sign and those of opposite sign
separately. Columns that differ only in signs pair their terms. Code generators then find the same
sums in several rows:
    d4 - 4 d2 + (d3 - 4 d1)   and   d4 - 4 d2 - (d3 - 4 d1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import prod
from typing import TypeAlias

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.schedule.algorithms.implicit_gemm import Algorithm

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]

# in this order: small numbers first, each with its opposite, which the transforms share work with
_POINTS = tuple(map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "-1/2")))
_FIVE_POINTS = tuple(map(Fraction, ("0", "2/3", "-2/3", "3/2", "-3/2")))
"""The points where five are needed: a quarter of the rounding error of the first five above, for
little more work."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """inverse A^T (m, n), kernel G (n, r), data B^T (n, n); n = m + r - 1."""

    inverse: Matrix
    kernel: Matrix
    data: Matrix


@lru_cache(maxsize=64)
def toom_cook(outputs: int, taps: int) -> Matrices:
    """The matrices for a number of outputs of a filter with a number of taps.

    Raises:  ValueError where that takes more points than there are small ones.
    """
    size = outputs + taps - 1
    points = _FIVE_POINTS if size == 6 else _POINTS[: size - 1]
    if len(points) < size - 1:
        raise ValueError(f"{size} products take more than {len(_POINTS)} points")
    others = [[b for b in points if b != a] for a in points]
    infinity = (Fraction(0),) * (size - 1)
    inverse = [(*(a**i for a in points), Fraction(int(i == outputs - 1))) for i in range(outputs)]
    kernel = [
        tuple(a**k / prod(a - b for b in rest) for k in range(taps))
        for a, rest in zip(points, others, strict=True)
    ]
    kernel.append((*infinity[: taps - 1], Fraction(1)))
    data = [(*_coefficients(rest), Fraction(0)) for rest in others]
    data.append(_coefficients(list(points)))
    return Matrices(tuple(inverse), tuple(kernel), tuple(data))


def _coefficients(roots: list[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of prod (x - root), that of x^0 first."""
    product = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *product]
        product = [a - root * b for a, b in zip(shifted, [*product, Fraction(0)], strict=True)]
    return tuple(product)


def row_of_product(
    matrix: Matrix, row: expr.Index, column: Callable[[int], expr.Value]
) -> expr.Value:
    """(matrix v)[row], where v[j] is `column(j)`; `row` may be a variable."""
    return _chosen(row, [each.value(column) for each in _rows(matrix)])


def entry(matrix: Matrix, row: expr.Index, column: expr.Index, dtype: DType) -> expr.Value:
    """matrix[row, column], both of which may be variables."""
    rows = [
        _chosen(column, [expr.constant(float(number), dtype) for number in numbers])
        for numbers in matrix
    ]
    return _chosen(row, rows)


def _chosen(position: expr.Index, values: list[expr.Value]) -> expr.Value:
    """values[position] as a chain of selections."""
    *first, chosen = values
    for number in range(len(first) - 1, -1, -1):
        chosen = expr.select(
            expr.compare(expr.Relation.EQ, position, number), first[number], chosen
        )
    return chosen


@dataclass(frozen=True, slots=True)
class _Term:
    """A number times a column, or times the sum or the difference of two."""

    number: Fraction
    column: int
    other: int | None = None
    is_difference: bool = False

    def value(self, column: Callable[[int], expr.Value]) -> expr.Value:
        """The factor of the number."""
        if self.other is None:
            return column(self.column)
        first, second = column(self.column), column(self.other)
        return first - second if self.is_difference else first + second


@dataclass(frozen=True, slots=True)
class _Row:
    """How a row is summed: left, or left + right, or left - right."""

    left: tuple[_Term, ...]
    right: tuple[_Term, ...] = ()
    is_difference: bool = False

    def value(self, column: Callable[[int], expr.Value]) -> expr.Value:
        left = _sum([(term.number, term.value(column)) for term in self.left])
        if not self.right:
            return left
        right = _sum([(term.number, term.value(column)) for term in self.right])
        return left - right if self.is_difference else left + right


@lru_cache(maxsize=64)
def _rows(matrix: Matrix) -> tuple[_Row, ...]:
    """How each row of a matrix is summed."""
    return tuple(_row(matrix, number) for number in range(len(matrix)))


def _row(matrix: Matrix, row: int) -> _Row:
    numbers = matrix[row]
    partner = _partner(matrix, row)
    if partner is not None:
        first, second = matrix[min(row, partner)], matrix[max(row, partner)]
        agree = tuple(_Term(a, j) for j, a in enumerate(first) if a and a == second[j])
        differ = tuple(_Term(a, j) for j, a in enumerate(first) if a and a != second[j])
        return _Row(agree, differ, is_difference=row > partner)
    columns = tuple(zip(*matrix, strict=True))
    terms: list[_Term] = []
    used: set[int] = set()
    for j, number in enumerate(numbers):
        if not number or j in used:
            continue
        twin = _partner(columns, j)
        if twin is not None:
            used.add(twin)
        terms.append(_Term(number, j, twin, twin is not None and numbers[twin] != number))
    return _Row(tuple(terms))


def _partner(matrix: Matrix, row: int) -> int | None:
    """Another row with the same numbers, some but not all of opposite sign."""
    for other, numbers in enumerate(matrix):
        pairs = [(a, b) for a, b in zip(matrix[row], numbers, strict=True) if a or b]
        same = all(abs(a) == abs(b) for a, b in pairs)
        if same and any(a != b for a, b in pairs) and any(a == b for a, b in pairs):
            return other
    return None


def _sum(terms: list[tuple[Fraction, expr.Value]]) -> expr.Value:
    """The sum of numbers times values; those that are added first, so that nothing is negated."""
    ordered = sorted(terms, key=lambda term: (term[0] < 0, abs(term[0]) != 1))
    number, total = ordered[0]
    if number != 1:
        total = total * float(number)
    for number, value in ordered[1:]:
        term = value if abs(number) == 1 else value * float(abs(number))
        total = total + term if number > 0 else total - term
    return total


TAPS = 3
WINOGRAD_TILES = (2, 3, 4, 6)

winograd_matrices = partial(toom_cook, taps=TAPS)


@dataclass(frozen=True, slots=True)
class Slide:
    """One direction in which the kernel slides: y[.. out ..] reads x[.. out + tap ..].

    data, kernel  the dimensions of x and of the kernel that it goes along
    """

    out: expr.Axis
    tap: expr.Axis
    data: int
    kernel: int


@dataclass(frozen=True, slots=True)
class Convolution:
    """A sum of products that is a convolution in two directions of 3 taps, stride 1.

    Of three such directions these are the last two; along the first, taps are summed like channels.
    """

    data: expr.Load
    kernel: expr.Load
    rows: Slide
    columns: Slide


def find_convolution(tensor: expr.Compute) -> Convolution | None:
    """The tensor as a convolution, with its dimensions in any order; None if it is not one."""
    loads = expr.multiplied_loads(tensor)
    if loads is None or tensor.dtype not in (DType.F32, DType.F64):
        return None
    for data, kernel in (loads, loads[::-1]):
        slides = tuple(_slides(tensor, data, kernel))[-2:]
        if len(slides) == 2 and _is_separate(data, kernel, slides):
            return Convolution(data, kernel, *slides)
    return None


def _slides(tensor: expr.Compute, data: expr.Load, kernel: expr.Load) -> Iterator[Slide]:
    for at, index in enumerate(data.indices):
        for out in tensor.axes:
            for tap in tensor.reduce_axes:
                if tap.extent == TAPS and index == out.var + tap.var and tap.var in kernel.indices:
                    yield Slide(out, tap, at, kernel.indices.index(tap.var))


def _is_separate(data: expr.Load, kernel: expr.Load, slides: tuple[Slide, ...]) -> bool:
    """Whether nothing else depends on the axes of the slides."""
    outs = {slide.out.var for slide in slides}
    moving = outs | {slide.tap.var for slide in slides}
    if len(moving) != 2 * len(slides):
        return False
    along_data = {slide.data for slide in slides}
    along_kernel = {slide.kernel for slide in slides}
    still = [index for n, index in enumerate(data.indices) if n not in along_data]
    still += [index for n, index in enumerate(kernel.indices) if n not in along_kernel]
    return not expr.free_vars(*still) & moving


def rewrite_as_winograd(tensor: expr.Compute, tile: int) -> expr.Compute | None:
    """The tensor by Winograd's algorithm on tiles of `tile` x `tile` outputs; None for another
    tensor.
    """
    convolution = find_convolution(tensor)
    return None if convolution is None else _Rewriting(tensor, convolution, tile).run()


class _Rewriting:
    """One rewriting: its stages share these variables."""

    def __init__(self, tensor: expr.Compute, convolution: Convolution, tile: int) -> None:
        self.tensor = tensor
        self.convolution = convolution
        self.tile = tile
        self.matrices: Matrices = winograd_matrices(tile)
        self.size = tile + TAPS - 1
        self.slides = (convolution.rows, convolution.columns)
        self.counts = tuple(expr.ceil_div(slide.out.extent, tile) for slide in self.slides)
        self.parts = (expr.Axis(expr.Var("u"), self.size), expr.Axis(expr.Var("v"), self.size))
        self.tiles = {
            slide.out.var: expr.Axis(expr.Var(f"{slide.out.name}_t"), count)
            for slide, count in zip(self.slides, self.counts, strict=True)
        }

    def run(self) -> expr.Compute:
        columns = self._transformed_columns(self._transformed_rows(self._enough_data()))
        product = self._product(columns, self._transformed_kernel())
        return self._outputs(self._summed_rows(product))

    def _name(self, suffix: str) -> str:
        return f"{self.tensor.name}_{suffix}"

    def _data_axes(self, source: expr.Tensor) -> list[expr.Axis]:
        """The axes of the data; those of the slides have the names of the output's axes."""
        names = {slide.data: slide.out.name for slide in self.slides}
        return [
            expr.Axis(expr.Var(names.get(n, f"d{n}")), extent)
            for n, extent in enumerate(source.shape)
        ]

    def _enough_data(self) -> expr.Tensor:
        """The data, with zeros beyond its end where the last tiles read so far."""
        source: expr.Tensor = self.convolution.data.source
        needed = list(source.shape)
        for slide, count in zip(self.slides, self.counts, strict=True):
            reach = count * self.tile + TAPS - 1
            needed[slide.data] = expr.simplify(expr.maximum(needed[slide.data], reach), {})
        if tuple(needed) == tuple(source.shape):
            return source
        axes = [replace(a, extent=n) for a, n in zip(self._data_axes(source), needed, strict=True)]
        inside = expr.all_of(*(axes[s.data].var < source.shape[s.data] for s in self.slides))
        body = expr.select(inside, expr.Load(source, tuple(axis.var for axis in axes)), 0.0)
        return expr.Compute(self._name("data"), tuple(axes), body)

    def _transformed_rows(self, data: expr.Tensor) -> expr.Compute:
        """R: the first direction."""
        axes = self._data_axes(data)
        slide = self.convolution.rows
        part, tiles = self.parts[0], self.tiles[slide.out.var]
        places: list[expr.Index] = [axis.var for axis in axes]
        axes[slide.data] = tiles

        def at(number: int) -> expr.Value:
            places[slide.data] = tiles.var * self.tile + number
            return expr.Load(data, tuple(places))

        body = row_of_product(self.matrices.data, part.var, at)
        return expr.Compute(self._name("rows"), (part, *axes), body)

    def _transformed_columns(self, rows: expr.Compute) -> expr.Compute:
        """V: the second direction."""
        first, *axes = rows.axes
        slide = self.convolution.columns
        part, tiles = self.parts[1], self.tiles[slide.out.var]
        places: list[expr.Index] = [axis.var for axis in axes]
        axes[slide.data] = tiles

        def at(number: int) -> expr.Value:
            places[slide.data] = tiles.var * self.tile + number
            return expr.Load(rows, (first.var, *places))

        body = row_of_product(self.matrices.data, part.var, at)
        return expr.Compute(self._name("columns"), (first, part, *axes), body)

    def _transformed_kernel(self) -> expr.Compute:
        """U, computed in f64: two stages that read nothing but the kernel."""
        source = self.convolution.kernel.source
        axes = [expr.Axis(expr.Var(f"d{n}"), extent) for n, extent in enumerate(source.shape)]
        row, column = (expr.Axis(slide.tap.var, TAPS) for slide in self.slides)
        axes[self.convolution.rows.kernel], axes[self.convolution.columns.kernel] = row, column
        value = expr.cast(expr.Load(source, tuple(axis.var for axis in axes)), DType.F64)
        for part, tap in zip(self.parts, (row, column), strict=True):
            value = value * entry(self.matrices.kernel, part.var, tap.var, DType.F64)
        kept = (*self.parts, *(axis for axis in axes if axis not in (row, column)))
        taps = expr.Reduction(expr.Combiner.SUM, (row, column))
        wide = expr.Compute(self._name("kernel_f64"), kept, value, taps)
        rounded = expr.cast(expr.Load(wide, tuple(axis.var for axis in kept)), source.dtype)
        return expr.Compute(self._name("kernel"), kept, rounded)

    def _product(self, data: expr.Compute, kernel: expr.Compute) -> expr.Compute:
        """M: what all the multiplications are."""
        parts = tuple(part.var for part in self.parts)
        places = list(self.convolution.data.indices)
        for slide in self.slides:
            places[slide.data] = self.tiles[slide.out.var].var
        taps = {slide.kernel for slide in self.slides}
        others = [index for n, index in enumerate(self.convolution.kernel.indices) if n not in taps]
        body = expr.Load(data, (*parts, *places)) * expr.Load(kernel, (*parts, *others))
        axes = tuple(self.tiles.get(axis.var, axis) for axis in self.tensor.axes)
        tapped = {slide.tap.var for slide in self.slides}
        folded = tuple(axis for axis in self.tensor.reduce_axes if axis.var not in tapped)
        if not folded:
            return expr.Compute(self._name("product"), (*self.parts, *axes), body)
        fold = expr.Reduction(expr.Combiner.SUM, folded)
        return expr.Compute(self._name("product"), (*self.parts, *axes), body, fold)

    def _summed_rows(self, product: expr.Compute) -> expr.Compute:
        """Z: the first direction of the inverse."""
        _, second, *axes = product.axes
        inner = expr.Axis(expr.Var("p"), self.tile)
        rest = tuple(axis.var for axis in axes)

        def at(number: int) -> expr.Value:
            return expr.Load(product, (number, second.var, *rest))

        body = row_of_product(self.matrices.inverse, inner.var, at)
        return expr.Compute(self._name("sums"), (inner, second, *axes), body)

    def _outputs(self, sums: expr.Compute) -> expr.Compute:
        """The tensor itself, by the second direction of the inverse."""
        row, column = (slide.out.var for slide in self.slides)
        places = tuple(
            expr.floor_div(axis.var, self.tile) if axis.var in (row, column) else axis.var
            for axis in self.tensor.axes
        )

        def at(number: int) -> expr.Value:
            return expr.Load(sums, (expr.mod(row, self.tile), number, *places))

        body = row_of_product(self.matrices.inverse, expr.mod(column, self.tile), at)
        return expr.Compute(self.tensor.name, self.tensor.axes, body)


WINOGRAD = tuple(
    Algorithm(f"winograd{tile}", partial(rewrite_as_winograd, tile=tile)) for tile in WINOGRAD_TILES
)
