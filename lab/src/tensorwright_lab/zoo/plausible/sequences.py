"""Families of networks over time: recurrent steps, one-dimensional convolutions."""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.plausible.drawer import Drawer


def recurrent(net: Drawer) -> Graph:
    """A few steps of a long short-term memory or a gated recurrent unit."""
    rows, inputs, width = net.fitting(
        lambda: (net.pick(1, 1, 1, 2, 4, 16), net.width(512), net.width(512)),
        lambda n, i, d: 4.0 * n * d * (i + d),
    )
    step = _memory if net.chance(0.5) else _gated
    state, cell = net.input((rows, width)), net.input((rows, width))
    for _ in range(net.pick(1, 2)):
        state, cell = step(net, net.input((rows, inputs)), state, cell)
    return net.finish(state, cell) if step is _memory else net.finish(state)


def _memory(net: Drawer, x: str, state: str, cell: str) -> tuple[str, str]:
    width = net.shape(state)[-1]
    gates = net.add("add", net.linear(x, 4 * width), net.linear(state, 4 * width))
    parts = net.builder.apply("split", (gates,), sizes=(width,) * 4, axis=-1)
    enter, leave, forget = (net.add("sigmoid", part) for part in parts[:3])
    fresh = net.add("mul", enter, net.add("tanh", parts[3]))
    cell = net.add("add", net.add("mul", forget, cell), fresh)
    return net.add("mul", leave, net.add("tanh", cell)), cell


def _gated(net: Drawer, x: str, state: str, cell: str) -> tuple[str, str]:
    width = net.shape(state)[-1]
    ours = net.builder.apply("split", (net.linear(x, 3 * width),), sizes=(width,) * 3, axis=-1)
    theirs = net.builder.apply(
        "split", (net.linear(state, 3 * width),), sizes=(width,) * 3, axis=-1
    )
    reset, update = (net.add("sigmoid", net.add("add", ours[n], theirs[n])) for n in range(2))
    fresh = net.add("tanh", net.add("add", ours[2], net.add("mul", reset, theirs[2])))
    rest = net.add("sub", net.scalar(1.0), update)
    return net.add("add", net.add("mul", rest, fresh), net.add("mul", update, state)), cell


def waves(net: Drawer) -> Graph:
    """Convolutions over time: causal and dilated with gates, or strided ones of raw sound."""
    kernel = net.pick(1, 2, 3, 3, 5, 7, 8, 10)
    inputs, outputs, length = net.fitting(
        lambda: (net.channels(512), net.channels(512), net.pick(64, 100, 256, 500, 1000, 4000)),
        lambda c, o, n: c * o * n * kernel,
    )
    x = net.input((1, inputs, length))
    if net.chance(0.5):
        dilation = net.pick(1, 2, 4, 8, 16)
        reach = dilation * (kernel - 1)
        y = net.add("pad", x, pads=(0, 0, reach, 0, 0, 0)) if reach else x
        y = net.conv(y, outputs, (kernel,), pad=0, dilation=dilation)
        if net.chance(0.6) and outputs % 2 == 0:
            half = outputs // 2
            left, right = net.builder.apply("split", (y,), sizes=(half, half), axis=1)
            y = net.add("mul", net.add("tanh", left), net.add("sigmoid", right))
            y = net.conv(y, inputs, (1,))
            return net.finish(net.add("add", x, y))
        return net.finish(net.activation(y))
    y = net.conv(x, outputs, (kernel,), stride=net.pick(1, 2, 4, 5), pad=0)
    y = net.activation(net.channel_norm(y) if net.chance(0.3) else y)
    if net.chance(0.4):
        y = net.add("transpose", y, perm=(0, 2, 1))
        y = net.row_norm(y) if net.chance(0.6) else y
    return net.finish(y)


def separable_waves(net: Drawer) -> Graph:
    """A product at each time step and a convolution of each channel, with normalisation."""
    channels, length = net.fitting(
        lambda: (net.channels(512, 8), net.pick(64, 100, 250, 500, 1000)),
        lambda c, n: 2.0 * c * c * n,
    )
    x = net.input((1, channels, length))
    kernel, dilation = net.pick(3, 3, 5, 9, 15, 31), net.pick(1, 1, 2, 4, 8)
    y = net.activation(net.conv(x, 2 * channels, (1,)))
    y = net.conv(y, 2 * channels, (kernel,), groups=2 * channels, dilation=dilation)
    if net.chance(0.4):
        mean = net.add("reduce_mean", y, axes=(1, 2))
        centred = net.add("sub", y, mean)
        variance = net.add("reduce_mean", net.add("mul", centred, centred), axes=(1, 2))
        deviation = net.add("sqrt", net.add("add", variance, net.scalar(1e-8)))
        y = net.add("mul", net.add("div", centred, deviation), net.constant(1, 2 * channels, 1))
    y = net.conv(net.activation(y), channels, (1,))
    return net.finish(net.add("add", x, y))
