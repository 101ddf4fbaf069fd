"""Tables that say which trace runs for which sizes, filled by made-up prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorwright.expr import named_size, named_sizes_of
from tensorwright.schedule import (
    OpenSchedule,
    Parallel,
    SizedTrace,
    SizeRange,
    Trace,
    Unroll,
    Vectorize,
)
from tensorwright.tuning.selection.size_table import SizeTable, TunedTrace, filled_table

(N,) = named_sizes_of(named_size("n", greatest=64))
M, K = named_sizes_of(named_size("m", greatest=64), named_size("k", greatest=64))
FEW: Trace = (Vectorize("y", "j"),)
MANY: Trace = (Parallel("y", "i"),)
UNTUNED: Trace = (Unroll("y", "k"),)


@dataclass
class MadeUp:
    """Seconds of each trace at each number; `alone` is some share less."""

    seconds: Mapping[Trace, float] = field(default_factory=dict)
    gain_alone: float = 0.0

    def alone(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        found = self.opened(trace, values)
        return None if found is None else found * (1 - self.gain_alone)

    def opened(self, trace: Trace, values: Mapping[str, int]) -> float | None:
        return self.seconds.get(trace)


TUNED = (TunedTrace({"n": 2}, FEW, opens=True), TunedTrace({"n": 32}, MANY, opens=True))


def ranges(table: SizeTable) -> list[tuple[str, Trace]]:
    schedule = table.schedule
    assert isinstance(schedule, OpenSchedule)
    return [(each.label, each.trace) for each in schedule.variants]


def test_between_points_the_untuned_trace_stays_where_nothing_is_known() -> None:
    table = filled_table((N,), TUNED, UNTUNED, MadeUp())
    assert table.lines == (("n", (1, 2, 8, 32, 64)),)
    assert ranges(table) == [
        ("2 <= n <= 3", FEW),
        ("16 <= n <= 45", MANY),
        ("all sizes", UNTUNED),
    ]
    assert [table.at({"n": n}) for n in (1, 2, 3, 4, 15, 16, 45, 46, 64)] == [
        *(UNTUNED, FEW, FEW, UNTUNED, UNTUNED, MANY, MANY, UNTUNED, UNTUNED)
    ]


def test_untuned_schedules_keep_their_ranges() -> None:
    untuned = OpenSchedule((SizedTrace((SizeRange("n", 1, 5),), FEW), SizedTrace((), UNTUNED)))
    alone = SizeTable.of_one(untuned)
    assert alone.schedule == untuned
    assert [alone.at({"n": n}) for n in (5, 6)] == [FEW, UNTUNED]
    assert SizeTable.of_one(MANY).with_cell({"n": 2}, untuned).schedule == untuned
    tuned = (TunedTrace({"n": 32}, MANY, opens=True),)
    table = filled_table((N,), tuned, untuned, MadeUp())
    assert [table.at({"n": n}) for n in (1, 32, 64)] == [FEW, MANY, UNTUNED]
    assert table.with_cell({"n": 32}, untuned).at({"n": 32}) == UNTUNED


def test_between_points_the_cheapest_trace_runs() -> None:
    table = filled_table((N,), TUNED, UNTUNED, MadeUp({FEW: 0.9, MANY: 0.5, UNTUNED: 1.0}))
    assert ranges(table) == [("2 <= n <= 3", FEW), ("all sizes", MANY)]


def test_of_traces_that_are_about_as_fast_there_are_few() -> None:
    table = filled_table((N,), TUNED, UNTUNED, MadeUp({FEW: 0.99, MANY: 1.0, UNTUNED: 1.0}))
    assert ranges(table) == [("16 <= n <= 45", MANY), ("all sizes", FEW)]
    equal = (TUNED[0], TunedTrace({"n": 32}, MANY, opens=True, equals=(FEW,)))
    assert filled_table((N,), equal, UNTUNED, MadeUp({FEW: 1.0, UNTUNED: 1.0})).schedule == FEW


def test_for_a_size_that_points_do_not_vary_nothing_was_tuned() -> None:
    tuned = (
        TunedTrace({"m": 1, "k": 2}, FEW, opens=True),
        TunedTrace({"m": 1, "k": 32}, MANY, opens=True),
    )
    prices = MadeUp({FEW: 0.5, MANY: 0.5, UNTUNED: 1.0})
    table = filled_table((M, K), tuned, UNTUNED, prices)
    assert table.at({"m": 1, "k": 8}) in (FEW, MANY)
    assert table.at({"m": 64, "k": 8}) == UNTUNED


def test_a_trace_that_does_not_open_has_a_program_for_its_size_alone() -> None:
    closed = (TunedTrace({"n": 2}, FEW, opens=False), TUNED[1])
    table = filled_table((N,), closed, UNTUNED, MadeUp())
    assert ranges(table) == [("n = 2", FEW), ("16 <= n <= 45", MANY), ("all sizes", UNTUNED)]
    assert table.at({"n": 2}) == FEW
    assert table.at({"n": 3}) == UNTUNED


def test_what_loses_by_holding_for_all_sizes_has_a_program_for_its_size_alone() -> None:
    prices = MadeUp({FEW: 1.0, MANY: 1.0, UNTUNED: 1.0}, gain_alone=0.2)
    table = filled_table((N,), TUNED, UNTUNED, prices)
    assert table.exact == ((2,), (32,))
    assert table.without_exact().exact == ()
    assert table.without_exact({"n": 2}).exact == ((32,),)
    assert table.without_exact().with_exact({"n": 32}).with_exact({"n": 5}).exact == ((32,),)


def test_what_was_not_measured_at_a_point_must_gain_there() -> None:
    guessed = (TunedTrace({"n": 2}, FEW, opens=True, is_measured=False), TUNED[1])
    assert filled_table((N,), guessed, UNTUNED, MadeUp()).at({"n": 2}) == UNTUNED
    prices = MadeUp({FEW: 0.5, MANY: 1.0, UNTUNED: 1.0})
    assert filled_table((N,), guessed, UNTUNED, prices).at({"n": 2}) == FEW


def test_of_two_sizes_the_nearest_points_are_asked() -> None:
    tuned = (
        TunedTrace({"m": 1, "k": 4}, FEW, opens=True),
        TunedTrace({"m": 16, "k": 64}, MANY, opens=True),
    )
    table = filled_table((M, K), tuned, UNTUNED, MadeUp())
    assert table.names == ("k", "m")
    assert ranges(table) == [
        ("2 <= k <= 15, 1 <= m <= 3", FEW),
        ("16 <= k, 4 <= m <= 31", MANY),
        ("all sizes", UNTUNED),
    ]


def test_a_cell_may_get_another_trace_and_its_point_keeps_its_own() -> None:
    table = filled_table((N,), TUNED, UNTUNED, MadeUp())
    corrected = table.with_cell({"n": 40}, UNTUNED)
    assert corrected.at({"n": 40}) == UNTUNED
    assert corrected.at({"n": 32}) == MANY
    assert table.with_cell({"n": 32}, UNTUNED).at({"n": 32}) == UNTUNED


def test_a_table_of_one_trace_is_that_trace() -> None:
    assert SizeTable.of_one(FEW).schedule == FEW
    assert filled_table((), [TunedTrace({}, MANY, opens=True)], UNTUNED, MadeUp()).schedule == MANY
    last = OpenSchedule((SizedTrace((), FEW),))
    assert last.at({}) == FEW
