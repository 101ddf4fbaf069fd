"""Networks as TASO's examples define them (Jia et al., SOSP 2019), for comparison with its results.

They are not the networks whose names they bear: no normalisation, no biases, no classifier, and the
attention of BERT neither normalises nor goes on.  NasNet-A and NasRNN have files of their own.
"""

from __future__ import annotations

import math

from tensorwright.graph import Graph
from tensorwright_lab.zoo.architectures.layers import BRANCH, Layers

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
