"""Frozen dataclasses and enums as what JSON can say, and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest

from tensorwright.base import DType, from_data, kinds_of, to_data


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    label: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Compares by identity."""

    value: object
    below: tuple[Node, ...] = ()


KINDS = kinds_of(Point, Node, DType, Spot=Point)


@pytest.mark.parametrize(
    "value",
    [1, 1.5, "text", None, True, (1, (2, "three")), Point(0.1, (1, 2)), DType.F32, math.inf],
    ids=str,
)
def test_values_survive_json(value: object) -> None:
    again = from_data(json.loads(json.dumps(to_data(value), allow_nan=False)), KINDS)
    assert again == value
    assert type(again) is type(value)


def test_nodes_that_are_shared_stay_shared() -> None:
    leaf = Node(DType.F32)
    middle = Node(1, (leaf, leaf))
    top = from_data(json.loads(json.dumps(to_data(Node(2, (leaf, middle))))), KINDS)
    assert top.below[0] is top.below[1].below[0] is top.below[1].below[1]
    assert top.below[0].value is DType.F32


def test_a_class_may_have_had_another_name() -> None:
    assert from_data({"_": "Spot", "x": 1.0, "label": []}, KINDS) == Point(1.0)


@pytest.mark.parametrize(
    "data", [{}, {"_": "Nothing"}, {"_": "Point", "y": 1}, {"#": 0}, {"_": "DType", "value": "f3"}]
)
def test_other_data_is_a_value_error(data: object) -> None:
    with pytest.raises(ValueError, match=r"Error|is not a valid"):
        from_data(data, KINDS)
