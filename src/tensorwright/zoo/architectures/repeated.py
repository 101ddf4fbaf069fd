"""Networks of any length, to see how the cost of a search grows: one block over and over.

    x ---> conv 3x3 -> relu --.
      '--> conv 3x3 -> relu --+-> concat -> conv 1x1 -> add x -> relu ->

The block is a residual one with two branches (after Szegedy et al., Inception-v4, AAAI 2017), small
enough that thousands of operators fit; its two convolutions of one image can be made one.
"""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright.zoo.architectures.layers import Layers

OPERATORS = 8
"""Of one block."""

_CHANNELS = 8
_EXTENT = 14


def repeated_blocks(operators: int, seed: int = 0) -> Graph:
    """image (1, 8, 14, 14) -> an image like it, by about so many operators; at least one block."""
    net = Layers(f"repeated_{operators}", seed)
    x = net.input("image", (1, _CHANNELS, _EXTENT, _EXTENT))
    for _ in range(max(1, round(operators / OPERATORS))):
        branches = [net.add("relu", net.conv(x, _CHANNELS, (3, 3), pad=1)) for _ in range(2)]
        joined = net.conv(net.add("concat", *branches, axis=1), _CHANNELS, (1, 1), gain=0.1)
        x = net.add("relu", net.add("add", joined, x))
    return net.finish(x)
