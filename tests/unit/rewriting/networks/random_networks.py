"""Small random networks of matrices, images and volumes."""

from __future__ import annotations

import random

import numpy as np

from tensorwright.graph import Graph, GraphBuilder
from tensorwright.ops import Array

_FUNCTIONS = ("relu", "tanh", "sigmoid", "exp", "gelu", "neg")
_PAIRS = ("add", "mul", "sub")


def random_matrices(seed: int, steps: int = 9) -> Graph:
    """Products that share factors, sums, functions, parts and joins of matrices."""
    draw = random.Random(seed)
    b = GraphBuilder(f"matrices_{seed}")
    values = [b.input("x", (4, 6)), b.input("y", (4, 6))]
    for _ in range(steps):
        kind = draw.choice(("product", "product", "product", "pair", "function", "join", "part"))
        one = draw.choice(values[-6:])
        rows, columns = b.shape_of(one)
        if kind == "product":
            w = b.constant(_weights(draw, columns, draw.choice((6, 6, 4))))
            made = b.add("matmul", one, w)
            if draw.random() < 0.4:
                made = b.add("add", made, b.constant(_weights(draw, b.shape_of(made)[1])))
        elif kind == "pair":
            others = [each for each in values if b.shape_of(each) == (rows, columns)]
            made = b.add(draw.choice(_PAIRS), one, draw.choice(others))
        elif kind == "function":
            made = b.add(draw.choice(_FUNCTIONS), one)
        elif kind == "join":
            others = [each for each in values if b.shape_of(each)[0] == rows]
            made = b.add("concat", one, draw.choice(others), draw.choice(others), axis=1)
        else:
            made = b.add("slice", one, axes=(1,), starts=(1,), ends=(max(2, columns - 1),))
        values.append(made)
    return b.finish(tuple(dict.fromkeys(values[-3:])))


def random_images(seed: int, steps: int = 8, extents: tuple[int, ...] = (6, 6)) -> Graph:
    """Convolutions that share images, with and without bias and groups, pools, sums and joins."""
    draw = random.Random(seed)
    b = GraphBuilder(f"images_{seed}")
    values = [b.input("x", (1, 4, *extents)), b.input("y", (1, 4, *extents))]
    for _ in range(steps):
        kind = draw.choice(("conv", "conv", "conv", "pool", "pair", "function", "join", "split"))
        one = draw.choice(values[-5:])
        channels = b.shape_of(one)[1]
        if kind == "conv":
            size, groups = draw.choice((1, 3, 3)), draw.choice((1, 1, 2))
            groups = groups if channels % groups == 0 else 1
            kernel = _weights(draw, 4, channels // groups, *(size for _ in extents))
            bias = [b.constant(_weights(draw, 4))] if draw.random() < 0.4 else []
            pads = (size // 2,) * 2 * len(extents)
            made = b.add("conv", one, b.constant(kernel), *bias, pads=pads, groups=groups)
        elif kind == "pool":
            name = draw.choice(("max_pool", "average_pool"))
            counts = {"count_include_pad": True} if name == "average_pool" else {}
            window = {"kernel": (3,) * len(extents), "pads": (1,) * 2 * len(extents)}
            made = b.add(name, one, **window, **counts)
        elif kind == "pair":
            others = [each for each in values if b.shape_of(each) == b.shape_of(one)]
            made = b.add(draw.choice(_PAIRS), one, draw.choice(others))
        elif kind == "function":
            made = b.add(draw.choice(_FUNCTIONS[:3]), one)
        elif kind == "join":
            made = b.add("concat", one, draw.choice(values), axis=1)
        else:
            half = channels // 2
            values += b.apply("split", (one,), sizes=(half, channels - half), axis=1)
            continue
        values.append(made)
    return b.finish(tuple(dict.fromkeys(values[-3:])))


def random_volumes(seed: int) -> Graph:
    """As images, over planes, rows and columns."""
    return random_images(seed, extents=(3, 2, 4))


def _weights(draw: random.Random, *shape: int) -> Array:
    drawn = np.random.default_rng(draw.randrange(1 << 30)).standard_normal(shape)
    return (drawn / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)
