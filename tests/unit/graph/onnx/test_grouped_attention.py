"""Attention over caches: GroupQueryAttention, as the builder of ONNX Runtime's GenAI writes it,
against ONNX Runtime, and Attention against the evaluator of the onnx package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

from tensorwright.base import InputError, UnsupportedError
from tensorwright.compiling import compile as compile_model
from tensorwright.graph import interpret, simplify
from tensorwright.graph.imports import load_onnx
from tensorwright.ops import Array

pytestmark = pytest.mark.usefixtures("by_rule")

HEADS, GROUPS, SIZE, PLACES = 4, 2, 32, 40
RANDOM = np.random.default_rng(3)


def model_of(
    *, packed: bool = False, turned: int = 0, biased: bool = False, **how: Any
) -> ModelProto:
    """One attention with a cache; the mask's length is the total length.

    packed   queries, keys and values are one input     turned   elements of a head that are turned
    """
    value = helper.make_tensor_value_info
    widths = {"q": HEADS * SIZE, "k": GROUPS * SIZE, "v": GROUPS * SIZE}
    if packed:
        widths = {"q": sum(widths.values())}
    inputs = [value(n, TensorProto.FLOAT, ("batch", "rows", w)) for n, w in widths.items()]
    inputs.append(value("attention_mask", TensorProto.INT64, ("batch", "total")))
    caches = [f"past_key_values.0.{part}" for part in ("key", "value")]
    inputs += [value(n, TensorProto.FLOAT, ("batch", GROUPS, "past", SIZE)) for n in caches]
    if biased:
        inputs.append(value("bias", TensorProto.FLOAT, (1, 1, "rows", "total")))
    nodes = [
        helper.make_node("ReduceSum", ["attention_mask", "axes"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "axes"], ["last"]),
        helper.make_node("Cast", ["last"], ["lengths"], to=TensorProto.INT32),
        helper.make_node("Shape", ["attention_mask"], ["shape"], start=1, end=2),
        helper.make_node("Cast", ["shape"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Squeeze", ["whole"], ["total_length"]),
    ]
    angles = np.outer(np.arange(PLACES), 1 + np.arange(turned // 2)) * 0.1
    held = {"axes": np.array([1]), "cos": np.cos(angles), "sin": np.sin(angles)}
    names = [*widths, *(("", "") if packed else ()), *caches, "lengths", "total_length"]
    names += ["cos", "sin"] if turned else ["", ""] if biased else []
    names += ["", "bias"] if biased else []
    made = ["y", "present.0.key", "present.0.value"]
    how |= {"num_heads": HEADS, "kv_num_heads": GROUPS, "do_rotary": int(turned > 0)}
    nodes.append(
        helper.make_node("GroupQueryAttention", names, made, domain="com.microsoft", **how)
    )
    shapes = [("batch", "rows", HEADS * SIZE), *[("batch", GROUPS, "total", SIZE)] * 2]
    outputs = [value(n, TensorProto.FLOAT, s) for n, s in zip(made, shapes, strict=True)]
    stored = [
        numpy_helper.from_array(a if n == "axes" else a.astype(np.float32), n)
        for n, a in held.items()
        if n in names or n == "axes"
    ]
    graph = helper.make_graph(nodes, "grouped", inputs, outputs, stored)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def inputs_of(
    model: ModelProto, past: int, rows: int, batch: int = 1, total: int = 0
) -> dict[str, Array]:
    """Random inputs, and a mask that keeps all."""
    total = total or past + rows
    sizes = {"batch": batch, "past": past, "rows": rows, "total": total}
    arrays: dict[str, Array] = {}
    for each in model.graph.input:
        dims = each.type.tensor_type.shape.dim
        shape = [
            d.dim_value or sizes.get(d.dim_param, 1) if d.dim_param != "past" else past
            for d in dims
        ]
        arrays[each.name] = RANDOM.standard_normal(shape).astype(np.float32)
    arrays["attention_mask"] = np.ones((batch, total), np.int64)
    return arrays


WAYS: list[dict[str, Any]] = [
    {},
    {"packed": True, "turned": SIZE},
    {"turned": SIZE, "rotary_interleaved": 1},
    {"turned": SIZE // 2, "softcap": 2.0, "scale": 0.3},
    {"local_window_size": 3},
    {"biased": True},
]


@pytest.mark.parametrize(("past", "rows"), [(0, 5), (5, 1), (4, 3)])
@pytest.mark.parametrize("how", WAYS)
def test_results(how: dict[str, Any], past: int, rows: int) -> None:
    model = model_of(**how)
    inputs = inputs_of(model, past, rows)
    graph = simplify(load_onnx(model, {name: each.shape for name, each in inputs.items()}))
    results = interpret(graph, inputs)
    for name, expected in zip(graph.outputs, by_onnxruntime(model, inputs), strict=True):
        np.testing.assert_allclose(results[name], expected, rtol=2e-5, atol=2e-5)


LENGTHS = {  # of the cache, of the call's rows, of the mask, and what each example keeps of it
    "a padded prompt": (0, 5, 5, (3, 5)),
    "a token": (6, 1, 7, (4, 7)),
    "a prompt, with room": (8, 5, 5, (5, 2)),
    "a token, with room": (8, 1, 7, (4, 7)),
    "one sequence, with room": (8, 3, 7, (7,)),
}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("case", LENGTHS)
def test_sequences_of_several_lengths(case: str, how: dict[str, Any], is_open: bool) -> None:
    """Rows behind a length are padding: they mean nothing."""
    past, rows, total, lengths = LENGTHS[case]
    model = model_of(**how)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    inputs = inputs_of(model, past, rows, len(lengths), total)
    inputs["attention_mask"] = (np.arange(total) < np.array(lengths)[:, None]).astype(np.int64)
    shapes = {name: each.shape for name, each in inputs.items()}
    sizes: dict[str, Any] = {"batch": len(lengths)}
    sizes |= {"past": past, "total": total} if past > total - rows else {}
    graph = simplify(load_onnx(model, sizes if is_open else shapes))
    results = interpret(graph, inputs)
    for name, expected in zip(graph.outputs, by_onnxruntime(model, inputs), strict=True):
        for example, length in enumerate(lengths):
            is_output = name == "y"
            first = max(length - rows, 0) if is_output else 0
            kept = np.s_[example, : length - first] if is_output else np.s_[example, :, :length]
            np.testing.assert_allclose(results[name][kept], expected[kept], rtol=2e-5, atol=2e-5)


def test_a_cache_grows_from_nothing() -> None:
    model = model_of(packed=True, turned=SIZE)
    session = compile_model(model).session()
    inputs = inputs_of(model, 0, 6)
    (whole, *_) = by_onnxruntime(model, inputs)
    for start, end in ((0, 4), (4, 5), (5, 6)):
        mask = np.ones((1, end), np.int64)
        y = session.run({"q": inputs["q"][:, start:end], "attention_mask": mask})["y"]
        np.testing.assert_allclose(y, whole[:, start:end], rtol=2e-5, atol=2e-5)
    assert session.position == 6


def test_what_is_not_supported_is_refused() -> None:
    executable = compile_model(model_of())
    wrong = inputs_of(model_of(), 4, 1) | {"attention_mask": np.ones((1, 9), np.int64)}
    with pytest.raises(InputError, match="total"):
        executable.run(wrong)
    with pytest.raises(UnsupportedError, match="a sink of attention"):
        load_onnx(model_of(smooth_softmax=1))


_Q, _NEW, _WHOLE = (2, 4, 3, 16), (2, 2, 3, 16), (2, 2, 8, 16)
_LENGTHS = np.array([5, 8])
_OPEN = {
    "q": ("b", 4, "rows", 16),
    "pk": ("b", 2, "past", 16),
    "pv": ("b", 2, "past", 16),
    "lengths": ("b",),
}
CACHES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "lengths": ({"q": _Q, "k": _WHOLE, "v": _WHOLE, "lengths": _LENGTHS}, {}),
    "causal": ({"q": _Q, "k": _WHOLE, "v": _WHOLE, "lengths": _LENGTHS}, {"is_causal": 1}),
    "numbers": ({"q": _Q, "k": _WHOLE, "v": _WHOLE, "mask": (3, 8), "lengths": _LENGTHS}, {}),
    "words": (
        {"q": _Q, "k": _WHOLE, "v": _WHOLE, "mask": RANDOM.random((2, 1, 3, 8)) > 0.4}
        | {"lengths": np.array([3, 1])},  # some rows see no key
        {"is_causal": 1, "softcap": 2.0},
    ),
    "past": ({"q": _Q, "k": _NEW, "v": _NEW, "pk": _WHOLE, "pv": _WHOLE}, {"is_causal": 1}),
    "past, all": ({"q": _Q, "k": _NEW, "v": _NEW, "pk": _WHOLE, "pv": _WHOLE}, {"scale": 0.2}),
    "past, a mask": (
        {"q": _Q, "k": _NEW, "v": _NEW, "mask": (3, 11), "pk": _WHOLE, "pv": _WHOLE},
        {"is_causal": 1},
    ),
    "rows": (
        {"q": (2, 3, 64), "k": (2, 8, 32), "v": (2, 8, 32), "lengths": _LENGTHS},
        {"is_causal": 1, "q_num_heads": 4, "kv_num_heads": 2},
    ),
}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("case", CACHES)
def test_attention_over_a_cache(case: str, is_open: bool) -> None:
    given, how = CACHES[case]
    inputs: dict[str, Array] = {
        name: RANDOM.standard_normal(each).astype("f") if isinstance(each, tuple) else each
        for name, each in given.items()
    }
    names = ["q", "k", "v", *(n if n in given else "" for n in ("mask", "pk", "pv", "lengths"))]
    made = ["y", "present_k", "present_v"] if "pk" in given else ["y"]
    node = helper.make_node("Attention", names, made, **how)
    declared = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            _OPEN.get(name, array.shape) if is_open and len(given["q"]) > 3 else array.shape,
        )
        for name, array in inputs.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in made]
    graph = helper.make_graph([node], "attention", declared, results)
    opsets = [helper.make_opsetid("", 24)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
    imported = simplify(load_onnx(model))
    has_known_mask = "mask" not in given or not is_open
    assert any(each.operator == "attention" for each in imported.nodes) or not has_known_mask
    found = interpret(imported, inputs)
    for name, expected in zip(made, ReferenceEvaluator(model).run(None, inputs), strict=True):
        np.testing.assert_allclose(found[name], expected, rtol=2e-5, atol=2e-5)
