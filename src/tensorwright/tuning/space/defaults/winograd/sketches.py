"""The Winograd heuristic: convolutions of 3 x 3 taps by fewer multiplications, in register tiles.

The stages are those of `schedule/algorithms/winograd.py`; the kernel's are computed when the
program is built.  Vectors lie along the channels everywhere, so each transform reads and writes
whole vectors, a tile at a time, in registers.  The product is tiled as `tile.py` tiles one:
vectors of output channels, rows of tiles.

- bands: a thread takes a band of rows of tiles through all stages, while they are in its cache;
  of several images or slices of a volume, which share weights, some at once.
- whole: each stage is computed whole before the next, the product shared out along its parts and
  output channels: every weight is read once, by one thread.  For many channels on few tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorwright.base import CpuTarget
from tensorwright.expr import free_vars
from tensorwright.schedule import (
    TAPS,
    ComputeInline,
    Convolution,
    FoldConstant,
    ScheduleState,
    Stage,
    UseAlgorithm,
    find_convolution,
)
from tensorwright.tuning.space.axes.accesses import (
    count_of,
    group_size,
    lanes_for,
    loads_from,
    points,
)
from tensorwright.tuning.space.axes.anchor import only_fold
from tensorwright.tuning.space.defaults.winograd.axes import Case, Portion, find_axes
from tensorwright.tuning.space.defaults.winograd.sizes import weight_bytes
from tensorwright.tuning.space.defaults.winograd.stages import schedule_stages
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import inline_elementwise

VARIANTS = ((4, Portion.BANDS), (2, Portion.BANDS), (4, Portion.WHOLE), (2, Portion.WHOLE))
"""Outputs of a tile along each direction, and where stages are computed: the best most often
first."""

_MOST_AGAIN = 8  # second caches full of weights: bands, which read all of them, do not pay beyond
_LEAST_CHANNELS = 16  # with fewer, on either side, the transforms cost more than they save


def winograd_sketches(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """Sketches of Winograd's algorithm, each built when asked for; none if it does not apply.

    It applies to a program of one output and one reduction, a convolution with a constant kernel,
    if the last dimension of data and output are channels; groups of them are whole vectors.
    """
    if winograd_anchor(state, target) is None:
        return
    for tile, variant in VARIANTS:
        builder = SketchBuilder(state)
        if schedule_winograd(builder, target, tile, variant):
            yield builder.sketch(f"winograd{tile}, {variant.value}")


def winograd_anchor(state: ScheduleState, target: CpuTarget) -> tuple[Stage, Convolution] | None:
    """The convolution of a program to which the heuristic applies; None for other programs."""
    anchor = only_fold(state)
    if anchor is None or not points(anchor.tensor):
        return None
    convolution = find_convolution(anchor.tensor)
    if convolution is None or not _is_suitable(
        state, anchor, convolution, lanes_for(target, anchor)
    ):
        return None
    return anchor, convolution


def _is_suitable(state: ScheduleState, anchor: Stage, convolution: Convolution, width: int) -> bool:
    kernel = convolution.kernel.source.name
    slides = {slide.out.var for slide in (convolution.rows, convolution.columns)}
    lanes = anchor.tensor.axes[-1].var
    group = group_size(convolution.data, lanes)
    reads_same = lanes not in free_vars(*convolution.data.indices) or (
        group > 0 and group % width == 0
    )
    inputs = count_of(anchor.tensor.reduce_axes) // TAPS**2
    outputs = prod(
        axis.length
        for axis in anchor.tensor.axes
        if axis.var in free_vars(*convolution.kernel.indices)
    )
    return (
        min(inputs, group or outputs) >= _LEAST_CHANNELS
        and kernel in state.constants
        and len(state.readers(kernel)) == 1
        and reads_same
        and not slides & (free_vars(convolution.data.indices[-1]) | {lanes})
    )


def schedule_winograd(
    builder: SketchBuilder, target: CpuTarget, tile: int, portion: Portion
) -> bool:
    """Take all steps, for a program to which the heuristic applies; False if they do not pay.

    tile, portion   as in `VARIANTS`
    """
    suitable = winograd_anchor(builder.state, target)
    assert suitable is not None, "the heuristic applies"
    anchor, convolution = suitable
    name = anchor.name
    builder.do(UseAlgorithm(name, f"winograd{tile}"))
    builder.do(FoldConstant(f"{name}_kernel_f64"))
    builder.do(FoldConstant(f"{name}_kernel"))
    most = _MOST_AGAIN * target.l2_bytes
    if portion is Portion.BANDS and weight_bytes(builder.state, name) > most:
        return False
    kept = {f"{name}_{part}" for part in ("data", "rows", "columns", "product", "sums")}
    if not builder.state.has_stage(f"{name}_data"):
        kept.add(convolution.data.source.name)
    inline_elementwise(builder, keep=frozenset({*kept, name}))
    roles = find_axes(builder.state, anchor, convolution)
    if roles is None:
        return False
    readers = builder.state.readers(name)
    if sum(len(loads_from(reader.tensor, name)) for reader in readers) == 1:
        builder.do(ComputeInline(name))
    schedule_stages(builder, Case.of(builder.state, name, tile, portion, roles, target))
    return True
