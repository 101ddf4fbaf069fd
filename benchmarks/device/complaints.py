"""Programs for cards with a fault put in: what the interpreter says of each, and Oclgrind.

    python benchmarks/device/complaints.py [--whole]

A product of 8x8x12 in shared tiles loses a barrier, has memory of one thread in the place of shared
memory, or uses copies before they have arrived.  `--whole` prints the programs, too.  Oclgrind sees
the OpenCL text of the first, and that of the right program; it is skipped where it is missing.
Exit code 1 where a fault is not found.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from tensorwright.base import GpuTarget, InternalError, parse_target
from tensorwright.loop import LoopProgram
from tensorwright_lab import cards
from tensorwright_lab.cards.faults import SIZES
from tensorwright_lab.loop_interpreter import interpret

RIGHT = cards.product(*SIZES, cards.SMALL_TILES, "")
ARRAYS = RIGHT.arrays()


def say(program: LoopProgram, *, whole: bool) -> bool:
    """Print the interpreter's message; whether there is one."""
    try:
        interpret(program, ARRAYS)
    except InternalError as error:
        head, _, page = str(error).partition("\n")
        print(head.partition(": ")[2])
        lines = page.splitlines()
        print("\n".join(lines if whole else [line for line in lines if line.endswith("<- here")]))
        return True
    print("  nothing")
    return False


def say_by_oclgrind(name: str, program: LoopProgram, target: GpuTarget) -> int:
    """Print the first complaint; how many there are."""
    results, complaints = cards.run_by_oclgrind(target, program, ARRAYS)
    is_right = all(np.array_equal(each, RIGHT.answer(ARRAYS)) for each in results.values())
    print(f"\n# Oclgrind, {name}: {len(complaints)} complaints, the result is", end=" ")
    print("right" if is_right else "wrong")
    print(*complaints[:1], sep="\n")
    return len(complaints)


def main() -> int:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    are_found = []
    for fault in cards.FAULTS:
        print(f"\n# the interpreter, {fault.name}")
        are_found.append(say(fault.program, whole=given.whole))
    lack = cards.missing_oclgrind()
    if lack:
        print(f"\n{lack}")
    else:
        target = parse_target("opencl:generic")
        assert isinstance(target, GpuTarget)
        first, *_ = cards.FAULTS
        are_found.append(say_by_oclgrind(first.name, first.program, target) > 0)
        are_found.append(say_by_oclgrind("all barriers", RIGHT.program, target) == 0)
    return 0 if all(are_found) else 1


if __name__ == "__main__":
    sys.exit(main())
