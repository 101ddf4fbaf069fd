"""Selections against all selections: trees, steps, integer programs and what these leave out."""

from __future__ import annotations

import math

import pytest
from tests.unit.rewriting.extraction.problems import best_of_all, merged, random_problem

from tensorwright.rewriting.extraction import (
    ExtractionProblem,
    Selection,
    cheapest_trees,
    contracted,
)
from tensorwright.rewriting.local_search import Draft, LocalSearcher, cheap_selections
from tensorwright_lab.exact_extraction import cheapest_exact
from tensorwright_lab.exact_extraction.exact import in_contraction

SEEDS = range(60)


def test_a_selection_counts_each_class_once() -> None:
    problem = ExtractionProblem.of([(0, 1.0, (1, 1)), (1, 2.0, (2,)), (2, 4.0, ())], (0,))
    selection = Selection.of(problem, {0: 0, 1: 1, 2: 2})
    assert selection.nodes == (2, 1, 0)
    assert selection.cost == 7.0
    assert selection.choice(problem) == {0: 0, 1: 1, 2: 2}


def test_a_selection_has_no_loop() -> None:
    problem = ExtractionProblem.of([(0, 1.0, (1,)), (1, 1.0, (0,))], (0,))
    with pytest.raises(ValueError, match="class 0 needs itself"):
        Selection.of(problem, {0: 0, 1: 1})


def test_costs_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="node 1 costs -1"):
        ExtractionProblem.of([(0, 1.0, ()), (0, -1.0, ())], (0,))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_trees_are_the_cheapest(seed: int) -> None:
    problem = random_problem(seed)
    expected = dict.fromkeys(range(len(problem.members)), math.inf)
    for _ in problem.members:
        for node, name in enumerate(problem.node_class):
            total = problem.cost[node] + sum(expected[each] for each in problem.children[node])
            expected[name] = min(expected[name], total)
    _, costs = cheapest_trees(problem)
    assert costs == {name: cost for name, cost in expected.items() if cost < math.inf}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_integer_programs_find_the_cheapest_selection(seed: int) -> None:
    problem = random_problem(seed)
    best = best_of_all(problem)
    if best == math.inf:
        with pytest.raises(ValueError, match="no term of finite cost"):
            cheapest_exact(problem)
        return
    found = cheapest_exact(problem)
    assert found.selection.cost == pytest.approx(best)
    assert found.is_optimal
    assert found.gap == pytest.approx(0, abs=1e-6)
    searcher = LocalSearcher(problem)
    cost = searcher.improve().cost
    usual, _ = cheapest_trees(problem)
    assert best - 1e-9 <= cost <= Selection.of(problem, usual).cost + 1e-9
    assert not searcher.is_spent()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_what_is_free_need_not_be_chosen(seed: int) -> None:
    problem = random_problem(seed, costs=(0, 2))
    best = best_of_all(problem)
    if best == math.inf:
        return
    small = contracted(problem)
    whole = cheapest_exact(problem)
    assert whole.selection.cost == pytest.approx(best)
    assert whole.is_optimal
    left = in_contraction(small, whole.selection)
    assert left.cost == pytest.approx(best)
    assert small.expanded(left).cost == pytest.approx(best)
    assert len(small.problem.cost) + len(small.free) <= len(problem.cost)


@pytest.mark.parametrize("costs", [(3.0, 2.0, 4.0), (2.0, 3.0, 4.0), (4.0, 3.0, 2.0)])
def test_of_nodes_with_equal_needs_the_cheapest_is_left(costs: tuple[float, ...]) -> None:
    nodes = [*((0, cost, (1, 2)) for cost in costs), (1, 1.0, ()), (2, 0.0, ())]
    smaller = contracted(ExtractionProblem.of(nodes, (0,)))
    assert smaller.nodes == (costs.index(2.0), 3)
    assert smaller.problem.cost == (2.0, 1.0)


def test_a_problem_of_which_all_is_free_has_a_selection() -> None:
    problem = ExtractionProblem.of([(0, 0.0, (1,)), (1, 0.0, ())], (0,))
    found = cheapest_exact(problem)
    assert found.selection.nodes == (1, 0)
    assert found.is_optimal


@pytest.mark.parametrize("count", [2, 3, 5])
def test_what_only_gains_together_is_merged(count: int) -> None:
    problem = merged(count)
    usual, _ = cheapest_trees(problem)
    assert Selection.of(problem, usual).cost == 10.0 * count
    assert cheap_selections(problem, 1)[0].cost == 11.0


def test_results_added_to_themselves_cost_no_more_than_once() -> None:
    deep = 5000
    nodes = [(name, 1.0, (name + 1, name + 1)) for name in range(deep)]
    problem = ExtractionProblem.of([*nodes, (deep, 1.0, ())], (0,))
    assert cheap_selections(problem, 1)[0].cost == deep + 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_steps_can_be_taken_back(seed: int) -> None:
    problem = random_problem(seed, classes=9)
    usual, _ = cheapest_trees(problem)
    if any(root not in usual for root in problem.roots):
        return
    draft = Draft(problem, usual)
    before, marks = draft.selection(), []
    for node, name in enumerate(problem.node_class):
        if draft.is_used(name):
            marks.append((draft.mark(), draft.selection()))
            draft.switch(name, node)
            assert draft.cost == pytest.approx(draft.selection().cost)
    for mark, selection in reversed(marks):
        draft.undo(mark)
        assert draft.selection() == selection
        assert draft.cost == pytest.approx(selection.cost)
    assert draft.selection() == before


def test_where_the_time_is_over_what_is_known_is_kept_and_the_bound_is_true() -> None:
    problem = merged(3)
    usual, _ = cheapest_trees(problem)
    start = Selection.of(problem, usual)
    found = cheapest_exact(problem, limit_s=0.0, start=start)
    assert found.selection.cost <= start.cost
    assert found.solves == found.parts == 0
    assert found.bound <= 11.0


def test_where_the_steps_are_used_up_it_is_said() -> None:
    searcher = LocalSearcher(merged(3), most_steps=1)
    assert searcher.improve().cost == 30.0
    assert searcher.is_spent()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_other_selections_are_cheap_and_unlike_each_other(seed: int) -> None:
    problem = random_problem(seed)
    best = best_of_all(problem)
    if best == math.inf:
        return
    found = cheap_selections(problem, 4)
    assert 1 <= len(found) <= 4
    costs = [tuple(sorted(filter(None, map(problem.cost.__getitem__, s.nodes)))) for s in found]
    assert len(set(costs)) == len(found)
    assert [each.cost for each in found] == sorted(each.cost for each in found)
    assert found[0].cost <= cheap_selections(problem, 1)[0].cost
    for each in found:
        again = Selection.of(problem, each.choice(problem))
        assert {*again.nodes} == {*each.nodes}
        assert again.cost == pytest.approx(each.cost)


def test_the_second_best_is_found() -> None:
    costs = [selection.cost for selection in cheap_selections(merged(2), 3)]
    assert costs[:2] == [11.0, 20.0]
