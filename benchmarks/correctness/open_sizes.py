"""Compile networks with open sizes once, and compare them at many sizes.

    python benchmarks/correctness/open_sizes.py [--graphs 300] [--first 0]

Random plausible networks have one or two extents of their inputs made open: a batch, a length, a
side of images, with bounds and divisors.  Each is compiled once, called at the ends of the bounds
and between them, and compared with the interpreter of graphs.  One of its workloads is built by
schedules drawn at random from its space, and compared with its meaning by the machine and by the
interpreter of loops.  Prints a table and the faults.  `--graphs 1 --first SEED` repeats one.  Exit
code 1 if there are faults.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter

from tensorwright.base import detect_target
from tensorwright.pipeline import prepare
from tensorwright_lab.judging.open_sizes import check_network, check_trace, random_traces
from tensorwright_lab.zoo.plausible.drawer import Drawer
from tensorwright_lab.zoo.plausible.networks import FAMILIES
from tensorwright_lab.zoo.plausible.opening import CannotOpenError, with_open_extents, work_of

_WORK = 1e5
_MOST_ELEMENTS = 1_000_000
_SCHEDULES = 3


def main() -> int:
    """Check so many graphs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    families = tuple(FAMILIES)
    seed = given.first
    while counts["graphs"] < given.graphs:
        family = families[seed % len(families)]
        _check(family, seed, counts)
        seed += 1
        if counts["graphs"] % 20 == 0:
            print(f"{counts['graphs']} of {given.graphs} graphs", file=sys.stderr)
    for name in ("graphs", "schedules", "not opened", "no open form", "faults"):
        print(f"{name:14} {counts[name]:6}")
    return int(counts["faults"] > 0)


def _check(family: str, seed: int, counts: Counter[str]) -> None:
    chance, name = random.Random(f"{family} {seed}"), f"{family}_{seed}"
    drawn = FAMILIES[family](Drawer(name, f"{family} {seed}", work=_WORK))
    try:
        if work_of(drawn) > _MOST_ELEMENTS:
            raise CannotOpenError
        graph, values = with_open_extents(drawn, chance)
    except CannotOpenError:
        counts["no open form"] += 1
        return
    counts["graphs"] += 1
    try:
        check_network(graph, values, seed)
        target = detect_target()
        workloads = [each for each in prepare(graph, target).workloads if each.sizes]
        if workloads:
            workload = chance.choice(workloads)
            for trace in random_traces(workload, target, _SCHEDULES, seed):
                is_opened = check_trace(workload, trace, target, seed)
                counts["schedules" if is_opened else "not opened"] += 1
    except Exception:  # noqa: BLE001 - whatever it is, it is a fault
        counts["faults"] += 1
        print(f"fault in {name} (--graphs 1 --first {seed}):", file=sys.stderr)
        traceback.print_exc()


if __name__ == "__main__":
    sys.exit(main())
