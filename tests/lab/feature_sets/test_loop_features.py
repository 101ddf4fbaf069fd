"""Features over loops in native code are those that NumPy computes for whole populations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lab.feature_sets import loop_reference

from tensorwright_lab.feature_sets.loop_features import CONTEXT, ITERVAR, LOOP_TREES
from tensorwright_lab.feature_sets.loop_kernel import (
    KINDS,
    LOOPS,
    OPERATIONS,
    CellRows,
    LoopFormula,
    run_formula,
)
from tensorwright_lab.feature_sets.relation_curves import QUANTITIES, CurveSettings
from tensorwright_lab.feature_sets.relation_curves import relation_curves as curve_formula

Features = NDArray[np.float32]
EVERY = tuple((x, y) for x in QUANTITIES for y in QUANTITIES if x != y)
CURVES = {
    "published": CurveSettings(EVERY, 30),
    "published, one sample": CurveSettings(EVERY[:4], 1),
    "paired": CurveSettings(EVERY, 30, is_paired=True),
}
FORMULAS: dict[str, tuple[LoopFormula, Callable[[loop_reference.LoopArrays], Features]]] = {
    "itervar": (ITERVAR, loop_reference.itervar),
    "context": (CONTEXT, loop_reference.context),
    "loop-tree": (LOOP_TREES, loop_reference.loop_tree),
    **{
        name: (curve_formula(settings), partial(loop_reference.relation_curves, settings=settings))
        for name, settings in CURVES.items()
    },
}


def drawn_cells(
    seed: int, statements: int, rows: CellRows, count: int
) -> tuple[Features, NDArray[np.int64], NDArray[np.int64]]:
    """Loops as lowering might give them; many have one iteration, and buffers tie in bytes."""
    source = np.random.default_rng(seed)
    cells = np.zeros((statements, rows.count, count), np.float32)
    lengths = (1, 1, 2, 3, 4, 8) if rows.loops < LOOPS else (1, 2, 2)
    cells[:, : rows.loops] = source.choice(lengths, (statements, rows.loops, count))
    touching = (statements, rows.buffers * rows.loops, count)
    moves = source.integers(0, 2, touching)
    ends = (rows.stride, rows.period, rows.nbytes)
    values = (
        moves,
        moves * source.integers(0, 50, touching),
        moves * source.integers(1, 9, touching),
    )
    for end, value in zip(ends, values, strict=True):
        cells[:, end - touching[1] : end] = value
    nbytes = source.choice((0, 4, 4, 64, 4096), (statements, rows.buffers, count))
    nbytes[:, 0] = 16
    cells[:, rows.nbytes : rows.nbytes + rows.buffers] = nbytes
    cells[:, rows.operations :] = source.integers(0, 4, (statements, len(OPERATIONS), count))
    for b in range(rows.buffers):  # what is not touched has no places
        is_unused = np.broadcast_to((nbytes[:, b] == 0)[:, None], (statements, rows.loops, count))
        for first in (rows.moves, rows.stride, rows.period):
            part = cells[:, first + b * rows.loops : first + (b + 1) * rows.loops]
            part[is_unused] = 0
    shape = (statements, rows.loops)
    return cells, source.integers(0, len(KINDS), shape), source.integers(0, statements, shape)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize(
    ("loops", "buffers", "count"), [(0, 1, 3), (1, 1, 5), (6, 3, 40), (13, 9, 40), (33, 4, 20)]
)
def test_native_code_gives_what_numpy_gives(
    name: str, loops: int, buffers: int, count: int
) -> None:
    formula, reference = FORMULAS[name]
    rows = CellRows(loops, buffers)
    for seed in range(3):
        given = drawn_cells(seed, 3, rows, count)
        found = run_formula(formula, rows, *given)
        assert found.shape == (count, 3, formula.columns)
        expected = np.moveaxis(reference(loop_reference.loop_arrays(rows, *given)), -1, 0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


def test_a_candidate_alone_has_the_features_that_it_has_among_others() -> None:
    rows = CellRows(7, 3)
    cells, kinds, first = drawn_cells(1, 2, rows, 9)
    for formula, _ in FORMULAS.values():
        together = run_formula(formula, rows, cells, kinds, first)
        for n in range(9):
            alone = run_formula(formula, rows, cells[:, :, n : n + 1], kinds, first)
            assert np.array_equal(alone[0], together[n])


def test_no_candidates_and_no_statements() -> None:
    rows = CellRows(2, 1)
    none = np.zeros((0, 2), np.int64)
    assert (
        run_formula(ITERVAR, rows, np.zeros((0, rows.count, 4), np.float32), none, none).size == 0
    )
    kinds = np.zeros((1, 2), np.int64)
    found = run_formula(ITERVAR, rows, np.zeros((1, rows.count, 0), np.float32), kinds, kinds)
    assert found.shape == (0, 1, ITERVAR.columns)
