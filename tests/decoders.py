"""A small decoder with a cache, and the tokens that it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

VOCABULARY, WIDTH, PLACES = 23, 16, 64
_SOURCE = np.random.default_rng(5)
WEIGHTS = {
    name: _SOURCE.standard_normal(shape).astype(np.float32)
    for name, shape in {
        "table": (VOCABULARY, WIDTH),
        "places": (PLACES, WIDTH),
        "head": (WIDTH, VOCABULARY),
    }.items()
}
PROMPT = [3, 1, 4, 1, 5]


def decoder(*, further: str = "", of_all: bool = False) -> ModelProto:
    """Logits of the sum of all tokens so far, each with its place; the rows are the cache.

    of_all   whether a call gives the logits of each of its tokens, not only of the last one
    """
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("Gather", ["places", "position_ids"], ["placed"]),
        helper.make_node("Add", ["tokens", "placed"], ["rows"]),
        helper.make_node("Concat", ["past_key_values.0.key", "rows"], ["present.0.key"], axis=1),
        helper.make_node("Unsqueeze", ["attention_mask", "last"], ["column"]),
        helper.make_node("Cast", ["column"], ["factors"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["present.0.key", "factors"], ["masked"]),
        *(_sums_of_all() if of_all else [_sum_of_last()]),
        helper.make_node("MatMul", ["sum", "head"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ("batch", extent))
        for name, extent in (
            ("input_ids", "seq"),
            ("attention_mask", "past + seq"),
            ("position_ids", "seq"),
        )
    ]
    cache = helper.make_tensor_value_info(
        "past_key_values.0.key", TensorProto.FLOAT, ("batch", "past", WIDTH)
    )
    if further:
        inputs.append(helper.make_tensor_value_info(further, TensorProto.INT64, (1,)))
        nodes.append(helper.make_node("Identity", [further], ["same"]))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in ("logits", "present.0.key")
    ]
    if further:
        outputs.append(helper.make_tensor_value_info("same", TensorProto.INT64, None))
    axes = {"last": np.array([2]), "one": np.array([1]), "end": np.array([1 << 40])}
    stored = [numpy_helper.from_array(a, name) for name, a in {**WEIGHTS, **axes}.items()]
    graph = helper.make_graph(nodes, "decoder", [*inputs, cache], outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _sum_of_last() -> Any:
    return helper.make_node("ReduceSum", ["masked", "one"], ["sum"], keepdims=1)


def _sums_of_all() -> list[Any]:
    return [
        helper.make_node("CumSum", ["masked", "one"], ["sums"]),
        helper.make_node("Shape", ["input_ids"], ["count"], start=1, end=2),
        helper.make_node("Neg", ["count"], ["start"]),
        helper.make_node("Slice", ["sums", "start", "end", "one"], ["sum"]),
    ]


def logits_after(ids: list[int]) -> Any:
    """The logits after some tokens, all at once."""
    rows = WEIGHTS["table"][ids] + WEIGHTS["places"][: len(ids)]
    return rows.sum(0) @ WEIGHTS["head"]


def greedy(ids: list[int], count: int) -> list[int]:
    whole = list(ids)
    for _ in range(count):
        whole.append(int(logits_after(whole).argmax()))
    return whole[len(ids) :]
