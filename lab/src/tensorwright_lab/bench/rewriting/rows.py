"""The rows of `bench rewrite`: what a search over graphs made of a network; table and file."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from rich.console import Console

from tensorwright.cli.printing import print_line, print_table
from tensorwright_lab.comparison import AGAIN, build_columns, print_builds
from tensorwright_lab.comparison.agreement import Apart
from tensorwright_lab.comparison.network_rows import over
from tensorwright_lab.comparison.row_files import read_file_of
from tensorwright_lab.rows import write_objects


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search, and its cost.

    nodes_before, nodes_after   operators of the simplified network and of its rewriting
    rules                       how often each was applied on the way
    search_s, cpu_s             seconds that passed, and those of all cores together
    loaded_bytes, peak_bytes    the most memory of its process, when the network was read and at
                                the end of the search
    egraph_nodes, stop          of the e-graph, and what ended its growth
    operators_*_s, programs_*_s what both are expected to take: operators alone and summed, and as
                                the programs that will run; None where a workload has no price
    trial_gain                  how many times as fast the best of the others was when the search
                                tried it; None where it tried none
    """

    nodes_before: int
    nodes_after: int
    rules: Mapping[str, int]
    search_s: float
    cpu_s: float
    loaded_bytes: int
    peak_bytes: int
    egraph_nodes: int
    stop: str
    operators_before_s: float
    operators_after_s: float
    programs_before_s: float | None
    programs_after_s: float | None
    is_changed: bool
    trial_gain: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of a network before and after in one runtime; None for what was not measured,
    or computes a wrong answer.

    version   of the runtime; "" where it is not known
    """

    before_ms: float | None = None
    after_ms: float | None = None
    failure: str = ""
    version: str = ""

    @property
    def gain(self) -> float | None:
        """How many times as fast it is after."""
        return over(self.before_ms, self.after_ms)

    def to_data(self) -> dict[str, object]:
        """The times for JSON, with the gain."""
        return {**asdict(self), "gain": self.gain}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Measured:
        """The times that `to_data` wrote."""
        return cls(**{name: value for name, value in data.items() if name != "gain"})


NOTHING = Measured()


@dataclass(frozen=True, slots=True)
class RewriteRow:
    """A network: its search, and what was measured before and after.

    peers           what other runtimes took of the same two networks, by name
    tuned           candidates tried for both together, where they were tuned first
    max_rel_error   largest difference of an output of ours, before and after, from the reference,
                    and of what the rewritten network computes in peers that have the first one
                    right; over the largest number of that output
    build           digest of the sources that measured it; "" where that is not known
    """

    model: str
    searched: Searched | None = None
    ours: Measured = NOTHING
    peers: Mapping[str, Measured] = field(default_factory=dict)
    tuned: int = 0
    max_rel_error: float | None = None
    failure: str = ""
    build: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether an answer of ours, or one of the rewritten network, is wrong."""
        return Apart(self.max_rel_error).is_wrong

    def to_data(self) -> dict[str, object]:
        """The row for JSON, with the gains."""
        return {
            "model": self.model,
            "searched": None if self.searched is None else asdict(self.searched),
            "ours": self.ours.to_data(),
            "peers": {name: each.to_data() for name, each in self.peers.items()},
            "tuned": self.tuned,
            "max_rel_error": self.max_rel_error,
            "failure": self.failure,
            "build": self.build,
        }


def row_of(data: Mapping[str, Any]) -> RewriteRow:
    """The row of `RewriteRow.to_data`."""
    parts = dict(data)
    parts["ours"] = Measured.from_data(parts["ours"])
    parts["peers"] = {name: Measured.from_data(each) for name, each in parts["peers"].items()}
    if parts["searched"] is not None:
        parts["searched"] = Searched(**parts["searched"])
    return RewriteRow(**parts)


def write_rewrite(path: str, rows: Sequence[RewriteRow], head: Mapping[str, object]) -> None:
    """Keep the rows, whole or not at all.  Raises: OutputError."""
    means = {name: mean for name, (mean, _) in gains_of(rows).items()}
    write_objects(path, {**head, "means": means}, [row.to_data() for row in rows])


def read_rewrite(path: str) -> tuple[dict[str, Any], tuple[RewriteRow, ...]]:
    """The head and the rows that `write_rewrite` wrote; nothing where there is no file.

    Raises:  InputError for a file of another kind.
    """
    return read_file_of("bench rewrite", path, row_of)


def gains_of(rows: Sequence[RewriteRow]) -> dict[str, tuple[float, int]]:
    """The geometric mean of each gain over the rows that changed, and of how many rows."""
    gains_of_kind: dict[str, list[float]] = {}
    for row in rows:
        if row.searched is not None and row.searched.is_changed:
            for name, gain in _gains(row, row.searched):
                if gain:
                    gains_of_kind.setdefault(name, []).append(gain)
    return {
        name: (statistics.geometric_mean(gains), len(gains))
        for name, gains in gains_of_kind.items()
    }


def _gains(row: RewriteRow, searched: Searched) -> Iterator[tuple[str, float | None]]:
    yield "operators", over(searched.operators_before_s, searched.operators_after_s)
    yield "programs", over(searched.programs_before_s, searched.programs_after_s)
    yield "ours", row.ours.gain
    for name, measured in row.peers.items():
        yield name, measured.gain


# Showing

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "model": "",
        "nodes": "operators before and after",
        "steps": "applications of rules that the rewriting needs",
        "search s": "",
        "CPU s": "of all cores together",
        "MB": "peak memory of the search's process",
        "e-graph": "its nodes",
        "ended by": "what ended its growth",
        "operators": "gain by the costs of single operators",
        "programs": "gain by the prices of programs",
        "ours ms": "before and after, measured",
        "ours": "measured gain",
        "error": "largest difference of an output over its largest number",
    }
)


def print_rewrite(rows: Sequence[RewriteRow], console: Console | None = None) -> None:
    """Print the rows, the rules that each used, and the means."""
    console = console or Console()
    peers = tuple(dict.fromkeys(name for row in rows for name in row.peers))
    theirs = (word for name in peers for word in (f"{name} ms", name))
    titles, marks = build_columns([row.build for row in rows])
    cells = [(*_cells(row, peers), *mark) for row, mark in zip(rows, marks, strict=True)]
    print_table((*COLUMNS, *theirs, *titles), cells, console)
    for row in rows:
        used = {} if row.searched is None else row.searched.rules
        if used:
            named = ", ".join(f"{name} {count}" for name, count in used.items())
            print_line(f"{row.model}: {named}", console)
        for failure in filter(None, (row.failure, row.ours.failure)):
            print_line(f"{row.model}: {failure}", console)
        for each in row.peers.values():
            if each.failure:
                print_line(f"{row.model}: {each.failure}", console)
    for name, (mean, count) in gains_of(rows).items():
        what = {"operators": "by operators", "programs": "by programs", "ours": "measured"}.get(
            name, f"measured in {name}"
        )
        print_line(f"{what}: {mean:.2f} times as fast, the mean of {count} that changed", console)
    versions = [(name, each.version) for row in rows for name, each in row.peers.items()]
    print_builds([row.build for row in rows], versions, AGAIN, console)


def _cells(row: RewriteRow, peers: Sequence[str]) -> tuple[str, ...]:
    error = "-" if row.max_rel_error is None else f"{row.max_rel_error:.1e}"
    ours, *theirs = (
        (_pair(each), _ratio(each.gain))
        for each in (row.ours, *(row.peers.get(name, NOTHING) for name in peers))
    )
    searched = row.searched
    if searched is None:
        return (row.model, *("-" for _ in range(len(COLUMNS) - 1 + 2 * len(peers))))
    gains = dict(_gains(row, searched))
    return (
        row.model,
        f"{searched.nodes_before} > {searched.nodes_after}",
        str(sum(searched.rules.values())),
        f"{searched.search_s:.1f}",
        f"{searched.cpu_s:.1f}",
        f"{searched.peak_bytes / 1e6:.0f}",
        str(searched.egraph_nodes),
        searched.stop,
        _ratio(gains["operators"]),
        _ratio(gains["programs"]),
        *ours,
        error,
        *(word for pair in theirs for word in pair),
    )


def _pair(measured: Measured) -> str:
    if measured.before_ms is None or measured.after_ms is None:
        return "-"
    return f"{measured.before_ms:.3g} > {measured.after_ms:.3g}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
