"""Equality saturation, backtracking and integer programming at the same costs of operators.

    python benchmarks/graph_searches.py [MODEL ...] [--limit S] [--json FILE] [--egraphs FOLDER]

Of each network: saturation with its usual limits and the cheapest selection by local search; what
integer programming finds in that e-graph, and by how much of its cost that may still be too dear;
backtracking for as many seconds as saturation and extraction took, and for ten times as many.
Costs are shares of the network's own: 0.8 says that the operators together take 0.8 of the time.
Seconds are CPU time of one thread; rows of other networks in the `--json` file stay as they are;
`--egraphs` keeps the e-graphs as the egg community's tools read them, for
`benchmarks/extraction.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from tensorwright.base import detect_target, now_utc, write_atomically
from tensorwright.cli.arguments.models import read_graph, row_name
from tensorwright.cli.printing import print_table
from tensorwright.graph import Graph, simplify
from tensorwright.pipeline import open_price
from tensorwright.rewriting import networks
from tensorwright.rewriting.backtracking import BacktrackingLimits, backtrack_network
from tensorwright.rewriting.egraph import BudgetSpent
from tensorwright.rewriting.library import load_library
from tensorwright.rewriting.local_search import cheapest_dag
from tensorwright.runtime.measuring import this_machine
from tensorwright_lab.exact_extraction import cheapest_exact, write_egraph
from tensorwright_lab.suites import suite

THREADS = 2
LONGER = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """What each way found in one network; costs are shares of the network's own.

    saturated_s   of saturation and extraction      stop   why saturation ended
    exact, gap    by integer programming, and by how much of that it may be too dear
    backtracked   in as many seconds as saturation took; `longer`: in ten times as many
    """

    model: str
    nodes: int
    stop: str
    saturated: float
    saturated_s: float
    exact: float
    gap: float
    exact_s: float
    backtracked: float
    longer: float
    longer_s: float


def measure(name: str, graph: Graph, limit_s: float, egraphs: Path | None) -> Row:
    """All ways in one network."""
    target = detect_target()
    price = open_price(target, THREADS)
    assert price is not None, "the time model ships"
    prices = networks.ProgramPrices(this_machine(target, THREADS), price)
    rules = networks.network_rules([each.rule for each in load_library()])
    whole = networks.operator_seconds(graph, prices)
    network = networks.read_network(graph)
    found, rules_s = _timed(lambda: networks.saturate_network(network, rules))
    networks.NetworkExtraction(network, prices)  # asks for all prices, so that no way pays for them
    extraction, extraction_s = _timed(lambda: networks.NetworkExtraction(network, prices))
    problem = extraction.problem
    local, local_s = _timed(lambda: cheapest_dag(problem))
    saturated_s = rules_s + extraction_s + local_s
    exact, exact_s = _timed(lambda: cheapest_exact(problem, limit_s=limit_s, start=local.selection))
    if egraphs is not None:
        egraphs.mkdir(parents=True, exist_ok=True)
        write_egraph(egraphs / f"{name}.json", problem, extraction.operators)
    stop = found.stop
    backtracked, _ = _timed(lambda: _backtrack(graph, rules, prices, saturated_s))
    longer, longer_s = _timed(lambda: _backtrack(graph, rules, prices, LONGER * saturated_s))
    return Row(
        name,
        len(network.terms),
        stop.limit if isinstance(stop, BudgetSpent) else "nothing left",
        local.selection.cost / whole,
        saturated_s,
        exact.selection.cost / whole,
        exact.gap,
        exact_s,
        backtracked / whole,
        longer / whole,
        longer_s,
    )


def _backtrack(
    graph: Graph, rules: networks.NetworkRules, prices: networks.ProgramPrices, seconds: float
) -> float:
    """What the cheapest graph costs that backtracking finds, the network's own at most."""
    limits = BacktrackingLimits(seconds=seconds, graphs=1_000_000)
    found = backtrack_network(
        networks.unsaturated(networks.read_network(graph)), rules, prices, limits
    )
    return min((*found.costs, networks.operator_seconds(graph, prices)))


def _kept(path: Path) -> list[Row]:
    """The rows of a file, which stay where their networks are not measured again."""
    return [Row(**each) for each in json.loads(path.read_text())["rows"]]


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="of the suite if not given")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of integer programming")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--egraphs", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    rows = _kept(asked.json) if asked.json and asked.json.exists() else []
    for model in asked.models or suite("rewriting"):
        name = row_name(model)
        row = measure(name, simplify(read_graph(model)), asked.limit, asked.egraphs)
        rows = [*(each for each in rows if each.model != name), row]
        print(f"{name}: done", flush=True)
        if asked.json:
            data = {"when": now_utc(), "limit_s": asked.limit, "rows": [asdict(r) for r in rows]}
            write_atomically(asked.json, json.dumps(data, indent=1).encode())
    print_table(
        (
            *("network", "e-graph", "stop", "saturation", "s", "exact", "gap", "s"),
            *("backtracking", f"{LONGER}x as long", "s"),
        ),
        [
            (
                row.model,
                str(row.nodes),
                row.stop,
                f"{row.saturated:.4f}",
                f"{row.saturated_s:.1f}",
                f"{row.exact:.4f}",
                f"{row.gap:.2%}",
                f"{row.exact_s:.1f}",
                f"{row.backtracked:.4f}",
                f"{row.longer:.4f}",
                f"{row.longer_s:.1f}",
            )
            for row in rows
        ],
    )
    optimal = sum(1 for row in rows if row.gap <= 1e-6)
    first = sum(1 for row in rows if row.saturated <= row.longer * (1 + 1e-6))
    mean = math.exp(sum(math.log(row.saturated) for row in rows) / len(rows))
    print(
        f"proved to be the cheapest: {optimal} of {len(rows)}; saturation at least as cheap as "
        f"backtracking in {LONGER} times its time: {first} of {len(rows)}; mean cost {mean:.3f}"
    )


if __name__ == "__main__":
    main()
