"""Winograd's algorithm for convolutions of 3 x 3 taps, stride 1: fewer multiplications.

Rewrite:  y[.., h, w, ..] = sum over c, kh, kw of x[.., h + kh, w + kw, ..] * g[.., kh, kw]
      ->  for tiles of m x m outputs, in the notation of `toom_cook.py`, with n = m + 2:
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
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from tensorwright.base import DType
from tensorwright.expr import (
    Axis,
    Combiner,
    Compute,
    Index,
    Load,
    Reduction,
    Tensor,
    Value,
    Var,
    all_of,
    cast,
    ceil_div,
    floor_div,
    free_vars,
    maximum,
    mod,
    multiplied_loads,
    select,
    simplify,
)
from tensorwright.schedule.algorithms.algorithm import Algorithm
from tensorwright.schedule.algorithms.linear import entry, row_of_product
from tensorwright.schedule.algorithms.toom_cook import Matrices, toom_cook

TAPS = 3
WINOGRAD_TILES = (2, 3, 4, 6)

winograd_matrices = partial(toom_cook, taps=TAPS)


@dataclass(frozen=True, slots=True)
class Slide:
    """One direction in which the kernel slides: y[.. out ..] reads x[.. out + tap ..].

    data, kernel  the dimensions of x and of the kernel that it goes along
    """

    out: Axis
    tap: Axis
    data: int
    kernel: int


@dataclass(frozen=True, slots=True)
class Convolution:
    """A sum of products that is a convolution in two directions of 3 taps, stride 1.

    Of three such directions these are the last two; along the first, taps are summed like channels.
    """

    data: Load
    kernel: Load
    rows: Slide
    columns: Slide


def find_convolution(tensor: Compute) -> Convolution | None:
    """The tensor as a convolution, with its dimensions in any order; None if it is not one."""
    loads = multiplied_loads(tensor)
    if loads is None or tensor.dtype not in (DType.F32, DType.F64):
        return None
    for data, kernel in (loads, loads[::-1]):
        slides = tuple(_slides(tensor, data, kernel))[-2:]
        if len(slides) == 2 and _is_separate(data, kernel, slides):
            return Convolution(data, kernel, *slides)
    return None


def _slides(tensor: Compute, data: Load, kernel: Load) -> Iterator[Slide]:
    for at, index in enumerate(data.indices):
        for out in tensor.axes:
            for tap in tensor.reduce_axes:
                if tap.extent == TAPS and index == out.var + tap.var and tap.var in kernel.indices:
                    yield Slide(out, tap, at, kernel.indices.index(tap.var))


def _is_separate(data: Load, kernel: Load, slides: tuple[Slide, ...]) -> bool:
    """Whether nothing else depends on the axes of the slides."""
    outs = {slide.out.var for slide in slides}
    moving = outs | {slide.tap.var for slide in slides}
    if len(moving) != 2 * len(slides):
        return False
    along_data = {slide.data for slide in slides}
    along_kernel = {slide.kernel for slide in slides}
    still = [index for n, index in enumerate(data.indices) if n not in along_data]
    still += [index for n, index in enumerate(kernel.indices) if n not in along_kernel]
    return not free_vars(*still) & moving


def rewrite_as_winograd(tensor: Compute, tile: int) -> Compute | None:
    """The tensor by Winograd's algorithm on tiles of `tile` x `tile` outputs; None for another
    tensor.
    """
    convolution = find_convolution(tensor)
    return None if convolution is None else _Rewriting(tensor, convolution, tile).run()


class _Rewriting:
    """One rewriting: its stages share these variables."""

    def __init__(self, tensor: Compute, convolution: Convolution, tile: int) -> None:
        self.tensor = tensor
        self.convolution = convolution
        self.tile = tile
        self.matrices: Matrices = winograd_matrices(tile)
        self.size = tile + TAPS - 1
        self.slides = (convolution.rows, convolution.columns)
        self.counts = tuple(ceil_div(slide.out.extent, tile) for slide in self.slides)
        self.parts = (Axis(Var("u"), self.size), Axis(Var("v"), self.size))
        self.tiles = {
            slide.out.var: Axis(Var(f"{slide.out.name}_t"), count)
            for slide, count in zip(self.slides, self.counts, strict=True)
        }

    def run(self) -> Compute:
        columns = self._transformed_columns(self._transformed_rows(self._enough_data()))
        product = self._product(columns, self._transformed_kernel())
        return self._outputs(self._summed_rows(product))

    def _name(self, suffix: str) -> str:
        return f"{self.tensor.name}_{suffix}"

    def _data_axes(self, source: Tensor) -> list[Axis]:
        """The axes of the data; those of the slides have the names of the output's axes."""
        names = {slide.data: slide.out.name for slide in self.slides}
        return [Axis(Var(names.get(n, f"d{n}")), extent) for n, extent in enumerate(source.shape)]

    def _enough_data(self) -> Tensor:
        """The data, with zeros beyond its end where the last tiles read so far."""
        source: Tensor = self.convolution.data.source
        needed = list(source.shape)
        for slide, count in zip(self.slides, self.counts, strict=True):
            reach = count * self.tile + TAPS - 1
            needed[slide.data] = simplify(maximum(needed[slide.data], reach), {})
        if tuple(needed) == tuple(source.shape):
            return source
        axes = [replace(a, extent=n) for a, n in zip(self._data_axes(source), needed, strict=True)]
        inside = all_of(*(axes[s.data].var < source.shape[s.data] for s in self.slides))
        body = select(inside, Load(source, tuple(axis.var for axis in axes)), 0.0)
        return Compute(self._name("data"), tuple(axes), body)

    def _transformed_rows(self, data: Tensor) -> Compute:
        """R: the first direction."""
        axes = self._data_axes(data)
        slide = self.convolution.rows
        part, tiles = self.parts[0], self.tiles[slide.out.var]
        places: list[Index] = [axis.var for axis in axes]
        axes[slide.data] = tiles

        def at(number: int) -> Value:
            places[slide.data] = tiles.var * self.tile + number
            return Load(data, tuple(places))

        body = row_of_product(self.matrices.data, part.var, at)
        return Compute(self._name("rows"), (part, *axes), body)

    def _transformed_columns(self, rows: Compute) -> Compute:
        """V: the second direction."""
        first, *axes = rows.axes
        slide = self.convolution.columns
        part, tiles = self.parts[1], self.tiles[slide.out.var]
        places: list[Index] = [axis.var for axis in axes]
        axes[slide.data] = tiles

        def at(number: int) -> Value:
            places[slide.data] = tiles.var * self.tile + number
            return Load(rows, (first.var, *places))

        body = row_of_product(self.matrices.data, part.var, at)
        return Compute(self._name("columns"), (first, part, *axes), body)

    def _transformed_kernel(self) -> Compute:
        """U, computed in f64: two stages that read nothing but the kernel."""
        source = self.convolution.kernel.source
        axes = [Axis(Var(f"d{n}"), extent) for n, extent in enumerate(source.shape)]
        row, column = (Axis(slide.tap.var, TAPS) for slide in self.slides)
        axes[self.convolution.rows.kernel], axes[self.convolution.columns.kernel] = row, column
        value = cast(Load(source, tuple(axis.var for axis in axes)), DType.F64)
        for part, tap in zip(self.parts, (row, column), strict=True):
            value = value * entry(self.matrices.kernel, part.var, tap.var, DType.F64)
        kept = (*self.parts, *(axis for axis in axes if axis not in (row, column)))
        taps = Reduction(Combiner.SUM, (row, column))
        wide = Compute(self._name("kernel_f64"), kept, value, taps)
        rounded = cast(Load(wide, tuple(axis.var for axis in kept)), source.dtype)
        return Compute(self._name("kernel"), kept, rounded)

    def _product(self, data: Compute, kernel: Compute) -> Compute:
        """M: what all the multiplications are."""
        parts = tuple(part.var for part in self.parts)
        places = list(self.convolution.data.indices)
        for slide in self.slides:
            places[slide.data] = self.tiles[slide.out.var].var
        taps = {slide.kernel for slide in self.slides}
        others = [index for n, index in enumerate(self.convolution.kernel.indices) if n not in taps]
        body = Load(data, (*parts, *places)) * Load(kernel, (*parts, *others))
        axes = tuple(self.tiles.get(axis.var, axis) for axis in self.tensor.axes)
        tapped = {slide.tap.var for slide in self.slides}
        folded = tuple(axis for axis in self.tensor.reduce_axes if axis.var not in tapped)
        if not folded:
            return Compute(self._name("product"), (*self.parts, *axes), body)
        fold = Reduction(Combiner.SUM, folded)
        return Compute(self._name("product"), (*self.parts, *axes), body, fold)

    def _summed_rows(self, product: Compute) -> Compute:
        """Z: the first direction of the inverse."""
        _, second, *axes = product.axes
        inner = Axis(Var("p"), self.tile)
        rest = tuple(axis.var for axis in axes)

        def at(number: int) -> Value:
            return Load(product, (number, second.var, *rest))

        body = row_of_product(self.matrices.inverse, inner.var, at)
        return Compute(self._name("sums"), (inner, second, *axes), body)

    def _outputs(self, sums: Compute) -> Compute:
        """The tensor itself, by the second direction of the inverse."""
        row, column = (slide.out.var for slide in self.slides)
        places = tuple(
            floor_div(axis.var, self.tile) if axis.var in (row, column) else axis.var
            for axis in self.tensor.axes
        )

        def at(number: int) -> Value:
            return Load(sums, (mod(row, self.tile), number, *places))

        body = row_of_product(self.matrices.inverse, mod(column, self.tile), at)
        return Compute(self.tensor.name, self.tensor.axes, body)


WINOGRAD = tuple(
    Algorithm(f"winograd{tile}", partial(rewrite_as_winograd, tile=tile)) for tile in WINOGRAD_TILES
)
