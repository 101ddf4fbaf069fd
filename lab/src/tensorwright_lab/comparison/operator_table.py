"""The rows of `bench ops`: what was measured of each case, their means, as table and as JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import geometric_mean
from typing import Any

from rich.console import Console

from tensorwright.cli.printing import print_line, print_table
from tensorwright_lab.comparison.agreement import UNHELD
from tensorwright_lab.comparison.operators import METASCHEDULE, OURS, OpTime
from tensorwright_lab.comparison.row_files import AGAIN, build_columns, print_builds, read_file_of
from tensorwright_lab.rows import write_objects

NEAR_PEAK = 0.65
"""From this share of the machine's peak on, the best peer leaves little to gain."""


@dataclass(frozen=True, slots=True)
class Rival:
    """MetaSchedule's search for the same case; times in seconds.

    best_s     of its own measurements      tune_s  that it took to find it
    reached_s  after so long our search had a schedule as fast as that; None where it never had
               one, or did not run in this benchmark
    """

    trials: int
    best_s: float
    tune_s: float
    reached_s: float | None


@dataclass(frozen=True, slots=True)
class OpRow:
    """One case, as far as it went; times in seconds per copy.

    shape     the numbers of the case            copies   that one call runs
    gflop     nominal                            needed_gflop  without operations on zeros
    peak      10^9 operations per second of the machine, on `threads`
    times     ours first, then every form of every peer
    trials    on record when it was timed        tune_s   spent on them by this benchmark
    rival     what MetaSchedule spent, and when we were as fast; None where it was not asked, or
              failed
    failure   why the case was not compared; "" where it was
    build     digest of the sources that measured it; "" where that is not known
    """

    case: str
    batch: int
    is_subgraph: bool
    shape: tuple[int, ...]
    gflop: float
    needed_gflop: float
    peak: float
    threads: int
    copies: int
    times: tuple[OpTime, ...] = ()
    is_tuned: bool = False
    trials: int = 0
    tune_s: float = 0.0
    trace: str = ""
    failure: str = ""
    rival: Rival | None = None
    build: str = ""

    @property
    def our_failure(self) -> str:
        """Why there is no time of ours, a wrong answer among the reasons; "" where there is one."""
        own = (time.failure for time in self.times if time.peer == OURS)
        return self.failure or next((text for text in own if text), "")

    @property
    def ours(self) -> OpTime | None:
        """Our own time, None without one."""
        own = [time for time in self.times if time.peer == OURS and time.time_s is not None]
        return own[0] if own else None

    @property
    def best(self) -> OpTime | None:
        """The fastest form of the fastest peer, None without one."""
        return min(self._peers, key=lambda time: time.time_s or math.inf, default=None)

    @property
    def best_held(self) -> OpTime | None:
        """The fastest of those that keep to the target's vectors, None without one."""
        held = (time for time in self._peers if time.is_held is not False)
        return min(held, key=lambda time: time.time_s or math.inf, default=None)

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the best peer we are."""
        return self._times_as_fast_as(self.best)

    @property
    def held_ratio(self) -> float | None:
        """How many times as fast as the best peer that keeps to the target's vectors we are."""
        return self._times_as_fast_as(self.best_held)

    @property
    def is_loose(self) -> bool:
        """Whether some peer does not keep to the target's vectors."""
        return any(time.is_held is False for time in self.times)

    @property
    def _peers(self) -> list[OpTime]:
        tuners = (OURS, METASCHEDULE)
        return [t for t in self.times if t.peer not in tuners and t.time_s is not None]

    def _times_as_fast_as(self, other: OpTime | None) -> float | None:
        if self.ours is None or other is None:
            return None
        return (other.time_s or math.nan) / (self.ours.time_s or math.nan)

    @property
    def rival_ratio(self) -> float | None:
        """How many times as fast as MetaSchedule we are, called in turn; None where that failed."""
        timed = [time for time in self.times if time.peer == METASCHEDULE and time.time_s]
        return self._times_as_fast_as(timed[0]) if timed else None

    def gflops(self, time: OpTime | None) -> float | None:
        """10^9 needed operations per second."""
        return self.needed_gflop / time.time_s if time is not None and time.time_s else None

    def share(self, time: OpTime | None) -> float | None:
        """The part of the machine's peak that this is."""
        reached = self.gflops(time)
        return reached / self.peak if reached is not None else None

    def to_json(self) -> dict[str, Any]:
        """The fields, and what follows from them."""
        derived = {
            "ours_us": _microseconds(self.ours),
            "ours_gflops": self.gflops(self.ours),
            "ours_share": self.share(self.ours),
            "best_peer": self.best.peer if self.best is not None else None,
            "best_us": _microseconds(self.best),
            "best_share": self.share(self.best),
            "ratio": self.ratio,
            "held_ratio": self.held_ratio,
            "rival_ratio": self.rival_ratio,
        }
        return {**derived, **asdict(self)}


@dataclass(frozen=True, slots=True)
class OpMean:
    """Some cases together: geometric mean and least of the ratios; None where there is no case."""

    name: str
    count: int
    mean: float | None
    least: float | None
    least_case: str


def summarise_rows(rows: Sequence[OpRow]) -> tuple[OpMean, ...]:
    """Operators whose best peer is near the peak, the others, and subgraphs; where some peers do
    not keep to the target's vectors, all cases again, against those that do.
    """
    near, far, subgraphs = [], [], []
    for row in rows:
        if row.ratio is None:
            continue
        if row.is_subgraph:
            subgraphs.append(row)
        elif (row.share(row.best) or 0.0) >= NEAR_PEAK:
            near.append(row)
        else:
            far.append(row)
    means = [
        _mean(f"operators, best peer at {NEAR_PEAK:.0%} of peak or more", near),
        _mean("other operators", far),
        _mean("subgraphs", subgraphs),
    ]
    if any(row.is_loose for row in rows):
        name = "all, against peers held to the target"
        means.append(_mean(name, rows, lambda row: row.held_ratio))
    return tuple(means)


def _mean(
    name: str,
    rows: Sequence[OpRow],
    ratio_of: Callable[[OpRow], float | None] = lambda row: row.ratio,
) -> OpMean:
    pairs = [(ratio_of(row), f"{row.case} batch {row.batch}") for row in rows]
    valued = [(ratio, case) for ratio, case in pairs if ratio is not None]
    if not valued:
        return OpMean(name, 0, None, None, "")
    least, case = min(valued)
    return OpMean(name, len(valued), geometric_mean([ratio for ratio, _ in valued]), least, case)


def print_op_rows(rows: Sequence[OpRow], console: Console | None = None) -> None:
    """Print the rows, those of other builds marked, then the means, then what failed."""
    console = console or Console()
    columns = "case shape copies µs GFLOP/s peak best-peer µs peak ratio trials tune-s".split()
    titles, marks = build_columns([row.build for row in rows])
    cells = [(*_cells(row), *mark) for row, mark in zip(rows, marks, strict=True)]
    print_table((*columns, *titles), cells, console)
    console.print()
    means = [
        (each.name, str(each.count), _text(each.mean), _text(each.least), each.least_case or "-")
        for each in summarise_rows(rows)
    ]
    print_table(("ratio of", "cases", "geometric mean", "least", "which"), means, console)
    rivals = [_rival_cells(row, row.rival) for row in rows if row.rival is not None]
    if rivals:
        console.print()
        names = ("case", "times MetaSchedule", "its trials", "its seconds", "ours to reach it")
        print_table(names, rivals, console)
    for row in rows:
        for text in (row.failure, *(_failure(time) for time in row.times)):
            if text:
                print_line(f"{row.case}: {text}", console)
    loose = [time.peer for row in rows for time in row.times if time.is_held is False]
    if loose:
        who = ", ".join(dict.fromkeys(loose))
        print_line(f"{UNHELD} not held to the target, for lack of a setting: {who}", console)
    versions = [each for row in rows for each in {(t.peer, t.version) for t in row.times}]
    print_builds([row.build for row in rows], sorted(versions), AGAIN, console)


def _cells(row: OpRow) -> tuple[str, ...]:
    best = row.best
    form = f"{best.peer} {best.form}".strip() if best is not None else "-"
    if best is not None and best.is_held is False:
        form += UNHELD
    return (
        row.case,
        "x".join(map(str, row.shape)),
        str(row.copies),
        _text(_microseconds(row.ours), 1),
        _text(row.gflops(row.ours), 1),
        _percent(row.share(row.ours)),
        form,
        _text(_microseconds(best), 1),
        _percent(row.share(best)),
        _text(row.ratio),
        str(row.trials),
        f"{row.tune_s:.0f}",
    )


def _rival_cells(row: OpRow, rival: Rival) -> tuple[str, ...]:
    seconds = (f"{rival.tune_s:.0f}", _text(rival.reached_s, 1))
    return (row.case, _text(row.rival_ratio), str(rival.trials), *seconds)


def _failure(time: OpTime) -> str:
    name = f"{time.peer} {time.form}".strip()
    return f"{name}: {time.failure}" if time.failure else ""


def _microseconds(time: OpTime | None) -> float | None:
    return time.time_s * 1e6 if time is not None and time.time_s is not None else None


def _text(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def write_op_rows(
    path: str | os.PathLike[str], head: Mapping[str, object], rows: Sequence[OpRow]
) -> None:
    """Write machine, settings, means and rows as JSON, whole or not at all.

    Raises:  OutputError if the file cannot be written.
    """
    means = [asdict(mean) for mean in summarise_rows(rows)]
    write_objects(path, {**head, "means": means}, [row.to_json() for row in rows])


def read_op_rows(path: str | os.PathLike[str]) -> tuple[OpRow, ...]:
    """The rows of a file of `write_op_rows`; none where there is no file.

    Raises:  InputError for a file of another kind.
    """
    return read_file_of("bench ops", path, _read_row)[1]


def _read_row(values: dict[str, Any]) -> OpRow:
    fields = {name: values[name] for name in OpRow.__dataclass_fields__ if name != "build"}
    times = tuple(OpTime(**time) for time in fields.pop("times"))
    shape = tuple(fields.pop("shape"))
    rival = fields.pop("rival")
    row = OpRow(**fields, shape=shape, build=values.get("build", ""))
    return replace(row, times=times, rival=Rival(**rival) if rival is not None else None)
