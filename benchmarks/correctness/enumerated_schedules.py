"""All steps of a schedule with small arguments, on small expressions: what is accepted is right.

    python benchmarks/correctness/enumerated_schedules.py [--part 0/1] [--seconds 0]
                                                          [--first 1] [--most 2]
                                                          [--walks 20] [--seed 0]

Eighty expressions of a few elements, and the schedules of the tests.  Each primitive is tried at
each stage and loop with all small arguments: on each expression as it is, after each algorithm,
after `--first` steps of each primitive, and after each of those schedules.  What a step accepts is
lowered and interpreted, before and after the passes of its target, and compared with the evaluator.
After other steps, so many accepted steps of a primitive (`--most`; 0 is all) are run, evenly among
them.  Faults that need three steps or more are met by walks: of each expression `--walks` schedules
of two to twelve such steps, drawn from `--seed`.  `--part 2/6` takes every sixth case from the
third on; `--seconds` is when no other one is begun.  Prints the faults with the traces that repeat
them, and a table.  Exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[2])]

# ruff: noqa: E402
from tests.unit.schedule import groups, test_primitives
from tests.unit.schedule.enumerated import Tally, enumerate_after, enumerate_schedules, walk
from tests.unit.schedule.expressions import Expression
from tests.unit.schedule.small_expressions import SMALL
from tests.unit.schedule.test_random_traces import CARD_KINDS, KINDS

from tensorwright.schedule import PRIMITIVES

SCHEDULES = {**groups.TRACES, **test_primitives.CASES}
_MOST_SHOWN = 20
"""Faults."""


def cases(options: argparse.Namespace, tally: Tally) -> dict[str, Callable[[], None]]:
    """What checks each expression, and each schedule."""
    after = partial(enumerate_after, tally=tally, most=options.most)

    def check(name: str, expression: Expression) -> None:
        enumerate_schedules(name, expression, tally, each=options.first, most=options.most)
        source = Random(f"{options.seed} {name}")
        for number in range(options.walks):
            walk(name, expression, CARD_KINDS if number % 3 == 0 else KINDS, source, tally)

    of_expressions = {name: partial(check, name, each) for name, each in SMALL.items()}
    of_schedules = {f"after {name}": partial(after, name, *c) for name, c in SCHEDULES.items()}
    return {**of_expressions, **of_schedules}


def table(tally: Tally) -> str:
    """The counts, by primitive."""
    lines = [f"{'':24}{'accepted':>10}{'not run':>10}{'refused':>10}{'wrong':>8}"]
    counters = (tally.accepted, tally.untried, tally.refused, tally.wrong)
    for name in (kind.__name__ for kind in PRIMITIVES):
        counts = [counter[name] for counter in counters]
        lines.append("{:24}{:>10,}{:>10,}{:>10,}{:>8,}".format(name, *counts))
    totals = [counter.total() for counter in counters]
    lines.append("{:24}{:>10,}{:>10,}{:>10,}{:>8,}".format("all", *totals))
    return "\n".join(lines)


def main() -> int:
    """Check, print the faults and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", default="0/1", metavar="NUMBER/PARTS")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--most", type=int, default=2)
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, parts = map(int, options.part.split("/"))
    started, tally = time.monotonic(), Tally()
    chosen = list(cases(options, tally).items())[number::parts]
    done = 0
    for name, check in chosen:
        if options.seconds and time.monotonic() - started > options.seconds:
            break
        shown = len(tally.faults)
        check()
        for fault in tally.faults[shown:_MOST_SHOWN]:
            print(f"{fault}\n", flush=True)
        done += 1
        counts = f"{tally.programs:,} programs, {len(tally.faults)} faults"
        print(f"{done} of {len(chosen)}, {name}: {counts}", file=sys.stderr, flush=True)
    print(table(tally))
    took = f"{time.monotonic() - started:.0f} s, of which {time.process_time():.0f} s of computing"
    print(f"{done} of {len(chosen)} cases, {tally.programs:,} programs, {took}")
    if tally.faults:
        print(f"repeat: python {' '.join(sys.argv)}")
    print(f"{tally.programs} cases, {len(tally.faults)} faults")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
