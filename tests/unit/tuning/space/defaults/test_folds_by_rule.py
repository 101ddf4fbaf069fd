"""The tile rule where nothing is used again: folds along whole axes, and what feeds a product."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.targets import AVX2, AVX512
from tests.unit.tuning.compiled import check_network, weights, workloads

from tensorwright.base import CpuTarget
from tensorwright.expr import Compute
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.schedule import (
    CacheRead,
    ComputeAt,
    ComputeInline,
    Parallel,
    Reorder,
    Split,
    Trace,
    state_of,
)
from tensorwright.tuning.space import default_trace
from tensorwright.tuning.space.accesses import folds_in_order, reads_once
from tensorwright.tuning.space.defaults.tile_sizes import default_tile, fold_tile, rows_apart_tile

pytestmark = pytest.mark.target


def pooled() -> Graph:
    """The mean of each channel of an image, whose channels lie in blocks."""
    b = GraphBuilder("pooled")
    x = b.add("conv", b.input("x", (1, 16, 64, 16)), b.constant(weights(80, 16, 1, 1)))
    return b.finish([b.add("global_average_pool", x)])


def over_channels() -> Graph:
    """The largest of the channels, at each place."""
    b = GraphBuilder("over_channels")
    x = b.input("x", (1, 40, 14, 26))
    return b.finish([b.add("reduce_max", x, axes=(1,), keepdims=True)])


def gated() -> Graph:
    """A WaveNet's gates, whose product feeds a 1x1 convolution with its channels as rows."""
    b = GraphBuilder("gated")
    x = b.input("x", (1, 64, 96))
    left, right = b.apply("split", (x,), axis=1, sizes=(32, 32))
    x = b.add("mul", b.add("tanh", left), b.add("sigmoid", right))
    return b.finish([b.add("conv", x, b.constant(weights(96, 32, 1)))])


def turned() -> Graph:
    """A depthwise convolution that is stored with its channels last."""
    b = GraphBuilder("turned")
    x = b.add("conv", b.input("x", (1, 48, 20, 20)), b.constant(weights(48, 1, 3, 3)), groups=48)
    return b.finish([b.add("transpose", x, perm=(0, 2, 3, 1))])


def over_rows(columns: int = 200) -> Graph:
    """The sum of each column of a matrix."""
    b = GraphBuilder("over_rows")
    return b.finish([b.add("reduce_sum", b.input("x", (96, columns)), axes=(0,), keepdims=False)])


@pytest.mark.parametrize("make", [pooled, over_channels, gated, turned, over_rows])
def test_values(make: Callable[[], Graph]) -> None:
    check_network(make())


def last_of(graph: Graph, target: CpuTarget) -> tuple[Compute, Trace]:
    """The first reduction of a graph's last workload, and the schedule by rule of that."""
    state = state_of(workloads(graph, target)[-1][0])
    folding = [s.tensor for s in state.stages if s.tensor.reduction is not None]
    return folding[0], default_trace(state, target)


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)
def test_memory_is_read_in_order(target: CpuTarget) -> None:
    fold, trace = last_of(pooled(), target)
    assert reads_once(fold)
    order = next(s.loops for s in trace if isinstance(s, Reorder) and s.stage == fold.name)
    assert order.index("rh") < order.index("rw_o")


def test_what_reads_everything_once() -> None:
    assert reads_once(last_of(over_channels(), AVX512)[0])
    assert folds_in_order(last_of(pooled(), AVX512)[0], 16)
    assert not folds_in_order(last_of(over_channels(), AVX512)[0], 16)
    assert not reads_once(last_of(gated(), AVX512)[0])
    assert not reads_once(last_of(turned(), AVX512)[0])


@pytest.mark.parametrize(
    ("columns", "rows", "target", "tile"),
    [
        (1, 40, AVX512, (1, 2, 1)),
        (1, 40, AVX2, (1, 4, 1)),
        (4, 14, AVX512, (2, 1, 1)),
        (1, 4, AVX2, (1, 1, 1)),
        (1, 1, AVX512, (1, 1, 1)),
    ],
)
def test_few_rows_are_read_at_once(
    columns: int, rows: int, target: CpuTarget, tile: tuple[int, int, int]
) -> None:
    assert fold_tile(columns, rows, target) == tile


@pytest.mark.parametrize(
    ("lanes", "rows", "apart", "target", "tile"),
    [
        (1024, 1, (0, 4096), AVX2, (8, 1, 1)),  # a page for each step: long runs
        (512, 8, (512_000, 2048), AVX512, (8, 3, 1)),
        (64, 1, (0, 256), AVX2, (4, 1, 1)),  # two tiles, for two threads
        (200, 64, (800, 51_200), AVX512, (2, 13, 1)),  # few vectors lie in two lines
        (48, 32, (24_576, 192), AVX2, (6, 2, 1)),
    ],
)
def test_long_runs_are_read_of_rows_that_lie_apart(
    lanes: int, rows: int, apart: tuple[int, int], target: CpuTarget, tile: tuple[int, int, int]
) -> None:
    assert rows_apart_tile(lanes, rows, 8, apart, target.vector_bytes // 4, target) == tile


@pytest.mark.parametrize(("vectors", "run"), [(24, 8), (3, 3)])
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)
def test_a_long_row_is_read_in_long_runs(target: CpuTarget, vectors: int, run: int) -> None:
    width = target.vector_bytes // 4
    _, trace = last_of(over_rows(vectors * width), target)
    tiles = [s.factors for s in trace if isinstance(s, Split) and s.stage == "reduce_sum"]
    assert (run, width) in tiles


def test_a_fold_of_one_term_reads_long_runs() -> None:
    b = GraphBuilder("one_term")
    x = b.input("x", (1, 8, 24, 256))
    graph = b.finish([b.add("reduce_sum", x, axes=(0,), keepdims=False)])
    _, trace = last_of(graph, AVX512)
    assert any(isinstance(s, Split) and s.factors[:1] == (8,) and 16 in s.factors for s in trace)


def test_gates_are_computed_once() -> None:
    _, trace = last_of(gated(), AVX512)
    assert "mul" not in {step.stage for step in trace if isinstance(step, ComputeAt)}


def narrow_image() -> Graph:
    """A 1x1 convolution of channels in blocks, whose result is added to rows of twelve."""
    b = GraphBuilder("narrow_image")
    x = b.add("conv", b.input("x", (1, 16, 12, 12)), b.constant(weights(32, 16, 3, 3)))
    x = b.add("conv", x, b.constant(weights(16, 32, 1, 1)))
    return b.finish([b.add("add", x, b.input("r", (1, 16, 10, 10)))])


def windows_of_blocks() -> Graph:
    """A depthwise convolution of channels in blocks, stored as rows of channels."""
    b = GraphBuilder("windows_of_blocks")
    x = b.add("conv", b.input("x", (1, 16, 50)), b.constant(weights(64, 16, 3)))
    return b.finish([b.add("conv", x, b.constant(weights(64, 1, 3)), groups=64, pads=(1, 1))])


def heads() -> Graph:
    """A projection that is stored by heads, with the positions last."""
    b = GraphBuilder("heads")
    x = b.add("matmul", b.input("x", (1, 128, 64)), b.constant(weights(64, 128)))
    x = b.add("reshape", x, shape=(1, 128, 4, 32))
    return b.finish([b.add("transpose", x, perm=(0, 2, 3, 1))])


def mixed() -> Graph:
    """What a mixer does: a product along the positions of each channel."""
    b = GraphBuilder("mixed")
    x = b.add("transpose", b.input("x", (1, 64, 48)), perm=(0, 2, 1))
    return b.finish([b.add("relu", b.add("matmul", x, b.constant(weights(64, 80))))])


@pytest.mark.parametrize("make", [narrow_image, windows_of_blocks, heads, mixed])
def test_values_in_other_orders(make: Callable[[], Graph]) -> None:
    check_network(make())


def test_lanes_that_lie_together_are_not_copied() -> None:
    _, trace = last_of(narrow_image(), AVX512)
    assert not any(isinstance(step, CacheRead) for step in trace)


def test_a_tile_has_one_head() -> None:
    _, trace = last_of(heads(), AVX512)
    (split,) = (
        s for s in trace if isinstance(s, Split) and (s.stage, s.loop) == ("transpose", "c")
    )
    assert split.factors == (1,)


def test_elements_that_are_spread_are_read_where_they_lie() -> None:
    _, trace = last_of(mixed(), AVX512)
    assert ComputeInline("transpose") in trace


def test_threads_take_what_is_worth_a_fork() -> None:
    def forks(rows: int) -> bool:
        b = GraphBuilder("small")
        y = b.add("matmul", b.input("x", (rows, 32)), b.constant(weights(32, 112)))
        return any(isinstance(step, Parallel) for step in last_of(b.finish([y]), AVX512)[1])

    assert forks(64)
    assert not forks(8)


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)
def test_whole_blocks_have_no_tail(target: CpuTarget) -> None:
    columns, rows, _ = default_tile(20, 49, 1, target, blocks=(1, 7, 0))
    assert 20 % columns == 0
    assert rows in (1, 7, 49)
