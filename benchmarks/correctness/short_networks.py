"""Compare random networks of short numbers with what they mean in exact numbers.

    python benchmarks/correctness/short_networks.py [--seed 0] [--count 700]

Of each seven seeds five draw a product or a convolution, of bytes or of bf16, and two draw a
quantised network: for this processor, or for another of its kind, whose instructions are loops
where this one lacks them.  Prints what was drawn, and the faults.  Exit code 1 if there are faults.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter

from tensorwright_lab.judging.drills import add_options, finish
from tensorwright_lab.judging.short_networks import check_product, check_quantised

_PRODUCTS, _TURN = 5, 7


def main() -> int:
    """Check so many networks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, 700)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    faults: dict[int, str] = {}
    for seed in range(given.seed, given.seed + given.count):
        check = check_product if seed % _TURN < _PRODUCTS else check_quantised
        try:
            counts[check(seed)] += 1
        except Exception:  # noqa: BLE001 - whatever it is, it is a fault
            faults[seed] = traceback.format_exc()
        text = f"{seed - given.seed + 1} of {given.count}, {len(faults)} faults"
        print(text, file=sys.stderr, end="\r", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{name:18} {count:6}")
    return finish(given.count, faults)


if __name__ == "__main__":
    sys.exit(main())
