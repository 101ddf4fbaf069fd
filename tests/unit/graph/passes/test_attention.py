"""Attention as exporters write it becomes the operator, with the same values, one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from onnx import ModelProto
from tests.targets import AVX512
from tests.unit.graph.onnx.onnx_models import by_onnxruntime
from tests.unit.graph.onnx.torch_networks import Network, exported
from torch.nn.functional import scaled_dot_product_attention

import tensorwright
from tensorwright.base import DType
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    KernelCall,
    interpret,
    partition,
    run_target_passes,
    simplify,
    verify,
)
from tensorwright.graph.imports import load_onnx

pytestmark = [
    pytest.mark.usefixtures("by_rule"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

Array = NDArray[Any]
RANDOM = np.random.default_rng(5)


class Attention(torch.nn.Module):
    """As torch computes it; `is_causal` without a mask."""

    def __init__(self, is_causal: bool = False) -> None:
        super().__init__()
        self.is_causal = is_causal

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.is_causal)


def arrays(kind: str, batch: int = 2) -> dict[str, Array]:
    """Queries, keys and values of one length, and a mask that hides the whole first row."""
    given = {name: RANDOM.standard_normal((batch, 3, 5, 8)).astype(np.float32) for name in "qkv"}
    allowed = RANDOM.random((batch, 1, 5, 5)) < 0.7
    allowed[:, :, 0] = False
    if kind == "bool":
        given["mask"] = allowed
    elif kind == "keys":
        given["mask"] = allowed[:, :, 1:2] | (np.arange(5) == 2)
    elif kind == "numbers":
        given["mask"] = RANDOM.standard_normal((1, 3, 5, 5)).astype(np.float32)
    return given


def model_of(kind: str, *, dynamo: bool, axes: Mapping[int, str]) -> ModelProto:
    example = tuple(map(torch.from_numpy, arrays(kind).values()))
    names = list(arrays(kind))
    open_axes = {name: dict(axes) for name in names if name != "mask" or kind != "numbers"}
    return exported(
        Network(
            lambda: Attention(kind == "causal"),
            lambda: example,
            {name: open_axes.get(name, {}) for name in names},
            (),
        ),
        dynamo=dynamo,
    )


def lowered(graph: Graph) -> Graph:
    """Behind all passes of a target."""
    return verify(run_target_passes(simplify(graph), AVX512))


def kernels(graph: Graph) -> int:
    return sum(isinstance(step, KernelCall) for step in partition(lowered(graph)).steps)


@pytest.mark.parametrize("dynamo", [False, True], ids=["traced", "dynamo"])
@pytest.mark.parametrize("kind", ["none", "causal", "bool", "keys", "numbers"])
def test_what_torch_exports(kind: str, dynamo: bool) -> None:
    """The newer exporter writes the lowest number, not minus infinity, for what a mask hides: a row
    without keys is then the mean of all.
    """
    model = model_of(kind, dynamo=dynamo, axes={})
    graph = load_onnx(model)
    assert kernels(graph) == 1
    inputs = arrays(kind)
    (expected,) = by_onnxruntime(model, inputs)
    (found,) = tensorwright.compile(model, threads=1).run(inputs).values()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    if not dynamo or kind != "bool":
        torch_inputs = [torch.from_numpy(array) for array in inputs.values()]
        by_torch = Attention(kind == "causal")(*torch_inputs).numpy()
        np.testing.assert_allclose(found, by_torch, rtol=2e-5, atol=2e-6)


def test_an_open_batch() -> None:
    model = model_of("bool", dynamo=False, axes={0: "batch"})
    assert kernels(load_onnx(model)) == 1
    executable = tensorwright.compile(model, threads=1)
    for batch in (1, 4):
        inputs = arrays("bool", batch)
        (expected,) = by_onnxruntime(model, inputs)
        (found,) = executable.run(inputs).values()
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def test_it_stores_its_heads_side_by_side() -> None:
    """What moves its result around is part of its kernel, as it is behind a product."""
    b = GraphBuilder("heads")
    inputs = [b.input(name, (1, 3, 5, 8)) for name in "qkv"]
    y = b.add("transpose", b.add("attention", *inputs), perm=(0, 2, 1, 3))
    assert kernels(b.finish([y])) == 1


@pytest.mark.parametrize("kind", ["none", "bool", "numbers"])
def test_a_program_of_torch_is_the_same_kernel(kind: str) -> None:
    inputs = arrays(kind)
    example = tuple(map(torch.from_numpy, inputs.values()))
    executable = tensorwright.compile(torch.export.export(Attention(), example), threads=1)
    assert len(executable.plan.steps) == 1
    (found,) = executable.run(inputs).values()
    expected = Attention()(*example).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


# -- by hand


class Parts:
    """A graph of parts; each method may be replaced in a test."""

    def __init__(self, rank: int = 4) -> None:
        self.lead = (2, 3)[-(rank - 2) :]
        self.builder = GraphBuilder("parts")

    def number(self, value: float) -> str:
        return self.builder.constant(np.full((1,), value, np.float32))

    def build(
        self,
        *,
        mask: str = "",
        guard: bool = False,
        axis: int = -1,
        lost: float = -np.inf,
        shows: str = "",
        is_turned: bool = True,
    ) -> Graph:
        b, tail = self.builder, tuple(range(len(self.lead)))
        q = b.add("mul", b.input("q", (*self.lead, 5, 8)), self.number(0.5))
        k = b.input("k", (*self.lead, 6, 8) if is_turned else (*self.lead, 8, 6))
        if is_turned:
            k = b.add("transpose", k, perm=(*tail, len(tail) + 1, len(tail)))
        scores = b.add("matmul", q, b.add("mul", self.number(0.25), k))
        scores = products = b.add("div", scores, self.number(2.0))
        if mask:
            kept = b.input("mask", (*self.lead[:-1], 1, 5, 6)[-(len(self.lead) + 2) :], DType.BOOL)
            mask = b.add("where", kept, self.number(0), self.number(lost))
            scores = b.add("add", mask, scores)
        weights = b.add("softmax", scores, axis=axis)
        if guard:
            weights = b.add("where", b.add("isnan", weights), self.number(0), weights)
        y = b.add("matmul", weights, b.input("v", (*self.lead, 6, 4)))
        outputs = {"products": products, "weights": weights}
        return b.finish([y, *([outputs[shows]] if shows else [])])


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in lowered(graph).nodes]


def strange(graph: Graph, seed: int) -> dict[str, Array]:
    """Inputs with infinities and NaN, and a row of the mask that hides everything."""
    random = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for name, type_ in graph.input_types.items():
        if type_.dtype is DType.BOOL:
            inputs[name] = random.random(type_.extents) < 0.6
            inputs[name][..., 1, :] = False
            continue
        array = random.standard_normal(type_.extents).astype(np.float32)
        if seed:
            flat = array.reshape(-1)
            places = random.choice(flat.size, 2, replace=False)
            flat[places] = random.choice(np.array([np.inf, -np.inf, np.nan], np.float32), 2)
        inputs[name] = array
    return inputs


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("mask", ["", "bools"])
def test_values_of_any_numbers(mask: str, guard: bool, rank: int) -> None:
    """The same where numbers are infinite or NaN, and where a row has no keys."""
    graph = Parts(rank).build(mask=mask, guard=guard)
    (node,) = (node for node in lowered(graph).nodes if node.operator == "attention")
    assert node.attribute_map["scale"] == 0.0625
    assert node.attribute_map["nan_weights"] == ("zero" if guard else "kept")
    assert not {"where", "softmax", "matmul", "isnan"} & set(operators(graph))
    for seed in range(20):
        inputs = strange(graph, seed)
        (expected,) = interpret(graph, inputs).values()
        (found,) = interpret(lowered(graph), inputs).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"axis": -2},
        {"shows": "products"},
        {"shows": "weights"},
        {"shows": "weights", "guard": True},
        {"is_turned": False},
    ],
    ids=str,
)
def test_other_products_stay(change: dict[str, Any]) -> None:
    assert "attention" not in operators(Parts().build(**change))


def test_a_mask_of_other_numbers_is_added() -> None:
    graph = Parts().build(mask="bools", lost=-1e4, guard=True)
    assert operators(graph).count("where") == 1
    inputs = strange(graph, 0)
    (expected,) = interpret(graph, inputs).values()
    (found,) = interpret(lowered(graph), inputs).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
