"""Features of launches and warps: against numbers that a person can count."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.grids import SM_80
from tests.unit.schedule.expressions import Expression, conv, matmul

from tensorwright.expr import Compute, compute, placeholder
from tensorwright.graph import program
from tensorwright.schedule import parse_trace, state_of
from tensorwright.tuning.features import GPU_FEATURE_NAMES, Featurizer
from tensorwright.tuning.features.lanes import LANE_COLUMNS, conflict_degree, distinct
from tensorwright.tuning.features.launches import LAUNCH_COLUMNS, THREAD_COLUMNS
from tensorwright.tuning.space import space_of

ROWS = COLUMNS = 256


def copied(is_turned: bool) -> Compute:
    x = placeholder("x", (ROWS, COLUMNS))
    if is_turned:
        return compute("y", (COLUMNS, ROWS), lambda i, j: x[j, i] * 2.0)
    return compute("y", (ROWS, COLUMNS), lambda i, j: x[i, j] * 2.0)


def features(output: Compute, trace: str, statement: int = -1) -> dict[str, float]:
    state = state_of(program([output]))
    found = Featurizer(state, SM_80).of_trace(parse_trace(trace))[0, statement]
    return dict(zip(GPU_FEATURE_NAMES, (np.exp2(found) - 1.0).tolist(), strict=True))


BOUND = "bind(y, i, block.x)\nbind(y, j, thread.x)"
SHARED = """cache_read(x, y, shared)
split(y, i, [32])
split(y, j, [32])
reorder(y, [i_o, j_o, i_i, j_i])
bind(y, i_o, block.y)
bind(y, j_o, block.x)
bind(y, i_i, thread.y)
bind(y, j_i, thread.x)
compute_at(x_y_cache, y, j_o)
bind(x_y_cache, d0, thread.y)
bind(x_y_cache, d1, thread.x)
"""


@pytest.mark.parametrize(("is_turned", "sectors"), [(False, 4.0), (True, 18.0)])
def test_lanes_side_by_side_share_sectors(is_turned: bool, sectors: float) -> None:
    """Of a load and a store: 4 and 4, or 32 and 4."""
    found = features(copied(is_turned), BOUND)
    assert found["sectors_a_warp"] == pytest.approx(sectors, rel=1e-5)
    warps = ROWS * COLUMNS / 32
    assert found["global_loads"] == pytest.approx(warps, rel=1e-5)
    assert found["global_sectors"] == pytest.approx(2 * sectors * warps, rel=1e-5)


@pytest.mark.parametrize(
    ("layout", "conflicts"),
    [("", 32.0), ("layout(x_y_cache, padded, 1)", 1.0), ("layout(x_y_cache, xor, 128)", 4.0)],
)
def test_padding_ends_bank_conflicts(layout: str, conflicts: float) -> None:
    """A column of 32 rows of 32 words lies in one bank, with a word behind each row in all; a
    swizzle exchanges chunks of 4 words among 8.
    """
    found = features(copied(is_turned=True), SHARED + layout)
    assert found["bank_conflicts"] == pytest.approx(conflicts, rel=1e-5)
    assert found["barriers"] == pytest.approx(2, rel=1e-5)
    assert found["shared_memory"] == pytest.approx(32 * (33 if "padded" in layout else 32) * 4)


def test_what_limits_the_blocks_of_a_multiprocessor() -> None:
    """A100: 2048 threads, 65,536 registers, 164 KiB of shared memory of which a block takes one
    more, 32 blocks; 108 multiprocessors.
    """
    found = features(copied(is_turned=True), SHARED)
    assert found["threads"] == pytest.approx(1024)
    assert found["blocks_by_threads"] == pytest.approx(2)
    assert found["blocks_by_registers"] == pytest.approx(2)
    assert found["blocks_by_shared_memory"] == pytest.approx(164 // 5)
    assert found["blocks_by_slots"] == pytest.approx(32)
    assert found["resident_blocks"] == pytest.approx(2)
    assert found["occupancy"] == pytest.approx(1, rel=1e-5)
    assert found["waves"] == pytest.approx(64 / 216, rel=1e-5)
    assert found["tail"] == pytest.approx(64 / 216, rel=1e-5)


def test_bytes_at_each_level() -> None:
    """Each of 64 blocks reads 4 KiB and writes as much: nothing twice."""
    fetch, store = (features(copied(is_turned=True), SHARED, n) for n in (0, 1))
    for found in (fetch, store):
        assert found["block_bytes"] == pytest.approx(ROWS * COLUMNS * 4, rel=1e-5)
        assert found["dram_bytes"] == pytest.approx(ROWS * COLUMNS * 4, rel=1e-5)
    assert fetch["register_bytes"] == pytest.approx(2 * ROWS * COLUMNS * 4, rel=1e-5)


TILES = """cache_write(c, local)
split(c, i, [8, 4])
split(c, j, [8, 4])
reorder(c, [i_0, j_0, i_1, j_1, i_2, j_2])
fuse(c, [i_0, j_0])
bind(c, i_0_j_0, block.x)
fuse(c, [i_1, j_1])
bind(c, i_1_j_1, thread.x)
unroll(c, i_2)
unroll(c, j_2)
compute_at(c_cache, c, i_1_j_1)
split(c_cache, k, [8])
reorder(c_cache, [k_o, k_i, i, j])
unroll(c_cache, i)
unroll(c_cache, j)
cache_read(b, c_cache, shared)
compute_at(b_c_cache_cache, c_cache, k_o)
cooperate(b_c_cache_cache, [64], 1)
"""


def tiles(more: str, statement: int) -> dict[str, float]:
    """Of a product of 64 rows, terms and columns in tiles of 32 by 32, 8 terms at a time."""
    found = Featurizer(matmul(64, 64, 64).state, SM_80).of_trace(parse_trace(TILES + more))
    row = np.exp2(found[0, statement].astype(np.float64)) - 1.0
    return dict(zip(GPU_FEATURE_NAMES, row.tolist(), strict=True))


@pytest.mark.parametrize("mechanism", ["registers", "cp_async"])
def test_a_pipeline_waits_for_its_first_fill(mechanism: str) -> None:
    """Of 8 fills of 4 elements a thread, in two slots, with a barrier for each and one at first."""
    plain, ahead = (tiles(more, 1) for more in ("", f"pipeline(c_cache, k_o, 2, {mechanism})"))
    for name, before, after in (
        ("waiting_runs", 32, 4),
        ("meeting_runs", 8, 1),
        ("barriers", 16, 9),
        ("shared_memory", 1024, 2048),
        ("global_loads", 4 * 2 * 32, 4 * 2 * 32),
    ):
        assert plain[name] == pytest.approx(before, rel=1e-4), name
        assert ahead[name] == pytest.approx(after, rel=1e-4), name


def test_neighbours_in_shared_memory_are_loaded_at_once() -> None:
    """A thread reads 4 neighbours of each of 64 rows, in one load each; a swizzle moves each."""
    plain, moved = (tiles(more, 2) for more in ("", "layout(b_c_cache_cache, xor, 128)"))
    loads = 4 * 2 * 64  # of 4 blocks of 2 warps
    assert plain["shared_loads"] == pytest.approx(loads, rel=1e-4)
    more = moved["index_operations"] - plain["index_operations"]
    assert more == pytest.approx(loads * 32 * 4, rel=1e-3)


@pytest.mark.parametrize(
    "expression", [matmul(48, 40, 24), conv(14, 1, 8, 16)], ids=["product", "convolution"]
)
def test_columns_are_what_is_lowered(expression: Expression) -> None:
    """But for operations: a lowered program may prove what a bound on open decisions leaves.

    In these draws loops run through whole digits of fused axes and of what is padded.  Where they
    do not, the bound is looser, and some bytes and sectors are more than those of the program.
    """
    names = (*LAUNCH_COLUMNS, *THREAD_COLUMNS, *LANE_COLUMNS)
    compared = [GPU_FEATURE_NAMES.index(each) for each in names if each != "index_operations"]
    state = expression.state
    featurizer, drawn = Featurizer(state, SM_80), random.Random(1)
    for sketch in space_of(state, SM_80).sketches:
        genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(3)], np.int64)
        genes = genes.reshape(3, len(sketch.choices))
        columns = featurizer.of_sketch(sketch, genes)
        for row, one in zip(genes.tolist(), columns, strict=True):
            trace = sketch.bound(sketch.decisions_of(tuple(row)))
            lowered = featurizer.of_trace(trace)[0]
            for n in compared:
                np.testing.assert_allclose(
                    one[:, n], lowered[:, n], 1e-5, 1e-5, err_msg=f"{GPU_FEATURE_NAMES[n]} {trace}"
                )


def test_counting_is_that_of_sets() -> None:
    numbers: NDArray[np.int64] = np.random.default_rng(0).integers(0, 400, (32, 50)) * 4
    assert distinct(numbers).tolist() == [len(set(row)) for row in numbers.T.tolist()]
    words = [{each // 4 for each in row} for row in numbers.T.tolist()]
    banks = [[sum(word % 32 == bank for word in row) for bank in range(32)] for row in words]
    assert conflict_degree(numbers).tolist() == [max(row) for row in banks]
