"""Arithmetic on columns is arithmetic on each candidate's numbers; how expressions move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.expr import Decision, Index, Relation, Var, all_of, compare, free_vars, minimum
from tensorwright.tuning.features.columns import (
    Cell,
    Column,
    ColumnGraph,
    above,
    absolute,
    choose,
    divided,
    either,
    floored,
    larger,
    remainder,
    rounded_up,
    same,
    smaller,
)
from tensorwright.tuning.features.loop_dependence import Variables

BINARY: tuple[Callable[[Cell, Cell], Cell], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    smaller,
    larger,
    above,
    same,
    lambda a, b: floored(a, larger(absolute(b), 1)),
    lambda a, b: remainder(a, larger(absolute(b), 1)),
    lambda a, b: rounded_up(a, larger(absolute(b), 1)),
    lambda a, b: choose(above(a, b), a, b),
    lambda a, b: either(above(a, 0), above(b, 0)),
)
STEPS = st.lists(
    st.tuples(st.integers(0, len(BINARY) - 1), st.integers(0, 30), st.integers(0, 30)),
    min_size=1,
    max_size=12,
)


def _compute(steps: list[tuple[int, int, int]], start: list[Cell]) -> list[Cell]:
    cells = list(start)
    for operation, a, b in steps:
        found = BINARY[operation](cells[a % len(cells)], cells[b % len(cells)])
        cells.append(smaller(larger(found, -1000), 1000))
    return cells


@settings(max_examples=60)
@given(STEPS, st.lists(st.tuples(*[st.integers(-9, 9)] * 2), min_size=1, max_size=5))
def test_columns_hold_what_each_candidate_has(
    steps: list[tuple[int, int, int]], rows: list[tuple[int, int]]
) -> None:
    graph = ColumnGraph()
    numbers: list[Cell] = [0, 1, 7]
    cells = _compute(steps, [graph.column("x"), graph.column("y"), *numbers])
    results = [cell for cell in cells if isinstance(cell, Column)]
    table = np.array(rows)
    found = graph.program(results).run({"x": table[:, 0], "y": table[:, 1]}, len(rows))
    columns = iter(found)
    for n, cell in enumerate(cells):
        expected = [_compute(steps, [x, y, *numbers])[n] for x, y in rows]
        got = next(columns) if isinstance(cell, Column) else cell
        assert np.array_equal(np.broadcast_to(got, len(rows)), expected)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 31, 32, 33, 100, 257])
def test_any_number_of_candidates_is_computed(count: int) -> None:
    graph = ColumnGraph()
    x, y = graph.column("x"), graph.column("y")
    cells = [x, floored(x * 5, y), smaller(x, y) - 2.5, choose(above(x, y), y, 9), divided(x, 4)]
    results = [cell for cell in cells if isinstance(cell, Column)]
    random = np.random.default_rng(count)
    a, b = random.integers(-99, 99, count), random.integers(1, 9, count)
    found = graph.program(results).run({"x": a, "y": b}, count)
    expected = [a, np.floor(a * 5 / b), np.minimum(a, b) - 2.5, np.where(a > b, b, 9), a / 4]
    assert found.shape == (len(results), count)
    assert np.array_equal(found, expected)


def test_programs_of_one_graph_share_what_is_alike() -> None:
    graph = ColumnGraph()
    x, y = graph.column("x"), graph.column("y")
    first, second = x * 3, (x * 3 + y) * 2
    assert isinstance(first, Column)
    assert isinstance(second, Column)
    columns = {"x": np.array([1, 2]), "y": np.array([10, 20])}
    assert len(graph.program([first])) == 1
    assert graph.program([first]).run({"x": columns["x"]}, 2).tolist() == [[3, 6]]
    assert graph.program([second, first]).run(columns, 2).tolist() == [[26, 52], [3, 6]]


def test_a_program_outlives_its_graph() -> None:
    graph = ColumnGraph()
    total = graph.column("x") + 2
    assert isinstance(total, Column)
    program = graph.program([total])
    graph.clear()
    assert program.run({"x": np.array([1, 5])}, 2).tolist() == [[3, 7]]


def test_equal_steps_are_taken_once_and_dead_ones_never() -> None:
    graph = ColumnGraph()
    x = graph.column("x")
    twice, again = x * 3 + 1, x * 3 + 1
    assert twice is again
    assert isinstance(twice, Column)
    divided(x, 7)  # nobody asks for it
    assert len(graph.program([twice])) == 2


def test_numbers_are_computed_at_once() -> None:
    x = ColumnGraph().column("x")
    assert x * 0 == 0
    assert x * 1 is x
    assert x + 0 is x
    assert x - x == 0
    assert choose(1, x, 5) is x
    assert floored(17, 5) == 3


@pytest.mark.parametrize(
    ("index", "span"),
    [
        (Var("i") * 3, 33),
        (Var("i") * -3 + 40, 33),
        (Var("i") // 4, 2),
        (Var("i") % 5, 4),  # neither end is the farthest
        ((Var("i") * 2) % 7, 6),
        ((Var("i") // 2) % 4, 3),
        (minimum(Var("i") * 4, 20), 20),
        (Var("j") + 7, 0),
    ],
)
def test_spans_over_twelve_iterations(index: Index, span: int) -> None:
    variables = Variables(ColumnGraph())
    variables.add(Var("i"), 12)
    variables.add(Var("j"), 5)
    moving = Var("i") in free_vars(index)
    assert (variables.dependence(index, Var("i")).span if moving else 0) == span


def test_conditions_are_decided_where_they_are_certain() -> None:
    variables = Variables(ColumnGraph())
    i = Var("i")
    variables.add(i, 12)

    def bounds(relation: Relation, left: Index, right: Index) -> tuple[Cell, Cell, Cell]:
        found = variables.condition_bounds(compare(relation, left, right))
        return found.always, found.never, found.open_count

    assert bounds(Relation.LT, i, 12) == (1, 0, 0)
    assert bounds(Relation.LT, i, 11) == (0, 0, 1)
    assert bounds(Relation.LT, i * 2 + 5, 5) == (0, 1, 0)
    assert bounds(Relation.LE, 0, i) == (1, 0, 0)
    assert bounds(Relation.EQ, i, 3) == (0, 0, 1)
    both = all_of(compare(Relation.LT, i, 12), compare(Relation.LT, i, 4))
    assert variables.condition_bounds(both).open_count == 1


def test_loops_are_cut_off_by_what_never_runs() -> None:
    variables = Variables(ColumnGraph())
    i, j = Var("i"), Var("j")
    variables.add(i, 8)
    variables.add(j, 40)
    variables.clip(compare(Relation.LT, i * 4 + j, 30))
    assert variables.extents == {i: 8, j: 30}


def test_open_extents_move_with_their_decisions() -> None:
    graph = ColumnGraph()
    variables = Variables(graph)
    i = Var("i")
    variables.add(i, Decision("tile"))
    span = variables.dependence(i * Decision("step"), i).span
    assert isinstance(span, Column)
    (found,) = graph.program([span]).run({"tile": np.array([1, 4]), "step": np.array([7, 3])}, 2)
    assert found.tolist() == [0, 9]
