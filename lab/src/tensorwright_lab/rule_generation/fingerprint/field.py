"""Exact arithmetic modulo the prime of `expr.FieldDomain`, on whole arrays.

    multiply(P - 1, P - 1)     1, as (-1)(-1) = 1
    invert(2)                  (P + 1) / 2
    relu(P - 5)                0: it stands for -5

Numbers are uint64 below P.  Products of two fit 62 bits.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

P = 2147483579
HALF = P // 2
Numbers: TypeAlias = NDArray[np.uint64]
_LARGEST = 1 << 14
_P64 = np.uint64(P)


def reduce(numbers: NDArray[Any]) -> Numbers:
    """The residues of numbers below 2**64."""
    wide = np.asarray(numbers, np.uint64)
    return wide - wide // _P64 * _P64


def multiply(a: NDArray[Any], b: NDArray[Any]) -> Numbers:
    """Element-wise product of residues."""
    return reduce(np.asarray(a, np.uint64) * np.asarray(b, np.uint64))


def invert(numbers: NDArray[Any]) -> Numbers:
    """1 / v; 0 for 0, as in `FieldDomain`."""
    result = np.ones(numbers.shape, np.uint64)
    square, exponent = np.asarray(numbers, np.uint64), P - 2
    while exponent:
        if exponent & 1:
            result = multiply(result, square)
        square = multiply(square, square)
        exponent >>= 1
    return result


def packed(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Residues as stored numbers of `FieldDomain`; as exponents they lie around 0, too."""
    centred = (np.asarray(numbers).astype(np.int64) + HALF) % P - HALF
    return (centred << 31) | (centred % ((P - 1) // 2))


def random_values(
    generator: np.random.Generator, samples: int, shape: tuple[int, ...]
) -> NDArray[np.uint32]:
    """Residues of a random input, (1, samples, size).

    Elements of a tensor are small whole numbers other than 0: sums and products of few are these
    numbers, not only their residues, so that exponents add up and an order is an order.  A single
    number is any residue: a factor must not be positive in all samples by chance.
    """
    size = (1, samples, prod(shape))
    if not shape:
        return generator.integers(1, P, size).astype(np.uint32)
    whole = generator.integers(1, _LARGEST, size) * generator.choice([-1, 1], size)
    residues: NDArray[np.uint32] = (whole % P).astype(np.uint32)
    return residues


def relu(numbers: NDArray[Any]) -> Numbers:
    """max(v, 0) in the order of the residues between -P/2 and P/2, as in `FieldDomain`."""
    wide = np.asarray(numbers, np.uint64)
    return np.where(wide <= np.uint64(HALF), wide, np.uint64(0))
