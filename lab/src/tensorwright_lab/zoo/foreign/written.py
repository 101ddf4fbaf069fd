"""Graphs that no network of PyTorch gives: they are written operator by operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tensorwright.base import Array
from tensorwright_lab.zoo.foreign.case import Case, Given, Size

Nodes = Sequence[onnx.NodeProto]
node = helper.make_node
_TYPES = {"normal": onnx.TensorProto.FLOAT, "bool": onnx.TensorProto.BOOL}
_TIME = {"batch": Size(0, 4), "time": Size(0, 12)}


def cases() -> Iterator[Case]:
    """All of them."""
    yield _case("voice activity", "spectrum", *_voice_activity())
    yield _case("recurrent", "lengths and peepholes", *_peepholes())
    yield _case("recurrent", "gru before reset", *_before_reset())
    yield _case("recurrent", "batch first", *_batch_first())
    yield _case("log mel", "melspectrogram", *_mel())
    yield _case("detector", "suppression", *_suppression())
    yield _case("loops", "sums by a scan", *_scan())
    yield _case("loops", "steps of an input", *_loop())
    yield _case("ragged", "rows that hold", *_rows_that_hold())
    yield _case("tokens", "bytes to ids", *_unique())
    yield _case("trees", "regressor", *_trees())
    yield _case("linear", "classifier", *_linear())
    yield _case("normalised", "lp and resize", *_by_sizes())


def _case(
    family: str,
    name: str,
    inputs: tuple[Given, ...],
    sizes: Mapping[str, Size],
    nodes: Nodes,
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
) -> Case:
    build = partial(_model, inputs, nodes, outputs, constants or {})
    return Case(family, name, "written", inputs, sizes, build)


def _model(
    inputs: tuple[Given, ...], nodes: Nodes, outputs: Sequence[str], constants: Mapping[str, Array]
) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(
            each.name, _TYPES.get(each.values, onnx.TensorProto.INT64), each.shape
        )
        for each in inputs
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    kept = [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph(nodes, "graph", infos, results, kept)
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _weights(*shape: int, seed: int = 0) -> Array:
    return (0.3 * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def _voice_activity() -> tuple[Any, ...]:
    """A state of both kinds in one tensor, a reflected signal, a stack of convolutions."""
    inputs = (Given("input", ("batch", "samples")), Given("state", (2, "batch", 16)))
    nodes = [
        node("Pad", ["input", "pads"], ["padded"], mode="reflect"),
        node("Unsqueeze", ["padded", "one"], ["signal"]),
        node("Conv", ["signal", "waves"], ["parts"], strides=[16]),
        node("Split", ["parts"], ["real", "imaginary"], axis=1),
        node("Mul", ["real", "real"], ["a"]),
        node("Mul", ["imaginary", "imaginary"], ["b"]),
        node("Add", ["a", "b"], ["power"]),
        node("Sqrt", ["power"], ["sizes"]),
        node("Conv", ["sizes", "taps"], ["y"], strides=[2], pads=[1, 1]),
        node("Relu", ["y"], ["z"]),
        node("Transpose", ["z"], ["steps"], perm=[2, 0, 1]),
        node("Split", ["state"], ["h", "c"], axis=0),
        node(
            *("LSTM", ["steps", "w", "r", "bias", "", "h", "c"], ["all", "h1", "c1"]),
            hidden_size=16,
        ),
        node("Concat", ["h1", "c1"], ["stateN"], axis=0),
        node("Squeeze", ["h1", "zero"], ["last"]),
        node("MatMul", ["last", "out"], ["logit"]),
        node("Sigmoid", ["logit"], ["output"]),
    ]
    constants = {
        "pads": np.array([0, 0, 0, 16]),
        "one": np.array([1]),
        "zero": np.array([0]),
        "waves": _weights(34, 1, 32),
        "taps": _weights(16, 17, 3),
        "w": _weights(1, 64, 16),
        "r": _weights(1, 64, 16, seed=1),
        "bias": _weights(1, 128),
        "out": _weights(16, 1),
    }
    return (
        *(inputs, {"batch": Size(0, 3), "samples": Size(17, 256)}),
        *(nodes, ("output", "stateN"), constants),
    )


def _peepholes() -> tuple[Any, ...]:
    inputs = (
        *(Given("x", ("time", "batch", 8)), Given("lengths", ("batch",), "lengths", "time")),
        *(Given("h", (2, "batch", 6)), Given("c", (2, "batch", 6))),
    )
    nodes = [
        node("Cast", ["lengths"], ["short"], to=onnx.TensorProto.INT32),
        node(
            *("LSTM", ["x", "w", "r", "bias", "short", "h", "c", "p"], ["y", "hn", "cn"]),
            hidden_size=6,
            direction="bidirectional",
            clip=1.5,
        ),
    ]
    constants = {
        "w": _weights(2, 24, 8),
        "r": _weights(2, 24, 6, seed=1),
        "bias": _weights(2, 48),
        "p": _weights(2, 18),
    }
    return inputs, {"batch": Size(1, 4), "time": Size(1, 12)}, nodes, ("y", "hn", "cn"), constants


def _before_reset() -> tuple[Any, ...]:
    nodes = [
        node(
            *("GRU", ["x", "w", "r", "bias"], ["y", "last"]),
            hidden_size=7,
            direction="reverse",
            linear_before_reset=0,
            activations=["HardSigmoid", "Relu"],
        )
    ]
    constants = {"w": _weights(1, 21, 5), "r": _weights(1, 21, 7), "bias": _weights(1, 42)}
    return (Given("x", ("time", "batch", 5)),), _TIME, nodes, ("y", "last"), constants


def _batch_first() -> tuple[Any, ...]:
    """Recurrent over a length that a Shape of the input counts, the first state from it, too."""
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "one"], ["batch"]),
        node("Concat", ["single", "batch", "five"], ["states"], axis=0),
        node("ConstantOfShape", ["states"], ["h"]),
        node("RNN", ["x", "w", "r", "", "", "h"], ["y", "last"], hidden_size=5),
        node("ReduceMax", ["y"], ["z"], axes=[1], keepdims=0),
    ]
    constants = {
        "one": np.array([1]),
        "single": np.array([1]),
        "five": np.array([5]),
        "w": _weights(1, 5, 4),
        "r": _weights(1, 5, 5),
    }
    return (Given("x", ("time", "batch", 4)),), _TIME, nodes, ("z", "last"), constants


def _mel() -> tuple[Any, ...]:
    nodes = [
        node("STFT", ["signal", "step", "window"], ["parts"]),
        node("ReduceSumSquare", ["parts"], ["power"], axes=[3], keepdims=0),
        node("MatMul", ["power", "bands"], ["mel"]),
        node("Max", ["mel", "least"], ["kept"]),
        node("Log", ["kept"], ["y"]),
    ]
    constants = {
        "step": np.array(8),
        "window": np.hanning(32).astype(np.float32),
        "bands": np.abs(_weights(17, 6)),
        "least": np.float32(1e-4),
    }
    sizes = {"batch": Size(1, 3), "samples": Size(32, 200)}
    return (Given("signal", ("batch", "samples", 1)),), sizes, nodes, ("y",), constants


def _suppression() -> tuple[Any, ...]:
    nodes = [
        node("Sigmoid", ["scores"], ["s"]),
        node("NonMaxSuppression", ["boxes", "s", "most", "overlap", "least"], ["chosen"]),
        node("Slice", ["chosen", "two", "three", "one"], ["columns"]),
        node("Squeeze", ["columns", "one"], ["rows"]),
        node("Squeeze", ["boxes", "zero"], ["flat"]),
        node("Gather", ["flat", "rows"], ["kept"]),
    ]
    constants = {
        "most": np.array([5]),
        "overlap": np.array([0.4], np.float32),
        "least": np.array([0.45], np.float32),
        **{name: np.array([k]) for k, name in enumerate(("zero", "one", "two", "three"))},
    }
    inputs = (Given("boxes", (1, "boxes", 4)), Given("scores", (1, 2, "boxes")))
    return inputs, {"boxes": Size(0, 20)}, nodes, ("chosen", "kept"), constants


def _scan() -> tuple[Any, ...]:
    body = helper.make_graph(
        [
            node("Mul", ["sum_in", "decay"], ["d"]),
            node("Add", ["d", "x_in"], ["sum_out"]),
            node("Identity", ["sum_out"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("sum_in", onnx.TensorProto.FLOAT, (4,)),
            helper.make_tensor_value_info("x_in", onnx.TensorProto.FLOAT, (4,)),
        ],
        [
            helper.make_tensor_value_info("sum_out", onnx.TensorProto.FLOAT, (4,)),
            helper.make_tensor_value_info("row", onnx.TensorProto.FLOAT, (4,)),
        ],
        [numpy_helper.from_array(np.array([0.5], np.float32), "decay")],
    )
    nodes = [node("Scan", ["start", "x"], ["end", "rows"], body=body, num_scan_inputs=1)]
    inputs = (Given("start", (4,)), Given("x", ("time", 4)))
    return inputs, {"time": Size(0, 12)}, nodes, ("end", "rows")


def _loop() -> tuple[Any, ...]:
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("MatMul", ["x_in", "w"], ["p"]),
            node("Tanh", ["p"], ["x_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, ()),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, ()),
            helper.make_tensor_value_info("x_in", onnx.TensorProto.FLOAT, ("batch", 4)),
        ],
        [
            helper.make_tensor_value_info("go_on", onnx.TensorProto.BOOL, ()),
            helper.make_tensor_value_info("x_out", onnx.TensorProto.FLOAT, ("batch", 4)),
        ],
    )
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["steps"]),
        node("Loop", ["steps", "", "x"], ["y"], body=body),
    ]
    constants = {"zero": np.array(0), "w": _weights(4, 4)}
    return (Given("x", ("batch", 4)),), {"batch": Size(0, 6)}, nodes, ("y",), constants


def _rows_that_hold() -> tuple[Any, ...]:
    nodes = [
        node("NonZero", ["mask"], ["at"]),
        node("Transpose", ["at"], ["places"], perm=[1, 0]),
        node("GatherND", ["x", "places"], ["rows"]),
        node("MatMul", ["rows", "w"], ["y"]),
        node("ScatterND", ["x", "places", "y"], ["back"]),
    ]
    inputs = (Given("x", ("batch", "time", 4)), Given("mask", ("batch", "time"), "bool"))
    return inputs, _TIME, nodes, ("rows", "back"), {"w": _weights(4, 4)}


def _unique() -> tuple[Any, ...]:
    nodes = [
        node("Unique", ["words"], ["kinds", "", "at", "counts"], sorted=1),
        node("Gather", ["table", "kinds"], ["rows"]),
        node("Gather", ["rows", "at"], ["back"]),
    ]
    inputs = (Given("words", ("time",), "ids", 9),)
    outputs = ("kinds", "counts", "back")
    return inputs, {"time": Size(0, 12)}, nodes, outputs, {"table": _weights(9, 4)}


def _trees() -> tuple[Any, ...]:
    """Two trees: one of three leaves, one of two."""
    nodes = [
        node(
            *("TreeEnsembleRegressor", ["x"], ["y"]),
            domain="ai.onnx.ml",
            n_targets=1,
            nodes_treeids=[0, 0, 0, 0, 0, 1, 1, 1],
            nodes_nodeids=[0, 1, 2, 3, 4, 0, 1, 2],
            nodes_featureids=[0, 1, 0, 0, 0, 2, 0, 0],
            nodes_modes=["BRANCH_LEQ", "BRANCH_LT", *["LEAF"] * 3, "BRANCH_GT", "LEAF", "LEAF"],
            nodes_values=[0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0],
            nodes_truenodeids=[1, 3, 0, 0, 0, 1, 0, 0],
            nodes_falsenodeids=[2, 4, 0, 0, 0, 2, 0, 0],
            nodes_missing_value_tracks_true=[0] * 8,
            nodes_hitrates=[1.0] * 8,
            target_treeids=[0, 0, 0, 1, 1],
            target_nodeids=[2, 3, 4, 1, 2],
            target_ids=[0] * 5,
            target_weights=[0.5, -1.0, 2.0, 0.25, -0.75],
        )
    ]
    return (Given("x", ("batch", 3)),), {"batch": Size(0, 9)}, nodes, ("y",)


def _linear() -> tuple[Any, ...]:
    nodes = [
        node(
            *("Scaler", ["x"], ["scaled"]),
            domain="ai.onnx.ml",
            offset=[0.1, 0.2, 0.3],
            scale=[1.0, 2.0, 0.5],
        ),
        node(
            *("LinearClassifier", ["scaled"], ["label", "raw"]),
            domain="ai.onnx.ml",
            classlabels_ints=[0, 1, 2],
            coefficients=_weights(9).tolist(),
            intercepts=[0.1, -0.1, 0.0],
            post_transform="SOFTMAX",
            multi_class=1,
        ),
        node("Normalizer", ["raw"], ["p"], domain="ai.onnx.ml", norm="L1"),
    ]
    return (Given("x", ("batch", 3)),), {"batch": Size(0, 9)}, nodes, ("label", "p")


def _by_sizes() -> tuple[Any, ...]:
    """A norm, and a Resize whose numbers are computed from the shape."""
    nodes = [
        node("LpNormalization", ["x"], ["n"], axis=1, p=2),
        node("Shape", ["n"], ["shape"]),
        node("Slice", ["shape", "two", "four"], ["sides"]),
        node("Mul", ["sides", "two"], ["twice"]),
        node("Slice", ["shape", "zero", "two"], ["front"]),
        node("Concat", ["front", "twice"], ["whole"], axis=0),
        node(
            *("Resize", ["n", "", "", "whole"], ["y"]),
            mode="linear",
            coordinate_transformation_mode="align_corners",
        ),
    ]
    constants = {"zero": np.array([0]), "two": np.array([2]), "four": np.array([4])}
    sizes = {"batch": Size(0, 3), "rows": Size(1, 9), "columns": Size(1, 9)}
    return (Given("x", ("batch", 3, "rows", "columns")),), sizes, nodes, ("y",), constants
