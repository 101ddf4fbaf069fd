"""Families without weights: element-wise chains, reductions, softmax, products, rearrangements."""

from __future__ import annotations

from tensorwright.graph import Graph
from tensorwright_lab.zoo.plausible.drawer import Drawer

_MOST_ELEMENTS = 2_000_000


def _tensor(net: Drawer, rank: int | None = None) -> str:
    rank = rank or net.pick(2, 3, 3, 4, 4)

    def draw() -> tuple[int, ...]:
        middle = tuple(net.size() if net.chance(0.5) else net.channels() for _ in range(rank - 1))
        return (net.batch(), *middle)

    def work(*shape: int) -> float:
        count = 1.0
        for extent in shape:
            count *= extent
        return count * net.work / _MOST_ELEMENTS

    return net.input(net.fitting(draw, work))


def elementwise(net: Drawer) -> Graph:
    """A chain of element-wise operators with operands that are broadcast."""
    x = _tensor(net)
    y = x
    for _ in range(net.pick(1, 2, 3, 4)):
        shape = net.shape(x)
        kind = net.random.random()
        if kind < 0.4:
            y = net.activation(y, none=0.0)
        elif kind < 0.6:
            y = net.add(net.random.choice(("add", "mul", "sub")), y, net.input(shape))
        elif kind < 0.8:
            y = net.add(net.random.choice(("add", "mul")), y, net.constant(shape[-1]))
        else:
            thin = tuple(extent if net.chance(0.5) else 1 for extent in shape)
            y = net.add(
                net.random.choice(("add", "mul", "div")), y, net.constant(*thin, low=1, high=2)
            )
    return net.finish(y)


def reductions(net: Drawer) -> Graph:
    """Some axes folded, with something element-wise before and after."""
    x = _tensor(net)
    rank = len(net.shape(x))
    first = net.random.randrange(rank)
    axes = tuple(sorted({first, net.random.randrange(rank)} if net.chance(0.4) else {first}))
    operator = net.random.choice(("reduce_mean", "reduce_sum", "reduce_max", "reduce_l2"))
    y = net.add(operator, net.activation(x, none=0.6), axes=axes, keepdims=net.chance(0.5))
    if len(net.shape(y)) == rank and net.chance(0.5):
        return net.finish(net.add("sub", x, y))
    return net.finish(net.activation(y, none=0.5))


def normalised_rows(net: Drawer) -> Graph:
    """Softmax, layer normalisation or unit length along an axis, with neighbours."""
    x = _tensor(net)
    kind = net.random.random()
    if kind < 0.35:
        axis = -1 if net.chance(0.7) else net.random.randrange(1, len(net.shape(x)))
        y = net.add("mul", x, net.scalar(0.125)) if net.chance(0.5) else x
        return net.finish(net.add("softmax", y, axis=axis))
    if kind < 0.8:
        y = net.add("add", x, net.input(net.shape(x))) if net.chance(0.5) else x
        y = net.row_norm(y)
        return net.finish(net.activation(y, none=0.6))
    return net.finish(net.add("lp_normalization", x, axis=net.random.choice((-1, 1))))


def rearranged(net: Drawer) -> Graph:
    """Transposes, reshapes, slices, pads and joins, with something element-wise."""
    x = net.activation(_tensor(net), none=0.6)
    shape = net.shape(x)
    rank = len(shape)
    kind = net.random.random()
    if kind < 0.5:
        perm = list(range(rank))
        net.random.shuffle(perm)
        y = net.add("transpose", x, perm=tuple(perm))
        if net.chance(0.4):
            low, *rest = net.shape(y)
            y = net.add("reshape", y, shape=(low * rest[0], *rest[1:]))
    elif kind < 0.7:
        axis = net.random.randrange(1, rank)
        y = net.add("concat", x, net.add("neg", net.input(shape)), axis=axis)
    elif kind < 0.85:
        pads = tuple(net.pick(0, 1, 2) for _ in range(2 * rank))
        mode = "constant" if net.chance(0.6) or max(pads) >= min(shape) else "edge"
        y = net.add("pad", x, pads=pads, mode=mode)
    else:
        starts = tuple(extent // 4 for extent in shape)
        y = net.add("slice", x, starts=starts, ends=shape)
    return net.finish(net.activation(y, none=0.6))


def products(net: Drawer) -> Graph:
    """Products of activations, at times batched or with one side transposed."""
    batch, rows, depth, columns = net.fitting(
        lambda: (net.pick(1, 1, 2, 4, 8, 12), net.length(), net.width(), net.length()),
        lambda b, m, k, n: b * m * k * n,
    )
    x = net.input((batch, rows, depth) if batch > 1 else (rows, depth))
    other = (columns, depth) if net.chance(0.4) else (depth, columns)
    y = net.input((batch, *other) if batch > 1 else other)
    if other[0] == columns and other != (depth, columns):
        perm = (0, 2, 1) if batch > 1 else (1, 0)
        y = net.add("transpose", y, perm=perm)
    z = net.add("matmul", x, y)
    z = net.add("mul", z, net.scalar(0.125)) if net.chance(0.4) else z
    return net.finish(net.activation(z, none=0.6))
