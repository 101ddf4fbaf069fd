"""Reductions, parts and cuts lose nothing: against all selections of small problems."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from tests.unit.rewriting.extraction import problems

from tensorwright.rewriting.extraction import ExtractionProblem
from tensorwright.rewriting.local_search import cheap_selections
from tensorwright_lab.exact_extraction import cheapest_exact
from tensorwright_lab.exact_extraction.conflicts import exclusive_users
from tensorwright_lab.exact_extraction.derivation_cuts import cut_of, violated_cuts
from tensorwright_lab.exact_extraction.integer_program import IntegerProgram
from tensorwright_lab.exact_extraction.reduction import independent_parts, reduced
from tensorwright_lab.exact_extraction.simulation import without_simulated

SEEDS = range(60)
SHAPES = ((7, 3, (0, 5)), (6, 4, (0, 2)), (8, 2, (1, 9)), (5, 5, (0, 30)))


def problem_of(seed: int) -> ExtractionProblem:
    """A small problem, of several shapes in turn."""
    classes, most_nodes, costs = SHAPES[seed % len(SHAPES)]
    return problems.random_problem(seed, classes, most_nodes, costs)


def left_of(problem: ExtractionProblem, nodes: tuple[int, ...]) -> ExtractionProblem:
    """The problem of some nodes."""
    listed = [(problem.node_class[n], problem.cost[n], problem.children[n]) for n in nodes]
    return ExtractionProblem.of(listed, problem.roots)


def in_a_row(count: int) -> ExtractionProblem:
    """So many problems of merged products, each of which has the result of the next as its tensor.

    Classes: 0 the result of the first, four for each.
    """
    nodes: list[tuple[int, float, tuple[int, ...]]] = []
    for first in range(0, 4 * count, 4):
        pair, left, right, both = range(first, first + 4)
        tensor = first + 4
        nodes += [(pair, 1.0, (left, right)), (left, 10.0, (tensor,)), (left, 0.0, (both,))]
        nodes += [(right, 10.0, (tensor,)), (right, 0.0, (both,)), (both, 11.0, (tensor,))]
    return ExtractionProblem.of([*nodes, (4 * count, 1.0, ())], (0,))


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_what_is_left_out_is_not_needed(seed: int, steps: int) -> None:
    problem = problem_of(seed)
    best = problems.best_of_all(problem)
    if best == math.inf:
        return
    left = reduced(problem, best, steps)
    smaller = left_of(problem, left.nodes)
    assert problems.best_of_all(smaller) == pytest.approx(best)
    assert left.bound <= best + 1e-9
    for selection in problems.every_selection(smaller):
        assert left.needed <= selection.choice(smaller).keys()


def test_what_is_concatenated_to_be_split_again_is_left_out() -> None:
    problem = problems.split_again()
    most, size, steps = cheap_selections(problem, 1)[0].cost, 0, 3
    nodes = tuple(range(len(problem.cost)))
    while size != len(nodes):
        size = len(nodes)
        left = reduced(left_of(problem, nodes), most, steps)
        nodes = tuple(nodes[n] for n in left.nodes)
    concatenations = {node for node in nodes if len(problem.children[node]) == 2}
    assert not concatenations - set(problem.members[0])
    assert cheapest_exact(problem).selection.cost == problems.best_of_all(problem)


@pytest.mark.parametrize("seed", range(300))
@pytest.mark.drawn
def test_without_what_is_simulated_the_best_is_left(seed: int) -> None:
    problem = problems.joined(seed) if seed % 2 else problem_of(seed)
    best = problems.best_of_all(problem)
    if best == math.inf:
        return
    assert problems.best_of_all(left_of(problem, tuple(without_simulated(problem)))) == best


def test_of_what_is_joined_in_many_forms_one_is_left() -> None:
    # 1 is had from 2 or 3, which join 4 and 5 or what is made of them, 6 and 7; all else is alike
    nodes = [(0, 1.0, (1, 6, 7)), (1, 1.0, (2,)), (1, 1.0, (3,)), (1, 1.0, (8,)), (1, 1.0, (9,))]
    nodes += [(2, 2.0, (4, 5)), (3, 2.0, (4, 7)), (8, 2.0, (6, 5)), (9, 2.0, (6, 7))]
    nodes += [(4, 1.0, ()), (5, 1.0, ()), (6, 1.0, (4,)), (7, 1.0, (5,))]
    problem = ExtractionProblem.of(nodes, (0,))
    left = without_simulated(problem)
    assert left == [0, 1, 5, 9, 10, 11, 12]
    assert problems.best_of_all(left_of(problem, tuple(left))) == problems.best_of_all(problem)


def test_what_is_there_for_one_node_alone_counts_with_it() -> None:
    # 1 is had from 2 and 3, which all need; 5 and 6 are there for the other node of 1 alone
    nodes = [(0, 0.0, (1, 2, 3)), (1, 3.0, (2, 3)), (1, 1.0, (5, 6)), (2, 9.0, ()), (3, 9.0, ())]
    nodes += [(5, 2.0, (2,)), (6, 2.0, (3,)), (2, 8.0, (4,)), (3, 8.0, (4,)), (4, 1.0, ())]
    problem = ExtractionProblem.of(nodes, (0,))
    left = reduced(problem, 100.0, 1)
    assert not {2, 5, 6} & set(left.nodes)
    assert 1 in left.nodes


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_parts_cost_together_what_the_whole_costs(seed: int) -> None:
    problem = problem_of(seed)
    best = problems.best_of_all(problem)
    if best == math.inf:
        return
    left = reduced(problem, best, 0)
    parts = independent_parts(problem, left.nodes, left.needed)
    assert sorted(node for part in parts for node in part.nodes) == sorted(left.nodes)
    assert sum(problems.best_of_all(part.problem) for part in parts) == pytest.approx(best)


def test_a_row_of_blocks_falls_apart_and_those_that_are_alike_are_solved_once() -> None:
    found = cheapest_exact(in_a_row(20))
    assert found.selection.cost == 20 * 12.0 + 1.0
    assert found.is_optimal
    assert found.parts <= 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_no_selection_violates_a_cut(seed: int) -> None:
    problem = problem_of(seed)
    source = random.Random(seed)
    used = [name for name, members in enumerate(problem.members) if members]
    below = [problem.below(node) for node in range(len(problem.cost))]
    taken = np.array([source.random() for _ in problem.cost])
    cuts = violated_cuts(problem, below, taken)
    for _ in range(20):
        names = frozenset(source.sample(used, source.randint(1, len(used))))
        cuts += [cut_of(problem, name, names) for name in names]
    for selection in problems.every_selection(problem):
        nodes = set(selection.nodes)
        for cut in cuts:
            assert not nodes & set(problem.members[cut.name]) or nodes & cut.derived_by


def test_a_loop_that_costs_nothing_is_cut_off() -> None:
    problem = ExtractionProblem.of([(0, 0.0, (1,)), (1, 0.0, (0,)), (0, 5.0, ())], (0,))
    below = [problem.below(node) for node in range(3)]
    cuts = violated_cuts(problem, below, np.array([1.0, 1.0, 0.0]))
    assert {cut.derived_by for cut in cuts} == {frozenset({2})}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_the_bound_of_the_relaxation_and_of_its_nodes_is_true(seed: int) -> None:
    problem = problem_of(seed)
    best = problems.best_of_all(problem)
    if best in (0.0, math.inf):
        return
    program = IntegerProgram(problem, best)
    below = [problem.below(node) for node in range(len(problem.cost))]
    for _ in range(4):
        relaxed = program.relax()
        assert relaxed is not None
        for selection in problems.every_selection(problem):
            for node in selection.nodes:
                assert relaxed.bound + relaxed.increase[node] <= selection.cost + 1e-9
        if not program.add(violated_cuts(problem, below, relaxed.taken)):
            break


def test_cuts_close_the_gap_of_halves_that_are_used_twice() -> None:
    # halves of 3 and 4 support each half of 1 and half of 2, which the plain relaxation adds up
    nodes = [(0, 0.0, (1, 2)), (1, 0.0, (3,)), (1, 0.0, (4,)), (2, 0.0, (3,)), (2, 0.0, (4,))]
    nodes += [(3, 0.0, (5,)), (4, 0.0, (5,)), (5, 1.0, ()), (3, 1.0, ()), (4, 1.0, ())]
    problem = ExtractionProblem.of(nodes, (0,))
    found = cheapest_exact(problem)
    assert found.selection.cost == 1.0
    assert found.solves == 0
    assert found.is_optimal


def test_merged_products_need_no_search() -> None:
    found = cheapest_exact(problems.merged(5))
    assert found.selection.cost == 11.0
    assert found.solves == 0


def in_any_order(count: int) -> ExtractionProblem:
    """Tensors in a row, concatenated two at a time: each class is of neighbours."""
    names = {
        (first, last): number
        for number, (first, last) in enumerate(
            (first, last) for last in range(count - 1, -1, -1) for first in range(last + 1)
        )
    }
    nodes: list[tuple[int, float, tuple[int, ...]]] = []
    for (first, last), name in names.items():
        if first == last:
            nodes.append((name, 0.0, ()))
        for middle in range(first, last):
            cost = float(7 * first + 5 * middle + 3 * last) % 11 + 1
            nodes.append((name, cost, (names[first, middle], names[middle + 1, last])))
    return ExtractionProblem.of(nodes, (names[0, count - 1],))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn
def test_no_selection_takes_two_nodes_of_a_group(seed: int) -> None:
    problem = problem_of(seed)
    groups = exclusive_users(problem)
    for name, members in enumerate(problem.members):
        users = [n for n in range(len(problem.cost)) if members and name in problem.below(n)]
        assert sorted(node for group in groups.get(name, []) for node in group) == users
    for selection in problems.every_selection(problem):
        nodes = set(selection.nodes)
        for each in groups.values():
            assert all(len(nodes & set(group)) <= 1 for group in each)


def test_what_is_put_together_in_any_order_needs_no_search() -> None:
    problem = in_any_order(4)
    groups = exclusive_users(problem)
    assert all(len(each) == 1 for each in groups.values())
    assert cheapest_exact(problem).selection.cost == problems.best_of_all(problem)
    larger = cheapest_exact(in_any_order(9))
    assert larger.is_optimal
    assert larger.solves == larger.cuts == 0
