"""Derive the polynomials of the f32 functions (codegen/llvm/math_emitter.py) and print them.

    |r| <= ln(2)/2:     exp(r) - 1 = r + r^2 * q(r)
    0 <= t <= 4:        erf(t) = 1 - exp(-(t + t * q(t)))
    |r| <= pi/4:        sin(r) = r + r^3 * q(r^2), cos(r) = 1 - r^2/2 + r^4 * q(r^2)
    |z| <= 1:           atan(z) = z + z^3 * q(z^2)

Each is the least-squares fit on Chebyshev points whose weights are raised where the error is large
until all extremes are alike (Lawson 1961), the error being that of exp(r) - 1 and of the others
relative to themselves. The coefficients are rounded to f32 at the end.
Run: python benchmarks/kernels/derive_coefficients.py
"""

from __future__ import annotations

import decimal
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


def sin_polynomial() -> np.ndarray:
    """q of sin, of r^2."""
    r = chebyshev_points(1e-3, math.pi / 4)
    y = alternating_series(r**2, 3)
    return minimax(r**2, y, r**3 / np.sin(r), 2)


def cos_polynomial() -> np.ndarray:
    """q of cos, of r^2."""
    r = chebyshev_points(1e-3, math.pi / 4)
    y = -alternating_series(r**2, 4)
    return minimax(r**2, y, r**4 / np.cos(r), 2)


def alternating_series(square: np.ndarray, first: int) -> np.ndarray:
    """-1/first! + square/(first + 2)! - ...: what is left of sin or cos, without cancellation."""
    terms = ((-1) ** (n + 1) * square**n / math.factorial(first + 2 * n) for n in range(10))
    return np.asarray(sum(terms))


def atan_polynomial() -> np.ndarray:
    """q of atan, of z^2."""
    z = chebyshev_points(1e-3, 1.0)
    series = sum((-1) ** (n + 1) * z ** (2 * n) / (2 * n + 3) for n in range(12))
    y = np.where(z < 0.05, series, (np.arctan(z) - z) / z**3)
    return minimax(z**2, y, z**3 / np.arctan(z), 7)


POLYNOMIALS = {
    "exp": exp_polynomial,
    "erf": erf_polynomial,
    "sin": sin_polynomial,
    "cos": cos_polynomial,
    "atan": atan_polynomial,
}


def half_pi_parts() -> list[float]:
    """pi/2 in four parts: the first three have 11 bits, so that products with 13 bits are exact."""
    rest, parts = decimal.Decimal(HALF_PI), []
    for _ in range(3):
        _, exponent = math.frexp(float(rest))
        unit = decimal.Decimal(2) ** (exponent - 11)
        parts.append(float((rest / unit).to_integral_value(decimal.ROUND_DOWN) * unit))
        rest -= decimal.Decimal(parts[-1])
    return [*parts, float(np.float32(float(rest)))]


HALF_PI = "1.57079632679489661923132169163975144209858469968755291"


def main() -> None:
    """Print the polynomials, highest power first, as the code evaluates them."""
    for name, polynomial in POLYNOMIALS.items():
        coefficients = polynomial()
        print(name, [float(np.float32(value)) for value in coefficients[::-1]])
    print("pi/2", half_pi_parts())


if __name__ == "__main__":
    main()
