"""Compile networks with open sizes once, and compare them at many sizes.

    python benchmarks/correctness/open_sizes.py [--seed 0] [--count 300] [--only rewriting]

Random plausible networks have one or two extents of their inputs made open: a batch, a length, a
side of images, with bounds and divisors.  Each is compiled once, called at the ends of the bounds
and between them, and compared with the interpreter of graphs.  One of its workloads is built by
schedules drawn at random from its space, and compared with its meaning by the machine and by the
interpreter of loops.  Each graph goes through the searches for a faster one, with costs that are
drawn; what they hand on is compared with it at those sizes, and its certificate is replayed.
`--only rewriting` or `--only programs` leaves out the other half.  Prints a table and the faults.
Exit code 1 if there are faults.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter

from tensorwright.base import detect_target
from tensorwright.graph import Graph
from tensorwright.pipeline import prepare
from tensorwright_lab.judging import open_sizes
from tensorwright_lab.judging.drills import add_options, finish
from tensorwright_lab.zoo.plausible.drawer import Drawer
from tensorwright_lab.zoo.plausible.networks import FAMILIES
from tensorwright_lab.zoo.plausible.opening import CannotOpenError, with_open_extents, work_of

_WORK = 1e5
_MOST_ELEMENTS = 1_000_000
_SCHEDULES = 3
_COUNTED = (
    *("graphs", "schedules", "not opened", "rewritten", "changed", "ONNX files"),
    *("no open form",),
)


def main() -> int:
    """Check so many graphs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, 300)
    parser.add_argument("--only", choices=("programs", "rewriting"))
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    faults: dict[int, str] = {}
    seed = given.seed
    while counts["graphs"] < given.count:
        fault = _check(seed, given.only, counts, rules)
        if fault:
            faults[seed] = fault
        print(f"seed {seed}: {counts['graphs']} of {given.count} graphs", file=sys.stderr)
        seed += 1
    for name in _COUNTED:
        print(f"{name:14} {counts[name]:6}")
    print("most used:", ", ".join(f"{name} {count}" for name, count in rules.most_common(8)))
    return finish(counts["graphs"], faults)


def graph_of(seed: int) -> tuple[Graph, dict[str, int]]:
    """The open graph of a seed, and a typical number for each of its sizes.

    Raises:  CannotOpenError for a graph that is large, or has no open form.
    """
    families = tuple(FAMILIES)
    family = families[seed % len(families)]
    text = f"{family} {seed}"
    drawn = FAMILIES[family](Drawer(f"{family}_{seed}", text, work=_WORK))
    if work_of(drawn) > _MOST_ELEMENTS:
        raise CannotOpenError
    return with_open_extents(drawn, random.Random(text))


def _check(seed: int, only: str | None, counts: Counter[str], rules: Counter[str]) -> str:
    """Check the graph of a seed, where it has an open form; the fault, or ""."""
    try:
        graph, values = graph_of(seed)
    except CannotOpenError:
        counts["no open form"] += 1
        return ""
    counts["graphs"] += 1
    try:
        if only != "rewriting":
            open_sizes.check_network(graph, values, seed)
            counts.update(_check_schedules(graph, random.Random(f"schedules {seed}"), seed))
        if only != "programs":
            rewritten = open_sizes.check_rewriting(graph, values, seed)
            counts.update({"rewritten": rewritten.count, "ONNX files": rewritten.files})
            counts["changed"] += bool(rewritten.rules)
            rules.update(rewritten.rules)
    except Exception:  # noqa: BLE001 - whatever it is, it is a fault
        return f"{graph.name}: {traceback.format_exc()}"
    return ""


def _check_schedules(graph: Graph, chance: random.Random, seed: int) -> Counter[str]:
    """Check one workload with schedules that are drawn; how many could be opened."""
    target = detect_target()
    workloads = [each for each in prepare(graph, target).workloads if each.sizes]
    if not workloads:
        return Counter()
    workload = chance.choice(workloads)
    traces = open_sizes.random_traces(workload, target, _SCHEDULES, seed)
    opened = sum(open_sizes.check_trace(workload, trace, target, seed) for trace in traces)
    return Counter({"schedules": opened, "not opened": len(traces) - opened})


if __name__ == "__main__":
    sys.exit(main())
