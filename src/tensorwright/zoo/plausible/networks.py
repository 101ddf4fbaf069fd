"""The families by name, and the draw of a network."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from types import MappingProxyType

from tensorwright.graph import Graph
from tensorwright.zoo.plausible import arrays, images, sequences, tokens
from tensorwright.zoo.plausible.drawer import Drawer

_WORK = (1e5, 3e8)  # multiply-adds of the dearest layer: from so many to so many

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


def draw_network(seed: int, families: Collection[str] = ()) -> Graph:
    """A random small network: the same seed and families, the same network.

    families   of `FAMILIES`, from which one is drawn; all where empty
    """
    names = sorted(families) or list(FAMILIES)
    source = random.Random(f"plausible {seed}")
    name = source.choice(names)
    low, high = _WORK
    work = low * (high / low) ** source.random()
    return FAMILIES[name](Drawer(f"{name}_{seed}", f"{name} {seed}", work))
