"""The networks by name."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

from tensorwright.base import UsageError, unknown_name
from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures import convolutional, nas
from tensorwright_lab.zoo.architectures.bert import bert_base
from tensorwright_lab.zoo.architectures.inception import inception_v3

Builders: TypeAlias = MappingProxyType[str, Callable[[int, int], Graph]]

_ZOO: Builders = MappingProxyType(
    {
        "resnet18": convolutional.resnet18,
        "resnet50": convolutional.resnet50,
        "resnet101": convolutional.resnet101,
        "resnext50": convolutional.resnext50,
        "mobilenet_v2": convolutional.mobilenet_v2,
        "squeezenet": convolutional.squeezenet,
        "inception_v3": inception_v3,
        "vgg19": convolutional.vgg19,
        "densenet121": convolutional.densenet121,
        "resnet3d_18": convolutional.resnet3d_18,
        "dcgan": convolutional.dcgan,
        "bert_base": bert_base,
        "nasrnn": nas.nasrnn,
    }
)
_TASO: Builders = MappingProxyType(
    {
        "taso_bert": nas.taso_bert,
        "taso_resnet50": nas.taso_resnet50,
        "taso_resnext50": nas.taso_resnext50,
        "nasnet_a": nas.nasnet_a,
        "nasrnn": nas.nasrnn,
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
        where, reason = f"network {name!r}", "there is no such network"
        raise unknown_name("zoo", where, reason, name, _BUILDERS)
    if batch < 1:
        raise UsageError(
            stage="zoo", where=f"batch {batch}", reason="it must be 1 or more", remedy="batch=1"
        )
    return builder(seed, batch)
