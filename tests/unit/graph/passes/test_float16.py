"""Networks in halves: computed in f32, rounded once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets import native_target

import tensorwright
from tensorwright.base import DType, override
from tensorwright.graph import Graph, GraphBuilder, compute_float16_as_float32, interpret, verify
from tensorwright.pipeline import import_graph

RANDOM = np.random.default_rng(2)


def network(half: DType) -> Graph:
    """A product and a softmax in halves; an output in f32, one that is an input, and a constant."""
    b = GraphBuilder("halves")
    x = b.input("x", (6, 40), half)
    w = b.constant(RANDOM.standard_normal((40, 24)).astype(half.numpy), "w")
    y = b.add("matmul", x, w)
    chances = b.add("softmax", b.add("cast", b.add("cast", y, to=DType.F32), to=half))
    return b.finish([chances, b.add("cast", y, to=DType.F32), x, w])


@pytest.mark.parametrize("half", [DType.F16, DType.BF16])
def test_only_inputs_and_outputs_stay_halves(half: DType) -> None:
    graph = network(half)
    wide = verify(compute_float16_as_float32(graph))
    assert (wide.inputs, wide.outputs) == (graph.inputs, graph.outputs)
    assert (wide.input_types, wide.output_types) == (graph.input_types, graph.output_types)
    inner = {n for node in wide.nodes if node.operator != "cast" for n in node.outputs}
    assert {wide.types[name].dtype for name in inner} == {DType.F32}
    x = {"x": RANDOM.standard_normal((6, 40)).astype(half.numpy)}
    theirs, ours = interpret(graph, x), interpret(wide, x)
    for name in graph.outputs:
        difference = ours[name].astype(np.float64) - theirs[name].astype(np.float64)
        assert abs(difference).max() <= (0.01 if half is DType.F16 else 0.1)


def test_results_are_rounded_once() -> None:
    graph = network(DType.F16)
    x = RANDOM.standard_normal((6, 40)).astype(np.float16)
    w = graph.constants["w"].astype(np.float64)
    exact = x.astype(np.float64) @ w
    executable = tensorwright.compile(graph, target=native_target(), threads=1)
    product = executable.run({"x": x})[graph.outputs[1]]
    np.testing.assert_allclose(product, exact, rtol=1e-5, atol=1e-5)


def test_what_stays_as_it_is() -> None:
    b = GraphBuilder("bits")
    bits = b.finish([b.add("bitcast", b.input("x", (4,), DType.F16), to=DType.I16)])
    assert compute_float16_as_float32(bits) is bits
    b = GraphBuilder("floats")
    floats = b.finish([b.add("exp", b.input("x", (4,)))])
    assert compute_float16_as_float32(floats) is floats
    graph = network(DType.F16)
    with override(halves_in_floats=False):
        kinds = {type_.dtype for type_ in import_graph(graph).types.values()}
    assert DType.F16 in kinds
