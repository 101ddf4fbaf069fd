"""Networks of any length, to see how the cost of a search grows: one block over and over.

    x --> matmul w ---------------.
      '-> matmul a --> matmul b --+-> add -> relu -> matmul v -> add x -> relu ->

The block is a residual one with a low-rank adapter beside its first product (Hu et al., LoRA, ICLR
2022) that nobody has merged: x w + (x a) b is x (w + a b), one product for three.
"""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers

OPERATORS = 8
"""Of one block."""

_ROWS, _WIDTH, _RANK = 32, 64, 8


def repeated_blocks(operators: int, seed: int = 0) -> Graph:
    """rows (32, 64) -> rows like them, by about `operators` operators; at least one block."""
    net = Layers(f"repeated_{operators}", seed)
    x = net.input("rows", (_ROWS, _WIDTH))
    for number in range(max(1, round(operators / OPERATORS))):
        x = _block(net, x, f"block_{number}")
    return net.finish(x)


def _block(net: Layers, x: str, name: str) -> str:
    def product(rows: str, role: str, inputs: int, outputs: int) -> str:
        weight = net.weight(name, role, (inputs, outputs), inputs**-0.5 / 2)
        return net.add("matmul", rows, weight)

    adapter = product(product(x, "a", _WIDTH, _RANK), "b", _RANK, _WIDTH)
    hidden = net.add("relu", net.add("add", product(x, "w", _WIDTH, _WIDTH), adapter))
    return net.add("relu", net.add("add", product(hidden, "v", _WIDTH, _WIDTH), x))
