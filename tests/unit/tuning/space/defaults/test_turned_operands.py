"""Operands that are read across their rows: turned before, where that pays, and only there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.draws import some_of
from tests.targets import AVX2, AVX512
from tests.unit.tuning.compiled import check_network, weights, workloads

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.tuning.space import Sketch, default_trace, space_of

pytestmark = pytest.mark.target


def activated() -> Graph:
    """Pixels of an image as rows of channels, activated: rows of 7 are shorter than a vector."""
    b = GraphBuilder("activated")
    x = b.add("reshape", b.input("x", (1, 40, 7, 7)), shape=(1, 40, 49))
    return b.finish([b.add("sigmoid", b.add("transpose", x, perm=(0, 2, 1)))])


def joined() -> Graph:
    """Channels in blocks beside plain ones, and what reads both."""
    b = GraphBuilder("joined")
    x = b.add("conv", b.input("x", (1, 16, 9, 20)), b.constant(weights(32, 16, 1, 1)))
    y = b.add("concat", x, b.input("y", (1, 32, 9, 20)), axis=1)
    return b.finish([b.add("conv", y, b.constant(weights(32, 64, 1, 1)))])


def enlarged() -> Graph:
    """A small plain image, enlarged for a convolution of channels in blocks."""
    b = GraphBuilder("enlarged")
    x = b.add("resize", b.input("x", (1, 32, 6, 6)), sizes=(1, 32, 12, 12), mode="linear")
    return b.finish([b.add("conv", x, b.constant(weights(32, 32, 1, 1)))])


def scored() -> Graph:
    """Scores of all pairs of nodes from a number for each, as graph attention has them."""
    b = GraphBuilder("scored")
    left = b.add("reshape", b.input("left", (40, 1)), shape=(1, 40, 1))
    right = b.add("transpose", b.input("right", (40, 3)), perm=(1, 0))
    right = b.add("reshape", right, shape=(3, 1, 40))
    return b.finish([b.add("softmax", b.add("relu", b.add("add", left, right)), axis=-1)])


def halved() -> Graph:
    """A convolution by two of channels in blocks, whose result is stored plain."""
    b = GraphBuilder("halved")
    x = b.add("conv", b.input("x", (1, 16, 32, 48)), b.constant(weights(32, 16, 1, 1)))
    x = b.add("conv", x, b.constant(weights(32, 32, 3, 3)), strides=(2, 2), pads=(1,) * 4)
    return b.finish([b.add("add", x, b.input("r", (1, 32, 16, 24)))])


def unshuffled() -> Graph:
    """A convolution whose pixels become channels, two by two."""
    b = GraphBuilder("unshuffled")
    x = b.add(
        "conv", b.input("x", (1, 16, 32, 32)), b.constant(weights(24, 16, 3, 3)), pads=(1,) * 4
    )
    x = b.add("reshape", x, shape=(1, 24, 16, 2, 16, 2))
    return b.finish([b.add("transpose", x, perm=(0, 1, 3, 5, 2, 4))])


def channels_as_rows() -> Graph:
    """A convolution of a plain image, whose rows of a tile are channels."""
    b = GraphBuilder("channels_as_rows")
    x = b.input("x", (1, 32, 64, 48))
    return b.finish([b.add("conv", x, b.constant(weights(18, 32, 3, 3)), pads=(1,) * 4)])


def reflected() -> Graph:
    """A convolution of an image that is reflected at its borders."""
    b = GraphBuilder("reflected")
    pads = (0, 0, 4, 4, 0, 0, 4, 4)
    x = b.add("pad", b.input("x", (1, 16, 40, 40)), pads=pads, mode="reflect")
    return b.finish([b.add("conv", x, b.constant(weights(3, 16, 9, 9)))])


MAKERS = (*(activated, joined, enlarged, scored, halved, unshuffled, channels_as_rows, reflected),)
each_target = pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)


@pytest.mark.parametrize("make", some_of(MAKERS, 3, "turned"))
@pytest.mark.drawn
def test_values(make: Callable[[], Graph]) -> None:
    check_network(make())


def by_rule(graph: Graph, target: CpuTarget) -> list[schedule.Trace]:
    """The schedules by rule of all workloads of a graph."""
    return [default_trace(schedule.state_of(case), target) for case, *_ in workloads(graph, target)]


def copies(traces: list[schedule.Trace]) -> list[schedule.CacheRead]:
    return [step for trace in traces for step in trace if isinstance(step, schedule.CacheRead)]


@each_target
@pytest.mark.parametrize("make", [activated, scored])
def test_what_is_read_across_is_turned(make: Callable[[], Graph], target: CpuTarget) -> None:
    assert all(step.order for step in copies(by_rule(make(), target)))
    assert len(copies(by_rule(make(), target))) == 1


@each_target
def test_pixels_of_short_rows_are_turned_in_squares(target: CpuTarget) -> None:
    (trace,) = by_rule(activated(), target)
    (copy,) = copies([trace])
    lanes = target.vector_bytes // 4
    sizes = [s.factors for s in trace if isinstance(s, schedule.Split) and s.stage == copy.copy]
    assert all(size[-1] % lanes == 0 for size in sizes)
    assert len(sizes) == 2  # along the run of 49 pixels, and along the channels


@each_target
def test_windows_that_jump_are_not_turned(target: CpuTarget) -> None:
    assert not copies(by_rule(halved(), target)[-1:])


def last_sketch(graph: Graph, target: CpuTarget) -> Sketch:
    return space_of(schedule.state_of(workloads(graph, target)[-1][0]), target).sketches[0]


def test_a_tile_of_pixels_computes_no_pixel_between_them() -> None:
    steps = last_sketch(unshuffled(), AVX512).trace
    assert any(isinstance(step, schedule.CacheWrite) and step.stage == "conv" for step in steps)


def test_what_feeds_rows_of_channels_is_not_copied_for_each_of_their_tiles() -> None:
    sketches = space_of(
        schedule.state_of(workloads(channels_as_rows(), AVX2)[-1][0]), AVX2
    ).sketches
    (rows,) = (sketch for sketch in sketches if sketch.name == "tile, rows outside")
    (fed,) = (s for s in rows.trace if isinstance(s, schedule.ComputeAt) and s.stage == "conv_pad")
    assert "c" not in fed.loop.split("_")


def flattened() -> Graph:
    """Blocks of channels, put in the order of a plain image for a classifier."""
    b = GraphBuilder("flattened")
    x = b.add("conv", b.input("x", (1, 16, 12, 12)), b.constant(weights(64, 16, 1, 1)))
    x = b.add("max_pool", x, kernel=(2, 2), strides=(2, 2))
    x = b.add("reshape", x, shape=(1, 64 * 36))
    return b.finish([b.add("relu", b.add("matmul", x, b.constant(weights(64 * 36, 256))))])


@each_target
def test_what_is_gathered_is_gathered_once_for_all_columns(target: CpuTarget) -> None:
    trace = by_rule(flattened(), target)[-1]
    assert any(isinstance(step, schedule.ComputeAt) for step in trace)  # the product, in a tile
    assert not any(
        isinstance(step, schedule.ComputeAt) and step.stage == "reshape" for step in trace
    )


@each_target
def test_reflections_are_copied_once(target: CpuTarget) -> None:
    names = [
        sketch.name
        for sketch in space_of(
            schedule.state_of(workloads(reflected(), target)[-1][0]), target
        ).sketches
    ]
    assert "tile, columns outside" in names
    assert "tile, rows outside" not in names


def encoded() -> Graph:
    """Positions beside their sines: the pieces of a row begin inside of vectors."""
    b = GraphBuilder("encoded")
    x = b.input("x", (64, 3))
    return b.finish([b.add("concat", x, b.add("sin", b.input("y", (64, 30))), axis=1)])


@each_target
def test_dear_pieces_of_a_row_are_computed_by_themselves(target: CpuTarget) -> None:
    check_network(encoded())
    (case, *_), *_ = workloads(encoded(), target)
    first, *others = space_of(schedule.state_of(case), target).sketches
    assert first.name == "pointwise, pieces apart"
    assert "compute_inline(sin)" not in map(str, first.trace)
    assert any("compute_inline(sin)" in map(str, sketch.trace) for sketch in others)


def transposed(*shape: int, perm: tuple[int, ...]) -> Graph:
    b = GraphBuilder("transposed")
    return b.finish([b.add("transpose", b.input("x", shape), perm=perm)])


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda target: target.name)
def test_rows_that_are_written_far_apart_are_read_a_cache_line_at_a_time(target: CpuTarget) -> None:
    """Each of the 16 that are written at a time goes on where it was left."""
    (trace,) = by_rule(transposed(1024, 768, perm=(1, 0)), target)
    (line,) = [step for step in trace if isinstance(step, schedule.Split) and step.loop == "i"]
    assert line.factors == (16,)
    (order,) = [step for step in trace if isinstance(step, schedule.Reorder)]
    assert order.loops == ("i_o", "j_o", "i_i", "j_i")


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda target: target.name)
def test_a_few_colours_are_moved_one_by_one(target: CpuTarget) -> None:
    (trace,) = by_rule(transposed(1, 3, 64, 64, perm=(0, 2, 3, 1)), target)
    assert any(isinstance(step, schedule.Unroll) for step in trace)
    assert not any(isinstance(step, schedule.Vectorize) for step in trace)


@pytest.mark.parametrize(
    ("shape", "perm"),
    [((160, 528), (1, 0)), ((1, 3, 20, 24), (0, 2, 3, 1)), ((2, 17, 600), (0, 2, 1))],
)
def test_values_of_transpositions(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    check_network(transposed(*shape, perm=perm))


def with_columns(count: int) -> Graph:
    """Rows times a few columns, stored column by column, as the heads of a reader of texts are."""
    b = GraphBuilder("columns")
    y = b.add("matmul", b.input("x", (1, 96, 256)), b.constant(weights(256, count)))
    return b.finish([b.add("relu", b.add("transpose", y, perm=(0, 2, 1)))])


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda target: target.name)
@pytest.mark.parametrize("columns", [2, 3, 12])
def test_rows_that_few_columns_fold_are_not_copied(columns: int, target: CpuTarget) -> None:
    assert not copies(by_rule(with_columns(columns), target))
    check_network(with_columns(columns))
