from __future__ import annotations

import numpy as np
import pytest

from tensorwright.base import InputError
from tensorwright.graph import Graph, GraphBuilder, Node, interpret, last_uses
from tensorwright.ops import Array


def affine() -> Graph:
    b = GraphBuilder()
    x = b.input("x", (2, 3))
    c = b.constant(np.full((3,), 2, np.float32), "c")
    y = b.add("mul", x, c, output="y")
    z = b.add("relu", y, output="z")
    return b.finish([z, x, c])


def test_values_and_passed_through_names() -> None:
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    results = interpret(affine(), {"x": x})
    assert list(results) == ["z", "x", "c"]
    np.testing.assert_array_equal(results["z"], np.maximum(2 * x, 0))
    np.testing.assert_array_equal(results["x"], x)


def test_the_host_runs_what_has_no_meaning() -> None:
    b = GraphBuilder()
    x = b.input("x", (4,))
    values, indices = b.apply("topk", (x,), k=2)
    results = interpret(b.finish([values, indices]), {"x": np.array([1, 9, 3, 7], np.float32)})
    assert [list(array) for array in results.values()] == [[9, 7], [1, 3]]


def test_values_are_freed_after_their_last_use() -> None:
    graph = affine()
    assert last_uses(graph) == ((), ("y",))
    b = GraphBuilder()
    x = b.input("x", (2,))
    y = b.add("add", x, x)
    b.add("relu", y)
    z = b.add("neg", y)
    assert last_uses(b.finish([z])) == (("x",), ("relu_0",), ("add_0",))


def test_a_hook_sees_every_node() -> None:
    seen: list[tuple[str, int, int]] = []

    def hook(node: Node, arguments: tuple[Array, ...], results: tuple[Array, ...]) -> None:
        seen.append((node.operator, len(arguments), len(results)))

    interpret(affine(), {"x": np.zeros((2, 3), np.float32)}, hook)
    assert seen == [("mul", 2, 1), ("relu", 1, 1)]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input x: it is not given\n  try: give x: f32(2, 3)"),
        (
            {"x": np.zeros((2, 3), np.float32), "y": np.zeros(1)},
            "input y: there is no such input\n  try: give x: f32(2, 3)",
        ),
        (
            {"x": np.zeros((2, 4), np.float32)},
            "input x: it must be f32(2, 3), not f32(2, 4)\n  try: give x: f32(2, 3)",
        ),
        (
            {"x": np.zeros((2, 3))},
            "input x: it must be f32(2, 3), not f64(2, 3)\n  try: give x: f32(2, 3)",
        ),
    ],
)
def test_wrong_inputs(inputs: dict[str, Array], message: str) -> None:
    with pytest.raises(InputError) as caught:
        interpret(affine(), inputs)
    assert str(caught.value) == message
