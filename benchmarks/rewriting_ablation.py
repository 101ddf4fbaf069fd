"""What the parts of the search for a faster graph are worth: each left out or exchanged in turn.

    both             all rules, both searches, graphs ranked by their programs
    saturate         equality saturation alone
    backtrack        backtracking alone
    operator costs   graphs ranked by the sum of their operators, each alone
    size N           rules of which a side has at most N operators
    single roots     without rules that merge two operators into one
    fixed layouts    graphs ranked without choosing layouts: all tensors plain

A figure says how many times as fast as the network the chosen graph is expected to be, by its
programs with layouts chosen, whatever it was ranked by; below 1 the ranking was wrong.  Nothing is
measured, so that the figures differ by the search alone; the limits are seconds of one core.

    python benchmarks/rewriting_ablation.py [--out FOLDER] [--seconds S] [MODEL ...]
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tensorwright.base import detect_target, now_utc
from tensorwright.cli.arguments.models import read_graph, row_name
from tensorwright.cli.printing import print_table
from tensorwright.graph import Graph, simplify
from tensorwright.pipeline import open_price
from tensorwright.rewriting import Rule, applications, candidates, networks
from tensorwright.rewriting.library import load_library
from tensorwright.runtime.measuring import this_machine
from tensorwright_lab.suites import suite

THREADS = 2


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to search."""

    search: candidates.SearchKind = candidates.SearchKind.BOTH
    cost: candidates.CostKind = candidates.CostKind.PROGRAMS
    most_operators: int | None = None
    has_merges: bool = True
    has_layouts: bool = True

    def rules(self, listed: Sequence[Rule]) -> networks.NetworkRules:
        """Those that this way uses."""
        most = self.most_operators
        kept = [rule for rule in listed if most is None or _operators(rule) <= most]
        found = networks.network_rules(kept)
        return found if self.has_merges else replace(found, merges=())


VARIANTS: Mapping[str, Variant] = {
    "both": Variant(),
    "saturate": Variant(candidates.SearchKind.SATURATE),
    "backtrack": Variant(candidates.SearchKind.BACKTRACK),
    "operator costs": Variant(cost=candidates.CostKind.OPERATORS),
    **{f"size {count}": Variant(most_operators=count) for count in (1, 2, 3, 4)},
    "single roots": Variant(has_merges=False),
    "fixed layouts": Variant(has_layouts=False),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What a way to search found for a network.

    gain      by the programs of the network over those of the chosen graph
    ranked    the same by what graphs were ranked by         rules    that were tried
    """

    model: str
    variant: str
    gain: float
    ranked: float
    rules: int
    seconds: float


def _operators(rule: Rule) -> int:
    """The operators of the larger side."""
    return max(len(applications(*side)) for side in (rule.left, rule.right))


def run(graph: Graph, name: str, variant: Variant, seconds: float) -> tuple[float, float, int]:
    """(gain, gain by the ranking, rules) of a network under a way to search."""
    target = detect_target()
    price = open_price(target, THREADS)
    assert price is not None, "the time model ships"
    machine = this_machine(target, THREADS)
    true = networks.ProgramPrices(machine, price)
    prices = networks.ProgramPrices(machine, price, has_layouts=variant.has_layouts)
    rules = variant.rules([each.rule for each in load_library()])
    network = networks.read_network(graph)
    how = candidates.CandidateSearch(variant.search, variant.cost, seconds)
    found = candidates.find_candidates(network, rules, prices, how)
    before_s, ranked_s = (
        networks.network_seconds(true, graph),
        networks.network_seconds(prices, graph),
    )
    count = len(rules.plain) + len(rules.merges)
    if not found.ranked or before_s is None or ranked_s is None:
        return 1.0, 1.0, count
    best = found.ranked[0]
    if variant.cost is candidates.CostKind.PROGRAMS and not _is_cheaper(best, ranked_s):
        return 1.0, 1.0, count  # the network itself is the best
    after_s = networks.network_seconds(
        true,
        simplify(networks.write_outline(network, networks.choice_of(network, best.outputs)).graph),
    )
    ranked = ranked_s / best.programs_s if best.programs_s else math.nan
    return before_s / after_s if after_s else math.nan, ranked, count


def _is_cheaper(candidate: candidates.Candidate, seconds: float) -> bool:
    return candidate.programs_s is not None and candidate.programs_s < seconds


def draw(rows: Sequence[Row], path: Path) -> None:
    """A group of bars for each network."""
    importlib.import_module("matplotlib").use("Agg")  # into a file, without a display
    plt: Any = importlib.import_module("matplotlib.pyplot")
    models = list(dict.fromkeys(row.model for row in rows))
    gains = {(row.model, row.variant): row.gain for row in rows}
    figure, axes = plt.subplots(figsize=(1.6 * len(models) + 3, 5))
    width = 0.8 / len(VARIANTS)
    for place, variant in enumerate(VARIANTS):
        heights = [gains.get((model, variant), math.nan) for model in models]
        axes.bar([n + place * width for n in range(len(models))], heights, width, label=variant)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xticks([n + 0.4 for n in range(len(models))], models, rotation=30, ha="right")
    axes.set_ylabel("times as fast as the network, expected")
    axes.set_ylim(bottom=0.8)
    axes.legend(ncols=2, fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="of the suite if not given")
    parser.add_argument("--out", type=Path, default=Path("rewriting_ablation"))
    parser.add_argument("--seconds", type=float, default=4.0, help="of each search")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for model in arguments.models or suite("rewriting"):
        graph, name = simplify(read_graph(model)), row_name(model)
        for word, variant in VARIANTS.items():
            start = time.monotonic()
            gain, ranked, rules = run(graph, name, variant, arguments.seconds)
            rows.append(Row(name, word, gain, ranked, rules, time.monotonic() - start))
            print(f"{name}, {word}: {gain:.3f} in {rows[-1].seconds:.1f} s", flush=True)
        data = {"when": now_utc(), "seconds": arguments.seconds, "rows": [asdict(r) for r in rows]}
        (arguments.out / "rewriting.json").write_text(json.dumps(data, indent=1))
    draw(rows, arguments.out / "rewriting.png")
    models = list(dict.fromkeys(row.model for row in rows))
    table = {(row.model, row.variant): f"{row.gain:.2f}" for row in rows}
    print_table(
        ("network", *VARIANTS),
        [(model, *(table[model, variant] for variant in VARIANTS)) for model in models],
    )


if __name__ == "__main__":
    main()
