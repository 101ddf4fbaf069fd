"""The table of `bench models`: models against the best of their peers, untuned and tuned."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from tensorwright.cli.printing import print_line, print_table
from tensorwright.peers.process.protocol import describe_error
from tensorwright_lab.comparison.agreement import UNHELD
from tensorwright_lab.comparison.builds import AGAIN, build_columns, print_builds
from tensorwright_lab.comparison.network_rows import BenchRow, PeerTime, summarise_ratios


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
    titles, marks = build_columns([row.build for row in rows])
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
    print_builds([row.build for row in rows], versions, AGAIN, console)


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
