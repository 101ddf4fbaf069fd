"""Who builds and measures, here or on a farm; and what drills have in common.

A drill tries cases of seeds, one after the other.  At its end it says how many there were, and of
each fault the command that repeats it, in a line that begins with `repeat: `.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from tensorwright.base import Target, UsageError
from tensorwright.farm import Farm
from tensorwright.machine import detect_hardware
from tensorwright.tuning.measuring import Builder, ChildRunner, MeasureOptions, PoolBuilder, Runner
from tensorwright.tuning.on_farm import FarmBuilder, FarmRunner, kind_for


def builder_of(farm: Farm | None, owned: ExitStack, limit_s: float) -> Builder:
    """A builder that `owned` closes; each build has a limit in seconds on this machine."""
    if farm is None:
        return owned.enter_context(PoolBuilder(limit_s=limit_s))
    builder = FarmBuilder(farm)
    owned.callback(builder.close)
    return builder


def runner_of(
    farm: Farm | None, owned: ExitStack, target: Target, options: MeasureOptions
) -> Runner:
    """A runner that `owned` closes.  What a farm measures must be fit to be compared with this
    machine: only devices of its kind do.

    Raises:  MachineError if no worker has a device; UsageError if it is of another kind.
    """
    if farm is None:
        return owned.enter_context(ChildRunner(options))
    kind, here = kind_for(farm, target).kind, detect_hardware().fingerprint
    if kind != here:
        raise UsageError(
            stage="farm",
            where="devices of the farm",
            reason=f"they are {kind}, this machine is {here}: the rows would be of two machines",
            remedy="give the command on a machine of the kind of the devices",
        )
    return FarmRunner(farm, kind, target, options)


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
