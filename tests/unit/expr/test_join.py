"""Open axes that go together become one axis, and what is computed stays the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorwright.base import DType
from tensorwright.expr import (
    Compute,
    Placeholder,
    at_position,
    bind_tensors,
    compute,
    evaluate,
    is_joined_shape,
    join_open_axes,
    max_over,
    named_size,
    named_sizes_of,
    placeholder,
    reduce_axis,
    sum_over,
    topological_order,
)

B, S, T = named_size("b", greatest=4), named_size("s", greatest=6), named_size("t", greatest=5)
NUMBERS = {"b": 3, "s": 4, "t": 2}


def product() -> Compute:
    """A product of rows, and what is added to each row."""
    x, w, k = placeholder("x", (B, S, 3)), placeholder("w", (3, 5)), reduce_axis("k", 3)
    y = compute("y", (B, S, 5), lambda b, i, j: sum_over(x[b, i, k] * w[k, j], k))
    return compute("z", (B, S, 5), lambda b, i, j: y[b, i, j] + x[b, i, 0])


def heads() -> Compute:
    """A product whose rows are separated again."""
    x, w, k = placeholder("x", (B, S, 3)), placeholder("w", (3, 4)), reduce_axis("k", 3)
    y = compute("y", (B, S, 4), lambda b, i, j: sum_over(x[b, i, k] * w[k, j], k))
    return compute("z", (B, 2, S, 2), lambda b, h, i, j: y[b, i, 2 * h + j])


def scores() -> Compute:
    """Rows over their greatest element: the second axis is folded."""
    x, k = placeholder("x", (B, S)), reduce_axis("k", S)
    most = compute("most", (B,), lambda b: max_over(x[b, k], k))
    return compute("y", (B, S), lambda b, i: x[b, i] - most[b])


def places() -> Compute:
    """What is added depends on the second axis alone."""
    x, p = placeholder("x", (B, S, 3)), placeholder("p", (S, 3))
    return compute("y", (B, S, 3), lambda b, i, j: x[b, i, j] + p[i, j])


def three() -> Compute:
    """Three open axes that go together."""
    x = placeholder("x", (B, S, T, 2))
    return compute("y", (B, S, T, 2), lambda b, i, t, j: x[b, i, t, j] * 2.0)


def looked_up() -> Compute:
    """Rows of a table at positions."""
    table, at = placeholder("table", (7, 3)), placeholder("at", (B, S), DType.I64)
    return compute("y", (B, S, 3), lambda b, i, j: table[at_position(at, (b, i), 7), j])


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (product, {"x": (B * S, 3), "w": (3, 5), "y": (B * S, 5), "z": (B * S, 5)}),
        (heads, {"x": (B * S, 3), "w": (3, 4), "y": (B * S, 4), "z": (B, 2, S, 2)}),
        (scores, {"x": (B, S), "most": (B,), "y": (B, S)}),
        (places, {"x": (B, S, 3), "p": (S, 3), "y": (B, S, 3)}),
        (three, {"x": (B * S * T, 2), "y": (B * S * T, 2)}),
        (looked_up, {"table": (7, 3), "at": (B * S,), "y": (B * S, 3)}),
    ],
)
def test_axes_that_go_together_are_joined(
    make: Callable[[], Compute], shapes: dict[str, tuple[object, ...]]
) -> None:
    given = make()
    (joined,) = join_open_axes((given,))
    order = topological_order(joined)
    assert {tensor.name: tensor.shape for tensor in order} == shapes
    assert all(
        is_joined_shape(tensor.shape, before.shape)
        for tensor, before in zip(order, topological_order(given), strict=True)
    )
    values = {size: NUMBERS[size.name] for size in named_sizes_of(B, S, T)}
    expected, computed = (_computed(bind_tensors((each,), values)[0]) for each in (given, joined))
    np.testing.assert_array_equal(computed.ravel(), expected.ravel())


def _computed(output: Compute) -> np.ndarray:
    generator = np.random.default_rng(0)
    inputs = {}
    for tensor in topological_order(output):
        if isinstance(tensor, Placeholder):
            shape = tuple(int(str(extent)) for extent in tensor.shape)
            inputs[tensor] = generator.integers(0, 5, shape).astype(tensor.dtype.numpy)
    return evaluate((output,), inputs)[0]


def test_shapes_with_joined_neighbours() -> None:
    assert is_joined_shape((B * S, 3), (B, S, 3))
    assert is_joined_shape((B, S * 3), (B, S, 3))
    assert not is_joined_shape((S, B, 3), (B, S, 3))
    assert not is_joined_shape((B * S,), (B, S, 3))
