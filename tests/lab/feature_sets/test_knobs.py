"""The raw configuration as features."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.targets import AVX512
from tests.unit.tuning.helpers import matmul

from tensorwright.base import UsageError
from tensorwright.schedule import state_of
from tensorwright.tuning.features import feature_set
from tensorwright.tuning.space import space_of

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
