"""Graphs over named sizes: built, printed, read back; numbers given; refused where needed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensorwright.base import ExpressionError, InputError, ModelError, UnsupportedError, UsageError
from tensorwright.expr import named_size, named_sizes_of
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    bind_sizes,
    interpret,
    partition,
    random_inputs,
    representative,
    require_numbers,
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


def test_a_stage_that_takes_numbers_refuses_sizes_by_name() -> None:
    with pytest.raises(UnsupportedError) as caught:
        require_numbers(open_graph(), "schedule")
    assert "its tensors have named sizes (n, m, k)" in caught.value.reason
    assert caught.value.remedy == (
        'give a number for each, your own ones: input_shapes={"n": 8, "m": 3, "k": 1}, or '
        'bind_sizes(graph, {"n": 8, "m": 3, "k": 1})'
    )


def test_the_interpreter_reads_sizes_off_the_inputs() -> None:
    shapes = {"x": (16, 5), "y": (16, 11, 4), "z": (7,)}
    inputs = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    found = interpret(open_graph(), inputs)
    assert [array.shape for array in found.values()] == [(16, 22, 4), (2, 5, 8), (6,)]


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({"x": (16, 5), "y": (16, 13, 4), "z": (7,)}, "it must be f32(16, 11, 4)"),
        ({"x": (12, 5), "y": (12, 11, 4), "z": (7,)}, "it must be f32(n, 5)"),
        ({"x": (16, 2), "y": (16, 5, 4), "z": (7,)}, "it must be f32(16, m)"),
        ({"x": (16,), "y": (16, 11, 4), "z": (7,)}, "it must be f32(16, 5)"),
    ],
)
def test_shapes_of_no_sizes_are_refused(shapes: dict, reason: str) -> None:
    inputs = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    with pytest.raises(InputError, match=re.escape(reason)):
        interpret(open_graph(), inputs)


def test_a_size_that_no_input_tells_is_asked_for() -> None:
    b = GraphBuilder("untold")
    b.input("x", (3,))
    graph = b.finish([b.add("full", shape=(k,), value=1.0)])
    with pytest.raises(UnsupportedError, match="named sizes"):
        interpret(graph, {"x": np.ones(3, np.float32)})


def test_typical_sizes_are_inside_their_bounds() -> None:
    sizes = {
        "a": (1, None, 1),
        "b": (100, None, 1),
        "c": (1, 512, 1),
        "d": (32, 1024, 32),
        "e": (1, None, 48),
        "f": (7, 7, 7),
    }
    atoms = [size for name, how in sizes.items() for size in named_sizes_of(named_size(name, *how))]
    expected = {"a": 128, "b": 3200, "c": 106, "d": 416, "e": 96, "f": 7}
    assert representative(atoms) == expected


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


@pytest.mark.parametrize("number", [np.int64(16), np.int8(16)])
def test_numbers_of_numpy_are_numbers(number: np.integer) -> None:
    bound = bind_sizes(open_graph(), {"n": number, "m": 5, "k": 4})  # type: ignore[dict-item]
    assert bound.types == bind_sizes(open_graph(), {"n": 16, "m": 5, "k": 4}).types
    b = GraphBuilder("numbers")
    b.input("x", (np.int64(3), 4))
    assert b.type_of("x").shape == (3, 4)
    assert type(b.type_of("x").shape[0]) is int


@pytest.mark.parametrize("number", [3.0, "3", None, True])
def test_what_is_no_integer_is_bound_to_no_size(number: object) -> None:
    with pytest.raises(ExpressionError, match="a size is an integer"):
        bind_sizes(open_graph(), {"m": number})  # type: ignore[dict-item]


def test_a_name_that_no_size_has_is_refused() -> None:
    with pytest.raises(UsageError, match="it has no size of the name batch"):
        bind_sizes(open_graph(), {"batch": 3})


def test_extents_are_never_negative() -> None:
    b = GraphBuilder("negative")
    with pytest.raises(ModelError, match="its extent m - 5 may be negative"):
        b.input("x", (m - 5, 2))
    b.input("y", (named_size("p", least=5) - 5, 2))
    with pytest.raises(ModelError, match="'n' is not an extent"):
        b.input("z", ("n", 2))  # type: ignore[arg-type]


def test_a_name_stands_for_one_size() -> None:
    b = GraphBuilder("names")
    b.input("x", (k, 4))
    b.input("y", (named_size("k"), 4))
    with pytest.raises(ModelError, match="another input has a size k with other bounds"):
        b.input("z", (named_size("k", greatest=5), 4))
