"""NasNet-A (Zoph et al., "Learning transferable architectures for scalable image recognition", CVPR
2018) as TASO measured it: three stages of five normal cells and a reduction cell, no classifier.

Convolutions have no bias and no normalisation; a separable one is a depthwise and a pointwise one.

NasRNN as TASO measured it (Jia et al., SOSP 2019, `examples/nasrnn.py`): the recurrent cell that
Zoph and Le ("Neural architecture search with reinforcement learning", ICLR 2017) found, written
out over some steps, each with weights of its own.

Networks as TASO's examples define them (Jia et al., SOSP 2019), for comparison with its results.

They are not the networks whose names they bear: no normalisation, no biases, no classifier, and the
attention of BERT neither normalises nor goes on.
"""

from __future__ import annotations

import math

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import BRANCH, Layers

_STAGES, _CELLS, _CHANNELS = 3, 5, 128


def _squeeze(net: Layers, x: str, channels: int) -> str:
    return net.add("relu", net.conv(x, channels, (1, 1)))


def _fit(net: Layers, previous: str, x: str) -> str:
    """An earlier tensor, with the channels and extents of the present one."""
    channels, height = net.shape_of(x)[1:3]
    if net.shape_of(previous)[2] == height:
        return _squeeze(net, previous, channels)
    return net.add("relu", net.conv(previous, channels, (3, 3), stride=2, pad=1))


def _separable(net: Layers, x: str, kernel: int, stride: int = 1) -> str:
    channels = net.shape_of(x)[1]
    window = (kernel, kernel)
    y = net.conv(x, channels, window, stride=stride, pad=kernel // 2, groups=channels, gain=1.0)
    return net.conv(y, channels, (1, 1), gain=0.5)


def _average(net: Layers, x: str, stride: int = 1) -> str:
    return net.average_pool(x, 3, stride, 1)


def _normal(net: Layers, previous: str, x: str, channels: int) -> str:
    x = _squeeze(net, x, channels)
    previous = _fit(net, previous, x)
    pairs = (
        (_separable(net, x, 3), x),
        (_separable(net, previous, 3), _separable(net, x, 5)),
        (_average(net, x), previous),
        (_average(net, previous), _average(net, previous)),
        (_separable(net, previous, 5), _separable(net, previous, 3)),
    )
    return net.add("concat", *(net.add("add", *pair) for pair in pairs), axis=1)


def _reduction(net: Layers, previous: str, x: str, channels: int) -> str:
    x = _squeeze(net, x, channels)
    previous = _fit(net, previous, x)
    first = net.add("add", _separable(net, previous, 7, 2), _separable(net, x, 5, 2))
    second = net.add("add", net.max_pool(x, 3, 2, 1), _separable(net, previous, 7, 2))
    third = net.add("add", _average(net, x, 2), _separable(net, previous, 5, 2))
    fourth = net.add("add", net.max_pool(x, 3, 2, 1), _separable(net, first, 3))
    fifth = net.add("add", _average(net, first), second)
    return net.add("concat", first, second, third, fourth, fifth, axis=1)


def nasnet_a(seed: int = 0, batch: int = 1, size: int = 224, channels: int = _CHANNELS) -> Graph:
    """image (batch, 3, size, size) -> features (batch, 40 * channels, size / 32, size / 32)."""
    net = Layers("nasnet_a", seed)
    x = net.input("image", (batch, 3, size, size))
    x = net.add("relu", net.conv(x, 64, (7, 7), stride=2, pad=3))
    x = net.max_pool(x, 3, 2, 1)
    for _ in range(_STAGES):
        previous = x
        for _ in range(_CELLS):
            previous, x = x, _normal(net, previous, x, channels)
        channels *= 2
        x = _reduction(net, previous, x, channels)
    return net.finish(x)


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


_UNITS = (3, 4, 6, 3)


def _residual(net: Layers, x: str, width: int, outputs: int, groups: int, stride: int) -> str:
    """A bottleneck; the convolution beside it has a ReLU, too."""
    y = net.add("relu", net.conv(x, width, (1, 1)))
    y = net.add("relu", net.conv(y, width, (3, 3), stride=stride, pad=1, groups=groups))
    y = net.conv(y, outputs, (1, 1), gain=BRANCH)
    if net.shape_of(x) != net.shape_of(y):
        x = net.add("relu", net.conv(x, outputs, (1, 1), stride=stride))
    return net.add("relu", net.add("add", x, y))


def _stages(net: Layers, x: str, width: int, expansion: int, groups: int) -> str:
    for stage, count in enumerate(_UNITS):
        for unit in range(count):
            stride = 2 if unit == 0 and stage > 0 else 1
            own = width << stage
            x = _residual(net, x, own, own * expansion, groups, stride)
    return x


def taso_resnet50(seed: int = 0, batch: int = 1, size: int = 56) -> Graph:
    """features (batch, 64, size, size) -> features (batch, 2048, size / 8, size / 8): no stem."""
    net = Layers("taso_resnet50", seed)
    x = net.input("features", (batch, 64, size, size))
    return net.finish(_stages(net, x, 64, 4, 1))


def taso_resnext50(seed: int = 0, batch: int = 1, size: int = 224) -> Graph:
    """image (batch, 3, size, size) -> features (batch, 2048, size / 32, size / 32); 32 groups."""
    net = Layers("taso_resnext50", seed)
    x = net.input("image", (batch, 3, size, size))
    x = net.add("relu", net.conv(x, 64, (7, 7), stride=2, pad=3))
    return net.finish(_stages(net, net.max_pool(x, 3, 2, 1), 128, 2, 32))


def taso_bert(
    seed: int = 0, batch: int = 1, length: int = 64, hidden: int = 1024, layers: int = 8
) -> Graph:
    """tokens (batch * length, hidden) -> tokens, and what each layer attends to, of that shape.

    16 heads.  As in TASO's file a layer hands on the product of its input with the last matrix, so
    four products share each input; the attention is an output, which keeps it alive, as in TENSAT.
    """
    net = Layers("taso_bert", seed)
    x = net.add("relu", net.input("tokens", (batch * length, hidden)))
    attended = []
    for layer in range(layers):
        y, x = _attention(net, x, batch, f"layer_{layer}")
        attended.append(y)
    return net.finish(x, *attended)


def _attention(net: Layers, x: str, batch: int, name: str, heads: int = 16) -> tuple[str, str]:
    """The result of a layer's attention, and the next layer's input."""
    rows, hidden = net.shape_of(x)

    def product(role: str, gain: float = 1.0) -> str:
        deviation = math.sqrt(gain / hidden)
        return net.add("matmul", x, net.weight(name, role, (hidden, hidden), deviation))

    def in_heads(role: str, perm: tuple[int, ...]) -> str:
        parts = (batch, rows // batch, heads, hidden // heads)
        y = net.add("reshape", product(role, 1 / math.sqrt(rows)), shape=parts)
        return net.add("transpose", y, perm=perm)

    query, value = in_heads("query", (0, 2, 1, 3)), in_heads("value", (0, 2, 1, 3))
    weights = net.add("matmul", query, in_heads("key", (0, 2, 3, 1)))
    mixed = net.add("transpose", net.add("matmul", weights, value), perm=(0, 2, 1, 3))
    return net.add("reshape", mixed, shape=(rows, hidden)), product("linear", 2.0)
