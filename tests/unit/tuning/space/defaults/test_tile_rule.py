"""The tile rule on programs whose result is stored in another order than it is computed in."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.draws import random_source, some_of
from tests.targets import AVX2, AVX512, NEON, native_target
from tests.unit.tuning import compiled
from tests.unit.tuning.compiled import Case, check_network, check_schedule, weights, workloads
from tests.unit.tuning.helpers import workload_of

from tensorwright import expr, schedule
from tensorwright.base import CpuTarget, ScheduleError
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    Layout,
    choose_layouts,
    partition,
    program,
    simplify,
)
from tensorwright.loop import For, If, Stmt, lower, run_passes
from tensorwright.loop.traversal import children_of
from tensorwright.tuning.space import default_trace, heuristic_sketches, space_of
from tensorwright.tuning.space.accesses import points
from tensorwright.tuning.space.defaults.tile_sizes import default_tile, window_tile
from tensorwright_lab import zoo

pytestmark = pytest.mark.target

TARGET = native_target()


def enlarging() -> Graph:
    """Two transposed convolutions: their phases are interleaved when stored."""
    b = GraphBuilder("enlarging")
    x = b.input("x", (1, 32, 5, 5))
    for outputs in (32, 3):
        w = b.constant(weights(b.shape_of(x)[1], outputs, 4, 4))
        x = b.add("conv_transpose", x, w, strides=(2, 2), pads=(1, 1, 1, 1))
        x = b.add("relu", x)
    return b.finish([x])


def joined(*, is_constant: bool) -> Graph:
    """A transposed convolution whose kernel is enlarged by zeros: its phases are one sum."""
    b = GraphBuilder("joined")
    x = b.input("x", (1, 32, 5, 6))
    kernel = weights(32, 48, 3, 3)
    w = b.constant(kernel) if is_constant else b.input("w", kernel.shape)
    return b.finish([b.add("conv_transpose", x, w, strides=(2, 2), pads=(1, 0, 0, 1))])


def heads() -> Graph:
    """A projection whose columns become heads, and whose rows become the last dimension."""
    b = GraphBuilder("heads")
    x = b.input("x", (1, 24, 40))
    y = b.add("add", b.add("matmul", x, b.constant(weights(40, 64))), b.constant(weights(64)))
    y = b.add("reshape", y, shape=(1, 24, 4, 16))
    return b.finish([b.add("transpose", y, perm=(0, 2, 3, 1))])


def channels() -> Graph:
    """A product whose columns become the channels of an image."""
    b = GraphBuilder("channels")
    x = b.add("gemm", b.input("x", (1, 20)), b.constant(weights(20, 32 * 16)))
    x = b.add("reshape", x, shape=(1, 32, 4, 4))
    return b.finish([b.add("conv", x, b.constant(weights(32, 32, 3, 3)))])


def grouped() -> Graph:
    """1x1 convolutions of groups whose channels fill no block: the layout stays plain."""
    b = GraphBuilder("grouped")
    x = b.add("relu", b.input("x", (1, 51, 28, 28)))
    x = b.add("conv", x, b.constant(weights(51, 17, 1, 1)), groups=3)
    return b.finish([b.add("relu", b.add("conv", x, b.constant(weights(51, 17, 1, 1)), groups=3))])


def pooled() -> Graph:
    """Pooling with a stride, in plain layout."""
    b = GraphBuilder("pooled")
    window = {"kernel": (3, 3), "strides": (2, 2)}
    x = b.apply("max_pool", (b.input("x", (1, 5, 39, 39)),), **window, pads=(1, 1, 1, 1))[0]
    return b.finish(b.apply("average_pool", (x,), **window, pads=(0, 0, 1, 1)))


def strided() -> Graph:
    """A depthwise convolution with a stride, of channels that fill no block."""
    b = GraphBuilder("strided")
    x = b.add("relu", b.input("x", (1, 7, 37, 37)))
    return b.finish([b.add("conv", x, b.constant(weights(7, 1, 3, 3)), groups=7, strides=(2, 2))])


@pytest.mark.parametrize("make", [enlarging, heads, channels, grouped, pooled, strided])
def test_values(make: Callable[[], Graph]) -> None:
    check_network(make())


def test_interleaved_phases_are_tiled_along_their_own_axes() -> None:
    target = AVX512
    parts = partition(choose_layouts(simplify(enlarging()), target))
    workload = parts.workloads[0]
    trace = space_of(schedule.state_of(workload), target).default_trace
    assert "cache_write(conv_transpose_phases)" in map(str, trace)


@pytest.mark.parametrize("batch", [1, 16])
def test_few_channels_leave_the_lanes_to_the_rows(batch: int) -> None:
    (case,) = zoo.find_cases(["T2D.4"], batch)
    trace = default_trace(schedule.state_of(zoo.operator_program(case).workload), AVX512)
    assert "cache_write(conv_transpose_phases)" in map(str, trace)
    assert "vectorize(conv_transpose_phases_cache, w_i)" in map(str, trace)


def test_images_are_no_rows_where_a_tile_would_use_one_element_of_a_line() -> None:
    b = GraphBuilder("images")
    w = b.constant(weights(32, 16, 4, 4))
    y = b.add("conv_transpose", b.input("x", (16, 32, 12, 12)), w, strides=(2, 2), pads=(1,) * 4)
    (workload,) = partition(simplify(b.finish([y]))).workloads
    trace = default_trace(schedule.state_of(workload), AVX2)
    assert "cache_write(conv_transpose_phases)" in map(str, trace)


def test_a_sum_follows_the_lines_of_memory() -> None:
    """Its longest axis is another one, along which neighbours are 4096 bytes apart."""
    b = GraphBuilder("lines")
    x, y = b.input("x", (2, 64, 32, 32)), b.input("y", (2, 64, 32, 32))
    (case,) = workloads(b.finish([b.add("einsum", x, y, equation="bchw,bcxw->bhx")]), AVX2)
    trace = default_trace(schedule.state_of(case[0]), AVX2)
    assert "unroll(einsum_cache, w_i)" in map(str, trace)


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.drawn
def test_joined_phases_skip_the_zeros_of_the_kernel(is_constant: bool) -> None:
    target = AVX512
    (case,) = workloads(joined(is_constant=is_constant), TARGET)
    check_sketches(case)
    (workload,) = partition(
        choose_layouts(simplify(joined(is_constant=is_constant)), target)
    ).workloads
    trace = space_of(schedule.state_of(workload), target).default_trace
    skips = [step for step in trace if isinstance(step, schedule.SkipZeros)]
    assert [step.axis for step in skips] == ["kh", "kw"]
    assert {step.tensor for step in skips} == {"conv_transpose_kernel"}
    packed = [step.tensor for step in trace if isinstance(step, schedule.PackConstant)]
    assert packed == ["conv_transpose_kernel"] * is_constant


def test_the_channels_of_a_group_are_rows() -> None:
    target = AVX512
    parts = partition(simplify(grouped()))
    workload = parts.workloads[-1]
    trace = space_of(schedule.state_of(workload), target).default_trace
    assert "split(relu, c, [17])" in map(str, trace)


def test_strided_pooling_in_plain_layout_has_vectors() -> None:
    target = AVX512
    for workload in partition(simplify(pooled())).workloads:
        trace = space_of(schedule.state_of(workload), target).default_trace
        assert "vectorize(" in "".join(map(str, trace))


def test_strided_windows_in_plain_layout_have_vectors() -> None:
    for target in (AVX2, AVX512):
        workload = partition(simplify(strided())).workloads[-1]
        trace = space_of(schedule.state_of(workload), target).default_trace
        vectors = {step.stage for step in trace if isinstance(step, schedule.Vectorize)}
        assert any(name.startswith("conv") and "pad" not in name for name in vectors)


def case_of(program: zoo.OperatorProgram) -> Case:
    return program.workload, zoo.workload_arrays(program, zoo.draw_operands(program))


def check_sketches(case: Case, samples: int = 1) -> None:
    """The default of every sketch of the rule, and others of one, compute what is meant."""
    sketches = heuristic_sketches(schedule.state_of(case[0]), TARGET)
    source = random_source("tile rule", case[0].key)
    compiled.check_sketches(case, sketches, TARGET, source, samples)


def channels_last_groups(channels: int, outputs: int, groups: int) -> zoo.OperatorProgram:
    """A grouped convolution, 3x3 with stride 2, of an image whose channels are last."""
    shape = (1, 9, 7, channels, outputs, 3, 2, 1, 1, groups)
    names = (name for name, _ in zoo.find_cases(["GRP.1"], 1)[0].fields)
    return zoo.operator_program(
        zoo.OperatorCase("GRP", 1, tuple(zip(names, shape, strict=True)), 0.0)
    )


GROUPS_LAST = (
    *((16, 32, 4), (64, 64, 4), (16, 96, 2), (36, 72, 3)),
    *((32, 32, 8), (10, 15, 5), (22, 22, 2)),
)
"""Channels of images and of results, and groups."""


@pytest.mark.parametrize(
    ("channels", "outputs", "groups"),
    some_of(GROUPS_LAST, 3, "groups last"),
)
@pytest.mark.drawn
def test_groups_of_last_channels(channels: int, outputs: int, groups: int) -> None:
    check_sketches(case_of(channels_last_groups(channels, outputs, groups)))


@pytest.mark.parametrize(
    ("per_group", "width"), [(64, 16), (48, 16), (24, 12), (16, 16), (8, 8), (4, 4)]
)
def test_vectors_of_last_channels_stay_inside_a_group(per_group: int, width: int) -> None:
    target = AVX512
    workload = channels_last_groups(32, 4 * per_group, 4).workload
    trace = default_trace(schedule.state_of(workload), target)
    columns, lanes = next(
        step.factors for step in trace if isinstance(step, schedule.Split) and step.loop == "oc"
    )
    assert lanes == width
    assert per_group % (int(str(columns)) * width) == 0
    assert any(isinstance(step, schedule.PackConstant) for step in trace)


@pytest.mark.parametrize(("case", "outer"), [("C3D.3", "oc_0"), ("C3D.4", "oc_0"), ("C3D.2", "d")])
def test_constants_too_large_for_the_cache_are_read_once(case: str, outer: str) -> None:
    target = AVX512
    workload = zoo.operator_program(zoo.find_cases([case], 1)[0]).workload
    trace = default_trace(schedule.state_of(workload), target)
    order = next(s for s in trace if isinstance(s, schedule.Reorder) and s.stage == "conv").loops
    assert next(loop for loop in order if loop in ("d", "oc_0")) == outer


@pytest.mark.parametrize(
    ("case", "order"), [("CAP.1", "tile, rows outside"), ("CAP.2", "tile, columns outside")]
)
def test_panels_of_all_axes_of_columns_count(case: str, order: str) -> None:
    """Activations are read again for each panel: images of 16x16 capsules more than the weights."""
    workload = zoo.operator_program(zoo.find_cases([case], 16)[0]).workload
    assert heuristic_sketches(schedule.state_of(workload), AVX2)[0].name == order


@pytest.mark.parametrize(("rows", "columns", "is_tried"), [(64, 48, True), (64, 640, False)])
def test_bands_of_rows_do_not_read_more_than_all_caches_hold(
    rows: int, columns: int, is_tried: bool
) -> None:
    """Constants of 12 KiB stay in a last cache of 40, those of 160 come again for each band."""
    x = expr.placeholder("x", (rows, 64))
    w = expr.placeholder("w", (64, columns))
    k = expr.reduce_axis("k", 64)
    y = expr.compute("y", (rows, columns), lambda i, j: expr.sum_over(x[i, k] * w[k, j], k))
    state = schedule.state_of(workload_of(y, key="product", constants=frozenset({"w"})))
    target = replace(AVX2, l3_bytes=40 * 1024)
    names = {sketch.name for sketch in heuristic_sketches(state, target)}
    assert "tile, columns outside" in names
    assert ("tile, rows outside" in names) == is_tried


def test_slices_inside_panels_of_columns() -> None:
    b = GraphBuilder("volume")
    x = b.input("x", (1, 32, 6, 5, 5))
    y = b.add("conv", x, b.constant(weights(32, 32, 3, 3, 3)), pads=(1,) * 6)
    target = replace(TARGET, l2_bytes=32 * 1024)
    for case in workloads(b.finish([b.add("relu", y)]), target):
        state = schedule.state_of(case[0])
        check_schedule(case, schedule.format_trace(default_trace(state, target)), target)


def windows(size: int, channels: int, kernel: int, stride: int = 1, dilation: int = 1) -> Graph:
    """A depthwise convolution, padded so that the border is as wide as the window reaches."""
    b = GraphBuilder("windows")
    reach = dilation * (kernel // 2)
    x = b.input("x", (1, channels, size, size))
    w = b.constant(weights(channels, 1, kernel, kernel))
    spaced = {"strides": (stride, stride), "dilations": (dilation, dilation)}
    y = b.add("conv", x, w, groups=channels, pads=(reach,) * 4, **spaced)
    return b.finish([b.add("relu", y)])


PADDED = {
    "plain": windows(19, 32, 3),
    "stride": windows(14, 32, 3, 2),
    "dilation": windows(17, 20, 3, 1, 2),
    "small": windows(7, 48, 3),
}


@pytest.mark.parametrize("name", some_of(PADDED, 2, "padded"))
@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.drawn
def test_padding_is_inlined_into_windows(name: str, blocked: bool) -> None:
    for case in workloads(PADDED[name], TARGET, blocked=blocked):
        if "depthwise" in case[0].name:
            check_sketches(case)


def test_windows_read_past_the_border_by_rule() -> None:
    wide = AVX512
    first = {}
    for case, graph in {"few": pooled(), "many": windows(28, 32, 5)}.items():
        workload = partition(simplify(graph)).workloads[0]
        state = schedule.state_of(workload)
        first[case] = [sketch.name for sketch in heuristic_sketches(state, wide)]
    assert first["few"][0] == "tile, padding inlined"
    assert first["many"][-1] == "tile, padding inlined"
    assert first["many"][0] != "tile, padding inlined"


@pytest.mark.parametrize(
    ("size", "target", "is_inlined"), [(7, AVX2, False), (14, AVX2, True), (7, AVX512, True)]
)
def test_rows_shorter_than_a_vector_are_padded_before_where_masks_cost(
    size: int, target: CpuTarget, is_inlined: bool
) -> None:
    workload = partition(simplify(windows(size, 48, 3))).workloads[0]
    names = [sketch.name for sketch in heuristic_sketches(schedule.state_of(workload), target)]
    assert ("tile, padding inlined" in names) is is_inlined
    assert (names[0] == "tile, padding inlined") is is_inlined


@pytest.mark.parametrize(
    ("columns", "rows", "tile"),
    [(2, 112, (2, 7, 1)), (1, 112, (1, 7, 1)), (1, 14, (1, 14, 1)), (4, 7, (2, 7, 1))],
)
def test_tiles_of_windows(columns: int, rows: int, tile: tuple[int, int, int]) -> None:
    assert window_tile(columns, rows, AVX512) == tile


def test_tiles_of_windows_leave_registers_for_what_neighbours_share() -> None:
    assert window_tile(2, 112, AVX2) == (2, 4, 1)
    assert window_tile(1, 112, AVX2) == (1, 7, 1)


@pytest.mark.parametrize(
    ("size", "target", "tile"),
    [
        (20, AVX512, (1, 16)),
        (56, AVX512, (1, 16)),  # four vectors, two of which lie between others
        (32, AVX512, (2, 16)),  # one tile, whose place is known
        (64, AVX512, (2, 16)),
        (16, AVX2, (2, 8)),
        (28, AVX2, (1, 8)),
        (32, AVX2, (1, 8)),
    ],
)
def test_tiles_between_others_read_an_image_without_asking(
    size: int, target: CpuTarget, tile: tuple[int, int]
) -> None:
    state = schedule.state_of(partition(simplify(windows(size, 48, 3))).workloads[0])
    trace = default_trace(state, target)
    stored = state.stages[-1].name
    assert tile in {s.factors for s in trace if isinstance(s, schedule.Split) and s.stage == stored}


def window(
    size: tuple[int, ...], kernel: tuple[int, ...], stride: int = 1, dilation: int = 1
) -> Graph:
    """A depthwise convolution of so many dimensions between convolutions of one tap, so that its
    channels may be in blocks.
    """
    b = GraphBuilder("window")
    ones = (1,) * len(size)
    x = b.input("x", (1, 3, *size))
    y = b.add("conv", x, b.constant(weights(32, 3, *ones)))
    reach = tuple(dilation * (taps // 2) for taps in kernel)
    spaced = {"strides": (stride,) * len(size), "dilations": (dilation,) * len(size)}
    w = b.constant(weights(32, 1, *kernel))
    y = b.add("relu", b.add("conv", y, w, groups=32, pads=(*reach, *reach), **spaced))
    return b.finish([b.add("conv", y, b.constant(weights(3, 32, *ones)))])


def depthwise_case(graph: Graph, *, blocked: bool = True) -> Case:
    """The depthwise convolution of a graph."""
    found = workloads(graph, TARGET, blocked=blocked)
    return next(case for case in found if "depthwise" in case[0].name)


WINDOWS = {
    "volume": window((3, 6, 7), (3, 3, 3)),
    "volume stride": window((4, 7, 9), (3, 3, 3), 2),
    "seven": window((9, 15), (7, 7)),
    "five dilated": window((13, 11), (5, 5), 1, 2),
    "long": window((60,), (31,)),
    "long dilated": window((70,), (18,), 1, 3),
}


@pytest.mark.parametrize("name", some_of(WINDOWS, 3, "windows"))
@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.drawn
def test_windows_of_any_dimension(name: str, blocked: bool) -> None:
    check_sketches(depthwise_case(WINDOWS[name], blocked=blocked), samples=1)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_blocks_skip_their_taps_by_rule(name: str) -> None:
    case = depthwise_case(WINDOWS[name])
    first = heuristic_sketches(schedule.state_of(case[0]), TARGET)[0]
    assert first.name == "tile, padding inlined"
    skipped = {step.axis for step in first.trace if isinstance(step, schedule.SkipZeros)}
    taps = next(
        stage for stage in schedule.state_of(case[0]).stages if stage.tensor.reduction is not None
    )
    assert skipped == {axis.name for axis in taps.tensor.reduce_axes if axis.extent != 1}


def entry(size: int, channels: int, kernel: int) -> Graph:
    """A first convolution: few channels, windows that overlap."""
    b = GraphBuilder("entry")
    x = b.input("x", (1, channels, size, size))
    w = b.constant(weights(32, channels, kernel, kernel))
    return b.finish([b.add("conv", x, w, strides=(2, 2), pads=(kernel // 2,) * 4)])


@pytest.mark.parametrize(
    ("size", "channels", "kernel", "banded"),
    [(112, 3, 7, True), (112, 64, 1, False), (112, 64, 3, False), (56, 3, 7, False)],
)
def test_bands_share_rows_that_windows_overlap(
    size: int, channels: int, kernel: int, banded: bool
) -> None:
    wide = AVX512
    workload = partition(choose_layouts(simplify(entry(size, channels, kernel)), wide)).workloads[0]
    state = schedule.state_of(workload)
    sketch = next(s for s in heuristic_sketches(state, wide) if s.name == "tile, rows outside")
    assert ("band" in {name for choice in sketch.choices for name in choice.names}) is banded


@pytest.mark.parametrize(("dilation", "is_in_tiles"), [(1, True), (4, True), (256, False)])
def test_what_far_windows_share_is_not_computed_again_for_each_tile(
    dilation: int, is_in_tiles: bool
) -> None:
    """A filter of each channel of a signal whose windows reach over many tiles."""
    b = GraphBuilder("signal")
    x = b.add("relu", b.input("x", (1, 96, 3000)))
    y = b.add("conv", x, b.constant(weights(96, 1, 5)), groups=96, dilations=(dilation,))
    state = schedule.state_of(partition(simplify(b.finish([y]))).workloads[0])
    scheduled = schedule.replay(state, default_trace(state, AVX2))
    assert isinstance(scheduled.stage("relu").placement, schedule.At) is is_in_tiles


def padded(family: str, like: str, *shape: int) -> Case:
    """A case of an operator family with the extents of its fields."""
    names = (name for name, _ in zoo.find_cases([like], 1)[0].fields)
    case = zoo.OperatorCase(family, 1, tuple(zip(names, shape, strict=True)), 0.0)
    return case_of(zoo.operator_program(case))


def skipped(case: Case, target: CpuTarget) -> dict[str, set[str]]:
    """By the tile rule's sketches: the axes of the taps that are skipped."""
    state = schedule.state_of(case[0])
    return {
        sketch.name: {step.axis for step in sketch.trace if isinstance(step, schedule.SkipZeros)}
        for sketch in heuristic_sketches(state, target)
        if sketch.name.startswith("tile")
    }


@pytest.mark.drawn
def test_rows_of_taps_beside_a_small_image_are_skipped() -> None:
    case = padded("DIL", "DIL.1", 1, 7, 9, 32, 32, 3, 1, 1, 1)
    check_sketches(case, samples=1)
    found = skipped(case, AVX512)
    assert found.pop("tile, columns outside, no rows beside") == {"kh", "kw"}
    assert found.pop("tile, rows outside, no rows beside") == {"kh", "kw"}
    assert set().union(*found.values()) == {"kh"}  # along the columns more is saved


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(("width", "axes"), [(12, {"kw"}), (40, set())])
def test_taps_beside_a_short_row_are_skipped_for_each_position(
    width: int, axes: set[str], target: CpuTarget
) -> None:
    case = padded("DIL", "DIL.1", 1, 40, width, 32, 32, 3, 1, 1, 1)
    sketch = heuristic_sketches(schedule.state_of(case[0]), target)[0]
    steps = [step for step in sketch.trace if isinstance(step, schedule.SkipZeros)]
    assert {step.axis for step in steps} == axes
    assert {step.of for step in steps} <= {schedule.Skipped.POSITIONS}
    program = run_passes(
        lower(schedule.replay(schedule.state_of(case[0]), sketch.bound(sketch.defaults)))
    )
    assert not asked_in_tiles(program.body, ())


def asked_in_tiles(statement: Stmt, unrolled: tuple[expr.Var, ...]) -> bool:
    """Whether an unrolled loop asks for what its own variables do not decide."""
    if isinstance(statement, If) and unrolled:
        asked = expr.free_vars(*expr.condition_sides(statement.condition))
        if not asked <= {*unrolled}:
            return True
    if isinstance(statement, For) and statement.kind is schedule.ForKind.UNROLLED:
        unrolled = (*unrolled, statement.var)
    return any(asked_in_tiles(child, unrolled) for child in children_of(statement))


@pytest.mark.parametrize(
    "tile", [(6, schedule.Tail.GUARD), (4, schedule.Tail.GUARD), (5, schedule.Tail.SHIFT)]
)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_values_with_taps_skipped_for_each_position(
    tile: tuple[int, schedule.Tail], stride: int, dilation: int
) -> None:
    """Whatever the tiles are, and whether code of its own can be had for each border."""
    case = padded("DIL", "DIL.1", 1, 9, 12, 24, 32, 3, stride, dilation, dilation)
    sketch = heuristic_sketches(schedule.state_of(case[0]), TARGET)[0]
    steps: list[schedule.Primitive] = []
    for step in sketch.bound(sketch.defaults):
        if isinstance(step, schedule.SkipZeros):
            steps.append(replace(step, axis="kw", of=schedule.Skipped.POSITIONS))
        elif isinstance(step, schedule.Split) and (step.stage, step.loop) == ("conv", "w"):
            steps.append(replace(step, factors=(tile[0],), tail=tile[1]))
        else:
            steps.append(step)
    trace = tuple(dict.fromkeys(steps))
    assert sum(isinstance(step, schedule.SkipZeros) for step in trace) == 1
    assert any(isinstance(step, schedule.Split) and step.factors == (tile[0],) for step in trace)
    check_schedule(case, schedule.format_trace(trace), TARGET)


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(("side", "stride", "dilation"), [(12, 1, 6), (7, 2, 1)])
def test_taps_beside_an_image_are_skipped_for_whole_tiles(
    side: int, stride: int, dilation: int, target: CpuTarget
) -> None:
    """Of 3x3 taps that are 6 apart, 4 in 9 lie beside an image of 12x12; of a row of 7, every
    second, 1 in 6.
    """
    case = padded("DIL", "DIL.1", 1, side, side, 32, 32, 3, stride, dilation, dilation)
    found = skipped(case, target)
    assert all("kh" in axes for axes in found.values())
    assert "no rows beside" not in " ".join(found)


@pytest.mark.drawn
def test_values_with_taps_skipped_for_whole_tiles() -> None:
    cases = ((12, 1, 6), (13, 1, 5), (7, 2, 1))
    for side, stride, dilation in some_of(cases, 1, "whole tiles"):
        case = padded("DIL", "DIL.1", 1, side, side, 16, 24, 3, stride, dilation, dilation)
        check_sketches(case, samples=2)


@pytest.mark.drawn
def test_slices_of_taps_beside_a_volume_are_skipped() -> None:
    case = padded("C3D", "C3D.1", 1, 4, 40, 40, 3, 16, 3, 2, 1)
    check_sketches(case, samples=1)
    assert all("kd" in axes for axes in skipped(case, AVX512).values())


@pytest.mark.drawn
def test_copies_in_another_order_are_made_of_squares() -> None:
    b = GraphBuilder("turned")
    x = b.input("x", (3, 37, 50))
    (case,) = workloads(b.finish([b.add("transpose", x, perm=(0, 2, 1))]), TARGET)
    check_sketches(case, samples=1)
    state = schedule.state_of(case[0])
    stage = schedule.replay(state, default_trace(state, TARGET)).stages[-1]
    assert stage.loops[-2:] == tuple(f"{axis.name}_i" for axis in stage.tensor.axes[1:])


@pytest.mark.drawn
def test_bands_of_a_product_compute_the_same() -> None:
    for case in workloads(entry(104, 3, 5), TARGET):
        check_sketches(case, samples=1)


@pytest.mark.parametrize("target", [AVX2, AVX512])
def test_a_tile_has_more_sums_than_just_hide_a_multiply_add(target: CpuTarget) -> None:
    columns, rows, more_rows = default_tile(64, 16, 16, target)
    assert columns * rows * more_rows > 8


def biased() -> Graph:
    """A convolution with a bias for each element of its result, which is kept in blocks."""
    b = GraphBuilder("biased")
    x = b.input("x", (1, 32, 9, 10))
    conv = b.add("conv", x, b.constant(weights(48, 32, 3, 3)), pads=(1, 1, 1, 1))
    added = b.add("add", conv, b.constant(weights(1, 48, 9, 10)))
    y = b.add("leaky_relu", added)
    for name in (conv, added, y):
        b.set_layout(name, Layout(axis=1, block=8))
    return b.finish([b.add("conv", y, b.constant(weights(16, 48, 3, 3)))])


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.drawn
def test_a_bias_for_each_element_lies_as_the_result(target: CpuTarget) -> None:
    check_network(biased())
    (case, _) = workloads(biased(), TARGET, blocked=False)
    check_sketches(case, samples=1)
    trace = default_trace(schedule.state_of(case[0]), target)
    packed = {step.stage: step.tensor for step in trace if isinstance(step, schedule.PackConstant)}
    assert packed == {"conv": "w", "leaky_relu": "w_1"}


def test_columns_that_leave_the_cache_are_used_by_more_rows() -> None:
    target = AVX512
    short = default_tile(32, 7, 7, target, column_bytes=target.l2_bytes // 100)
    long = default_tile(32, 7, 7, target, column_bytes=target.l2_bytes // 2)
    assert short == default_tile(32, 7, 7, target)
    assert long[1] * long[2] > short[1] * short[2]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
@pytest.mark.drawn
def test_constants_that_are_indices_are_not_packed(order: tuple[int, ...]) -> None:
    """Lowering reads indices where they lie."""
    b = GraphBuilder("picked")
    x = b.input("x", (6, 40, 50))
    place = np.random.default_rng(0).integers(0, 50, (6, 40, 36))
    picked = b.add("gather_elements", x, b.constant(place), axis=2)
    moved = b.add("transpose", picked, perm=order)
    graph = b.finish([b.add("add", moved, b.constant(weights(1, 1, 1)))])
    for case in workloads(graph, TARGET):
        state = schedule.state_of(case[0])
        read = [(name, stage.name) for stage in state.stages for name in state.constants]
        for constant, stage in read:
            if constant in expr.index_tensors_of(state.stage(stage).tensor.body):
                with pytest.raises(ScheduleError, match="as indices"):
                    schedule.PackConstant(constant, stage).check(state)
        check_sketches(case, samples=1)


@pytest.mark.parametrize("rows", [7, 13, 14, 26, 28, 56])
@pytest.mark.parametrize("more_rows", [14, 28])
def test_elements_that_a_load_spreads_are_used_by_several_columns(
    rows: int, more_rows: int
) -> None:
    """Where a multiply-add spreads them itself, one column may be best."""
    columns, *_ = default_tile(64, rows, more_rows, AVX2)
    assert columns >= 2


@pytest.mark.parametrize(("target", "terms"), [(AVX2, 8), (AVX512, 4)])
def test_steps_of_products_are_about_as_long(target: CpuTarget, terms: int) -> None:
    (workload,) = partition(choose_layouts(simplify(entry(56, 64, 3)), target)).workloads
    sketch = heuristic_sketches(schedule.state_of(workload), target)[0]
    assert sketch.defaults["unroll"] == terms
    (unroll,) = (choice for choice in sketch.choices if choice.names == ("unroll",))
    assert min(unroll.values) == (terms,)


@pytest.mark.parametrize(
    ("target", "columns", "terms"), [(AVX2, 32, 16), (AVX2, 96, 8), (AVX512, 32, 4)]
)
def test_a_line_is_taken_at_a_step_where_few_columns_read_it(
    target: CpuTarget, columns: int, terms: int
) -> None:
    x, w = expr.placeholder("x", (96, 128)), expr.placeholder("w", (128, columns))
    k = expr.reduce_axis("k", 128)
    y = expr.compute("y", (96, columns), lambda i, j: expr.sum_over(x[i, k] * w[k, j], k))
    sketch = heuristic_sketches(schedule.state_of(program(y)), target)[0]
    assert sketch.defaults["unroll"] == terms


@pytest.mark.parametrize(("outer", "is_asked"), [("columns", True), ("rows", False)])
def test_constants_are_asked_for_early_where_the_next_tile_reads_them_too(
    outer: str, is_asked: bool
) -> None:
    state = product_of_blocks(128, 256, 40, 1)
    (sketch,) = (s for s in heuristic_sketches(state, AVX2) if s.name == f"tile, {outer} outside")
    trace = sketch.bound(sketch.defaults)
    assert any(isinstance(step, schedule.PackConstant) for step in trace)
    assert any(isinstance(step, schedule.PrefetchNext) for step in trace) == is_asked


@pytest.mark.parametrize(("outer", "is_asked"), [("columns", False), ("rows", True)])
def test_so_it_is_where_vectors_lie_along_rows_of_an_image(outer: str, is_asked: bool) -> None:
    """There tiles of output channels, which read constants of their own, are the rows."""
    b = GraphBuilder("plain")
    x = b.input("x", (1, 32, 28, 28))
    graph = b.finish([b.add("conv", x, b.constant(weights(48, 32, 3, 3)), pads=(1, 1, 1, 1))])
    ((workload, _),) = workloads(graph, AVX2, blocked=False)
    sketches = heuristic_sketches(schedule.state_of(workload), AVX2)
    (sketch,) = (each for each in sketches if each.name == f"tile, {outer} outside")
    trace = sketch.bound(sketch.defaults)
    assert any(isinstance(step, schedule.PrefetchNext) for step in trace) == is_asked


def product_of_blocks(
    channels: int, filters: int, size: int, stride: int
) -> schedule.ScheduleState:
    """A 3x3 convolution whose input and result are in blocks of channels on AVX2."""
    b = GraphBuilder("blocks")
    x = b.input("x", (1, 16, size, size))
    y = b.add("conv", x, b.constant(weights(channels, 16, 1, 1)))
    w = b.constant(weights(filters, channels, 3, 3))
    y = b.add("conv", b.add("relu", y), w, strides=(stride, stride), pads=(1, 1, 1, 1))
    y = b.add("conv", b.add("relu", y), b.constant(weights(16, filters, 1, 1)))
    graph = b.finish([y])
    states = [
        schedule.state_of(w) for w in partition(choose_layouts(simplify(graph), AVX2)).workloads
    ]
    return max(states, key=lambda state: max(points(stage.tensor) for stage in state.stages))


@pytest.mark.parametrize(
    ("channels", "filters", "size", "stride", "outer"),
    [
        (128, 256, 40, 1, "columns"),
        (64, 64, 48, 1, "rows"),  # the constants stay in the cache
        (320, 128, 64, 2, "rows"),  # each element of a large input is used 288 times
    ],
)
def test_constants_are_not_streamed_into_tiles_of_few_rows(
    channels: int, filters: int, size: int, stride: int, outer: str
) -> None:
    sketch = heuristic_sketches(product_of_blocks(channels, filters, size, stride), AVX2)[0]
    assert sketch.name == f"tile, {outer} outside"
    columns = next(choice for choice in sketch.choices if choice.names == ("columns",))
    assert min(columns.values) > (1,)


def test_padded_rows_of_a_window_serve_all_its_columns() -> None:
    """Made for each tile, two of ten columns would be made again, and few lanes be filled."""
    b = GraphBuilder("depthwise")
    x = b.input("x", (1, 12, 40, 40))
    w = b.constant(weights(12, 1, 3, 3))
    graph = b.finish([b.add("conv", x, w, pads=(1, 1, 1, 1), groups=12)])
    ((workload, _),) = workloads(graph, AVX2, blocked=False)
    sketches = heuristic_sketches(schedule.state_of(workload), AVX2)
    (sketch,) = (each for each in sketches if each.name == "tile, bands of rows")
    state = schedule.replay(schedule.state_of(workload), sketch.bound(sketch.defaults))
    (padded,) = (stage for stage in state.stages if stage.name.endswith("_pad"))
    assert isinstance(padded.placement, schedule.At)
    assert "h_o" in padded.placement.loop
    assert "w" not in padded.placement.loop


def awkward_groups(per_group: int) -> Graph:
    """A convolution in three groups by two, of a plain image."""
    b = GraphBuilder("awkward_groups")
    x = b.input("x", (1, 15, 18, 37))
    w = b.constant(weights(3 * per_group, 5, 3, 3))
    return b.finish([b.add("conv", x, w, groups=3, strides=(2, 2), pads=(1,) * 4)])


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize("per_group", [31, 37])
@pytest.mark.drawn
def test_rows_that_do_not_divide_a_group_are_shifted_inside_it(
    per_group: int, target: CpuTarget
) -> None:
    for case in workloads(awkward_groups(per_group), TARGET):
        check_sketches(case, samples=1)
    state = schedule.state_of(workloads(awkward_groups(per_group), target)[-1][0])
    splits = [s for s in default_trace(state, target) if isinstance(s, schedule.Split)]
    (rows,) = (s for s in splits if s.loop == "oc_i")
    assert rows.tail is schedule.Tail.SHIFT
    assert rows.factors[0] > 2


def test_tiles_leave_registers_for_rows_that_are_read_by_lane() -> None:
    b = GraphBuilder("product")
    w = b.constant(weights(96, 240))
    graph = b.finish([b.add("matmul", b.input("x", (252, 96)), w)])
    ((workload, _),) = workloads(graph, NEON)
    sketches = space_of(schedule.state_of(workload), NEON).sketches
    source = random.Random(1)
    seen = 0
    for sketch in sketches:
        for decisions in (sketch.defaults, *(sketch.sample(source) for _ in range(40))):
            splits = {
                step.loop: step.factors
                for step in sketch.bound(decisions)
                if isinstance(step, schedule.Split) and step.stage == "matmul"
            }
            if len(splits.get("j", ())) == 2 and len(splits.get("i", ())) == 1:
                (columns, lanes), (rows,) = splits["j"], splits["i"]
                assert lanes == 4
                assert columns * rows + columns + rows <= NEON.vector_registers
                seen += 1
    assert seen > 40
