"""A proposal is taken if it is faster by a margin; no more is priced than that needs."""

from __future__ import annotations

from tests.unit.graph.prices import Prices

from tensorwright.expr import named_size
from tensorwright.graph import GraphBuilder, Workload, build_workload
from tensorwright.graph.partition import Alternative, Decisions


def workload(size: int) -> Workload:
    """One that is told from others by its size."""
    b = GraphBuilder("one")
    graph = b.finish((b.add("relu", b.input("x", (size,))),))
    return build_workload(graph, graph.nodes).workload


def by_size(workload: Workload) -> float | None:
    """A second for each element; nothing is said of 13."""
    (size,) = workload.outputs[0].shape
    assert isinstance(size, int)
    return None if size == 13 else float(size)


def alternative(name: str, *sizes: int) -> Alternative:
    return Alternative(name, map(workload, sizes))


def test_the_other_is_taken_by_a_margin_only() -> None:
    decide = Decisions(by_size)
    for size, chosen in ((101, "as it is"), (100, "as it is"), (99, "otherwise")):
        decision = decide("q", alternative("as it is", 60, 60), alternative("otherwise", size))
        assert decision is not None
        assert decision.chosen == chosen
    assert str(decide.made[0]) == ("q: as it is 120000000.0 us, otherwise 101000000.0 us: as it is")
    assert decide.describe("sizes").splitlines()[0] == "3 open questions about sizes, 1 changes"


def test_what_has_no_price_is_not_decided() -> None:
    decide = Decisions(by_size)
    assert decide("q", alternative("as it is", 13), alternative("otherwise", 1)) is None
    assert decide("q", alternative("as it is", 5), alternative("otherwise", 1, 13)) is None
    assert not decide.made


def test_each_workload_is_priced_once_and_none_behind_the_limit() -> None:
    for stops_early, count in ((True, 2), (False, 3)):
        prices = Prices(by_size)
        decide = Decisions(prices, stops_early=stops_early)
        decide("q", alternative("as it is", 10), alternative("otherwise", 20, 30))
        assert len(prices.asked) == count
        decide("q", alternative("as it is", 10), alternative("otherwise", 20, 30))
        assert set(prices.asked.values()) == {1}


def test_after_so_many_prices_nothing_is_decided() -> None:
    decide = Decisions(by_size, most=2)
    assert decide("q", alternative("as it is", 10), alternative("otherwise", 5)) is not None
    assert decide("q", alternative("as it is", 10), alternative("otherwise", 4)) is None
    assert decide("q", alternative("as it is", 10), alternative("otherwise", 5)) is not None


def test_nearly_equal_times_of_an_open_size_are_compared_half_way_too() -> None:
    """Half-way between 1 and 64 is 8, where the other is twice as fast; typical is 22."""
    for offset, chosen in ((1, "otherwise"), (20, "as it is")):

        def price(workload: Workload, offset: int = offset) -> float:
            (size,) = workload.outputs[0].shape
            assert size in (8, 22)
            slower = offset if size == 22 else -4
            return float(size) + (slower if workload.name == "sigmoid" else 0)

        decision = Decisions(price)(
            "q",
            Alternative("as it is", [open_workload("relu")]),
            Alternative("otherwise", [open_workload("sigmoid")]),
            least_gain=1.0,
        )
        assert decision is not None
        assert decision.chosen == chosen


def open_workload(op: str) -> Workload:
    b = GraphBuilder("open")
    graph = b.finish((b.add(op, b.input("x", (named_size("n", 1, 64),))),))
    return build_workload(graph, graph.nodes).workload
