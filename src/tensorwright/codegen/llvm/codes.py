"""Codes of numbers: quotients that are rounded, and limits of codes, in few instructions.

    round(x / d)                        ->    round(fma(x, high, x * low))
    u8(min(max(round(q) + z, 0), 255))  ->    u8(nearest i32 of min(max(q, -z), 255 - z) + z)

A division takes as long as ten other operations. Both give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import frexp

import numpy as np

from tensorwright import expr
from tensorwright.base import DType

_BITS = 24  # of the mantissa of an f32
_LEAST, _MOST = 2.0**-60, 2.0**60  # of divisors whose factors are not subnormal
_NEAREST = 16  # so many units, at most, a quotient that may be rounded wrongly is from a midpoint


@lru_cache(maxsize=1 << 12)
def reciprocal(divisor: float) -> tuple[float, float] | None:
    """Two f32, the second at least 0, by which numbers are divided with one rounding.

    Meaning:  fma(x, high, x * low) = x / divisor in f32, for all x but those whose quotient is
              nearly a subnormal number, which is tiny then, too; None if that does not hold.

    high is 1 / divisor rounded towards zero, low the rest, so that infinity stays infinity. The sum
    before its rounding is within 2^-45 of the quotient, so it is rounded to another number only
    where a midpoint of two numbers is as near to the quotient x / d: with mantissas X, D and M of
    24, 24 and 25 bits, where X * 2^24 (or 2^25) - M * D is within 16 of 0, and 0 it is never. There
    are few such X, and each is tried.
    Source:  Brisebarre, Muller, Raina: Accelerating correctly rounded floating-point division when
             the divisor is known in advance, IEEE Transactions on Computers 53(8), 2004.
    """
    divisor = float(np.float32(divisor))
    if not _LEAST <= divisor <= _MOST:
        return None
    exact = 1 / Fraction(divisor)
    high = np.float32(1.0) / np.float32(divisor)
    if Fraction(float(high)) > exact:
        high = np.nextafter(high, np.float32(0))
    if Fraction(float(high)) == exact:
        return float(high), 0.0
    cases = tuple(_hard_cases(int(frexp(divisor)[0] * (1 << _BITS))))
    low = np.float32(exact - Fraction(float(high)))
    for each in (low, np.nextafter(low, np.float32(0)), np.nextafter(low, np.float32(1))):
        if all(_is_right(case, divisor, high, each) for case in cases):
            return float(high), float(each)
    return None


@dataclass(frozen=True, slots=True)
class _Case:
    """A dividend X, and the odd M of which half is nearly X / D in units of the last place."""

    dividend: int
    quotient: Fraction
    middle: int


def _is_right(case: _Case, divisor: float, high: np.float32, low: np.float32) -> bool:
    """Whether the sum is rounded as the quotient is; a midpoint is rounded to an even number."""
    rest = Fraction(float(np.float32(case.dividend) * low))
    total = case.dividend * Fraction(float(high)) + rest
    scale = case.quotient / case.dividend * Fraction(divisor)
    is_up = total * scale > case.middle
    if total * scale == case.middle:
        is_up = (case.middle + 1) % 4 == 0
    return is_up == (case.quotient > case.middle)


def _hard_cases(mantissa: int) -> Iterator[_Case]:
    """The mantissas X for which X / D is nearly a midpoint."""
    power = (mantissa & -mantissa).bit_length() - 1
    odd = mantissa >> power
    ranges = (_BITS, mantissa, 1 << _BITS), (_BITS + 1, 1 << (_BITS - 1), mantissa)
    for shift, least, end in ranges:
        inverse = pow(1 << (shift - power), -1, odd)
        for unit in range(-_NEAREST, _NEAREST + 1):
            if unit % (1 << power):
                continue  # no X * 2^shift is that far from a multiple of D
            first = (unit >> power) * inverse % odd
            for x in range(least + (first - least) % odd, end, odd):
                middle = ((x << shift) - unit) // mantissa
                if middle % 2:
                    yield _Case(x, Fraction(x << shift, mantissa), middle)


@dataclass(frozen=True, slots=True)
class Code:
    """min(max(round(number) + zero, low), high) of an f32, all but the number known and whole."""

    number: expr.Value
    zero: int
    low: int
    high: int

    def from_zero(self) -> Code:
        """The number of the code, from 0."""
        return Code(self.number, self.zero - self.low, 0, self.high - self.low)


def code_of(value: expr.Value) -> Code | None:
    """The code that an f32 is, if it is one."""
    if value.dtype is not DType.F32:
        return None
    below, high = _with_number(value, expr.Fn.MIN)
    above, low = _with_number(below, expr.Fn.MAX)
    if low is None or high is None or low > high:
        return None
    shifted, zero = _with_number(above, expr.Fn.ADD)
    if not isinstance(shifted, expr.Apply) or shifted.fn is not expr.Fn.ROUND:
        return None
    return Code(shifted.args[0], zero or 0, low, high)


def _with_number(value: expr.Value, fn: expr.Fn) -> tuple[expr.Value, int | None]:
    """The other operand and the number, if a value is a function of one and a whole number."""
    if isinstance(value, expr.Apply) and value.fn is fn:
        left, right = value.args
        if isinstance(right, expr.Const) and float(right.value).is_integer():
            return left, int(right.value)
    return value, None
