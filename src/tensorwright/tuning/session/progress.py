"""The progress of a tuning session, and its display: a live table, plain lines, or nothing.

Ctrl-C as a request: the first one is remembered, the second one interrupts immediately.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import IO, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tensorwright.tuning.task_scheduling import TaskState


class Interrupt:
    """Whether the user has asked to stop; a caller can also ask."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_set(self) -> bool:
        """Whether the user or a caller has asked."""
        return self._event.is_set()

    def set(self) -> None:
        """Ask to stop, from any thread."""
        self._event.set()

    @contextmanager
    def on_ctrl_c(self) -> Iterator[None]:
        """Take SIGINT as a request inside the block; outside of the main thread, do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

        def ask(number: int, frame: FrameType | None) -> None:
            if self.is_set:
                signal.signal(signal.SIGINT, before)
                raise KeyboardInterrupt
            self.set()

        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


_DRIFT = 0.2  # of the time: a larger change is reported
_WIDTH = 80
_LONGEST_NAME = 32


class Phase(Enum):
    """The phase of a session."""

    WARM_UP = "defaults"
    SEARCH = "search"
    RANKING = "ranking"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Drift:
    """The seconds of a schedule when it was measured first, and when it was measured again."""

    name: str
    key: str
    before_s: float
    now_s: float

    @property
    def is_unsteady(self) -> bool:
        """Whether the times differ by more than measuring usually does."""
        return abs(self.now_s / self.before_s - 1) > _DRIFT

    def __str__(self) -> str:
        before, now = format_time(self.before_s), format_time(self.now_s)
        number, _, unit = now.partition(" ")
        return (
            f"machine unsteady: {_shortened(self.name)} {self.key[:6]} took {before}, "
            f"now {number if before.endswith(f' {unit}') else now}"
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """The whole session at one moment.

    trials, elapsed_s               of all runs of the session
    trials_here, elapsed_here_s     of this run
    trials_budget, seconds_budget   None without such a limit
    tasks                           as they are at this moment
    search_s, build_s, measure_s    of this run
    drift                           of the schedule that was last measured again
    """

    phase: Phase
    round: int
    trials: int
    elapsed_s: float
    trials_here: int
    elapsed_here_s: float
    trials_budget: int | None
    seconds_budget: float | None
    tasks: tuple[TaskState, ...]
    search_s: float = 0.0
    build_s: float = 0.0
    measure_s: float = 0.0
    drift: Drift | None = None

    @property
    def latencies_s(self) -> tuple[tuple[str, float], ...]:
        """The estimated time of a run of each network: the sum of its calls' best times."""
        times: dict[str, float] = {}
        for each in self.tasks:
            for network, calls in each.task.calls_by_network:
                share_s = calls * each.run_s / each.task.call_count
                times[network] = times.get(network, 0.0) + share_s
        return tuple(sorted(times.items()))

    @property
    def eta_s(self) -> float:
        """Seconds until the budget is spent, at the present pace; infinite if unknown."""
        rest = math.inf
        if self.seconds_budget is not None:
            rest = max(0.0, self.seconds_budget - self.elapsed_s)
        if self.trials_budget is not None and self.trials_here:
            pace_s = self.elapsed_here_s / self.trials_here
            rest = min(rest, max(0, self.trials_budget - self.trials) * pace_s)
        return rest

    @property
    def default_s(self) -> float:
        """As `best_s`, with the default schedules."""
        measured = (each for each in self.tasks if math.isfinite(each.default_s))
        return sum(each.task.call_count * each.default_s for each in measured)

    @property
    def best_s(self) -> float:
        """The time of one run of each network with the best schedules, of measured workloads."""
        return sum(each.run_s for each in self.tasks)


class Callback(Protocol):
    """Gets the progress of a session, on the session's thread, between measurements."""

    def on_progress(self, progress: Progress) -> None:
        """After the start, after every round, and at the end (phase DONE)."""

    def close(self) -> None:
        """After the session, however it ended."""


class PlainLines:
    """Prints a line for each round, and one if the machine is unsteady; for files and pipes."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._told: Drift | None = None

    def on_progress(self, progress: Progress) -> None:
        """As `Callback.on_progress`."""
        print(summary(progress), file=self._stream, flush=True)
        if progress.drift is not self._told:
            self._told = progress.drift
            for line in unsteady_lines(progress):
                print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Do nothing."""


class LiveTable:
    """Draws a table after every round; for a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._live = Live(console=console or Console(stderr=True), auto_refresh=False)
        self._is_started = False

    def on_progress(self, progress: Progress) -> None:
        """As `Callback.on_progress`."""
        if not self._is_started:
            self._live.start()
            self._is_started = True
        lines = [summary(progress), *unsteady_lines(progress)]
        self._live.update(Group(_table(progress), Text("\n".join(lines))), refresh=True)
        if progress.phase is Phase.DONE:
            self.close()

    def close(self) -> None:
        """Leave the table on the terminal, and restore the cursor."""
        if self._is_started:
            self._live.stop()
            self._is_started = False


def choose_callbacks(is_quiet: bool = False) -> tuple[Callback, ...]:
    """The default display: nothing if quiet, a table on a terminal, otherwise plain lines."""
    if is_quiet:
        return ()
    return (LiveTable(),) if sys.stderr.isatty() else (PlainLines(),)


def summary(progress: Progress) -> str:
    """The session in one line, or in several if it is longer than 80 columns.

    It has the times of default and best schedules, for one run of each network (of an open network,
    at each size), but no quotient, because the times come from different moments. The default time
    is left out while some workload has only the time of another schedule, from an earlier session.
    """
    budget = f"/{progress.trials_budget}" if progress.trials_budget is not None else ""
    parts = [
        f"round {progress.round} ({progress.phase.value})",
        f"{progress.trials}{budget} trials",
        f"{format_duration(progress.elapsed_s)} passed",
    ]
    if math.isfinite(progress.eta_s) and progress.phase is not Phase.DONE:
        parts.append(f"{format_duration(progress.eta_s)} left")
    is_several = len(progress.latencies_s) > 1
    if progress.best_s:
        best = format_time(progress.best_s)
        has_all = all(math.isfinite(each.default_s) for each in progress.tasks if each.run_s)
        times = f"{format_time(progress.default_s)} -> {best}" if has_all else f"best {best}"
        parts.append(f"together {times}" if is_several else times)
    if is_several and progress.best_s:
        parts += [f"{_shortened(name)} {format_time(time)}" for name, time in progress.latencies_s]
    busy_s = progress.search_s + progress.build_s + progress.measure_s
    if progress.phase is Phase.DONE and busy_s:
        shares = (
            f"{progress.search_s / busy_s:.0%} search",
            f"{progress.build_s / busy_s:.0%} build",
            f"{progress.measure_s / busy_s:.0%} measure",
        )
        parts.append(" ".join(shares))
    failing = sum(bool(each.error) for each in progress.tasks)
    if failing:
        parts.append(f"{failing} workload{'s' if failing > 1 else ''} not measurable")
    return "\n".join(_filled(parts))


def unsteady_lines(progress: Progress) -> list[str]:
    """The message that the machine is unsteady, if a schedule showed it."""
    drift = progress.drift
    return [str(drift)] if drift is not None and drift.is_unsteady else []


def _filled(parts: Sequence[str]) -> list[str]:
    """The parts separated by commas, in lines that no terminal wraps."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 <= _WIDTH:
            lines[-1] += f", {part}"
        else:
            lines[-1] += ","
            lines.append(f"  {part}")
    return lines


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _table(progress: Progress) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("workload", no_wrap=True)
    for name in ("times", "trials", "default", "best", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    total_s = progress.best_s
    for row in sorted(progress.tasks, key=lambda each: -each.run_s):
        share = row.run_s / total_s if total_s and not row.error else math.nan
        table.add_row(
            row.task.workload.name,
            f"{row.task.call_count:g}",
            str(row.trials),
            format_time(row.default_s),
            format_time(row.best_s) if not row.error else "failed",
            f"{share:.1%}" if math.isfinite(share) else "-",
        )
    return table


def format_time(seconds: float) -> str:
    """A short time for people: "1.23 ms"."""
    if not math.isfinite(seconds):
        return "-"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def format_duration(seconds: float) -> str:
    """A long time for people: "3:05" or "1:02:33"."""
    whole = int(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
