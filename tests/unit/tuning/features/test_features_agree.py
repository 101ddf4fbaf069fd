"""Features of columns of candidates are those of the loop nests lowered from their decisions."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.draws import random_source, some_of
from tests.unit.tuning.features import programs

from tensorwright.schedule import state_of
from tensorwright.tuning.features import FEATURE_NAMES, Featurizer
from tensorwright.tuning.space import space_of

Features = NDArray[np.float32]


@pytest.mark.parametrize("name", some_of(programs.GRAPHS, 4, "columns"))
@pytest.mark.drawn
def test_columns_are_what_is_lowered(name: str) -> None:
    drawn = random_source(3)
    compared = 0
    workload = programs.workload_of(name)
    state = state_of(workload)
    featurizer = Featurizer(state, programs.TARGET)
    for sketch in space_of(state, programs.TARGET).sketches:
        if name in programs.BLOCKS_INSIDE and sketch.name.startswith("tile"):
            continue
        genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(5)], np.int64)
        genes = genes.reshape(5, len(sketch.choices))
        columns = featurizer.of_sketch(sketch, genes)
        assert columns.dtype == np.float32
        assert columns.shape[::2] == (5, len(FEATURE_NAMES))
        assert np.isfinite(columns).all()
        for row in (0, 4):
            decisions = sketch.decisions_of(tuple(genes[row].tolist()))
            if programs.is_too_large(name, decisions):
                continue
            lowered = featurizer.of_trace(sketch.bound(decisions))[0]
            assert not _differing(columns[row], lowered), f"{sketch.name} {decisions}"
            compared += 1
    assert compared


def _differing(one: Features, other: Features) -> dict[tuple[int, str], tuple[float, float]]:
    """The features in which the statements of two programs differ."""
    apart = np.abs(one - other) > 1e-6 * (1 + np.abs(other))
    return {
        (statement, FEATURE_NAMES[n]): (float(one[statement, n]), float(other[statement, n]))
        for statement, n in zip(*map(np.ndarray.tolist, np.nonzero(apart)), strict=True)
    }


def test_features_do_not_depend_on_the_company() -> None:
    """A candidate alone has the features that it has among others."""
    workload = programs.workload_of("matmul")
    state = state_of(workload)
    sketch = space_of(state, programs.TARGET).sketches[-1]
    drawn = random.Random(0)
    genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(9)], np.int64)
    featurizer = Featurizer(state, programs.TARGET)
    together = featurizer.of_sketch(sketch, genes)
    for n in range(len(genes)):
        assert np.array_equal(featurizer.of_sketch(sketch, genes[n : n + 1])[0], together[n])


def test_there_are_173() -> None:
    assert len(FEATURE_NAMES) == len(set(FEATURE_NAMES)) == 173
