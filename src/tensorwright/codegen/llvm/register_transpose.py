"""Transpose a square of vectors in registers, by shuffles."""

from __future__ import annotations

from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.machine_code import shuffle_text


def transposed_square(function: Function, rows: list[str], kind: str) -> list[str]:
    """The columns of a square: vector n has lane n of every row, in their order.

    Blocks of the square change places with those across from them, blocks of half its side first.
    """
    rows = list(rows)
    side = len(rows)
    step = side // 2
    while step:
        lanes = range(side)
        low = [lane if not lane & step else lane - step + side for lane in lanes]
        high = [lane + step if not lane & step else lane + side for lane in lanes]
        for n in (n for n in lanes if not n & step):
            a, b = rows[n], rows[n + step]
            rows[n], rows[n + step] = (
                function.pure(shuffle_text(kind, a, b, part), a, b) for part in (low, high)
            )
        step //= 2
    return rows
