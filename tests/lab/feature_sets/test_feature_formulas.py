"""The formulas of feature sets, on loops that are written down by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.targets import AVX512

from tensorwright.base import UsageError
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.graph import as_program
from tensorwright.schedule import parse_trace, state_of
from tensorwright.tuning.features import FeatureSet, feature_set
from tensorwright.tuning.space import Space, space_of

N, M, K = 8, 32, 16
TRACE = """
split(c, j, [16])
reorder(c, [i, j_o, k, j_i])
vectorize(c, j_i)
parallel(c, i)"""
LOOPS = (8, 2, 16, 16)  # i, j_o, k, j_i
UPDATE = 1  # the statement that adds up; that before it stores zero


def row(name: str) -> tuple[FeatureSet, NDArray[np.float32]]:
    """The features of the update of a matmul."""
    k = reduce_axis("k", K)
    a, b = placeholder("a", (N, K)), placeholder("b", (K, M))
    c = compute("c", (N, M), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    workload = as_program(c, None)
    assert workload is not None
    state = state_of(workload)
    space: Space = space_of(state, AVX512)
    chosen = feature_set(name)
    found = chosen.open(state, AVX512, space).of_trace(parse_trace(TRACE))[0]
    return chosen, found[UPDATE]


def columns(name: str) -> dict[str, float]:
    """By their names."""
    chosen, values = row(name)
    return dict(zip(chosen.columns, values.tolist(), strict=True))


def log(number: float) -> float:
    return pytest.approx(float(np.log2(number + 1)), abs=1e-5)  # type: ignore[no-any-return]


def test_loops_are_described_from_the_innermost() -> None:
    found = columns("itervar")
    for place, length in enumerate(reversed(LOOPS)):
        inside = np.prod(LOOPS[len(LOOPS) - 1 - place :])
        outside = np.prod(LOOPS[: len(LOOPS) - place])
        assert found[f"loop{place}_length"] == log(length)
        assert found[f"loop{place}_nest_level"] == 4 - place
        assert found[f"loop{place}_bottomup"] == log(inside)
        assert found[f"loop{place}_topdown"] == log(outside)
    assert found["loop0_is_vectorize"] == found["loop3_is_parallel"] == 1
    assert found["loop4_length"] == found["loop4_is_serial"] == 0
    assert (found["add"], found["mul"], found["div"]) == (log(1), log(1), 0)


def test_a_buffer_is_moved_by_some_loops_and_used_again_in_others() -> None:
    found = columns("itervar")  # buffers: c, then b (2048 bytes), then a (512 bytes)
    b_outside = {
        part: found[f"loop3_buffer1_{part}"] for part in ("stride", "period", "count", "reuse")
    }
    assert b_outside == {"stride": 0, "period": 0, "count": log(M * K), "reuse": log(N)}
    b_inside = {
        part: found[f"loop1_buffer1_{part}"] for part in ("stride", "period", "count", "reuse")
    }
    assert b_inside == {"stride": log(M), "period": log(K), "count": log(K * 16), "reuse": log(1)}
    assert found["loop1_buffer0_reuse"] == log(K)
    assert found["loop2_buffer2_count"] == log(K)


def sampled(name: str, curve: str, samples: int) -> list[tuple[float, float]]:
    found = columns(name)
    return [(found[f"{curve}_{n}_y"], found[f"{curve}_{n}_distance"]) for n in range(samples)]


def test_a_published_curve_is_one_sample() -> None:
    chosen, _ = row("curve")
    assert len(chosen.columns) == 5 * 4 * 2
    # counts of b, each sorted on its own: 1, 16, 256, 512, 512; its reuses: 1, 1, 1, 1, 8
    assert sampled("curve", "buffer1_reuse_over_count", 1) == [(0.0, 0.0)]
    assert sampled("curve", "buffer1_count_over_reuse", 1) == [(9.0, 0.0)]


def test_sorting_each_on_its_own_mixes_loops() -> None:
    """Count over topdown: outermost i has topdown 8 and count 512; sorted apart, it meets 16."""
    apart = sampled("curve-fix@4", "buffer1_count_over_topdown", 4)
    whole = sampled("curve-paired@4", "buffer1_count_over_topdown", 4)
    assert apart[3] == (4.0, 0.0)
    assert whole[3] == (9.0, 0.0)
    assert apart[2] == (0.0, 2.0)


def test_paired_curves_look_at_what_is_inside() -> None:
    found = sampled("curve-paired@13", "buffer1_bottomup_over_count", 13)
    assert found[0] == (0.0, 0.0)
    assert found[4] == (4.0, 0.0)  # the vector: 16 places in 16 iterations
    assert found[6] == (4.0, 2.0)
    assert found[8] == (8.0, 0.0)  # k: 256 places in 256 iterations
    assert found[9] == (12.0, 0.0)  # all: 512 places in 4096 iterations
    topdown = sampled("curve-paired@2", "buffer1_topdown_over_count", 2)
    assert topdown[0] == (12.0, 0.0)  # inside all loops


def test_relations_are_chosen_by_name() -> None:
    one_way = feature_set("curve-fix@2:count>bottomup")
    assert len(one_way.columns) == 5 * 1 * 2 * 2
    assert len(feature_set("curve-fix@2:count/bottomup").columns) == 5 * 2 * 2 * 2
    assert feature_set("curve-fix@2:count>bottomup").digest == one_way.digest
    assert feature_set("curve-fix@3:count>bottomup").digest != one_way.digest
    with pytest.raises(UsageError, match="'count/mod' is not a relation of count, reuse"):
        feature_set("curve-fix:count/mod")


def test_context_is_the_most_of_the_loops_that_touch_little() -> None:
    found = columns("context")
    # b: inside k 256 elements are touched, inside the vector 16, inside i 512 and each 8 times
    assert found["buffer1_reuse_where_count_below_8"] == log(1)
    assert found["buffer1_reuse_where_count_below_10"] == log(8)
    assert found["buffer1_vector_where_count_below_4"] == 0
    assert found["buffer1_vector_where_count_below_6"] == log(16)
    assert found["executions"] == log(N * M * K)
    assert found["buffer1_bytes"] == log(4 * K * M)


def test_a_tree_says_which_loops_statements_share() -> None:
    found = columns("loop-tree")
    firsts = [found[f"loop{n}_first_statement"] for n in range(4)]
    assert firsts == [0, 0, UPDATE, UPDATE]
    assert [found[f"loop{n}_is_there"] for n in range(5)] == [1, 1, 1, 1, 0]
