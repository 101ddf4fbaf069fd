"""The networks by name."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

from tensorwright.base import UsageError, unknown_name
from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.bert import bert_base
from tensorwright_lab.zoo.architectures.convolutional import (
    dcgan,
    densenet121,
    mobilenet_v2,
    resnet3d_18,
    resnet18,
    resnet50,
    resnet101,
    resnext50,
    squeezenet,
    vgg19,
)
from tensorwright_lab.zoo.architectures.inception import inception_v3
from tensorwright_lab.zoo.architectures.nas import (
    nasnet_a,
    nasrnn,
    taso_bert,
    taso_resnet50,
    taso_resnext50,
)

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
        where, reason = f"network {name!r}", "there is no such network"
        raise unknown_name("zoo", where, reason, name, _BUILDERS)
    if batch < 1:
        raise UsageError(
            stage="zoo", where=f"batch {batch}", reason="it must be 1 or more", remedy="batch=1"
        )
    return builder(seed, batch)
