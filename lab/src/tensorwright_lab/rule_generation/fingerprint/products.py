"""Exact products of matrices of residues, computed in doubles.

    centred([1, P - 1])              [1.0, -1.0]
    product([[2.0]], [[-3.0]])       [[-6.0]], modulo P, exact
    residues_of([-6.0])              [P - 6]

A residue is *centred*: a double between -P/2 and P/2.  The left factor is split into two limbs of
16 bits, the right one is not, so that every sum stays below 2**53 for up to 240 addends:

    |low limb| * |right| * 240  <=  2**15 * 2**30 * 240  <  2**53

Two products of doubles then give what three of integers would, and relu is a maximum.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright_lab.rule_generation.fingerprint.field import Numbers, P

Centred: TypeAlias = NDArray[np.float64]
_HALF = P // 2
_INVERSE = 1.0 / P
_LIMB = 65536.0
_ADDENDS = 240


def centred(numbers: NDArray[Any]) -> Centred:
    """Residues as numbers between -P/2 and P/2."""
    wide = numbers.astype(np.float64)
    wide -= (wide > _HALF) * float(P)
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
