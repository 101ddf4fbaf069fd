"""AutoTVM's templates for graphics processors compute what programs mean, within the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.draws import random_source, some_of
from tests.grids import (
    OPENCL_GENERIC,
    SM_80,
    missing_compiler,
    run_all_on_cpu,
)
from tests.unit.records.test_logs import CUDA
from tests.unit.schedule.expressions import Expression, check, softmax
from tests.unit.tuning.space.test_template_logs import line

from tensorwright.base import GpuTarget
from tensorwright.expr import (
    Compute,
    all_of,
    compute,
    max_of,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.graph import Graph
from tensorwright.loop import LoopProgram, launches_of, lower, room_of
from tensorwright.pipeline import prepare
from tensorwright.records.logs import parse_autotvm
from tensorwright.schedule import ForKind, parse_trace, replay, state_of
from tensorwright.tuning.logs import Seed, graph_of_task, seed_of
from tensorwright.tuning.space import Sketch, SpaceKind, space_of
from tensorwright.tuning.space.templates import template_sketches


def image(channels: int, size: int, pad: int) -> Compute:
    """A batch of two images with zeros around."""
    x = placeholder("x", (2, channels, size, size))

    def pixel(n, c, h, v):  # type: ignore[no-untyped-def]
        inside = all_of(pad <= h, h < size + pad, pad <= v, v < size + pad)
        return select(inside, x[n, c, h - pad, v - pad], 0.0)

    return compute("pad", (2, channels, size + 2 * pad, size + 2 * pad), pixel)


def convolution(stride: int = 1) -> Expression:
    """3 x 3 taps, then bias and ReLU."""
    pad, w, bias = image(6, 8, 1), placeholder("w", (16, 6, 3, 3)), placeholder("bias", (16,))
    c, p, q = reduce_axis("c", 6), reduce_axis("p", 3), reduce_axis("q", 3)
    size = 8 // stride
    y = compute(
        "y",
        (2, 16, size, size),
        lambda n, f, h, v: sum_over(
            pad[n, c, h * stride + p, v * stride + q] * w[f, c, p, q], c, p, q
        ),
    )
    relu = compute("relu", y.shape, lambda n, f, h, v: max_of(y[n, f, h, v] + bias[f], 0.0))
    return Expression((relu,), frozenset({"w", "bias"}))


def pointwise_convolution() -> Expression:
    """1 x 1, stride 2."""
    x, w = placeholder("x", (1, 32, 14, 14)), placeholder("w", (24, 32, 1, 1))
    c = reduce_axis("c", 32)
    y = compute(
        "y", (1, 24, 7, 7), lambda n, f, h, v: sum_over(x[n, c, h * 2, v * 2] * w[f, c, 0, 0], c)
    )
    return Expression((y,), frozenset({"w"}))


def one_tile() -> Expression:
    """3 x 3 taps of an image of one pixel, where Winograd's products are of vectors."""
    x, w = placeholder("x", (1, 6, 1, 1)), placeholder("w", (16, 6, 3, 3))
    c, p, q = reduce_axis("c", 6), reduce_axis("p", 3), reduce_axis("q", 3)

    def pixel(n, d, h, v):  # type: ignore[no-untyped-def]
        inside = all_of(h >= 1, h < 2, v >= 1, v < 2)
        return select(inside, x[n, d, h - 1, v - 1], 0.0)

    pad = compute("pad", (1, 6, 3, 3), pixel)
    y = compute(
        "y",
        (1, 16, 1, 1),
        lambda n, f, h, v: sum_over(pad[n, c, h + p, v + q] * w[f, c, p, q], c, p, q),
    )
    return Expression((y,), frozenset({"w"}))


def depthwise() -> Expression:
    pad, w = image(8, 6, 1), placeholder("w", (8, 1, 3, 3))
    p, q = reduce_axis("p", 3), reduce_axis("q", 3)
    y = compute(
        "y",
        (2, 8, 6, 6),
        lambda n, f, h, v: sum_over(pad[n, f, h + p, v + q] * w[f, 0, p, q], p, q),
    )
    return Expression((y,), frozenset({"w"}))


def dense(rows: int, columns: int, terms: int) -> Expression:
    x, w = placeholder("x", (rows, terms)), placeholder("w", (terms, columns))
    k = reduce_axis("k", terms)
    y = compute("y", (rows, columns), lambda i, j: sum_over(x[i, k] * w[k, j], k))
    relu = compute("relu", y.shape, lambda i, j: max_of(y[i, j], 0.0))
    return Expression((relu,), frozenset({"w"}))


def batch() -> Expression:
    x, w, k = placeholder("x", (3, 12, 20)), placeholder("w", (3, 20, 16)), reduce_axis("k", 20)
    y = compute("y", (3, 12, 16), lambda b, i, j: sum_over(x[b, i, k] * w[b, k, j], k))
    return Expression((y,))


PROGRAMS: dict[str, tuple[Callable[[], Expression], set[str]]] = {
    "convolution": (convolution, {"conv2d_nchw", "conv2d_nchw_winograd"}),
    "strided": (lambda: convolution(2), {"conv2d_nchw"}),
    "pointwise": (pointwise_convolution, {"conv2d_nchw"}),
    "one_tile": (one_tile, {"conv2d_nchw"}),
    "depthwise": (depthwise, {"depthwise_conv2d_nchw"}),
    "large_batch": (lambda: dense(64, 64, 24), {"dense_large_batch", "dense_small_batch"}),
    "small_batch": (lambda: dense(1, 10, 96), {"dense_large_batch", "dense_small_batch"}),
    "batch": (batch, {"batch_matmul"}),
}


def families(expression: Expression, target: GpuTarget = OPENCL_GENERIC) -> dict[str, list[Sketch]]:
    found: dict[str, list[Sketch]] = {}
    for sketch in template_sketches(expression.state, target):
        found.setdefault(sketch.family, []).append(sketch)
    return found


def drawn_programs() -> list[tuple[Expression, LoopProgram]]:
    """Of every template the schedule by rule, and one drawn from a structure drawn."""
    programs: list[tuple[Expression, LoopProgram]] = []
    for name, (make, wanted) in some_of(PROGRAMS.items(), 4, "templates"):
        expression, drawing = make(), random_source(name)
        found = families(expression)
        assert found.keys() == wanted
        for sketches in found.values():
            first, drawn = sketches[0], drawing.choice(sketches)
            for sketch, decisions in ((first, first.defaults), (drawn, drawn.sample(drawing))):
                state = replay(expression.state, sketch.bound(decisions))
                programs.append((expression, lower(state)))
    return programs


@pytest.mark.drawn
def test_draws_are_right_and_within_the_device() -> None:
    drawn = drawn_programs()
    for launch in (launch for _, program in drawn for launch in launches_of(program).nests):
        threads = launch.extent(ForKind.THREAD_X)
        assert isinstance(threads, int)
        assert threads <= OPENCL_GENERIC.threads_per_block
        shared = [room_of(each) * each.dtype.size_bytes for each in launch.shared]
        assert sum(shared) <= OPENCL_GENERIC.opt_in_shared_bytes
    if missing_compiler():
        pytest.skip(missing_compiler())
    arrays = [expression.arrays() for expression, _ in drawn]
    answers = run_all_on_cpu([program for _, program in drawn], arrays)
    for (expression, _), given, results in zip(drawn, arrays, answers, strict=True):
        for output, answer in expression.answers(given).items():
            np.testing.assert_allclose(results[output], answer, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["depthwise", "batch", "small_batch"])
@pytest.mark.drawn
def test_draws_are_free_of_races(name: str) -> None:
    expression, drawing = PROGRAMS[name][0](), random_source(name)
    (sketches, *_) = reversed(families(expression).values())
    check(expression, sketches[-1].bound(sketches[-1].sample(drawing)))


def test_a_space_of_templates_says_what_is_cut_off() -> None:
    text = str(space_of(dense(256, 256, 64).state, OPENCL_GENERIC, kind=SpaceKind.TEMPLATES))
    assert "dense_large_batch" in text
    assert "% cut off: over threads" in text


def test_little_shared_memory_leaves_templates_out() -> None:
    small = replace(OPENCL_GENERIC, opt_in_shared_bytes=256)
    assert families(pointwise_convolution(), small) == {}
    assert space_of(pointwise_convolution().state, small, kind=SpaceKind.TEMPLATES).sketches


def test_a_row_softmax_has_no_template() -> None:
    assert families(softmax()) == {}


def image_of(channels: int, size: int) -> list[object]:
    return ["TENSOR", [1, channels, size, size], "float32"]


def filters_of(filters: int, channels: int, taps: int) -> list[object]:
    return ["TENSOR", [filters, channels, taps, taps], "float32"]


LOGGED: dict[str, tuple[list[object], dict[str, list[int]], dict[str, int]]] = {
    "conv2d_nchw.cuda": (
        [image_of(64, 14), filters_of(32, 64, 3), [1, 1], [1, 1, 1, 1], [1, 1], "float32"],
        {"tile_f": [-1, 1, 8, 2], "tile_y": [-1, 1, 2, 1], "tile_x": [-1, 1, 7, 2]}
        | {"tile_rc": [-1, 8], "tile_ry": [-1, 3], "tile_rx": [-1, 1]},
        {"auto_unroll_max_step": 512, "unroll_explicit": 1},
    ),
    "conv2d_nchw_winograd.cuda": (
        [image_of(64, 16), filters_of(32, 64, 3), [1, 1], [1, 1, 1, 1], [1, 1], "float32"],
        {"tile_b": [-1, 1, 1, 1], "tile_y": [-1, 1, 8, 2], "tile_x": [-1, 1, 16, 1]}
        | {"tile_rc": [-1, 16]},
        {"auto_unroll_max_step": 128, "unroll_explicit": 0},
    ),
    "depthwise_conv2d_nchw.cuda": (
        [image_of(64, 14), filters_of(64, 1, 3), [1, 1], [1, 1, 1, 1], [1, 1], "float32"],
        {"tile_f": [-1, 1, 4, 1], "tile_y": [-1, 1, 7, 1], "tile_x": [-1, 2, 7, 1]},
        {"auto_unroll_max_step": 1500, "unroll_explicit": 0},
    ),
    "dense_large_batch.cuda": (
        [["TENSOR", [128, 96], "float32"], ["TENSOR", [64, 96], "float32"], None, "float32"],
        {"tile_x": [-1, 2, 16, 2], "tile_y": [-1, 2, 16, 2], "tile_k": [-1, 4, 1]},
        {},
    ),
    "dense_small_batch.cuda": (
        [["TENSOR", [1, 512], "float32"], ["TENSOR", [10, 512], "float32"], None, "float32"],
        {"tile_k": [-1, 64]},
        {},
    ),
    "batch_matmul.cuda": (
        [["TENSOR", [4, 32, 16], "float32"], ["TENSOR", [4, 32, 16], "float32"]],
        {"tile_y": [-1, 8, 2], "tile_x": [-1, 8, 2], "tile_k": [-1, 8]},
        {"auto_unroll_max_step": 32, "unroll_explicit": 0},
    ),
}


def seed(text: str, target: GpuTarget) -> Seed | str:
    """The seed of a line, or why there is none."""
    parsed = parse_autotvm(text, "here")
    graph = graph_of_task(parsed)
    assert isinstance(graph, Graph)
    (workload,) = prepare(graph, target).workloads
    found = seed_of(parsed, state_of(workload), target)
    if isinstance(found, Seed):
        replay(state_of(workload), parse_trace(found.candidate.trace))
    return found


@pytest.mark.parametrize("task", LOGGED)
def test_a_line_for_cuda_is_a_seed(task: str) -> None:
    arguments, splits, others = LOGGED[task]
    entities = [(name, "sp", sizes) for name, sizes in splits.items()]
    found = seed(
        line(task, arguments, *entities, *((n, "ot", v) for n, v in others.items())), SM_80
    )
    assert isinstance(found, Seed)
    assert found.candidate.sketch.split(";")[0] == task.removesuffix(".cuda")
    decisions = dict(found.candidate.decisions)
    for name, (_, *sizes) in splits.items():
        names = [name] if len(sizes) == 1 else [f"{name}_{n}" for n in range(1, len(sizes) + 1)]
        kept = [size for size, each in zip(sizes, names, strict=True) if each in decisions]
        assert [decisions[each] for each in names if each in decisions] == kept
    assert not found.change


def test_a_line_with_too_many_threads_gets_virtual_threads() -> None:
    found = seed(CUDA, SM_80)
    assert isinstance(found, Seed)
    assert found.change == "784 threads of a block for 1568"
    decisions = dict(found.candidate.decisions)
    assert [decisions[f"tile_f_{n}"] for n in (1, 2, 3)] == [8, 16, 2]
    fewer = seed(CUDA, OPENCL_GENERIC)
    assert isinstance(fewer, Seed)
    assert fewer.change == "196 threads of a block for 1568"


def test_a_line_is_refused_where_its_parts_do_not_fit() -> None:
    arguments, splits, _ = LOGGED["dense_large_batch.cuda"]
    entities = [(name, "sp", sizes) for name, sizes in splits.items()]
    small = replace(SM_80, opt_in_shared_bytes=1024)
    found = seed(line("dense_large_batch.cuda", arguments, *entities), small)
    assert found == "dense_large_batch: it does not speak of this program for cuda:sm_80"
    deep = [*entities[:2], ("tile_k", "sp", [-1, 3, 16])]
    small = replace(SM_80, opt_in_shared_bytes=8192)
    found = seed(line("dense_large_batch.cuda", arguments, *deep), small)
    assert found == "dense_large_batch: shared memory: 24576, more than 8192"


def test_the_program_of_a_line_is_right() -> None:
    """Of the line whose threads are too many for a block."""
    if missing_compiler():
        pytest.skip(missing_compiler())
    found, graph = seed(CUDA, OPENCL_GENERIC), graph_of_task(parse_autotvm(CUDA, "here"))
    assert isinstance(found, Seed)
    assert isinstance(graph, Graph)
    (workload,) = prepare(graph, OPENCL_GENERIC).workloads
    program = lower(replay(state_of(workload), parse_trace(found.candidate.trace)))
    numbers = np.random.default_rng(0)
    x = numbers.integers(-4, 5, (1, 256, 14, 14)).astype(np.float32)
    w = numbers.integers(-4, 5, (512, 256, 1, 1)).astype(np.float32)
    (results,) = run_all_on_cpu([program], [{"x": x, "w": w}])
    expected = np.einsum("ncij,oc->noij", x[:, :, ::2, ::2], w[:, :, 0, 0])
    np.testing.assert_array_equal(results["conv"], expected)
