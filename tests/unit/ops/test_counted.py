"""Operators whose values decide how much there is of their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.ops.apply import apply, floats

from tensorwright.base import DType, InputError
from tensorwright.expr import counted_size, named_size
from tensorwright.ops import OPERATORS, TensorType, infer_types, operator

F32, I64 = DType.F32, DType.I64
COUNT = counted_size("n", 9)
ANY = {"count": COUNT, "most": 9}


def results_of(name: str, *arrays: Any, **attributes: Any) -> list[Any]:
    """What the host gives where values decide how much that is."""
    host = operator(name).host
    assert host is not None
    results = host(arrays, operator(name).complete({**ANY, **attributes}))
    return [result.tolist() for result in results]


def test_positions_and_distinct_elements() -> None:
    x, repeated = np.array([[0, 5], [7, 0]]), np.array([3, 1, 3, 2])
    assert results_of("nonzero", x) == [[[0, 1], [1, 0]]]
    assert results_of("nonzero", np.zeros((2, 3))) == [[[], []]]
    assert results_of("unique", repeated) == [[1, 2, 3], [1, 3, 0], [2, 0, 2, 1], [1, 1, 2]]
    first = results_of("unique", repeated, sorted=False)
    assert first == [[3, 1, 2], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]]
    columns = results_of("unique", np.array([[1, 0, 1], [2, 0, 2]]), flat=False, axis=1)
    assert columns == [[[0, 1], [0, 2]], [1, 0], [1, 0, 1], [1, 2]]


@pytest.mark.parametrize("count", [0, 2, 3, 5])
def test_a_number_of_results_leaves_out_or_fills_in(count: int) -> None:
    x = np.array([[3, 0], [0, 0], [1, 2]])
    (positions,) = apply("nonzero", x, count=count, most=6)
    whole = np.stack(np.nonzero(x))
    assert np.array_equal(positions[:, :3], whole[:, :count])
    assert not positions[:, 3:].any()
    values, *_ = apply("unique", x, count=count, most=6)
    assert values.tolist() == [0, 1, 2, 3, 0][:count]
    (numbers,) = apply("range_below", np.array(4), count=count, most=6)
    assert numbers.tolist() == [0, 1, 2, 3, 0][:count]


def test_the_numbers_below_a_number() -> None:
    assert results_of("range_below", np.array(3)) == [[0, 1, 2]]
    assert results_of("range_below", np.array([0])) == [[]]
    beyond = results_of("range_below", np.array(1 << 60))
    assert len(beyond[0]) == 10, "one more than there may be, which is refused later"
    with pytest.raises(InputError, match="size n: the network computes -2 for it"):
        results_of("range_below", np.array(-2))


def overlap(one: Any, other: Any) -> float:
    """Intersection over union of two boxes of corners."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    common = np.prod(np.maximum(sides, 0))
    return float(common / (np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]) - common))


@pytest.mark.parametrize("is_centred", [False, True])
@pytest.mark.parametrize(("most", "iou", "least"), [(4, 0.3, 0.2), (99, 0.0, -9.0), (3, 1.0, 2.0)])
def test_suppressed_boxes(most: int, iou: float, least: float, is_centred: bool) -> None:
    low = floats(2, 12, 2, low=0, high=3)
    corners = np.concatenate([low, low + floats(2, 12, 2, low=0.1, high=2)], axis=2)
    scores = floats(2, 3, 12, low=0, high=1)
    wanted = []
    for example, label in np.ndindex(2, 3):
        kept: list[int] = []
        for box in np.argsort(-scores[example, label], kind="stable"):
            is_apart = all(overlap(corners[example, k], corners[example, box]) <= iou for k in kept)
            if len(kept) < most and scores[example, label, box] > least and is_apart:
                kept.append(int(box))
        wanted += [[example, label, box] for box in kept]
    given = corners
    if is_centred:
        one, other = corners[..., :2], corners[..., 2:]
        given = np.concatenate([(one + other) / 2, other - one], axis=2)
    thresholds = (np.array([iou], np.float32), np.array([least], np.float32))
    arrays = (given, scores, np.array([most]), *thresholds)
    assert results_of("non_max_suppression", *arrays, center_point_box=is_centred) == [wanted]


def test_empty_boxes_overlap_nothing() -> None:
    boxes = np.array([[[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 2, 2], [2, 2, 0, 0]]], np.float32)
    scores = np.array([[[4, 3, 2, 1]]], np.float32)
    thresholds = (np.float32(0.0), np.float32(0.0))
    rows = results_of(
        "non_max_suppression", boxes, scores, np.array(9), *map(np.asarray, thresholds)
    )
    assert rows == [[[0, 0, 0], [0, 0, 1], [0, 0, 2]]]


def test_shapes_have_the_size_that_is_decided() -> None:
    n, x = named_size("b"), TensorType(F32, (named_size("b"), 4))
    types, _ = infer_types("nonzero", (x,), ANY)
    assert str(types[0]) == "i64(2, n)"
    types, _ = infer_types("unique", (x,), ANY)
    assert ", ".join(map(str, types)) == "f32(n), i64(n), i64(4*b), i64(n)"
    types, _ = infer_types("unique", (x,), {**ANY, "flat": False, "axis": 1})
    assert ", ".join(map(str, types)) == "f32(b, n), i64(n), i64(4), i64(n)"
    boxes, scores, one = TensorType(F32, (n, 7, 4)), TensorType(F32, (n, 3, 7)), TensorType(F32, ())
    most = TensorType(I64, (1,))
    types, _ = infer_types("non_max_suppression", (boxes, scores, most, one, one), ANY)
    assert str(types[0]) == "i64(n, 3)"


def test_what_an_operator_decides_is_one_of_its_attributes() -> None:
    for each in OPERATORS:
        if each.decides:
            assert each.decides in {attribute.name for attribute in each.attributes}
            assert each.host is not None, "a size is told by what the host gives"
