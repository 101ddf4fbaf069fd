"""Exact arithmetic modulo the prime of `FieldDomain`, on whole arrays.

    multiply(P - 1, P - 1)     1, as (-1)(-1) = 1
    invert(2)                  (P + 1) / 2
    relu(P - 5)                0: it stands for -5
    product([[2.0]], [[-3.0]])  [[-6.0]], modulo P, exact

Numbers are uint64 below P.  Products of two fit 62 bits.  Matrices are multiplied in doubles, of
residues that are *centred*: between -P/2 and P/2.  The left factor is split into two limbs of 16
bits, the right one is not, so that every sum stays below 2**53 for up to 240 addends:

    |low limb| * |right| * 240  <=  2**15 * 2**30 * 240  <  2**53

Two products of doubles then give what three of integers would, and relu is a maximum.
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


Centred: TypeAlias = NDArray[np.float64]
_INVERSE = 1.0 / P
_LIMB = 65536.0
_ADDENDS = 240


def centred(numbers: NDArray[Any]) -> Centred:
    """Residues as numbers between -P/2 and P/2."""
    wide = numbers.astype(np.float64)
    wide -= (wide > HALF) * float(P)
    return wide


def residues_of(numbers: Centred) -> Numbers:
    """Back to numbers below P; what is given may be off by P."""
    return (numbers + (numbers < 0) * float(P)).astype(np.uint64)


def _reduce(numbers: Centred) -> Centred:
    """Subtract the nearest multiple of P, in place; exact below 2**53, centred below 2**48."""
    quotient = numbers * _INVERSE
    np.rint(quotient, out=quotient)
    quotient *= P
    numbers -= quotient
    return numbers


def product(left: Centred, right: Centred) -> Centred:
    """left @ right, centred.

    Shapes:  left (m, k), right (k, n), small left and large right is fastest -> (m, n)
    """
    high = np.rint(left / _LIMB)
    limbs = np.concatenate([high, left - high * _LIMB])
    total: Centred | None = None
    for at in range(0, max(1, left.shape[1]), _ADDENDS):
        both = limbs[:, at : at + _ADDENDS] @ right[at : at + _ADDENDS]
        upper, lower = _reduce(both)[: len(left)], both[len(left) :]
        upper *= _LIMB
        upper += lower
        part = _reduce(upper)
        total = part if total is None else _reduce(total + part)
    assert total is not None
    return total
