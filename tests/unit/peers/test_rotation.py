"""Turn-taking, with competitors whose clock is a counter: no test here depends on real time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest
from benchmarks.correctness.rotation_self_test import self_test

from tensorwright.base import MachineError, UsageError
from tensorwright.peers import process
from tensorwright.peers.process.rotation import percentile, summarise


@dataclass
class Table:
    """Who is running and what happened; `spin` slows whoever runs while somebody else spins."""

    running: list[str] = field(default_factory=list)
    alive: set[str] = field(default_factory=set)
    log: list[tuple[str, str, int, int]] = field(default_factory=list)


@dataclass
class Fake:
    """A competitor that takes `call_s` per call, `slowdown` times as long beside others."""

    name: str
    table: Table
    call_s: float = 1e-3
    slowdown: float = 1.0
    fails_after: int = 10**9

    @contextmanager
    def turn(self) -> Iterator[None]:
        assert self.table.running == []
        self.table.running.append(self.name)
        try:
            yield
        finally:
            self.table.running.remove(self.name)

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        assert self.table.running == [self.name]
        self.table.log.append((self.name, "time", number, repeat))
        if sum(entry[0] == self.name for entry in self.table.log) > self.fails_after:
            raise process.PeerFailed(where=self.name, reason="gone", kind="crashed")
        others = len(self.table.alive - {self.name})
        return (self.call_s * (self.slowdown if others else 1.0),) * repeat


def expect_timings(results: Sequence[process.Result]) -> list[process.Timing]:
    timings = [result for result in results if isinstance(result, process.Timing)]
    assert len(timings) == len(results)
    return timings


def test_everyone_has_a_turn_in_every_round_and_the_order_alternates() -> None:
    table = Table()
    process.rotate([Fake(name, table, 0.1) for name in "abc"], rounds=3)
    kept = [entry for entry in table.log if entry[1:] == ("time", 1, 2)]
    assert len(kept) > 0
    turns = [entry[0] for entry in table.log[3 * 2 :]]
    assert turns[::2] == turns[1::2]  # a warm-up, then the samples
    assert "".join(turns[::2]) == "abc" + "cba" + "abc"


def test_a_sample_lasts_long_enough() -> None:
    for call_s, min_time_s, least in ((1e-6, 1e-2, 1e-2), (3e-4, 0.0, 1e-3), (2e-3, 9.0, 50e-3)):
        table = Table()
        (timing,) = expect_timings(process.rotate([Fake("a", table, call_s)], 1, min_time_s))
        number = table.log[-1][2]
        assert least <= number * call_s <= 2 * least
        assert timing.median_s == pytest.approx(call_s)
    table = Table()
    process.rotate([Fake("slow", table, 2.0)], 1)
    assert table.log[-1] == ("slow", "time", 1, 1)


def test_a_time_limit_takes_rounds_away_but_never_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.rotation, "TURN_S", 0.2)
    monkeypatch.setattr(process.rotation, "WARM_UP_S", 0.05)

    def count_turns(limit_s: float | None) -> int:
        table = Table()
        process.rotate([Fake("a", table, 0.01), Fake("b", table, 0.01)], 50, 1e-2, limit_s)
        return sum(entry[0] == "a" for entry in table.log) // 2 - 1

    assert count_turns(None) == 50
    assert count_turns(1e-9) == 3
    assert 3 < count_turns(4.0) < 20


def test_results_keep_the_order_and_failures_stay_in_it() -> None:
    table = Table()
    early, late = Fake("early", table, fails_after=0), Fake("late", table, fails_after=6)
    results = process.rotate(
        [early, Fake("a", table, 1e-3), late, Fake("b", table, 2e-3)], rounds=4
    )
    assert [result.name for result in results] == ["early", "a", "late", "b"]
    assert results[0] == process.Failure("early", process.FailureKind.CRASHED, "gone")
    assert isinstance(results[2], process.Failure)
    a, b = expect_timings([results[1], results[3]])
    assert process.ratio(a, b) == pytest.approx(2.0)
    assert process.ratio(b, a) == pytest.approx(0.5)


def test_no_competitors_and_no_rounds() -> None:
    assert process.rotate([]) == ()
    with pytest.raises(UsageError, match="at least 1"):
        process.rotate([], rounds=0)


def test_statistics() -> None:
    timing = summarise("a", [5.0, 1.0, 2.0, 3.0, 4.0])
    assert timing.median_s == 3.0
    assert timing.samples_s == (5.0, 1.0, 2.0, 3.0, 4.0)
    assert timing.spread == pytest.approx((4.6 - 1.4) / 3)
    assert timing.percentile_s(0) == 1.0
    assert timing.percentile_s(100) == 5.0
    assert percentile([7.0], 90) == 7.0


def open_fake(name: str, table: Table, slowdown: float) -> AbstractContextManager[Fake]:
    @contextmanager
    def opened() -> Iterator[Fake]:
        table.alive.add(name)
        yield Fake(name, table, slowdown=slowdown)
        table.alive.remove(name)

    return opened()


def test_the_self_test_sees_who_is_slower_in_company() -> None:
    table = Table()
    steady, disturbed = self_test(
        [lambda: open_fake("steady", table, 1.02), lambda: open_fake("disturbed", table, 1.5)],
        rounds=2,
    )
    assert (steady.name, steady.is_good) == ("steady", True)
    assert steady.ratio == pytest.approx(1.02)
    assert (disturbed.name, disturbed.is_good) == ("disturbed", False)
    assert disturbed.rotation_s / disturbed.alone_s == pytest.approx(1.5)
    assert table.alive == set()


def test_the_self_test_needs_every_competitor() -> None:
    @contextmanager
    def open_broken() -> Iterator[Fake]:
        yield Fake("broken", Table(), fails_after=0)

    with pytest.raises(MachineError, match="peer broken: crashed: gone"):
        self_test([open_broken])
