"""How many rows of a tile the first cache holds if their distance maps them to few of its sets.

A tile reads a line of each of its rows, and reads it again for every element of that line.  Rows
that are a multiple of 4096 bytes apart have their lines in one set, which has as many ways as the
cache has pages: with more rows than that every read misses. A concatenation along such an axis took
200 times as long as its transpose.

Source:  the index of a first cache lies within a page on x86-64 and most others, so that a set is
chosen while the address is translated; Drepper, What every programmer should know about memory.
"""

from __future__ import annotations

from math import gcd

from tensorwright.base import LINE_BYTES, CpuTarget
from tensorwright.expr import Axis
from tensorwright.tuning.space.axes.accesses import bytes_along
from tensorwright.tuning.space.axes.anchor import Anchor

PAGE_BYTES = 4096
_OTHER_WAYS = 1  # ways for streamed vectors


def most_rows(anchor: Anchor, axis: Axis, target: CpuTarget) -> int | None:
    """How many neighbours along an axis a tile may read without losing the first; None: any number.

    Constants do not count: they are packed in the order in which they are read.
    """
    limits: list[int] = []
    for operand in anchor.operands:
        apart = bytes_along(operand.load, axis.var)
        if apart > LINE_BYTES and not operand.is_constant:
            limits.append(lines_held(apart, target))
    return min(limits, default=None)


def lines_held(apart_bytes: int, target: CpuTarget) -> int:
    """The number of lines of such a distance that the first cache holds at once."""
    ways = max(2, target.l1_bytes // PAGE_BYTES - _OTHER_WAYS)
    sets = max(1, PAGE_BYTES // max(gcd(apart_bytes, PAGE_BYTES), LINE_BYTES))
    return ways * sets
