"""Algorithms: other tensor expressions for what a stage means; a new one is an entry here.

An algorithm gives the same numbers up to rounding, by other operations.  Read `im2col.py`, then
`winograd.py`.
"""

from tensorwright.schedule.algorithms.algorithm import Algorithm
from tensorwright.schedule.algorithms.im2col import IM2COL
from tensorwright.schedule.algorithms.implicit_gemm import (
    IMPLICIT_GEMM,
    MatrixProduct,
    find_matrix_product,
)
from tensorwright.schedule.algorithms.winograd import (
    TAPS,
    WINOGRAD,
    Convolution,
    find_convolution,
    winograd_matrices,
)

ALGORITHMS: tuple[Algorithm, ...] = (*WINOGRAD, IM2COL, IMPLICIT_GEMM)

__all__ = [
    "ALGORITHMS",
    "TAPS",
    "Algorithm",
    "Convolution",
    "MatrixProduct",
    "find_convolution",
    "find_matrix_product",
    "winograd_matrices",
]
