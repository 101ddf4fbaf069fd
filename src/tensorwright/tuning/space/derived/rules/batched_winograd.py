"""Winograd's algorithm on graphics processors: transforms as launches, the products as one batch.

A thread transforms a tile of the data, and another launch transforms the products back.  Between
them is a product of matrices for each of the n x n positions of a tile (`tile_matrices`): pixels of
one position are its columns.  The kernel is transformed when the program is built.

Source:  Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright import schedule
from tensorwright.base import GpuTarget
from tensorwright.tuning.space.accesses import has_numbers
from tensorwright.tuning.space.defaults.pointwise import deal_out
from tensorwright.tuning.space.defaults.winograd import saves_products
from tensorwright.tuning.space.derived import tiled_fold
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    free_consumer,
    is_untouched,
    rule,
)
from tensorwright.tuning.space.register_tile import write_out
from tensorwright.tuning.space.sketch import SketchBuilder

_TILES = (4, 2)
_THREADS = 128  # of a block of a transform


def _is_convolution(view: Derivation) -> bool:
    """If the kernel is a constant that nothing else reads, and channels are enough."""
    stage = view.stage
    if not is_untouched(view.state, stage) or not has_numbers(stage.tensor):
        return False
    convolution = schedule.find_convolution(stage.tensor)
    return convolution is not None and saves_products(view.state, stage.tensor, convolution)


@rule("batched winograd", _is_convolution, is_last=True)
def use_batched_winograd(view: Derivation) -> tuple[Derivation, ...]:
    """Compute a convolution of 3 x 3 taps by fewer multiplications, tile by tile.

    One state for each size of tiles; the product is decided next.
    """
    derived: list[Derivation] = []
    for tile in _TILES:
        builder = view.grow()
        transforms = use_winograd(builder, view.current, tile)
        transforms.schedule(view.target)
        note = f"{view.current} by Winograd's algorithm in tiles of {tile}"
        after = view.then(builder, note)
        undecided = after.visited - {f"{view.current}_product"}
        derived.append(replace(after, visited=undecided))
    return tuple(derived)


@dataclass(frozen=True, slots=True)
class Transforms:
    """The stages around the products: of tiles of the data, and of the products back.

    base    the stage that was the convolution       host   stores its result
    slides  the loops of the host over rows and columns of the image, with their extents
    """

    builder: SketchBuilder
    base: str
    host: str
    convolution: schedule.Convolution
    slides: tuple[tuple[str, int], ...]
    tile: int

    def schedule(self, target: GpuTarget) -> None:
        """A thread transforms a tile of the data; another transforms its products back."""
        threads = min(_THREADS, target.threads_per_block)
        self._store_outputs(threads)
        self._transform_data(threads)

    def _store_outputs(self, threads: int) -> None:
        """A thread computes the outputs of a tile from its sums, which are in its registers."""
        sums = tiled_fold.TiledFold(self.builder, f"{self.base}_sums", self.host, self.base)
        for loop, extent in self.slides:
            sums.split(loop, (loop,), (self.tile,), tiled_fold.tail_of(extent, [(self.tile,)]))
        sums.store(threads=threads)
        write_out(self.builder, sums.fold, ("p", "v"))

    def _transform_data(self, threads: int) -> None:
        """A thread computes all parts of a tile; what pads the data is part of its reads."""
        builder, columns, rows = self.builder, f"{self.base}_columns", f"{self.base}_rows"
        for name in (f"{self.base}_data", self.convolution.data.source.name):
            tiled_fold.inline_made(builder, name)
        _, _, *others = builder.state.stage(columns).loops
        builder.do(schedule.Reorder(columns, (*others, "u", "v")))
        thread = deal_out(builder, columns, tuple(others), threads)
        write_out(builder, columns, ("u", "v"))
        builder.do(schedule.ComputeAt(rows, columns, thread))
        sliding = ("u", self.convolution.columns.out.name)
        write_out(builder, rows, (x for x in builder.state.stage(rows).loops if x in sliding))


def use_winograd(builder: SketchBuilder, base: str, tile: int) -> Transforms:
    """Compute a convolution by the algorithm, its kernel when the program is built.

    Its reader stores the result, where one can.
    """
    tensor = builder.state.stage(base).tensor
    convolution = schedule.find_convolution(tensor)
    assert convolution is not None, "the rule has asked"
    consumer = free_consumer(builder.state, base)
    host = base if consumer is None else consumer.name
    stored = {own: s for s, own in tiled_fold.stored_axes(tensor, builder.state.stage(host).tensor)}
    axes = (convolution.rows.out, convolution.columns.out)
    slides = tuple((stored[axis.name], axis.length) for axis in axes)
    builder.do(schedule.UseAlgorithm(base, f"winograd{tile}"))
    builder.do(schedule.FoldConstant(f"{base}_kernel_f64"))
    builder.do(schedule.FoldConstant(f"{base}_kernel"))
    if host != base:
        builder.do(schedule.ComputeInline(base))
    return Transforms(builder, base, host, convolution, slides, tile)
