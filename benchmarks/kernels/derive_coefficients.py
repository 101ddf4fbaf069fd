"""Derive the polynomials of exp and erf in f32 (codegen/llvm/math/coefficients.py) and print them.

    |r| <= ln(2)/2:     exp(r) - 1 = r + r^2 * q(r)
    0 <= t <= 4:        erf(t) = 1 - exp(-(t + t * q(t)))

Each is the least-squares fit on Chebyshev points whose weights are raised where the error is large
until all extremes are alike (Lawson 1961), the error being that of exp(r) - 1 and erf relative to
themselves. The coefficients are rounded to f32 at the end.
Run: python benchmarks/kernels/derive_coefficients.py
"""

from __future__ import annotations

import math

import numpy as np

POINTS = 4000
ROUNDS = 100
SERIES = 1e-2  # below, (exp(r) - 1 - r) / r^2 is summed up: the difference would lose all places


def minimax(x: np.ndarray, y: np.ndarray, weight: np.ndarray, degree: int) -> np.ndarray:
    """Coefficients, constant first, of the polynomial with the least largest |weight*error|."""
    scale = float(np.abs(x).max())
    powers = (x[:, None] / scale) ** np.arange(degree + 1)
    emphasis = np.ones_like(x)
    best, least = np.zeros(degree + 1), math.inf
    for _ in range(ROUNDS):
        rows = weight * np.sqrt(emphasis)
        found = np.linalg.lstsq(powers * rows[:, None], y * rows, rcond=None)[0]
        error = np.abs(weight * (powers @ found - y))
        if error.max() < least:
            best, least = found, float(error.max())
        emphasis *= error / error.max() + 1e-9
        emphasis /= emphasis.max()
    print(f"degree {degree}: largest relative error {least:.2e}")
    return np.asarray(best / scale ** np.arange(degree + 1))


def chebyshev_points(low: float, high: float) -> np.ndarray:
    """Points that are dense at both ends of an interval."""
    angle = (np.arange(POINTS) + 0.5) * math.pi / POINTS
    return 0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle)


def exp_polynomial() -> np.ndarray:
    """q of exp."""
    r = chebyshev_points(-math.log(2) / 2, math.log(2) / 2)
    series = sum(r**power / math.factorial(power + 2) for power in range(8))
    y = np.where(np.abs(r) < SERIES, series, (np.expm1(r) - r) / r**2)
    return minimax(r, y, np.abs(r**2 / np.expm1(r)), 4)


def erf_polynomial() -> np.ndarray:
    """q of erf."""
    t = chebyshev_points(1e-6, 4.0)
    inside = np.array([math.erf(value) for value in t])
    outside = np.array([math.erfc(value) for value in t])
    exponent = np.where(t < 0.5, -np.log1p(-inside), -np.log(outside))
    return minimax(t, exponent / t - 1, t * outside / inside, 7)


def main() -> None:
    """Print both polynomials, highest power first, as the code evaluates them."""
    for name, coefficients in (("exp", exp_polynomial()), ("erf", erf_polynomial())):
        print(name, [float(np.float32(value)) for value in coefficients[::-1]])


if __name__ == "__main__":
    main()
