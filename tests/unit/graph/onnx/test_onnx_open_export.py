"""Graphs with named sizes as ONNX models: names of dimensions, bounds, and sizes in attributes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.unit.graph import open_networks
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

from tensorwright.base import DType, InputError, ModelError, UnsupportedError, UsageError
from tensorwright.expr import minimum, named_size
from tensorwright.graph import Graph, GraphBuilder, bind_sizes, interpret, random_inputs
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import save_onnx, to_onnx

n = named_size("n", greatest=64)
m = named_size("m", least=8, greatest=64, divisor=8)
p = named_size("p")
PROPERTY = "tensorwright.sizes"


def dimensions(model: ModelProto) -> dict[str, list[int | str]]:
    infos = (*model.graph.input, *model.graph.output)
    return {
        info.name: [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in infos
    }


def rows() -> GraphBuilder:
    """Two inputs: (n, m, 4), and one whose last extent is known with that of the first."""
    b = GraphBuilder("rows")
    b.input("x", (n, m, 4))
    b.input("z", (n + p,))
    return b


def added(operator: str, *inputs: str, **attributes: object) -> Graph:
    """A graph of one operator over the inputs of `rows`."""
    b = rows()
    return b.finish([b.add(operator, *inputs, output="y", **attributes), b.add("neg", "z")])


def group_norm() -> Graph:
    """The onnx package infers no shape for it where an extent has a name."""
    b = GraphBuilder("norms")
    x = b.input("x", (n, 4, m))
    ones = b.constant(np.ones(4, np.float32))
    return b.finish([b.add("group_norm", x, ones, ones, groups=2)])


def open_channels() -> Graph:
    """A kernel that is an input; the numbers of a window are those of its columns alone."""
    b = GraphBuilder("channels")
    return b.finish([b.add("conv", b.input("x", (n, m, 9)), b.input("w", (5, m, 3)))])


APPLIED: dict[str, Callable[[], Graph]] = {
    "an extent": lambda: added("reshape", "x", shape=(n * m, 4)),
    "a quotient": lambda: added("reshape", "x", shape=(n, m // 8, 32)),
    "a size that two inputs tell": lambda: added("expand", "z", shape=(p, n + p)),
    "a part": lambda: added("slice", "x", axes=(0, 1), starts=(0, m // 8), ends=(n, m - 1)),
    "a smaller one": lambda: added("slice", "x", axes=(1,), starts=(0,), ends=(minimum(m, n),)),
    "pads": lambda: added("pad", "x", pads=(0, n, 0, 0, m - 1, 0)),
    "parts": lambda: added("slice", "x", axes=(1,), starts=(m // 2,), ends=(m,)),
    "a value": lambda: added("full", shape=(n, 3), value=2 * p + 1, dtype=DType.F32),
    "positions": lambda: added("range", size=n + 1, start=p, step=2, dtype=DType.I64),
    "a diagonal": lambda: added("trilu", "x", k=n - m),
    "larger images": lambda: added("resize", "x", sizes=(n, 2 * m, 8), mode="nearest"),
    "norms of groups": group_norm,
    "open channels": open_channels,
}


def sizes_of_trials(graph: Graph) -> list[dict[str, int]]:
    """The ends of bounds, and numbers between."""
    numbers = {"n": (1, 64, 7), "m": (8, 64, 24), "p": (1, 9, 5)}
    names = [size.name for size in graph.sizes]
    return [{name: numbers[name][trial] for name in names} for trial in range(3)]


@pytest.mark.parametrize("name", APPLIED)
def test_what_is_written_computes_the_same_at_any_size(name: str) -> None:
    graph = APPLIED[name]()
    model = to_onnx(graph)
    back = load_onnx(model)
    assert back.input_types == graph.input_types
    for given in sizes_of_trials(graph):
        inputs = random_inputs(bind_sizes(graph, given))
        expected = interpret(graph, inputs)
        for output, array in interpret(back, inputs).items():
            np.testing.assert_allclose(array, expected[output], 1e-5, 1e-5)
        for array, wanted in zip(by_onnxruntime(model, inputs), expected.values(), strict=True):
            np.testing.assert_allclose(array, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("network", [open_networks.decoder_step, open_networks.any_images])
def test_networks_keep_names_bounds_and_operators(network: Callable[[], Graph]) -> None:
    graph = network()
    back = load_onnx(to_onnx(graph))
    assert back.sizes == graph.sizes
    assert back.input_types == graph.input_types
    assert back.output_types == graph.output_types
    assert [node.operator for node in back.nodes] == [node.operator for node in graph.nodes]


def test_names_of_dimensions_and_bounds_are_written(tmp_path: Path) -> None:
    save_onnx(added("reshape", "x", shape=(n * m, 4)), tmp_path / "open.onnx")
    model = to_onnx(load_onnx(tmp_path / "open.onnx"))
    assert dimensions(model)["x"] == ["n", "m", 4]
    assert dimensions(model)["z"] == ["n + p"]
    (bounds,) = (json.loads(each.value) for each in model.metadata_props)
    assert bounds == {"n": "1..64", "m": "8..64 by 8", "p": "1.."}


def test_a_graph_of_numbers_has_no_bounds() -> None:
    b = GraphBuilder("numbers")
    assert not to_onnx(b.finish([b.add("neg", b.input("x", (2, 3)))])).metadata_props


def test_what_a_size_needs_is_computed_once() -> None:
    b = rows()
    y = b.add("reshape", "x", shape=(4 * n, m))
    outputs = [b.add("reshape", y, shape=(m, 4 * n)), b.add("expand", "z", shape=(p, n + p))]
    operators = [node.op_type for node in to_onnx(b.finish(outputs)).graph.node]
    assert operators.count("Mul") == 1
    assert operators.count("Shape") == 3


@pytest.mark.parametrize("bounds", ["2..32", "64", 3, (1, 64)])
def test_bounds_may_be_narrower(bounds: object) -> None:
    model = to_onnx(added("neg", "x"))
    load_onnx(model, sizes={"n": bounds})


@pytest.mark.parametrize(
    ("size", "bounds"),
    [("n", "1..65"), ("n", "2.."), ("m", "8..64"), ("m", 12), ("m", "4..8 by 4")],
)
def test_bounds_beyond_those_that_were_written_are_refused(size: str, bounds: object) -> None:
    model = to_onnx(added("neg", "x"))
    with pytest.raises(UsageError, match="the model was written for"):
        load_onnx(model, sizes={size: bounds})


def test_numbers_beyond_those_that_were_written_are_refused() -> None:
    model = to_onnx(added("neg", "x"))
    assert load_onnx(model, {"n": 2, "m": 16}).input_types["x"].shape == (2, 16, 4)
    with pytest.raises(InputError, match=r"it is 12, and the size m fulfils"):
        load_onnx(model, {"m": 12})


def test_another_text_in_the_place_of_bounds_is_refused() -> None:
    model = to_onnx(added("neg", "x"))
    model.metadata_props[0].value = "[1]"
    with pytest.raises(ModelError, match=PROPERTY):
        load_onnx(model)


def test_an_extent_of_an_input_is_told_as_a_whole() -> None:
    b = GraphBuilder("whole")
    x = b.input("x", (n * p, 3))
    model = to_onnx(b.finish([b.add("full", shape=(n * p,), value=1.0), b.add("neg", x)]))
    assert [node.op_type for node in model.graph.node] == ["Shape", "Expand", "Neg"]


def test_sizes_that_no_input_tells_are_refused() -> None:
    b = GraphBuilder("untold")
    x = b.input("x", (n * p, 3))
    graph = b.finish([b.add("full", shape=(n,), value=1.0), b.add("neg", x)])
    with pytest.raises(UnsupportedError, match="no input has an extent that tells it"):
        to_onnx(graph)


def test_a_quotient_that_rounds_down_below_zero_is_refused() -> None:
    graph = added("full", shape=(3,), value=minimum(n - 20, 5) // 2, dtype=DType.F32)
    with pytest.raises(UnsupportedError, match="it rounds to zero then"):
        to_onnx(graph)
