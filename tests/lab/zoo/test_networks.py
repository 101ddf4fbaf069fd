"""The papers' networks: their sizes, shapes and weights, and small ones against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from tests.draws import some_of
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

from tensorwright.base import DType, UsageError
from tensorwright.graph import Graph, interpret, random_inputs, simplify, verify
from tensorwright.graph.onnx_export import to_onnx
from tensorwright_lab.zoo import TASO, ZOO, build
from tensorwright_lab.zoo.architectures.bert import BertShape, bert_base
from tensorwright_lab.zoo.architectures.convolutional import (
    dcgan,
    mobilenet_v2,
    resnet3d_18,
    resnext50,
    squeezenet,
)
from tensorwright_lab.zoo.architectures.inception import inception_v3
from tensorwright_lab.zoo.architectures.layers import Layers
from tensorwright_lab.zoo.architectures.nas import (
    nasnet_a,
    nasrnn,
    taso_bert,
    taso_resnet50,
    taso_resnext50,
)

SCORES = (1, 1000)
PARAMETERS = {  # as published, or counted in torchvision's networks
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnext50": 25_028_904,
    "mobilenet_v2": 3_504_872,
    "squeezenet": 1_235_496,
    "inception_v3": 23_834_568,
    "vgg19": 143_667_240,
    "densenet121": 7_978_856,
    "bert_base": 109_482_240,
}
OUTPUTS = {
    "dcgan": ((1, 3, 64, 64),),
    "bert_base": ((1, 128, 768), (1, 768)),
    "nasrnn": ((1, 512),),
    "nasnet_a": ((1, 5120, 7, 7),),
    "taso_bert": ((64, 1024),) * 9,
    "taso_resnet50": ((1, 2048, 7, 7),),
    "taso_resnext50": ((1, 2048, 7, 7),),
}
HEAVY = ("vgg19", "bert_base", "resnet101")


def of_zeros(net: Layers, layer: str, role: str, shape: Sequence[int], _: float) -> str:
    return net._hold(layer, role, np.zeros(tuple(shape), np.float32))


@cache
def built(name: str) -> Graph:
    """The network with zeros for weights: to draw them takes most of the time."""
    with patch.object(Layers, "weight", of_zeros):
        return build(name)


def count(graph: Graph, operator: str) -> int:
    return sum(node.operator == operator for node in graph.nodes)


def parameters(graph: Graph) -> int:
    """The number of weights that training changes: statistics of normalisation are none."""
    norms = [node for node in graph.nodes if node.operator == "batch_norm"]
    statistics = {name for node in norms for name in node.inputs[3:]}
    return sum(
        array.size
        for name, array in graph.constants.items()
        if name not in statistics and array.ndim > 0
    )


@pytest.mark.parametrize("name", dict.fromkeys((*ZOO, *TASO)))
def test_sizes_and_shapes(name: str) -> None:
    graph = built(name)
    assert graph.name == name
    shapes = tuple(type_.shape for type_ in graph.output_types.values())
    assert shapes == OUTPUTS.get(name, (SCORES,))
    if name in PARAMETERS:
        assert parameters(graph) == PARAMETERS[name]
    if name in HEAVY:
        built.cache_clear()


def test_layers() -> None:
    resnext = built("resnext50")
    groups = [node.integer("groups") for node in resnext.nodes if node.operator == "conv"]
    assert (len(groups), groups.count(32)) == (53, 16)
    assert count(built("inception_v3"), "conv") == 94
    assert count(built("densenet121"), "concat") == 58
    assert count(built("resnet3d_18"), "max_pool") == 0
    assert count(built("mobilenet_v2"), "add") == 10
    assert count(built("nasrnn"), "matmul") == 80
    assert count(built("dcgan"), "conv_transpose") == 4
    assert count(built("taso_bert"), "matmul") == 48
    assert count(built("taso_resnet50"), "conv") == 3 * 16 + 4
    assert count(built("nasnet_a"), "add") == 3 * 5 * 6


def test_weights_follow_the_seed() -> None:
    def weights(seed: int) -> list[bytes]:
        return [array.tobytes() for array in build("squeezenet", seed).constants.values()]

    assert weights(1) == weights(1)
    assert all(one != two for one, two in zip(weights(1), weights(2), strict=True))


def test_batch() -> None:
    graph = build("mobilenet_v2", batch=3)
    assert graph.input_types["image"].shape == (3, 3, 224, 224)
    assert [type_.shape for type_ in graph.output_types.values()] == [(3, 1000)]


def test_another_name_or_batch() -> None:
    with pytest.raises(UsageError) as caught:
        build("resnet-50")
    assert str(caught.value) == (
        "network 'resnet-50': there is no such network\n  try: did you mean resnet50?"
    )
    with pytest.raises(UsageError) as caught:
        build("tokeniser")
    assert caught.value.remedy == "one of " + ", ".join(dict.fromkeys((*ZOO, *TASO)))
    with pytest.raises(UsageError) as caught:
        build("resnet50", batch=0)
    assert caught.value.where == "batch 0"


def test_random_inputs() -> None:
    small = bert_base(length=50, shape=BertShape(1, 16, 2, 32, words=40, positions=60))
    inputs = random_inputs(small, 3)
    again = random_inputs(small, 3)
    assert all((inputs[name] == again[name]).all() for name in inputs)
    assert inputs["input_ids"].dtype == DType.I64.numpy
    assert 20 < inputs["input_ids"].max() < 40
    assert set(inputs["token_type_ids"].ravel()) == {0, 1}


SMALL = {
    "squeezenet": lambda: squeezenet(size=64),
    "mobilenet_v2": lambda: mobilenet_v2(size=64),
    "resnext50": lambda: resnext50(size=32),
    "inception_v3": lambda: inception_v3(size=75),
    "resnet3d_18": lambda: resnet3d_18(size=8, frames=4),
    "bert": lambda: bert_base(length=12, shape=BertShape(2, 32, 4, 64, words=100, positions=20)),
    "nasrnn": lambda: nasrnn(steps=2, size=24),
    "dcgan": lambda: dcgan(width=16),
    "nasnet_a": lambda: nasnet_a(size=64, channels=8),
    "taso_bert": lambda: taso_bert(length=6, hidden=32, layers=3),
    "taso_resnet50": lambda: taso_resnet50(size=8),
    "taso_resnext50": lambda: taso_resnext50(size=32),
}


@pytest.mark.parametrize("name", some_of(SMALL, 4, "zoo"))
@pytest.mark.drawn
def test_values_are_those_of_onnxruntime(name: str) -> None:
    graph = verify(SMALL[name]())
    inputs = random_inputs(graph)
    found = interpret(verify(simplify(graph)), inputs)
    for value, expected in zip(found.values(), by_onnxruntime(to_onnx(graph), inputs), strict=True):
        assert np.abs(value - expected).max() <= 1e-4 * np.abs(expected).max()
        assert 0.01 < expected.std() < 100, "values must keep their size through the layers"
