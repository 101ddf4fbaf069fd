"""The rows of `bench models`: what was measured of each model, their means, as JSON and as a table.

A model stands beside the best of its peers, untuned and tuned.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from rich.console import Console

from tensorwright.cli.printing import print_line, print_table
from tensorwright.peers.process.protocol import describe_error
from tensorwright_lab.comparison import row_files
from tensorwright_lab.comparison.agreement import UNHELD, Apart, worst_of
from tensorwright_lab.rows import write_objects


@dataclass(frozen=True, slots=True)
class PeerTime:
    """One peer on one model; None for what was not measured, "" for what there is not.

    max_rel_error   largest difference of its outputs from the reference's, see `compare_model`
    is_held         whether it kept to the vectors of a target that has narrower ones than the
                    machine; None where the target has the machine's
    """

    peer: str
    version: str = ""
    time_ms: float | None = None
    max_rel_error: float | None = None
    failure: str = ""
    is_held: bool | None = None

    def with_time(self, time_s: float | None, failure: str) -> PeerTime:
        """The same after the race."""
        time_ms = None if time_s is None else time_s * 1e3
        return replace(self, time_ms=time_ms, failure=self.failure or failure)


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One model against the best of its peers; None for what was not measured.

    max_rel_error   largest difference of an output from the reference's, over the largest output;
                    where it is wrong there is no time of ours, and `failure` says so
    ours_ms         milliseconds per inference, with the schedules that are on record
    peer, peer_ms   the fastest peer, and its time
    ratio           peer_ms / ours_ms: above 1 we are faster
    peak_share      part of the machine's peak that we reach
    host_operators  operators that run on the host, not compiled; () for none
    failure         why something was not measured; "" where all went well
    peers           every peer, in the order asked for
    tuned           how many of its `workloads` have a schedule on record
    untuned_ms      milliseconds without any record; ours_ms where nothing is on record
    untuned_ratio   peer_ms / untuned_ms
    untuned_share   ours_ms / untuned_ms: what part of the tuned speed there is untuned; None where
                    nothing is on record
    held_ms         of the fastest peer that is held to the target; None where none is, or need be
    build           digest of the sources that measured it; "" where that is not known
    max_steps       largest difference of a quantised output, in its steps; None where there is none
    at              the numbers of open sizes, "batch=1,sequence=32"; "" where all are numbers
    """

    model: str
    max_rel_error: float | None
    ours_ms: float | None
    peer: str
    peer_ms: float | None
    ratio: float | None
    host_operators: tuple[str, ...] = ()
    failure: str = ""
    peak_share: float | None = None
    peers: tuple[PeerTime, ...] = ()
    tuned: int = 0
    workloads: int = 0
    untuned_ms: float | None = None
    untuned_ratio: float | None = None
    untuned_share: float | None = None
    held_ms: float | None = None
    max_steps: float | None = None
    build: str = ""
    at: str = ""

    @property
    def label(self) -> str:
        """The model, with the numbers of its open sizes."""
        return f"{self.model} at {self.at}" if self.at else self.model

    @property
    def error(self) -> Apart:
        """How far our answer is from the reference."""
        return Apart(self.max_rel_error, self.max_steps)

    @property
    def is_wrong(self) -> bool:
        """Whether our answer is."""
        return self.error.is_wrong

    def with_error(self, error: Apart, failure: str) -> BenchRow:
        """The same with the error of a further output, and what is said of it if it is wrong."""
        worst = worst_of([self.error, error])
        failure = self.failure or failure
        row = replace(self, max_rel_error=worst.relative, max_steps=worst.steps, failure=failure)
        return row.without_times() if row.is_wrong else row

    def without_times(self) -> BenchRow:
        """The same without our times, and without what follows from them."""
        return replace(
            self,
            ours_ms=None,
            ratio=None,
            peak_share=None,
            untuned_ms=None,
            untuned_ratio=None,
            untuned_share=None,
        )

    @property
    def suite(self) -> str:
        """The suite of a model that has one, else ""."""
        kind, colon, _ = self.model.partition(":")
        return kind if colon else ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Facts about our executable that are known before it runs.

    flops   of an inference               peak   of the machine, in flop/s; both 0 where not known
    tuned   workloads with a record       workloads   in all
    """

    host_operators: tuple[str, ...] = ()
    flops: float = 0.0
    peak: float = 0.0
    tuned: int = 0
    workloads: int = 0


UNKNOWN = Compiled()


def make_row(
    model: str,
    peer: str = "",
    max_rel_error: float | None = None,
    ours_s: float | None = None,
    untuned_s: float | None = None,
    failure: str = "",
    peers: Sequence[PeerTime] = (),
    compiled: Compiled = UNKNOWN,
    max_steps: float | None = None,
    at: str = "",
) -> BenchRow:
    """Build a row from seconds; the ratios, the share of peak, and the best of `peers`, follow.

    This build has measured it. Times of a wrong answer count nowhere: they are left out.

    peer   whom to name where none has a time      untuned_s   None where nothing is on record
    """
    timed = [(each.time_ms, each.peer) for each in peers if each.time_ms is not None]
    held = [each.time_ms for each in peers if each.is_held and each.time_ms is not None]
    peer_ms: float | None = None
    if timed:
        peer_ms, peer = min(timed)
    elif peers and not peer:
        peer = peers[0].peer
    ours_ms, untuned_ms = _milliseconds(ours_s), _milliseconds(untuned_s or ours_s)
    reached = compiled.flops / ours_s if ours_s and compiled.flops else None
    row = BenchRow(
        model=model,
        max_rel_error=max_rel_error,
        ours_ms=ours_ms,
        peer=peer,
        peer_ms=peer_ms,
        ratio=over(peer_ms, ours_ms),
        host_operators=compiled.host_operators,
        failure=failure,
        peak_share=over(reached, compiled.peak),
        peers=tuple(peers),
        tuned=compiled.tuned,
        workloads=compiled.workloads,
        untuned_ms=untuned_ms,
        untuned_ratio=over(peer_ms, untuned_ms),
        untuned_share=over(ours_ms, untuned_ms) if untuned_s else None,
        held_ms=min(held, default=None),
        build=row_files.this_build(),
        max_steps=max_steps,
        at=at,
    )
    if not row.is_wrong:
        return row
    return replace(row.without_times(), failure=failure or "ours answers wrongly")


def _milliseconds(time_s: float | None) -> float | None:
    return None if time_s is None else time_s * 1e3


def over(part: float | None, whole: float | None) -> float | None:
    """A ratio; None where a side is not known."""
    return None if part is None or not whole else part / whole


@dataclass(frozen=True, slots=True)
class RatioSummary:
    """The ratios of several rows together: their geometric mean, and the least with its label.

    suite   of all rows; "" for those of all suites      ratio   what is over what
    """

    suite: str
    ratio: str
    rows: int
    mean: float
    least: float
    model: str

    def __str__(self) -> str:
        name = " ".join(filter(None, (self.suite, self.ratio)))
        return (
            f"{name}: geometric mean of {self.rows} ratios {self.mean:.2f}, "
            f"the least {self.least:.2f} ({self.model})"
        )


Ratio = Callable[[BenchRow], float | None]

PLAIN: Mapping[str, Ratio] = MappingProxyType({"ours/best": lambda row: row.ratio})
TUNED: Mapping[str, Ratio] = MappingProxyType(
    {
        "untuned/best": lambda row: row.untuned_ratio,
        "tuned/best": lambda row: row.ratio,
        "untuned/tuned": lambda row: row.untuned_share,
    }
)
HELD: Mapping[str, Ratio] = MappingProxyType(
    {"ours/best held peer": lambda row: over(row.held_ms, row.ours_ms)}
)


def summarise_ratios(rows: Sequence[BenchRow]) -> tuple[RatioSummary, ...]:
    """Means of each ratio of speeds over all rows, and by suite where there are several."""
    ratios = dict(TUNED if any(row.untuned_share for row in rows) else PLAIN)
    if any(row.held_ms and row.held_ms != row.peer_ms for row in rows):
        ratios.update(HELD)
    suites = tuple(dict.fromkeys(row.suite for row in rows))
    groups = ("", *suites) if len(suites) > 1 else ("",)
    summaries = []
    for name, ratio in ratios.items():
        for suite in dict.fromkeys(groups):
            pairs = [(ratio(row), row.label) for row in rows if suite in ("", row.suite)]
            valued = [(value, model) for value, model in pairs if value]
            if valued:
                mean = statistics.geometric_mean([value for value, _ in valued])
                summaries.append(RatioSummary(suite, name, len(valued), mean, *min(valued)))
    return tuple(summaries)


def write_rows(
    path: str | os.PathLike[str],
    rows: Sequence[BenchRow],
    head: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Write an object: what `head` says of the run, the means, and a line for each row.

    A number that is not finite becomes null.
    Raises:  OutputError if the file cannot be written.
    """
    means = summarise_ratios(rows)
    mean = next((each.mean for each in means if each.ratio in ("ours/best", "tuned/best")), None)
    head = {**head, "geometric_mean": mean, "means": [asdict(each) for each in means]}
    write_objects(path, head, [asdict(row) for row in rows])


def read_rows(path: str | os.PathLike[str]) -> tuple[dict[str, Any], tuple[BenchRow, ...]]:
    """The head and the rows that `write_rows` wrote; nothing where there is no file.

    Raises:  InputError for a file of another kind.
    """
    return row_files.read_file_of("bench models", path, _row_of)


def _row_of(fields: dict[str, Any]) -> BenchRow:
    peers = tuple(PeerTime(**each) for each in fields["peers"])
    hosts = tuple(fields["host_operators"])
    return BenchRow(**fields | {"host_operators": hosts, "peers": peers})


def print_rows(rows: Sequence[BenchRow], console: Console | None = None, target: str = "") -> None:
    """Print the rows; framed and coloured on a terminal, plain lines elsewhere.

    Where a model has open sizes, a column has their numbers. Where there are several peers, each
    has a column, and the best one is named; where a model was tuned, so has each of its times.
    `target` is named where a peer is not held to it. Rows of other builds are marked and counted.
    """
    console = console or Console()
    names = tuple(dict.fromkeys(each.peer for row in rows for each in row.peers))
    several = names if len(names) > 1 else ()
    is_tuned = any(row.untuned_share is not None for row in rows)
    is_open = any(row.at for row in rows)
    columns = (
        *(("model", "at") if is_open else ("model",)),
        "error",
        *(("untuned ms", "tuned ms") if is_tuned else ("ours ms",)),
        *(f"{name} ms" for name in several),
        *(("best",) if several else ("peer", "peer ms")),
        *(("untuned/best", "tuned/best", "untuned/tuned") if is_tuned else ("ratio",)),
        *("of peak", "on host"),
    )
    titles, marks = row_files.build_columns([row.build for row in rows])
    cells = [
        (*_format_row(row, several, is_tuned, is_open), *mark)
        for row, mark in zip(rows, marks, strict=True)
    ]
    print_table((*columns, *titles), cells, console)
    for row in rows:
        told = dict.fromkeys((row.failure, *(each.failure for each in row.peers)))
        for failure in filter(None, told):
            print_line(f"{row.label}: {failure}", console)
    loose = [each.peer for row in rows for each in row.peers if each.is_held is False]
    if loose:
        who = ", ".join(dict.fromkeys(loose))
        print_line(
            f"{UNHELD} not held to {target or 'the target'}: in these models {who} chooses some "
            "kernels by what the processor has, and no setting changes that",
            console,
        )
    for summary in summarise_ratios(rows):
        if summary.rows > 1:
            print_line(str(summary), console)
    versions = [(each.peer, each.version) for row in rows for each in row.peers]
    row_files.print_builds([row.build for row in rows], versions, row_files.AGAIN, console)


def _format_row(
    row: BenchRow, several: Sequence[str], is_tuned: bool, is_open: bool
) -> tuple[str, ...]:
    times = {each.peer: each for each in row.peers}
    best = times.get(row.peer, PeerTime(row.peer, time_ms=row.peer_ms))
    ours = (row.untuned_ms, row.ours_ms if row.tuned else None) if is_tuned else (row.ours_ms,)
    ratios: tuple[float | None, ...] = (row.ratio,)
    if is_tuned:
        ratios = (row.untuned_ratio, row.ratio if row.tuned else None, row.untuned_share)
    return (
        *((row.model, row.at or "-") if is_open else (row.model,)),
        describe_error(row.max_rel_error, row.max_steps),
        *map(_format_ms, ours),
        *(_format_peer(times.get(name)) for name in several),
        row.peer or "-",
        *(() if several else (_format_peer(best),)),
        *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
        "-" if row.peak_share is None else f"{100 * row.peak_share:.0f} %",
        ", ".join(row.host_operators) or "none",
    )


def _format_peer(time: PeerTime | None) -> str:
    if time is None:
        return "-"
    return _format_ms(time.time_ms) + (UNHELD if time.is_held is False else "")


def _format_ms(time_ms: float | None) -> str:
    if time_ms is None:
        return "-"
    return f"{time_ms:.4f}" if time_ms < 1 else f"{time_ms:.2f}"
