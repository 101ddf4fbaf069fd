from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.graph.random_graphs import graphs

from tensorwright.base import DType, InternalError, ModelError, UnsupportedError
from tensorwright.graph import Graph, GraphBuilder, Layout, Node, verify
from tensorwright.ops import TensorType

BY_BUILDER = "\n  try: build the graph with GraphBuilder; if that made it, report it with the graph"


@given(graphs())
@settings(max_examples=25)
def test_what_the_builder_makes_is_valid(graph: Graph) -> None:
    assert verify(graph) is graph


@pytest.fixture
def graph() -> Graph:
    b = GraphBuilder()
    x = b.input("x", (2, 32))
    c = b.constant(np.ones((32,), np.float32), "c")
    y = b.add("add", x, c, output="y")
    z = b.add("relu", y, output="z")
    return b.finish([z])


def test_order_and_single_definition(graph: Graph) -> None:
    add, relu = graph.nodes
    with pytest.raises(ModelError) as caught:
        verify(replace(graph, nodes=(relu, add)))
    assert caught.value.message().startswith(
        "node z (relu): reads y, which nothing before it defines\n  try: declare an input"
    )
    with pytest.raises(ModelError) as caught:
        verify(replace(graph, nodes=(add, replace(relu, outputs=("y",)))))
    assert str(caught.value) == f"node y (relu): y is defined a second time{BY_BUILDER}"
    with pytest.raises(ModelError) as caught:
        verify(replace(graph, outputs=("nobody",)))
    assert str(caught.value) == f"output nobody: nothing defines it{BY_BUILDER}"


def test_types(graph: Graph) -> None:
    types = {**graph.types, "z": TensorType(DType.F64, (2, 32))}
    with pytest.raises(ModelError) as caught:
        verify(replace(graph, types=types))
    assert str(caught.value) == (
        f"node z (relu): z is f64(2, 32), its shape rule says f32(2, 32){BY_BUILDER}"
    )
    types = {name: type_ for name, type_ in graph.types.items() if name != "z"}
    with pytest.raises(ModelError, match="tensor z: it has no type"):
        verify(replace(graph, types=types))
    with pytest.raises(ModelError, match="tensor q: it has a type or a layout but no definition"):
        verify(replace(graph, types={**graph.types, "q": graph.types["x"]}))


def test_operators_and_attributes(graph: Graph) -> None:
    add, relu = graph.nodes
    with pytest.raises(UnsupportedError) as caught:
        verify(replace(graph, nodes=(add, replace(relu, operator="reluu"))))
    assert caught.value.operator == "reluu"
    softmax = replace(relu, operator="softmax")
    with pytest.raises(ModelError) as refused:
        verify(replace(graph, nodes=(add, softmax)))
    assert str(refused.value) == (
        f"node z (softmax): the attribute axis is not written out{BY_BUILDER}"
    )
    twice = Node("clip", ("y",), ("z",), (("min", 0.0), ("max", 1.0)))
    with pytest.raises(ModelError, match="its attributes are not sorted by name, each once"):
        verify(replace(graph, nodes=(add, twice)))


def test_constants(graph: Graph) -> None:
    with pytest.raises(ModelError, match=r"constant c: its type is f32\(32\), it holds f32\(31\)"):
        verify(replace(graph, constants={"c": np.ones(31, np.float32)}))
    with pytest.raises(InternalError, match="constant c: it is writeable"):
        verify(replace(graph, constants={"c": np.ones(32, np.float32)}))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout(axis=1, block=5), "layout of y: block 5 does not divide 32"),
        (Layout(axis=2, block=2), "layout of y: axis 2 is not one of 2 dimensions"),
        (Layout(order=(0, 0)), "layout of y: order (0, 0) does not permute 2 dimensions"),
        (Layout(axis=1, block=0), "layout of y: block 0 is not positive"),
    ],
)
def test_layouts(graph: Graph, layout: Layout, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        verify(replace(graph, layouts={"y": layout}))
    assert str(caught.value) == message + BY_BUILDER
