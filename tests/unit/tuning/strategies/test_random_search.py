"""Random search: default first, nothing twice, the same for the same seed."""

from __future__ import annotations

from tests.targets import native_target
from tests.unit.tuning.helpers import doubled, matmul, number_of, numbered_space

from tensorwright.expr import Decision
from tensorwright.records import Record, Status
from tensorwright.schedule import Split, parse_trace, state_of
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.space import Choice, Sketch, Space, space_of
from tensorwright.tuning.strategies import RandomSearch
from tensorwright.tuning.task import Task

TASK = Task(doubled())
SPACE = numbered_space(TASK, native_target())


def search(seed: int = 0, space: Space = SPACE) -> RandomSearch:
    return RandomSearch(TASK, space, seed)


def record_of(candidate: Candidate, status: Status = Status.OK) -> Record:
    times_s = (0.001,) if status.is_timed else ()
    return Record("doubled", "t", "h", 1, candidate.trace, times_s, status)


def test_the_default_schedule_comes_first() -> None:
    assert number_of(search().propose(1)[0].trace) == 8


def test_equal_seeds_give_equal_proposals_whatever_the_rounds_were() -> None:
    one, other = search(7), search(7)
    together = one.propose(12)
    assert together == other.propose(5) + other.propose(7)
    assert together != search(8).propose(12)


def test_nothing_is_proposed_twice_and_a_small_space_is_searched_whole() -> None:
    strategy = search()
    found = [number_of(one.trace) for _ in range(7) for one in strategy.propose(6)]
    assert sorted(found) == list(range(1, 41))
    assert strategy.propose(6) == ()


def test_what_is_on_record_is_passed_over_failures_too() -> None:
    first = search().propose(20)
    strategy = search()
    strategy.observe([record_of(first[0]), record_of(first[3], Status.CRASHED)])
    again = strategy.propose(18)
    assert [one for one in first if one not in (first[0], first[3])] == list(again)


def test_a_candidate_tells_its_sketch_and_decisions() -> None:
    (one,) = search().propose(1)
    assert one == Candidate("split(y, i, [8])", "numbers", (("t", 8),))


def test_decisions_that_give_one_trace_count_once() -> None:
    step = Split("y", "i", (Decision("t"),))
    choices = (Choice.of("t", (2, 4), 2), Choice.of("unused", (1, 2, 3), 1))
    found = search(space=Space((Sketch("s", (step,), choices),))).propose(10)
    assert sorted(number_of(one.trace) for one in found) == [2, 4]


def test_the_proposals_of_a_real_space_parse() -> None:
    workload = matmul()
    target = native_target()
    space = space_of(state_of(workload), target)
    found = RandomSearch(Task(workload), space, 0).propose(20)
    assert parse_trace(found[0].trace) == space.default_trace
    assert len({one.trace for one in found}) == len(found) > 1
