"""Coefficients of the vector mathematical functions; the highest power comes first."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import DType


@dataclass(frozen=True, slots=True)
class ExpTable:
    """exp(r) = 1 + r + r^2 * q(r) for |r| <= ln(2)/2; ln(2) in two parts, the first short."""

    q: tuple[float, ...]
    ln2_high: float
    ln2_low: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class TanhTable:
    """tanh(x) = x + x^3 * p(x^2) / q(x^2) for |x| < 0.625; 1 in working precision from `one`."""

    p: tuple[float, ...]
    q: tuple[float, ...]
    one: float


# Cephes expf.c (S. Moshier). Beyond lowest and highest the result is 0 and infinity.
# f64: Chebyshev fit of degree 9 at 50 digits to (exp(r) - 1 - r) / r^2, error 1e-16 of q.
EXP = {
    DType.F32: ExpTable(
        q=(
            1.9875691500e-4,
            1.3981999507e-3,
            8.3334519073e-3,
            4.1665795894e-2,
            1.6666665459e-1,
            5.0000001201e-1,
        ),
        ln2_high=0.693359375,
        ln2_low=-2.12194440e-4,
        lowest=-104.0,
        highest=89.0,
    ),
    DType.F64: ExpTable(
        q=(
            2.51004110820149e-08,
            2.7620121717381933e-07,
            2.7557268406190795e-06,
            2.4801521225986432e-05,
            0.00019841269863088255,
            0.0013888888917258759,
            0.008333333333330055,
            0.04166666666662404,
            0.16666666666666669,
            0.5000000000000001,
        ),
        ln2_high=0.693145751953125,
        ln2_low=1.42860682030941723212e-6,
        lowest=-746.0,
        highest=710.0,
    ),
}

# Cephes tanhf.c and tanh.c; f32 has no denominator.
TANH = {
    DType.F32: TanhTable(
        p=(
            -5.70498872745e-3,
            2.06390887954e-2,
            -5.37397155531e-2,
            1.33314422036e-1,
            -3.33332819422e-1,
        ),
        q=(),
        one=10.0,
    ),
    DType.F64: TanhTable(
        p=(-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3),
        q=(
            1.0,
            1.12811678491632931402e2,
            2.23548839060100448583e3,
            4.84406305325125486048e3,
        ),
        one=22.0,
    ),
}

# Cephes logf.c: log(1 + f) = f - f^2/2 + f^3 * p(f) for sqrt(1/2) <= 1 + f < sqrt(2).
LOG_F32 = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
# FDLIBM e_log.c: log(1 + f) = f - (f^2/2 - s * (f^2/2 + R)), s = f/(2+f), R = s^2 * p(s^2).
LOG_F64 = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)

# benchmarks/derive_erf.py, where p and q are explained.
ERF_F32_P = (
    7.854025170672685e-05,
    -0.0008010247256606817,
    0.00518833426758647,
    -0.026853816583752632,
    0.1128358542919159,
    -0.3761262595653534,
    0.12837916612625122,
)
ERF_F32_Q = (
    1.3962444427306764e-05,
    -0.00035059204674325883,
    0.003757476806640625,
    -0.024010069668293,
    0.10653086751699448,
    0.6349695324897766,
    0.1286943405866623,
)
ERF_F32_SPLIT = 1.0
ERF_F32_ONE = 4.0
