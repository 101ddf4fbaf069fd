"""Algorithms: other tensor expressions for what a stage means; a new one is an entry here.

An algorithm gives the same numbers up to rounding, by other operations.  Read `implicit_gemm.py`,
then `winograd.py`.
"""

from tensorwright.schedule.algorithms.implicit_gemm import (
    IM2COL, IMPLICIT_GEMM, Algorithm, MatrixProduct, find_matrix_product,
)
from tensorwright.schedule.algorithms.short_rows import SHORT_ROWS
from tensorwright.schedule.algorithms.winograd import (
    TAPS, WINOGRAD, Convolution, find_convolution, winograd_matrices,
)

ALGORITHMS: tuple[Algorithm, ...] = (*WINOGRAD, IM2COL, IMPLICIT_GEMM, *SHORT_ROWS)
