"""Feature sets: columns of candidates are what is said of each program alone."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from tests.targets import AVX512
from tests.unit.tuning.helpers import matmul

from tensorwright.base import UsageError
from tensorwright.schedule import state_of
from tensorwright.tuning.features import feature_set
from tensorwright.tuning.features.source import PlansBySketch
from tensorwright.tuning.space import space_of
from tensorwright.tuning.space.sketch import Sketch

TARGET = AVX512
STATE = state_of(matmul())
SPACE = space_of(STATE, TARGET)


def test_knobs_are_the_decisions_of_the_structure() -> None:
    source = feature_set("knob").open(STATE, TARGET, SPACE)
    drawn = random.Random(1)
    widths = set()
    for number, sketch in enumerate(SPACE.sketches):
        genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(4)], np.int64)
        genes = genes.reshape(4, len(sketch.choices))
        found = source.of_sketch(sketch, genes)
        widths.add(found.shape[2])
        assert found.shape[:2] == (4, 1)
        assert (found[:, 0, 0] == number).all()
        decisions = sketch.decisions_of(tuple(genes[2].tolist()))
        assert sorted(found[2, 0, 2:][found[2, 0, 2:] > 0]) == sorted(
            value for value in decisions.values() if value
        )
        (alone,) = source.of_trace(sketch.bound(decisions))
        first = int(alone[0, 0])
        assert SPACE.sketches[first].bound(decisions) == sketch.bound(decisions)
        if first == number:
            assert np.array_equal(alone, found[2])
    assert len(widths) == 1


def test_knobs_of_another_space_are_refused() -> None:
    source = feature_set("knob").open(STATE, TARGET, SPACE)
    with pytest.raises(UsageError, match="it is of another space"):
        source.of_trace(())


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
