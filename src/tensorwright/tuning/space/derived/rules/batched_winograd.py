"""Winograd's algorithm on graphics processors: transforms as launches, the products as one batch.

A thread transforms a tile of the data, and another launch transforms the products back.  Between
them is a product of matrices for each of the n x n positions of a tile, which `MatrixTiling` tiles:
pixels of one position are its columns.  The kernel is transformed when the program is built.

Source:  Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tensorwright import schedule
from tensorwright.base import GpuTarget
from tensorwright.tuning.space.defaults.pointwise import deal_out
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    Verdict,
    fusable_consumer,
    is_untouched,
)
from tensorwright.tuning.space.derived.thread_tiles import stored_axes
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import is_cheap

_LEAST_CHANNELS = 16  # with fewer, on either side, the transforms cost more than they save
_TILES = (4, 2)
_THREADS = 128  # of a block of a transform


@dataclass(frozen=True, slots=True)
class BatchedWinograd:
    """Compute a convolution of 3 x 3 taps by fewer multiplications, tile by tile."""

    name: str = "batched winograd"

    def applies(self, view: Derivation) -> Verdict:
        """If the kernel is a constant that nothing else reads, and channels are enough."""
        stage = view.stage
        if not isinstance(stage.placement, schedule.AtRoot) or not is_untouched(view.state, stage):
            return Verdict.NO
        convolution = schedule.find_convolution(stage.tensor)
        is_suitable = convolution is not None and _is_suitable(view, stage, convolution)
        return Verdict.YES_AND_SKIP_REST if is_suitable else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """One state for each size of tiles; the product is decided next."""
        return tuple(_Transforming(view, tile).derive() for tile in _TILES)


def _is_suitable(
    view: Derivation, stage: schedule.Stage, convolution: schedule.Convolution
) -> bool:
    kernel = convolution.kernel.source.name
    axes = [*stage.tensor.axes, *stage.tensor.reduce_axes]
    if kernel not in view.state.constants or len(view.state.readers(kernel)) != 1:
        return False
    if not all(isinstance(axis.extent, int) for axis in axes):
        return False
    used = {*convolution.kernel.indices}
    filters = prod(axis.length for axis in stage.tensor.axes if axis.var in used)
    channels = prod(axis.length for axis in stage.tensor.reduce_axes) // schedule.TAPS**2
    return min(filters, channels) >= _LEAST_CHANNELS


def _threads(target: GpuTarget) -> int:
    return min(_THREADS, target.threads_per_block)


class _Transforming:
    """Mutable working state while the transforms of one convolution are scheduled."""

    def __init__(self, view: Derivation, tile: int) -> None:
        self.view = view
        self.base = view.current
        self.tile = tile
        self.builder: SketchBuilder = view.grow()
        convolution = schedule.find_convolution(view.stage.tensor)
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
        builder.do(schedule.UseAlgorithm(base, f"winograd{self.tile}"))
        builder.do(schedule.FoldConstant(f"{base}_kernel_f64"))
        builder.do(schedule.FoldConstant(f"{base}_kernel"))
        if host != base:
            builder.do(schedule.ComputeInline(base))
        self._store_outputs(host, axes)
        self._transform_data()
        note = f"{base} by Winograd's algorithm in tiles of {self.tile}"
        after = self.view.then(builder, note)
        return replace(after, visited=after.visited - {f"{base}_product"})

    def _store_outputs(self, host: str, axes: dict[str, str]) -> None:
        """A thread computes the outputs of a tile from its sums, which are in its registers."""
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
            step = schedule.Split(
                host, loop, (self.tile,), schedule.Tail.EXACT if exact else schedule.Tail.GUARD
            )
            builder.do(step)
            outer.append(step.children[0])
            inner.append(step.children[1])
        builder.do(schedule.Reorder(host, (*outer, *inner)))
        thread = deal_out(builder, host, tuple(outer), _threads(self.view.target))
        for loop in inner:
            builder.do(schedule.Unroll(host, loop))
        sums = f"{self.base}_sums"
        builder.do(schedule.ComputeAt(sums, host, thread))
        for loop in ("p", "v"):
            builder.do(schedule.Unroll(sums, loop))

    def _transform_data(self) -> None:
        """A thread computes all parts of a tile; what pads the data is part of its reads."""
        builder, base = self.builder, self.base
        rows, columns = f"{base}_rows", f"{base}_columns"
        source = self.convolution.data.source.name
        for name in (f"{base}_data", source):
            inline = schedule.ComputeInline(name)
            is_made = builder.state.has_stage(name) and schedule.is_legal(inline, builder.state)
            if is_made and is_cheap(builder.state.stage(name).tensor.body):
                builder.do(inline)
        _, _, *others = builder.state.stage(columns).loops
        builder.do(schedule.Reorder(columns, (*others, "u", "v")))
        thread = deal_out(builder, columns, tuple(others), _threads(self.view.target))
        for loop in ("u", "v"):
            builder.do(schedule.Unroll(columns, loop))
        builder.do(schedule.ComputeAt(rows, columns, thread))
        for axis in builder.state.stage(rows).tensor.axes:
            if axis.name in ("u", self.convolution.columns.out.name):
                builder.do(schedule.Unroll(rows, axis.name))
