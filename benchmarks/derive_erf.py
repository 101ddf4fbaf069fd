"""Derive the polynomials of erf in f32 (codegen/llvm/math/coefficients.py) and print them.

    |x| <  1:   erf(x) = x + x * p(x^2)
    |x| >= 1:   erf(x) = sign(x) * (1 - exp(-(t + t * q(t)))),   t = min(|x|, 4)

Each is the least-squares fit on Chebyshev points whose weights are raised where the error is large
until all extremes are alike (Lawson 1961), the error being that of erf relative to erf. The
coefficients are rounded to f32 at the end. Run: python benchmarks/derive_erf.py
"""

from __future__ import annotations

import math

import numpy as np

POINTS = 4000
ROUNDS = 60


def minimax(x: np.ndarray, y: np.ndarray, weight: np.ndarray, degree: int) -> np.ndarray:
    """Coefficients, constant first, of the polynomial with the least largest |weight*error|."""
    powers = x[:, None] ** np.arange(degree + 1)
    emphasis = np.ones_like(x)
    for _ in range(ROUNDS):
        scale = weight * np.sqrt(emphasis)
        found = np.linalg.lstsq(powers * scale[:, None], y * scale, rcond=None)[0]
        error = np.abs(weight * (powers @ found - y))
        emphasis *= error / error.max() + 1e-9
        emphasis /= emphasis.max()
    print(f"degree {degree}: largest relative error {error.max():.2e}")
    return np.asarray(found)


def chebyshev_points(low: float, high: float) -> np.ndarray:
    """Points that are dense at both ends of an interval."""
    angle = (np.arange(POINTS) + 0.5) * math.pi / POINTS
    return 0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle)


def main() -> None:
    """Print both polynomials, highest power first, as the code evaluates them."""
    small = chebyshev_points(1e-4, 1.0)
    erf_small = np.array([math.erf(value) for value in small])
    p = minimax(small**2, erf_small / small - 1, small / erf_small, 6)
    large = chebyshev_points(1.0, 4.0)
    tail = np.array([math.erfc(value) for value in large])
    q = minimax(large, -np.log(tail) / large - 1, large * tail / (1 - tail), 6)
    for name, coefficients in (("p", p), ("q", q)):
        print(name, [float(np.float32(value)) for value in coefficients[::-1]])


if __name__ == "__main__":
    main()
