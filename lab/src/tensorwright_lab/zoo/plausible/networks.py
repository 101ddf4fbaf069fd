"""The families by name, and the draw of a network."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from types import MappingProxyType

from tensorwright.graph import Graph
from tensorwright_lab.zoo.plausible.arrays import (
    elementwise,
    normalised_rows,
    products,
    rearranged,
    reductions,
)
from tensorwright_lab.zoo.plausible.drawer import Drawer
from tensorwright_lab.zoo.plausible.images import (
    convolutions,
    dense_connections,
    depthwise_rows,
    excitation,
    group_normalised,
    grouped,
    inverted_residual,
    merged_patches,
    patches,
    pools,
    upscaled,
    volumes,
)
from tensorwright_lab.zoo.plausible.sequences import (
    recurrent,
    separable_waves,
    waves,
)
from tensorwright_lab.zoo.plausible.signals import signals
from tensorwright_lab.zoo.plausible.tokens import (
    attention,
    embeddings,
    feed_forward,
    heads,
    linear_attention,
    mixer,
    window_attention,
)

_WORK = (1e5, 1e9)  # multiply-adds of the most expensive layer: from, to
_SHARES = MappingProxyType(  # how often a family is drawn, where not once: those of many forms more
    {"attention": 2, "depthwise_rows": 2, "grouped": 2, "inverted_residual": 2, "volumes": 3}
)

FAMILIES: MappingProxyType[str, Callable[[Drawer], Graph]] = MappingProxyType(
    {
        "convolutions": convolutions,
        "inverted_residual": inverted_residual,
        "depthwise_rows": depthwise_rows,
        "group_normalised": group_normalised,
        "grouped": grouped,
        "dense_connections": dense_connections,
        "excitation": excitation,
        "upscaled": upscaled,
        "volumes": volumes,
        "patches": patches,
        "merged_patches": merged_patches,
        "pools": pools,
        "feed_forward": feed_forward,
        "attention": attention,
        "window_attention": window_attention,
        "linear_attention": linear_attention,
        "mixer": mixer,
        "embeddings": embeddings,
        "heads": heads,
        "recurrent": recurrent,
        "waves": waves,
        "separable_waves": separable_waves,
        "elementwise": elementwise,
        "reductions": reductions,
        "normalised_rows": normalised_rows,
        "rearranged": rearranged,
        "products": products,
    }
)

"""The families that cost models learn from, and that are drawn where none is named."""

JUDGING_FAMILIES: MappingProxyType[str, Callable[[Drawer], Graph]] = MappingProxyType(
    {"signals": signals}
)
"""Families that are drawn only where they are named: no model learns from them."""


def draw_network(seed: int, families: Collection[str] = ()) -> Graph:
    """A random small network: the same seed and families, the same network.

    families   of both tables, from which one is drawn; all of `FAMILIES` where empty
    """
    names = sorted(families) or list(FAMILIES)
    source = random.Random(f"plausible {seed}")
    (name,) = source.choices(names, [_SHARES.get(name, 1) for name in names])
    low, high = _WORK
    work = low * (high / low) ** source.random()
    grow = FAMILIES[name] if name in FAMILIES else JUDGING_FAMILIES[name]
    return grow(Drawer(f"{name}_{seed}", f"{name} {seed}", work))
