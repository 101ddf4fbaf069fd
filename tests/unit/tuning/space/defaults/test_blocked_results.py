"""Convolutions in blocks of channels whose result is stored in another shape or order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.draws import random_source
from tests.targets import AVX2, AVX512, native_target
from tests.unit.tuning.compiled import check_sketches, weights, workloads

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.tuning.space import heuristic_sketches
from tensorwright.tuning.space.defaults.tile_sizes import default_tile, row_sizes, window_tile
from tensorwright.tuning.space.roles import Anchor

pytestmark = pytest.mark.target


def convolution(b: GraphBuilder, x: str, outputs: int, kernel: int, **attributes: object) -> str:
    """A convolution with random constants and a bias."""
    inputs = b.shape_of(x)[1] // int(str(attributes.get("groups", 1)))
    w = b.constant(weights(outputs, inputs, *[kernel] * (len(b.shape_of(x)) - 2)))
    return b.add("conv", x, w, b.constant(weights(outputs)), **attributes)


def patches() -> Graph:
    """The patches of an image as rows of channels."""
    b = GraphBuilder("patches")
    y = convolution(b, b.input("x", (1, 3, 28, 28)), 48, 4, strides=(4, 4))
    y = b.add("reshape", y, shape=(1, 48, 49))
    return b.finish([b.add("transpose", y, perm=(0, 2, 1))])


def regrouped() -> Graph:
    """Channels and pixels are cut into other groups: no tile of the rows is one of the image."""
    b = GraphBuilder("regrouped")
    y = convolution(b, b.input("x", (1, 16, 12, 12)), 32, 3, pads=(1, 1, 1, 1))
    return b.finish([b.add("reshape", y, shape=(1, 8, 4 * 144))])


def channels_last() -> Graph:
    """A depthwise convolution whose channels become the last dimension."""
    b = GraphBuilder("channels_last")
    y = b.add("relu", b.input("x", (1, 32, 9, 11)))
    y = convolution(b, y, 32, 5, pads=(2, 2, 2, 2), groups=32)
    return b.finish([b.add("transpose", y, perm=(0, 2, 3, 1))])


def plain_rows() -> Graph:
    """The channels become rows, with the positions along them; what is added is stored so."""
    b = GraphBuilder("plain_rows")
    y = convolution(b, b.input("x", (1, 20, 61)), 32, 3, pads=(1, 1))
    return b.finish([b.add("add", y, b.input("r", (1, 32, 61)))])


def one_waveform() -> Graph:
    """A transposed convolution to one channel: the phases are lanes, and all else is rows."""
    b = GraphBuilder("one_waveform")
    w = b.constant(weights(24, 1, 16))
    x = b.input("x", (2, 24, 37))
    return b.finish([b.add("conv_transpose", x, w, strides=(8,))])


GRAPHS = (patches, regrouped, channels_last, plain_rows, one_waveform)


@pytest.mark.parametrize("make", GRAPHS)
@pytest.mark.drawn
def test_values(make: Callable[[], Graph]) -> None:
    target = native_target()
    source = random_source(3)
    for case in workloads(make(), target):
        sketches = heuristic_sketches(schedule.state_of(case[0]), target)[:2]
        check_sketches(case, sketches, target, source)


def _last(graph: Graph, target: CpuTarget) -> schedule.ScheduleState:
    return schedule.state_of(workloads(graph, target)[-1][0])


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)
@pytest.mark.parametrize("make", [patches, regrouped, channels_last])
def test_vectors_lie_along_the_channels_of_a_block(
    make: Callable[[], Graph], target: CpuTarget
) -> None:
    trace = heuristic_sketches(_last(make(), target), target)[0].trace
    lanes = {
        step.loop for step in trace if isinstance(step, schedule.Vectorize) and "conv" in step.stage
    }
    assert "oc_i" in lanes
    assert not {"oc_o", "oc_o_i"} & lanes


def test_rows_of_channels_are_tiled_by_parts_of_blocks() -> None:
    assert row_sizes(128, 28, 16) == (1, 2, 4, 8, 16)
    assert row_sizes(128, 28, 4) == (1, 2, 4, 8, 12, 16)
    assert default_tile(100, 128, 1, AVX512, blocks=(0, 16, 0)) == (2, 8, 1)
    assert default_tile(100, 49, 1, AVX512, blocks=(0, 7, 0))[1] == 7
    assert window_tile(1, 48, AVX512, block=16)[1] in (4, 8)
    assert window_tile(1, 48, AVX512, block=29)[1] == 1


def test_links() -> None:
    state = _last(patches(), AVX512)
    for name in ("conv_bias", "reshape"):
        state = schedule.applied(schedule.ComputeInline(name), state)
    anchor = Anchor(state, "conv", "transpose")
    assert anchor.own_axes == {
        "i": ("h", "w"),
        "j": ("oc_o", "oc_i"),
    }
    rows, channels = anchor.axes[1:]
    assert anchor.block_in(rows) == 7
    assert anchor.block_in(channels) == 16
    assert not anchor.is_tangled


def test_other_groups_are_tangled() -> None:
    state = schedule.applied(schedule.ComputeInline("conv_bias"), _last(regrouped(), AVX512))
    assert Anchor(state, "conv", "reshape").is_tangled
