"""The matrices of Toom and Cook's products of polynomials, transposed into short filters.

Theorem:  for m outputs of a filter of r taps, and m + r - 2 different points a,
              y = A^T ((G g) * (B^T d)),     y[i] = sum over k of g[k] d[i + k],  i in 0..m
          with A^T[i, j] = a_j^i,  G[j, k] = a_j^k / prod over l != j of (a_j - a_l),
          B^T[j] the coefficients of prod over l != j of (x - a_l), and a last point at infinity:
          A^T[m-1, last] = 1, G[last, r-1] = 1, B^T[last] those of prod over all l of (x - a_l).
Source:   Winograd, "Arithmetic Complexity of Computations", SIAM 1980; Lavin and Gray, "Fast
          Algorithms for Convolutional Neural Networks", CVPR 2016.  Points that round less: Alam et
          al., "Winograd Convolution for Deep Neural Networks: Efficient Point Selection", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import TypeAlias

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]

# in this order: small numbers first, each with its opposite, which the transforms share work with
_POINTS = tuple(map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "-1/2")))
_FIVE_POINTS = tuple(map(Fraction, ("0", "2/3", "-2/3", "3/2", "-3/2")))
"""The points where five are needed: a quarter of the rounding error of the first five above, for
little more work."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """inverse A^T (m, n), kernel G (n, r), data B^T (n, n); n = m + r - 1."""

    inverse: Matrix
    kernel: Matrix
    data: Matrix


@lru_cache(maxsize=64)
def toom_cook(outputs: int, taps: int) -> Matrices:
    """The matrices for a number of outputs of a filter with a number of taps.

    Raises:  ValueError where that takes more points than there are small ones.
    """
    size = outputs + taps - 1
    points = _FIVE_POINTS if size == 6 else _POINTS[: size - 1]
    if len(points) < size - 1:
        raise ValueError(f"{size} products take more than {len(_POINTS)} points")
    others = [[b for b in points if b != a] for a in points]
    infinity = (Fraction(0),) * (size - 1)
    inverse = [(*(a**i for a in points), Fraction(int(i == outputs - 1))) for i in range(outputs)]
    kernel = [
        tuple(a**k / prod(a - b for b in rest) for k in range(taps))
        for a, rest in zip(points, others, strict=True)
    ]
    kernel.append((*infinity[: taps - 1], Fraction(1)))
    data = [(*_coefficients(rest), Fraction(0)) for rest in others]
    data.append(_coefficients(list(points)))
    return Matrices(tuple(inverse), tuple(kernel), tuple(data))


def _coefficients(roots: list[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of prod (x - root), that of x^0 first."""
    product = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *product]
        product = [a - root * b for a, b in zip(shifted, [*product, Fraction(0)], strict=True)]
    return tuple(product)
