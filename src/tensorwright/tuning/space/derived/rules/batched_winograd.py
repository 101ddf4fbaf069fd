"""Winograd's algorithm on graphics processors: transforms as launches, the products as one batch.

A thread transforms a tile of the data, and another launch transforms the products back; in between
all parts of the tiles are one product of matrices for each of n x n positions, which `MatrixTiling`
tiles: pixels of one position are its columns.  The kernel is transformed when the program is built.

Source:  Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

from tensorwright.base import GpuTarget
from tensorwright.schedule import (
    TAPS,
    AtRoot,
    ComputeAt,
    ComputeInline,
    Convolution,
    FoldConstant,
    Reorder,
    Split,
    Stage,
    Tail,
    Unroll,
    UseAlgorithm,
    applied,
    find_convolution,
    find_matrix_product,
    is_legal,
)
from tensorwright.tuning.space.axes.accesses import bytes_of
from tensorwright.tuning.space.defaults.grid import deal_out
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.matrix_tiles import best_tile, product_shape
from tensorwright.tuning.space.derived.predicates import fusable_consumer, is_untouched
from tensorwright.tuning.space.derived.rule import Verdict
from tensorwright.tuning.space.derived.thread_tiles import stored_axes
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import is_cheap

_LEAST_CHANNELS = 16  # with fewer, on either side, the transforms cost more than they save
_TILES = (4, 2)
_THREADS = 128  # of a block of a transform
_LAUNCH_S = 4e-6  # of a further launch, and of the latency of its reads and stores


@dataclass(frozen=True, slots=True)
class BatchedWinograd:
    """Compute a convolution of 3 x 3 taps by fewer multiplications, tile by tile.

    only_if_faster   than the product of matrices that the convolution is, by estimate
    """

    only_if_faster: bool = False
    name: str = "batched winograd"

    def applies(self, view: Derivation) -> Verdict:
        """Where the kernel is a constant that nothing else reads, and channels are enough; no
        other way to compute the stage is tried then.
        """
        stage = view.stage
        if not isinstance(stage.placement, AtRoot) or not is_untouched(view.state, stage):
            return Verdict.NO
        convolution = find_convolution(stage.tensor)
        if convolution is None or not _is_suitable(view, stage, convolution):
            return Verdict.NO
        if self.only_if_faster and not _tiles_by_seconds(view, convolution, only_faster=True):
            return Verdict.NO
        return Verdict.YES_AND_SKIP_REST

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """One state for each size of tiles, the fastest first; the product is decided next."""
        convolution = find_convolution(view.stage.tensor)
        assert convolution is not None, "it applies"
        tiles = _tiles_by_seconds(view, convolution, only_faster=self.only_if_faster)
        return tuple(_Transforming(view, tile).derive() for tile in tiles)


def _is_suitable(view: Derivation, stage: Stage, convolution: Convolution) -> bool:
    kernel = convolution.kernel.source.name
    axes = [*stage.tensor.axes, *stage.tensor.reduce_axes]
    if kernel not in view.state.constants or len(view.state.readers(kernel)) != 1:
        return False
    if not all(isinstance(axis.extent, int) for axis in axes):
        return False
    used = {*convolution.kernel.indices}
    filters = prod(axis.length for axis in stage.tensor.axes if axis.var in used)
    channels = prod(axis.length for axis in stage.tensor.reduce_axes) // TAPS**2
    return min(filters, channels) >= _LEAST_CHANNELS


def _tiles_by_seconds(
    view: Derivation, convolution: Convolution, *, only_faster: bool
) -> tuple[int, ...]:
    """The sizes of tiles, the one that is expected to be the fastest first.

    only_faster   none that is slower than the product of matrices that the convolution is
    """
    product = find_matrix_product(view.stage.tensor)
    most = inf
    if only_faster and product is not None:
        most = best_tile(product_shape(view.stage.tensor, product, ahead=1), view.target).seconds
    seconds = {tile: _seconds(view, convolution, tile) for tile in _TILES}
    return tuple(tile for tile in sorted(_TILES, key=seconds.__getitem__) if seconds[tile] < most)


def _seconds(view: Derivation, convolution: Convolution, tile: int) -> float:
    """What all three launches are expected to take."""
    target: GpuTarget = view.target
    state = applied(UseAlgorithm(view.current, f"winograd{tile}"), view.state)
    data, product = (
        state.stage(f"{view.current}_{part}").tensor for part in ("columns", "product")
    )
    shape = find_matrix_product(product)
    if shape is None:
        return inf
    moved = (convolution.data.source, data, product, view.stage.tensor)
    transforms = sum(map(bytes_of, moved)) / target.bandwidth
    ahead = 2 if target.copies_ahead else 1
    batched = best_tile(product_shape(product, shape, ahead), target)
    return batched.seconds + transforms + 2 * _LAUNCH_S


def _threads(target: GpuTarget) -> int:
    return min(_THREADS, target.threads_per_block)


class _Transforming:
    """Mutable working state while the transforms of one convolution are scheduled."""

    def __init__(self, view: Derivation, tile: int) -> None:
        self.view = view
        self.base = view.current
        self.tile = tile
        self.builder: SketchBuilder = view.grow()
        convolution = find_convolution(view.stage.tensor)
        assert convolution is not None, "the rule has asked"
        self.convolution = convolution

    def derive(self) -> Derivation:
        """Fold the kernel, transform the data by tiles, transform the products back by tiles."""
        builder, base = self.builder, self.base
        consumer = fusable_consumer(builder.state, base)
        is_free = consumer is not None and is_untouched(builder.state, consumer)
        host = consumer.name if consumer is not None and is_free else base
        axes = {
            own: stored
            for stored, own in stored_axes(self.view.stage.tensor, builder.state.stage(host).tensor)
        }
        builder.do(UseAlgorithm(base, f"winograd{self.tile}"))
        builder.do(FoldConstant(f"{base}_kernel_f64"))
        builder.do(FoldConstant(f"{base}_kernel"))
        if host != base:
            builder.do(ComputeInline(base))
        self._store_outputs(host, axes)
        self._transform_data()
        note = f"{base} by Winograd's algorithm in tiles of {self.tile}"
        after = self.view.then(builder, note)
        return replace(after, visited=after.visited - {f"{base}_product"})

    def _store_outputs(self, host: str, axes: dict[str, str]) -> None:
        """A thread computes the outputs of a tile from its sums, which it has in registers."""
        builder = self.builder
        inner: list[str] = []
        outer: list[str] = []
        slides = {
            slide.out.name: slide.out for slide in (self.convolution.rows, self.convolution.columns)
        }
        names = {stored: own for own, stored in axes.items()}
        for loop in builder.state.stage(host).loops:
            own = slides.get(names.get(loop, ""))
            if own is None:
                outer.append(loop)
                continue
            exact = own.length % self.tile == 0
            step = Split(host, loop, (self.tile,), Tail.EXACT if exact else Tail.GUARD)
            builder.do(step)
            outer.append(step.children[0])
            inner.append(step.children[1])
        builder.do(Reorder(host, (*outer, *inner)))
        thread = deal_out(builder, host, tuple(outer), _threads(self.view.target))
        for loop in inner:
            builder.do(Unroll(host, loop))
        sums = f"{self.base}_sums"
        builder.do(ComputeAt(sums, host, thread))
        for loop in ("p", "v"):
            builder.do(Unroll(sums, loop))

    def _transform_data(self) -> None:
        """A thread computes all parts of a tile; what pads the data is part of its reads."""
        builder, base = self.builder, self.base
        rows, columns = f"{base}_rows", f"{base}_columns"
        source = self.convolution.data.source.name
        for name in (f"{base}_data", source):
            inline = ComputeInline(name)
            is_made = builder.state.has_stage(name) and is_legal(inline, builder.state)
            if is_made and is_cheap(builder.state.stage(name).tensor.body):
                builder.do(inline)
        _, _, *others = builder.state.stage(columns).loops
        builder.do(Reorder(columns, (*others, "u", "v")))
        thread = deal_out(builder, columns, tuple(others), _threads(self.view.target))
        for loop in ("u", "v"):
            builder.do(Unroll(columns, loop))
        builder.do(ComputeAt(rows, columns, thread))
        for axis in builder.state.stage(rows).tensor.axes:
            if axis.name in ("u", self.convolution.columns.out.name):
                builder.do(Unroll(rows, axis.name))
