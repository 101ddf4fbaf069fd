"""The networks by name, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from tensorwright.base import UsageError, did_you_mean
from tensorwright.graph import Graph
from tensorwright.ops import Array
from tensorwright.zoo.architectures.bert import bert_base
from tensorwright.zoo.architectures.dcgan import dcgan
from tensorwright.zoo.architectures.densenet import densenet121
from tensorwright.zoo.architectures.inception import inception_v3
from tensorwright.zoo.architectures.mobilenet import mobilenet_v2
from tensorwright.zoo.architectures.nasnet import nasnet_a
from tensorwright.zoo.architectures.nasrnn import nasrnn
from tensorwright.zoo.architectures.resnet import resnet18, resnet50, resnet101, resnext50
from tensorwright.zoo.architectures.resnet3d import resnet3d_18
from tensorwright.zoo.architectures.squeezenet import squeezenet
from tensorwright.zoo.architectures.taso import taso_bert, taso_resnet50, taso_resnext50
from tensorwright.zoo.architectures.vgg import vgg19

Builders: TypeAlias = MappingProxyType[str, Callable[[int, int], Graph]]

_ZOO: Builders = MappingProxyType(
    {
        "resnet18": resnet18,
        "resnet50": resnet50,
        "resnet101": resnet101,
        "resnext50": resnext50,
        "mobilenet_v2": mobilenet_v2,
        "squeezenet": squeezenet,
        "inception_v3": inception_v3,
        "vgg19": vgg19,
        "densenet121": densenet121,
        "resnet3d_18": resnet3d_18,
        "dcgan": dcgan,
        "bert_base": bert_base,
        "nasrnn": nasrnn,
    }
)
_TASO: Builders = MappingProxyType(
    {
        "taso_bert": taso_bert,
        "taso_resnet50": taso_resnet50,
        "taso_resnext50": taso_resnext50,
        "nasnet_a": nasnet_a,
        "nasrnn": nasrnn,
    }
)
_BUILDERS: Builders = MappingProxyType({**_ZOO, **_TASO})
ZOO: tuple[str, ...] = tuple(_ZOO)
TASO: tuple[str, ...] = tuple(_TASO)
"""Networks as TASO's examples define them."""


def build(name: str, seed: int = 0, batch: int = 1) -> Graph:
    """One of `ZOO` or `TASO` with weights drawn from the seed: the same seed, the same weights.

    Raises:  UsageError for another name, or a batch below 1.
    """
    builder = _BUILDERS.get(name)
    if builder is None:
        raise UsageError(
            stage="zoo",
            where=f"network {name!r}",
            reason="there is no such network",
            remedy=did_you_mean(name, _BUILDERS, "one of " + ", ".join(_BUILDERS)),
        )
    if batch < 1:
        raise UsageError(
            stage="zoo", where=f"batch {batch}", reason="it must be 1 or more", remedy="batch=1"
        )
    return builder(seed, batch)


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Normal numbers for floating inputs, False and True for booleans, integers from 0 on.

    Integers that are positions in a table stay below its number of rows, others below 2.
    """
    generator = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, type_ in graph.input_types.items():
        if type_.dtype.is_float:
            drawn: Array = generator.standard_normal(type_.shape, np.float32)
        else:
            drawn = generator.integers(0, _rows(graph, name), type_.shape)
        arrays[name] = drawn.astype(type_.dtype.numpy)
    return arrays


def _rows(graph: Graph, name: str) -> int:
    """How many rows the smallest table has that an input gives positions in; 2 if none."""
    rows = [
        graph.types[node.inputs[0]].shape[node.integer("axis")]
        for node in graph.nodes
        if node.operator == "gather" and node.inputs[1] == name
    ]
    return max(1, min(rows, default=2))
