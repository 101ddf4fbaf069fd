"""Two open loops that stand for one position become one loop of a trace."""

from __future__ import annotations

import pytest

from tensorwright.expr import (
    compute,
    join_open_axes,
    named_size,
    placeholder,
    reduce_axis,
    sum_over,
)
from tensorwright.graph import Workload, program
from tensorwright.schedule import format_trace, parse_trace, state_of, with_joined_loops


def heads() -> Workload:
    """A product of rows of sequences, separated into heads."""
    b, s = named_size("b", greatest=16), named_size("s", greatest=64)
    x, w, k = placeholder("x", (b, s, 24)), placeholder("w", (24, 32)), reduce_axis("k", 24)
    y = compute("y", (b, s, 32), lambda b, i, j: sum_over(x[b, i, k] * w[k, j], k))
    z = compute("z", (b, 2, s, 16), lambda n, h, i, j: y[n, i, 16 * h + j])
    return program(join_open_axes((z,)), frozenset(["w"]))


TILED = """split(z, n, [2])
split(z, i, [6], shift)
reorder(z, [h, n_o, i_o, n_i, i_i, j])
unroll(z, n_i)
unroll(z, i_i)
vectorize(z, j)
fuse(z, [h, n_o, i_o])
parallel(z, h_n_o_i_o)
compute_at(y, z, h_n_o_i_o)"""

JOINED = """reorder(z, [n, i, h])
fuse(z, [n, i])
split(z, n_i, [12], shift)
reorder(z, [h, n_i_o, n_i_i, j])
unroll(z, n_i_i)
vectorize(z, j)
fuse(z, [h, n_i_o])
parallel(z, h_n_i_o)
compute_at(y, z, h_n_i_o)"""


def test_tiles_of_both_loops_are_tiles_of_one() -> None:
    state = state_of(heads())
    assert format_trace(with_joined_loops(state, parse_trace(TILED))) == JOINED


def test_a_fusion_of_the_two_loops_alone_vanishes() -> None:
    text = """split(z, i, [6], shift)
reorder(z, [n, i_o, h, i_i, j])
fuse(z, [n, i_o])
parallel(z, n_i_o)"""
    joined = with_joined_loops(state_of(heads()), parse_trace(text))
    assert (
        format_trace(joined)
        == """reorder(z, [n, i, h])
fuse(z, [n, i])
split(z, n_i, [6], shift)
reorder(z, [n_i_o, h, n_i_i, j])
parallel(z, n_i_o)"""
    )


@pytest.mark.parametrize(
    "text",
    [
        "split(z, i, [16])\nvectorize(z, i_i)",  # lanes stay along the sequence
        "split(z, j, [8])\nvectorize(z, j_i)",  # no tile of rows
    ],
)
def test_other_traces_stay(text: str) -> None:
    trace = parse_trace(text)
    assert with_joined_loops(state_of(heads()), trace) == trace
