"""Features of loops of candidates are those of the loop nests lowered from their decisions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.draws import random_source
from tests.unit.tuning.features import programs

from tensorwright.schedule import state_of
from tensorwright.tuning.features import feature_set
from tensorwright.tuning.space import space_of

LOOP_SETS = (
    "itervar",
    "context",
    "loop-tree",
    "curve-fix@8",
    "curve-paired@8:count/reuse,count/topdown,reuse>bottomup",
)


@pytest.mark.parametrize("name", programs.GRAPHS)
@pytest.mark.drawn
def test_loops_of_columns_are_what_is_lowered(name: str) -> None:
    drawn = random_source(5)
    workload = programs.workload_of(name)
    state = state_of(workload)
    space = space_of(state, programs.TARGET)
    sets = [feature_set(each) for each in LOOP_SETS]
    sources = [each.open(state, programs.TARGET, space) for each in sets]
    compared = 0
    for sketch in space.sketches[:6]:
        if name in programs.BLOCKS_INSIDE and sketch.name.startswith("tile"):
            continue
        genes = np.array([sketch.genes_of(sketch.sample(drawn)) for _ in range(3)], np.int64)
        genes = genes.reshape(3, len(sketch.choices))
        for each, source in zip(sets, sources, strict=True):
            columns = source.of_sketch(sketch, genes)
            assert columns.dtype == np.float32
            assert columns.shape[::2] == (3, len(each.columns))
            assert np.isfinite(columns).all()
            for row in (0, 2):
                decisions = sketch.decisions_of(tuple(genes[row].tolist()))
                if programs.is_too_large(name, decisions):
                    continue
                lowered = source.of_trace(sketch.bound(decisions))[0]
                apart = np.argwhere(~np.isclose(columns[row], lowered, rtol=1e-5, atol=1e-5))
                assert not len(apart), [
                    (s, each.columns[n], columns[row][s, n], lowered[s, n]) for s, n in apart[:5]
                ]
                compared += 1
    assert compared
