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

_PAST, _NEXT = "past_key_values.0.key", "present.0.key"
_WRITING = {
    "TensorScatter": [
        helper.make_node("TensorScatter", [_PAST, "rows", "write_indices"], [_NEXT], axis=1)
    ],
    "ScatterND": [  # as torch writes the line cache[:, cache_position] = rows
        helper.make_node("Transpose", [_PAST], ["turned"], perm=[1, 0, 2]),
        helper.make_node("Transpose", ["rows"], ["turned_rows"], perm=[1, 0, 2]),
        helper.make_node("Unsqueeze", ["cache_position", "one"], ["at"]),
        helper.make_node("ScatterND", ["turned", "at", "turned_rows"], ["scattered"]),
        helper.make_node("Transpose", ["scattered"], [_NEXT], perm=[1, 0, 2]),
    ],
}


def decoder(*, further: str = "", of_all: bool = False, written: str = "") -> ModelProto:
    """Logits of the sum of all tokens so far, each with its place; the rows are the cache.

    of_all    whether a call gives the logits of each of its tokens, not only of the last one
    written   the operator that writes the rows into a cache of `PLACES` rows
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
    lengths: tuple[int | str, int | str] = (PLACES, PLACES) if written else ("past", "past + seq")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ("batch", extent))
        for name, extent in (
            ("input_ids", "seq"),
            ("attention_mask", lengths[1]),
            ("position_ids", "seq"),
        )
    ]
    cache = helper.make_tensor_value_info(
        "past_key_values.0.key", TensorProto.FLOAT, ("batch", lengths[0], WIDTH)
    )
    if written:
        nodes[3:4] = _WRITING[written]
        place, extent = (
            ("cache_position", "seq") if written == "ScatterND" else ("write_indices", "batch")
        )
        inputs.append(helper.make_tensor_value_info(place, TensorProto.INT64, (extent,)))
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
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


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
