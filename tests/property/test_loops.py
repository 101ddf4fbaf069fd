"""Random loops whose trip count and condition are computed give what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto
from tests.unit.branching_models import BOOL, FLOAT, INT, graph, model, node
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

import tensorwright

SHAPE = (2, 3)
UNARY, BINARY = ("Tanh", "Neg", "Relu", "Identity"), ("Add", "Mul", "Sub", "Max")


@st.composite
def loops(draw: st.DrawFn) -> ModelProto:
    """A loop that carries some values of one shape, and collects some results of its body."""
    carried = [f"s{at}" for at in range(draw(st.integers(1, 3)))]
    nodes: list[NodeProto] = [node("Cast", "i", "number", to=FLOAT)]
    known = [*carried, "x", "number"]
    for at in range(draw(st.integers(1, 5))):
        name = f"t{at}"
        operator = draw(st.sampled_from((*UNARY, *BINARY, "If")))
        first, second = (draw(st.sampled_from(known)) for _ in range(2))
        if operator == "If":
            sides = {
                side: graph(
                    side,
                    [node(draw(st.sampled_from(BINARY)), f"{first} x", f"{name}_{side}")],
                    (),
                    (f"{name}_{side}", FLOAT, SHAPE),
                )
                for side in ("then_branch", "else_branch")
            }
            nodes.append(node("ReduceMax", first, f"{name}_max", keepdims=0))
            nodes.append(node("Greater", f"{name}_max zero", f"{name}_c"))
            nodes.append(node("If", f"{name}_c", name, **sides))
        elif operator in UNARY:
            nodes.append(node("Add", f"{first} x", f"{name}_x"))
            nodes.append(node(operator, f"{name}_x", name))
        else:
            nodes.append(node(operator, f"{first} {second}", f"{name}_p"))
            nodes.append(node("Sub", f"{name}_p x", name))
        known.append(name)
    tensors = [name for name in known if name != "number"]
    results = [draw(st.sampled_from(tensors)) for _ in carried]
    rows = [draw(st.sampled_from(tensors)) for _ in range(draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        nodes.append(node("ReduceSum", results[0], "total", keepdims=0))
        nodes.append(node("Less", "total limit", "going"))
    else:
        nodes.append(node("Identity", "c", "going"))
    outputs = [("going", BOOL, ())]
    for at, name in enumerate((*results, *rows)):
        nodes.append(node("Identity", name, f"result{at}"))
        outputs.append((f"result{at}", FLOAT, SHAPE))
    inputs = [("i", INT, ()), ("c", BOOL, ()), *((name, FLOAT, SHAPE) for name in carried)]
    body = graph("body", nodes, inputs, *outputs)
    ends = [(f"end{at}", FLOAT, SHAPE) for at in range(len(carried))]
    ends += [(f"rows{at}", FLOAT, (None, *SHAPE)) for at in range(len(rows))]
    starts = " ".join(draw(st.sampled_from(("x", "z"))) for _ in carried)
    whole = [
        node("Neg", "x", "z"),
        node("Min", "n most", "m"),
        node("Loop", f"m go {starts}", " ".join(name for name, _, _ in ends), body=body),
    ]
    if draw(st.booleans()):  # then the results lie between the loop and other nodes
        whole += [node("Tanh", name, f"{name}_read") for name, _, _ in ends]
        ends = [(f"{name}_read", dtype, shape) for name, dtype, shape in ends]
    given_ = [("x", FLOAT, SHAPE), ("n", INT, ()), ("go", BOOL, ()), ("limit", FLOAT, ())]
    constants = {"most": 5, "zero": np.zeros((), np.float32)}
    return model(graph("loops", whole, given_, *ends), constants)


@settings(max_examples=25)
@given(loops(), st.integers(0, 7), st.floats(-1, 3, width=32), st.integers(0, 99))
def test_random_loops(made: ModelProto, n: int, limit: float, seed: int) -> None:
    executable = tensorwright.compile(made, threads=1)
    x = np.random.default_rng(seed).uniform(-0.9, 0.9, SHAPE).astype(np.float32)
    for count, go in ((n, True), (n + 1, True), (n, False)):
        call: dict[str, Any] = {
            "x": x,
            "n": np.array(count),
            "go": np.array(go),
            "limit": np.array(limit, np.float32),
        }
        wanted = by_onnxruntime(made, call)
        for array, other in zip(executable.run(call).values(), wanted, strict=True):
            assert array.shape == other.shape
            np.testing.assert_allclose(array, other, 1e-3, 1e-4)
