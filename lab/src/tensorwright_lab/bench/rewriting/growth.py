"""Growth of the cost of a search over graphs with the network: `bench rewrite --growth`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from tensorwright.cli.printing import print_line, print_table
from tensorwright.rewriting.candidates import SearchKind
from tensorwright_lab.bench.rewriting.rows import Searched
from tensorwright_lab.bench.rewriting.runs import Plan, search_graph
from tensorwright_lab.zoo import repeated_blocks

SIZES = (100, 200, 400, 800, 1600, 3200)
"""About so many operators."""


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """A network of repeated blocks.

    exponent   so that processor time grew with that power of the operators since the row before:
               others on the machine take time from a search, and no processor time
    """

    operators: int
    search_s: float
    cpu_s: float
    peak_bytes: int
    egraph_nodes: int
    steps: int
    stop: str
    gain: float | None
    exponent: float | None = None


def search_repeated(size: int, plan: Plan) -> Searched:
    """Rewrite repeated blocks of about `size` operators, by saturation, which ends by itself;
    nothing is measured.  Runs in a process of its own.
    """
    plan = replace(plan, search=SearchKind.SATURATE, measures=False)
    return search_graph(repeated_blocks(size, plan.seed), plan)[1]


def growth_row(searched: Searched, before: GrowthRow | None) -> GrowthRow:
    """The row of a search, after that of a smaller network."""
    gain = None
    if searched.programs_before_s and searched.programs_after_s:
        gain = searched.programs_before_s / searched.programs_after_s
    exponent = None
    if before is not None and searched.nodes_before != before.operators:
        exponent = _slope(before.operators, before.cpu_s, searched.nodes_before, searched.cpu_s)
    return GrowthRow(
        searched.nodes_before,
        searched.search_s,
        searched.cpu_s,
        searched.peak_bytes,
        searched.egraph_nodes,
        sum(searched.rules.values()),
        searched.stop,
        gain,
        exponent,
    )


def _slope(small: int, small_s: float, large: int, large_s: float) -> float:
    """The power of the size with which a cost grew."""
    return math.log(large_s / small_s) / math.log(large / small)


def print_growth(rows: Sequence[GrowthRow], console: Console | None = None) -> None:
    """Print the rows; the last columns are the exponents of the processor time and of n log n."""
    console = console or Console()
    columns = (
        *(
            "operators",
            "search s",
            "CPU s",
            "ms each",
            "MB",
            "e-graph",
            "steps",
            "gain",
            "ended by",
        ),
        *("exponent", "of n log n"),
    )
    cells = []
    for number, row in enumerate(rows):
        bound = "-"
        if row.exponent is not None:
            n, m = rows[number - 1].operators, row.operators
            bound = f"{_slope(n, n * math.log(n), m, m * math.log(m)):.2f}"
        cells.append(
            (
                str(row.operators),
                f"{row.search_s:.2f}",
                f"{row.cpu_s:.2f}",
                f"{row.cpu_s / row.operators * 1e3:.2f}",
                f"{row.peak_bytes / 1e6:.0f}",
                str(row.egraph_nodes),
                str(row.steps),
                "-" if row.gain is None else f"{row.gain:.2f}",
                row.stop,
                "-" if row.exponent is None else f"{row.exponent:.2f}",
                bound,
            )
        )
    print_table(columns, cells, console)
    if any(row.stop in ("seconds", "nodes") for row in rows):
        print_line("a search that a limit ended did less than it would have", console)
