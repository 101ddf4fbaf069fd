"""NasRNN as TASO measured it (Jia et al., SOSP 2019, `examples/nasrnn.py`): the recurrent cell that
Zoph and Le ("Neural architecture search with reinforcement learning", ICLR 2017) found, written
out over some steps, each with weights of its own.
"""

from __future__ import annotations

import math

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import Layers


def _combine(net: Layers, x: str, state: str, name: str) -> str:
    """x W + state U."""
    size = net.shape_of(x)[1]
    deviation = 1 / math.sqrt(size)
    of_x = net.add("matmul", x, net.weight(name, "w", (size, size), deviation))
    of_state = net.add("matmul", state, net.weight(name, "u", (size, size), deviation))
    return net.add("add", of_x, of_state)


def _cell(net: Layers, x: str, state: str, name: str) -> str:
    """One step: eight sums of products, then a fixed tree."""
    leaves = ("relu", "sigmoid", "tanh", "sigmoid", "sigmoid", "tanh", "sigmoid", "relu")
    t = [
        net.add(function, _combine(net, x, state, f"{name}.{number}"))
        for number, function in enumerate(leaves)
    ]
    first = net.add("add", t[0], t[3])
    second = net.add("add", t[1], t[2])
    third = net.add("mul", t[4], t[5])
    fourth = net.add("mul", t[6], t[7])
    left = net.add("add", net.add("sigmoid", second), net.add("tanh", third))
    right = net.add("mul", net.add("tanh", first), net.add("tanh", fourth))
    return net.add("tanh", net.add("mul", net.add("tanh", left), net.add("tanh", right)))


def nasrnn(seed: int = 0, batch: int = 1, steps: int = 5, size: int = 512) -> Graph:
    """x_0 ... x_4 (batch, 512) -> state (batch, 512); 21.0 million parameters."""
    net = Layers("nasrnn", seed)
    inputs = [net.input(f"x_{step}", (batch, size)) for step in range(steps)]
    state = net.weight("state", "start", (batch, size), 1.0)
    for step, x in enumerate(inputs):
        state = _cell(net, x, state, f"step_{step}")
    return net.finish(state)
