"""The families by name, and the draw of a network."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from types import MappingProxyType

from tensorwright.graph import Graph
from tensorwright_lab.zoo.plausible import arrays, images, sequences, tokens
from tensorwright_lab.zoo.plausible.drawer import Drawer
from tensorwright_lab.zoo.plausible.signals import signals

_WORK = (1e5, 1e9)  # multiply-adds of the most expensive layer: from, to
_SHARES = MappingProxyType(  # how often a family is drawn, where not once: those of many forms more
    {"attention": 2, "depthwise_rows": 2, "grouped": 2, "inverted_residual": 2, "volumes": 3}
)

FAMILIES: MappingProxyType[str, Callable[[Drawer], Graph]] = MappingProxyType(
    {
        "convolutions": images.convolutions,
        "inverted_residual": images.inverted_residual,
        "depthwise_rows": images.depthwise_rows,
        "group_normalised": images.group_normalised,
        "grouped": images.grouped,
        "dense_connections": images.dense_connections,
        "excitation": images.excitation,
        "upscaled": images.upscaled,
        "volumes": images.volumes,
        "patches": images.patches,
        "merged_patches": images.merged_patches,
        "pools": images.pools,
        "feed_forward": tokens.feed_forward,
        "attention": tokens.attention,
        "window_attention": tokens.window_attention,
        "linear_attention": tokens.linear_attention,
        "mixer": tokens.mixer,
        "embeddings": tokens.embeddings,
        "heads": tokens.heads,
        "recurrent": sequences.recurrent,
        "waves": sequences.waves,
        "separable_waves": sequences.separable_waves,
        "elementwise": arrays.elementwise,
        "reductions": arrays.reductions,
        "normalised_rows": arrays.normalised_rows,
        "rearranged": arrays.rearranged,
        "products": arrays.products,
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
