"""Write a small .pt2 file as PyTorch does, without PyTorch: relu(x) @ w^T + b, tied to another."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
FLOAT, LONG = 7, 5
Json = dict[str, Any]


def meta(
    *sizes: int | str, dtype: int = FLOAT, strides: tuple[int, ...] = (), offset: int = 0
) -> Json:
    extents = [
        {"as_expr": {"expr_str": each, "hint": None}} if isinstance(each, str) else {"as_int": each}
        for each in sizes
    ]
    return {
        "dtype": dtype,
        "sizes": extents,
        "strides": [{"as_int": each} for each in strides],
        "storage_offset": {"as_int": offset},
        "layout": 7,
    }


def tensor(name: str) -> Json:
    return {"as_tensor": {"name": name}}


def node(target: str, outputs: list[Json], **inputs: Json) -> Json:
    given = [{"name": name, "arg": each, "kind": 1} for name, each in inputs.items()]
    return {"target": target, "inputs": given, "outputs": outputs, "metadata": {}}


def program() -> Json:
    """The JSON of relu(x) -> linear -> view; x (batch, 4)."""
    aten = "torch.ops.aten."
    nodes = [
        node(
            f"{aten}sym_size.int",
            [{"as_sym_int": {"as_name": "n"}}],
            self=tensor("x"),
            dim={"as_int": 0},
        ),
        node(f"{aten}relu_.default", [tensor("relu_")], self=tensor("y")),
        node(
            f"{aten}linear.default",
            [tensor("linear")],
            input=tensor("relu_"),
            weight=tensor("w"),
            bias=tensor("b"),
        ),
        node(
            "_operator.mul",
            [{"as_sym_int": {"as_name": "m"}}],
            a={"as_sym_int": {"as_name": "n"}},
            b={"as_int": 3},
        ),
        node(
            f"{aten}view.default",
            [tensor("view")],
            self=tensor("linear"),
            size={"as_sym_ints": [{"as_name": "m"}]},
        ),
    ]
    nodes.insert(1, node(f"{aten}clone.default", [tensor("y")], self=tensor("x")))
    symbol = "Symbol('s77', positive=True, integer=True)"
    return {
        "graph_module": {
            "graph": {
                "inputs": [tensor("w"), tensor("b"), tensor("x")],
                "outputs": [tensor("view")],
                "nodes": nodes,
                "tensor_values": {"w": meta(3, 4), "b": meta(3), "x": meta(symbol, 4)},
                "sym_int_values": {},
            },
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "w"}, "parameter_name": "fc.weight"}},
                    {"buffer": {"arg": {"name": "b"}, "buffer_name": "b", "persistent": True}},
                    {"user_input": {"arg": tensor("x")}},
                ],
                "output_specs": [{"user_output": {"arg": tensor("view")}}],
            },
        },
        "range_constraints": {"s77": {"min_val": 1, "max_val": 16}},
        "schema_version": {"major": 8, "minor": 20},
        "torch_version": "2.13.0",
    }


def weights() -> Json:
    """Two parameters in one storage: the bias is its first column."""
    entries = {
        "fc.weight": meta(3, 4, strides=(4, 1)),
        "b": meta(3, strides=(4,)),
    }
    return {
        "config": {
            name: {
                "path_name": "weight_0",
                "is_param": True,
                "use_pickle": False,
                "tensor_meta": each,
            }
            for name, each in entries.items()
        }
    }


def archive(
    program: Json,
    weights: Json,
    more: Mapping[str, bytes] | None = None,
    packed: frozenset[str] = frozenset(),
) -> bytes:
    """The bytes of a file; `packed` are the members that are compressed."""
    members = {
        "models/model.json": json.dumps(program).encode(),
        "data/weights/model_weights_config.json": json.dumps(weights).encode(),
        "data/weights/weight_0": WEIGHT.tobytes(),
        "byteorder": b"little",
        **(more or {}),
    }
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        for name, data in members.items():
            method = zipfile.ZIP_DEFLATED if name in packed else zipfile.ZIP_STORED
            file.writestr(f"net/{name}", data, method)
    return held.getvalue()
