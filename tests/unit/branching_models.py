"""Models with branches and loops that are decided when they run, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Info = tuple[str, int, Sequence[int | str | None]]


def node(operator: str, inputs: str, outputs: str, name: str = "", **attributes: Any) -> NodeProto:
    """A node; its inputs and outputs are words."""
    return helper.make_node(operator, inputs.split(), outputs.split(), name, **attributes)


def graph(
    name: str, nodes: Sequence[NodeProto], inputs: Sequence[Info], *outputs: Info
) -> GraphProto:
    """A graph of nodes; an input or an output is its name, element type and shape."""
    infos = [
        [helper.make_tensor_value_info(*info) for info in given] for given in (inputs, outputs)
    ]
    return helper.make_graph(nodes, name, *infos)


def model(whole: GraphProto, constants: Mapping[str, Any]) -> ModelProto:
    """A model of a graph with some constants, checked."""
    arrays = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    whole.initializer.extend(arrays)
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def weights(seed: int, *shape: int) -> Any:
    """Some numbers in f32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def branch(name: str, weight: str, operator: str) -> GraphProto:
    """operator(x @ weight), of a tensor x around it."""
    nodes = [node("MatMul", f"x {weight}", f"{name}_p"), node(operator, f"{name}_p", f"{name}_y")]
    return graph(name, nodes, (), (f"{name}_y", FLOAT, (4, 8)))


def one_branch() -> ModelProto:
    """y = tanh(x @ a) if c, else relu(x @ b)."""
    sides = {"then_branch": branch("t", "a", "Tanh"), "else_branch": branch("e", "b", "Relu")}
    inputs = [("x", FLOAT, (4, 8)), ("c", BOOL, ())]
    whole = graph("one", [node("If", "c", "y", **sides)], inputs, ("y", FLOAT, (4, 8)))
    return model(whole, {"a": weights(1, 8, 8), "b": weights(2, 8, 8)})


def nested_branches() -> ModelProto:
    """Two results; one branch holds a branch and passes a tensor on, the other passes an input."""
    sides = {"then_branch": branch("t", "a", "Tanh"), "else_branch": branch("e", "b", "Relu")}
    then = [
        node("If", "c2", "i", **sides),
        node("Add", "i z", "then_y"),
        node("Identity", "z", "then_w"),
    ]
    otherwise = [
        node("MatMul", "x a", "q"),
        node("Reshape", "q shape", "else_y"),
        node("Identity", "x", "else_w"),
    ]
    graphs = {
        "then_branch": graph("then", then, (), *_results("then")),
        "else_branch": graph("otherwise", otherwise, (), *_results("else")),
    }
    nodes = [
        node("Sigmoid", "x", "z"),
        node("If", "c1", "y w", **graphs),
        node("Mul", "y w", "out"),
    ]
    inputs = [("x", FLOAT, (4, 8)), ("c1", BOOL, (1,)), ("c2", BOOL, ())]
    outputs = [(name, FLOAT, (4, 8)) for name in ("out", "y", "w")]
    constants = {"a": weights(1, 8, 8), "b": weights(2, 8, 8), "shape": [4, 8]}
    return model(graph("nested", nodes, inputs, *outputs), constants)


def _results(name: str) -> list[Info]:
    return [(f"{name}_y", FLOAT, (4, 8)), (f"{name}_w", FLOAT, (4, 8))]


def loop(*, most: int | None = 8, is_collected: bool = True, is_read: bool = False) -> ModelProto:
    """s = tanh((s + i) * x) up to n times, while the sum of s is below a limit.

    most      the trip count is the least of n and that
    is_read   what is collected goes into other nodes
    """
    body = [
        node("Cast", "i", "number", to=FLOAT),
        node("Add", "s number", "s1"),
        node("Mul", "s1 x", "s2"),
        node("Tanh", "s2", "s3"),
        node("ReduceSum", "s3", "total", keepdims=0),
        node("Less", "total limit", "going"),
        node("Neg", "s3", "row"),
    ]
    rows = [("row", FLOAT, (3,))] if is_collected else []
    inner = graph(
        "body",
        body,
        [("i", INT, ()), ("c", BOOL, ()), ("s", FLOAT, (3,))],
        *[("going", BOOL, ()), ("s3", FLOAT, (3,)), *rows],
    )
    nodes = [] if most is None else [node("Min", "n most", "m")]
    results = "end rows" if is_collected else "end"
    nodes.append(node("Loop", f"{'n' if most is None else 'm'} go x", results, "walk", body=inner))
    outputs: list[Info] = [("end", FLOAT, (3,))]
    outputs += [("rows", FLOAT, (None, 3))] if is_collected else []
    if is_read:
        nodes += [
            node("Mul", "rows rows", "squares"),
            node("Transpose", "squares", "turned", perm=[1, 0]),
            node("MatMul", "turned rows", "product"),
        ]
        outputs += [("turned", FLOAT, (3, None)), ("product", FLOAT, (3, 3))]
    inputs = [("x", FLOAT, (3,)), ("n", INT, ()), ("go", BOOL, ()), ("limit", FLOAT, ())]
    return model(graph("loop", nodes, inputs, *outputs), {} if most is None else {"most": most})


def rows_between() -> ModelProto:
    """What a loop collects lies between it and the nodes that read it, and is no output."""
    body = [
        node("Cast", "i", "number", to=FLOAT),
        node("Add", "s number", "s1"),
        node("MatMul", "s1 a", "s2"),
        node("Tanh", "s2", "s3"),
        node("Mul", "s3 s1", "row"),
        node("Identity", "c", "still"),
    ]
    inner = graph(
        "body",
        body,
        [("i", INT, ()), ("c", BOOL, ()), ("s", FLOAT, (1, 8))],
        *[("still", BOOL, ()), ("s3", FLOAT, (1, 8)), ("row", FLOAT, (1, 8))],
    )
    nodes = [
        node("Min", "n most", "m"),
        node("Loop", "m yes x", "end rows", body=inner),
        node("Squeeze", "rows one", "flat"),
        node("MatMul", "flat b", "products"),
        node("Softmax", "products", "shares", axis=-1),
        node("Transpose", "shares", "turned", perm=[1, 0]),
        node("MatMul", "turned flat", "whole"),
        node("ReduceSum", "flat zero", "total", keepdims=1),
        node("Concat", "flat total", "joined", axis=0),
    ]
    inputs = [("x", FLOAT, (1, 8)), ("n", INT, ())]
    outputs = [("shares", FLOAT, (None, 8)), ("whole", FLOAT, (8, 8)), ("joined", FLOAT, (None, 8))]
    constants = {"a": weights(5, 8, 8) / 4, "b": weights(6, 8, 8) / 4, "one": [1], "zero": [0]}
    return model(graph("between", nodes, inputs, *outputs), {**constants, "most": 40, "yes": True})


def loop_inputs(n: int, go: bool = True, limit: float = 9.0) -> dict[str, Any]:
    """The inputs of `loop`."""
    return {
        "x": np.array([0.1, -0.2, 0.3], np.float32),
        "n": np.array(n),
        "go": np.array(go),
        "limit": np.array(limit, np.float32),
    }


LOOP_CALLS = (
    loop_inputs(3),
    loop_inputs(0),
    loop_inputs(5, go=False),
    loop_inputs(20),
    loop_inputs(8, limit=0.2),
    loop_inputs(6, limit=-9.0),
)


def branch_in_loop() -> ModelProto:
    """A loop whose body takes a branch by the number of the iteration; two values swap places."""
    sides = {
        name: graph(name, [node(operator, "s", f"{name}_y")], (), (f"{name}_y", FLOAT, (5,)))
        for name, operator in (("then_branch", "Neg"), ("else_branch", "Tanh"))
    }
    body = [
        node("Mod", "i two", "odd"),
        node("Equal", "odd one", "is_odd"),
        node("If", "is_odd", "chosen", **sides),
        node("Identity", "c", "still"),
        node("Add", "chosen x", "t1"),
        node("Identity", "t", "s1"),
        node("Identity", "s", "row"),
    ]
    inner = graph(
        "body",
        body,
        [("i", INT, ()), ("c", BOOL, ()), ("s", FLOAT, (5,)), ("t", FLOAT, (5,))],
        *[
            (name, BOOL if name == "still" else FLOAT, shape)
            for name, shape in (("still", ()), ("s1", (5,)), ("t1", (5,)), ("row", (5,)))
        ],
    )
    nodes = [
        node("Min", "n eight", "m"),
        node("Neg", "x", "start"),
        node("Loop", "m yes x start", "s_end t_end rows", body=inner),
    ]
    inputs = [("x", FLOAT, (5,)), ("n", INT, ()), ("yes", BOOL, ())]
    outputs = [("s_end", FLOAT, (5,)), ("t_end", FLOAT, (5,)), ("rows", FLOAT, (None, 5))]
    return model(graph("mixed", nodes, inputs, *outputs), {"two": 2, "one": 1, "eight": 8})


def scan(length: int | str) -> ModelProto:
    """A scan over two sequences of some length, the second one backwards."""
    body = [
        node("Add", "s a", "s1"),
        node("Mul", "s1 w", "s2"),
        node("Tanh", "s2", "s3"),
        node("Sub", "s3 b", "row"),
    ]
    inner = graph(
        "body",
        body,
        [(name, FLOAT, (2,)) for name in "sab"],
        *[(name, FLOAT, (2,)) for name in ("s3", "row")],
    )
    scanned = node(
        "Scan",
        "start xs ys",
        "end rows",
        body=inner,
        num_scan_inputs=2,
        scan_input_axes=[0, 1],
        scan_input_directions=[0, 1],
        scan_output_axes=[1],
    )
    inputs = [("start", FLOAT, (2,)), ("xs", FLOAT, (length, 2)), ("ys", FLOAT, (2, length))]
    outputs = [("end", FLOAT, (2,)), ("last", FLOAT, (2, length))]
    nodes = [scanned, node("Relu", "rows", "last")]
    return model(graph("scan", nodes, inputs, *outputs), {"w": np.array([0.5, 0.7], np.float32)})


def scan_inputs(length: int) -> dict[str, Any]:
    """Inputs of `scan`."""
    return {
        "start": np.zeros(2, np.float32),
        "xs": weights(length, length, 2),
        "ys": weights(length, 2, length),
    }


def loop_over_rows() -> ModelProto:
    """A loop over the rows of an input; each iteration collects the sum of those so far."""
    body = [
        node("Gather", "xs i", "x", axis=0),
        node("Add", "s x", "s1"),
        node("Identity", "s1", "row"),
        node("Identity", "c", "still"),
    ]
    inner = graph(
        "body",
        body,
        [("i", INT, ()), ("c", BOOL, ()), ("s", FLOAT, (2,))],
        *[("still", BOOL, ()), ("s1", FLOAT, (2,)), ("row", FLOAT, (2,))],
    )
    nodes = [
        node("Shape", "xs", "shape"),
        node("Gather", "shape zero", "n"),
        node("Loop", "n yes start", "end rows", body=inner),
    ]
    inputs = [("start", FLOAT, (2,)), ("xs", FLOAT, ("n", 2))]
    outputs = [("end", FLOAT, (2,)), ("rows", FLOAT, ("n", 2))]
    return model(graph("sums", nodes, inputs, *outputs), {"zero": 0, "yes": True})
