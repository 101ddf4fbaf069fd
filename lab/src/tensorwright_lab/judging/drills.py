"""What drills have in common: their options, and how they end.

A drill tries cases of seeds, one after the other.  At its end it says how many there were, and of
each fault the command that repeats it, in a line that begins with `repeat: `.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence

_OWN = ("--seed", "--count", "--json")


def add_options(parser: argparse.ArgumentParser, count: int) -> None:
    """Add `--seed` and `--count`, of which a drill tries so many by default."""
    parser.add_argument("--seed", type=int, default=0, help="the first one (default 0)")
    parser.add_argument("--count", type=int, default=count, help=f"of seeds (default {count})")


def finish(cases: int, faults: Mapping[int, str]) -> int:
    """Print how many cases there were, and the faults by seed; the exit status of the drill."""
    for seed, text in faults.items():
        print(f"\nseed {seed}: {text}\n{repeating(sys.argv, seed)}")
    print(f"\n{cases} cases, {len(faults)} faults")
    return 1 if faults else 0


def repeating(words: Sequence[str], seed: int) -> str:
    """The line that says how to repeat one seed of the drill that was started with these words."""
    kept: list[str] = []
    given = iter(words)
    for word in given:
        if word in _OWN:
            next(given, None)
        elif not word.startswith(tuple(f"{each}=" for each in _OWN)):
            kept.append(word)
    return f"repeat: python {shlex.join(kept)} --seed {seed} --count 1"
