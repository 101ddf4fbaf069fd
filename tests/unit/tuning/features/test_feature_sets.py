"""Feature sets by name, and what sources of features share."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.targets import AVX512
from tests.unit.tuning.helpers import matmul

from tensorwright.base import UsageError
from tensorwright.schedule import state_of
from tensorwright.tuning.features import feature_set
from tensorwright.tuning.features.featurizer import PlansBySketch
from tensorwright.tuning.space import space_of
from tensorwright.tuning.space.sketch import Sketch

SPACE = space_of(state_of(matmul()), AVX512)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean knob"):
        feature_set("knobs")


def test_what_is_worked_out_for_a_sketch_is_kept_for_equal_ones() -> None:
    plans: PlansBySketch[int] = PlansBySketch()
    made: list[str] = []

    def make(sketch: Sketch) -> int:
        made.append(sketch.name)
        return len(made)

    first, second = SPACE.sketches[:2]
    assert [plans.get(each, make) for each in (first, second, first)] == [1, 2, 1]
    assert plans.get(replace(first, name="another"), make) == 1
    assert made == [first.name, second.name]


def test_the_table_of_a_choice_is_made_once() -> None:
    choice = next(each for sketch in SPACE.sketches for each in sketch.choices)
    assert choice.table is choice.table
    assert choice.table.tolist() == [list(row) for row in choice.values]
    assert replace(choice) == choice
