"""Graphs over named sizes: built, printed, read back; numbers given; refused where needed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensorwright.base import ExpressionError, ModelError, UnsupportedError
from tensorwright.expr import named_size
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    bind_sizes,
    interpret,
    partition,
    random_inputs,
    simplify,
    verify,
)
from tensorwright_lab.graph_text import parse

n = named_size("n", greatest=512, divisor=8)
m = named_size("m", least=3)
k = named_size("k")
TEXT = """\
graph open
  size n: n <= 512, n % 8 == 0
  size m: 3 <= m
  size k
  input x: f32(n, m)
  input y: f32(n, 2*m + 1, 4)
  input z: f32(k)
  constant w: f32(8, 8) = sha256:DIGEST
  joined = concat(y, y, axis=1) : f32(n, 4*m + 2, 4)
  moved = reshape(x, shape=(n/8, 8, m)) : f32(n/8, 8, m)
  turned = transpose(moved, perm=(0, 2, 1)) : f32(n/8, m, 8)
  made = matmul(turned, w) : f32(n/8, m, 8)
  cut = slice(z, axes=(), ends=(-1,), starts=(0,), steps=()) : f32(k - 1)
  output joined, made, cut
"""


def open_graph() -> Graph:
    b = GraphBuilder("open")
    x, y, z = b.input("x", (n, m)), b.input("y", (n, 2 * m + 1, 4)), b.input("z", (k,))
    w = b.constant(np.ones((8, 8), np.float32), "w")
    joined = b.add("concat", y, y, axis=1, output="joined")
    moved = b.add("reshape", x, shape=(n // 8, 8, m), output="moved")
    turned = b.add("transpose", moved, perm=(0, 2, 1), output="turned")
    made = b.add("matmul", turned, w, output="made")
    cut = b.add("slice", z, starts=(0,), ends=(-1,), output="cut")
    return b.finish([joined, made, cut])


def test_the_text_declares_the_sizes_and_is_read_back() -> None:
    graph = verify(open_graph())
    assert [size.name for size in graph.sizes] == ["n", "m", "k"]
    assert str(parse(str(graph), graph.constants)) == str(graph)
    assert re.sub("sha256:[0-9a-f]+", "sha256:DIGEST", f"{graph}\n") == TEXT


def test_numbers_make_the_graph_that_they_would_have_built() -> None:
    graph = bind_sizes(open_graph(), {"n": 16, "m": 5, "k": 4})
    assert graph.sizes == ()
    assert str(graph.types["made"]) == "f32(2, 5, 8)"
    inputs = random_inputs(graph, 0)
    (joined, made, cut) = interpret(verify(graph), inputs).values()
    assert (joined.shape, made.shape, cut.shape) == ((16, 22, 4), (2, 5, 8), (3,))
    assert len(partition(simplify(graph)).steps) > 0
    assert [size.name for size in bind_sizes(open_graph(), {"n": 16}).sizes] == ["m", "k"]


def test_a_number_that_a_size_may_not_be_is_refused() -> None:
    with pytest.raises(ExpressionError, match="the size n fulfils n <= 512, n % 8 == 0"):
        bind_sizes(open_graph(), {"n": 12})


@pytest.mark.parametrize("stage", [simplify, partition, lambda graph: interpret(graph, {})])
def test_a_stage_that_takes_numbers_refuses_sizes_by_name(stage) -> None:
    with pytest.raises(UnsupportedError) as caught:
        stage(open_graph())
    assert "its tensors have named sizes (n, m, k)" in caught.value.reason
    assert caught.value.remedy == (
        'give a number for each: bind_sizes(graph, {"n": 8, "m": 3, "k": 1})'
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("size n: n > 3", "what the size fulfils"),
        ("size n: n <= 7, n % 8 == 0", "what the size fulfils"),
        ("input x: f32(n +, 3)", "an expression of the sizes"),
        ("input x: f32(q)", "a value"),
    ],
)
def test_faults_of_the_text_name_the_line(line: str, expected: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse(f"graph g\n  size n\n  {line}\n  output\n")
    assert f"expected {expected}" in caught.value.reason
