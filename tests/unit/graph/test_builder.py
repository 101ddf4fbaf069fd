from __future__ import annotations

import numpy as np
import pytest

from tensorwright.base import DType, ModelError, UnsupportedError
from tensorwright.graph import GraphBuilder, verify


def test_names_are_made_from_operators_and_stay_unique() -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 3))
    names = [b.add("relu", x), b.add("relu", x), b.add("add", x, x, output="sum")]
    names.append(b.add("add", x, x, output="sum"))
    assert names == ["relu_0", "relu_1", "sum", "sum_0"]
    assert str(verify(b.finish(names))) == (
        "graph graph\n"
        "  input x: f32(2, 3)\n"
        "  relu_0 = relu(x) : f32(2, 3)\n"
        "  relu_1 = relu(x) : f32(2, 3)\n"
        "  sum = add(x, x) : f32(2, 3)\n"
        "  sum_0 = add(x, x) : f32(2, 3)\n"
        "  output relu_0, relu_1, sum, sum_0"
    )


def test_several_outputs() -> None:
    b = GraphBuilder()
    x = b.input("x", (4, 3))
    parts = b.apply("split", (x,), ("left",), sizes=(1, 3), axis=0)
    assert parts == ("left", "left.1")
    assert [b.shape_of(part) for part in parts] == [(1, 3), (3, 3)]


def test_constants_are_read_only_and_held_once() -> None:
    b = GraphBuilder()
    array = np.ones((2, 2), np.float32)
    first, second = b.constant(array), b.constant(array)
    assert first == second
    held = b.finish([first]).constants[first]
    assert not held.flags.writeable
    assert held.base is array
    assert b.constant(np.asarray(1, ">i4")) == "constant_1"
    assert b.type_of("constant_1").dtype is DType.I32


def test_a_node_is_named_in_what_does_not_fit() -> None:
    b = GraphBuilder()
    x, y = b.input("x", (2, 3)), b.input("y", (4, 5))
    with pytest.raises(ModelError) as caught:
        b.add("add", x, y, output="total")
    assert str(caught.value) == (
        "node total (add): shapes (2, 3) and (4, 5) do not broadcast"
        "\n  try: docs/operators.md says what add takes"
    )
    with pytest.raises(ModelError) as caught:
        b.add("relu", "nobody")
    assert str(caught.value) == (
        "node relu_0 (relu): reads nobody, which nothing before it defines"
        "\n  try: declare an input or a constant of that name, or add its node before this one"
    )
    with pytest.raises(UnsupportedError) as unsupported:
        b.add("rely", x)
    assert unsupported.value.operator == "rely"
    assert "did you mean relu" in str(unsupported.value)


def test_an_input_has_one_definition() -> None:
    b = GraphBuilder()
    b.input("x", (1,))
    with pytest.raises(ModelError) as caught:
        b.input("x", (1,))
    assert str(caught.value) == (
        "tensor x: it is defined a second time"
        "\n  try: give it a name of its own; fresh('x') makes one"
    )
    with pytest.raises(ModelError) as caught:
        b.finish(["y"])
    assert str(caught.value) == (
        "output y: nothing defines it"
        "\n  try: give names that input, constant, add or apply returned"
    )
    with pytest.raises(ModelError, match=r"negative extent: .*\n  try: an extent is 0 or more"):
        b.input("z", (-1,))


def test_neighbours() -> None:
    b = GraphBuilder()
    x = b.input("x", (2,))
    y = b.add("add", x, x)
    z = b.add("relu", y)
    graph = b.finish([z])
    assert graph.producers()[z].operator == "relu"
