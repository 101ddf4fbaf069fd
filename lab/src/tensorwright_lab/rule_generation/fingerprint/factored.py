"""Values of a bilinear operator at pairs of arguments of which one occurs in many pairs.

    factored_values(matmul, a, b, left, right)     left [0, 0, 0], right [1, 2, 3]: one product
    of the matrix "multiply by row 0" with the rows 1, 2, 3 serves all three
    what it gives                                   values (3, 2, 8), those of `values_of`

With one argument fixed the operator is a matrix, and one product of matrices serves all pairs that
have it.  Where arguments rarely recur, or the sums are short, the pairs are multiplied one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright_lab.rule_generation.fingerprint import field
from tensorwright_lab.rule_generation.fingerprint.kernels import Values, factors, values_of
from tensorwright_lab.rule_generation.fingerprint.structure import Bilinear

_SHORT = 8
"""Addends that are faster multiplied one by one."""
_FEW = 6
"""Pairs that a matrix is not worth."""


def matrix_of(
    structure: Bilinear, factor: NDArray[np.uint32], size: int, *, is_left: bool
) -> field.Centred:
    """The operator with its left or right factor fixed, as a matrix (out, size) for the other."""
    mine, other = structure.left, structure.right
    if not is_left:
        mine, other = other, mine
    matrix = np.zeros((len(mine), size + 1))
    own = field.centred(np.append(factor, np.uint32(0)))
    matrix[np.arange(len(mine))[:, None], other] = own[mine]
    return matrix[:, :-1]


def factored_values(
    structure: Bilinear, a: Values, b: Values, left: NDArray[Any], right: NDArray[Any]
) -> Values:
    """op(a[n], b[n]) for each n; `left` and `right` number the arguments: equal ones are equal."""
    if structure.left.shape[1] <= _SHORT:
        return values_of(structure, (a, b))
    numbers, which, count = np.unique(right, return_inverse=True, return_counts=True)
    others, back, times = np.unique(left, return_inverse=True, return_counts=True)
    is_left = len(others) < len(numbers)
    if is_left:
        which, count = back, times
    order = np.argsort(which, kind="stable")
    starts = np.cumsum(count) - count
    values = np.empty((*a.shape[:2], len(structure.left)), np.uint32)
    rest = [order[:0]]
    plain_a, plain_b = factors(structure, a, b)
    for start, size in zip(starts, count, strict=True):
        rows = order[start : start + size]
        if size < _FEW:
            rest.append(rows)
        else:
            values[rows] = _group(structure, plain_a, plain_b, rows, is_left=is_left)
    single = np.concatenate(rest)
    if len(single):
        values[single] = values_of(structure, (a[single], b[single]))
    return values


def _group(
    structure: Bilinear, a: Values, b: Values, rows: NDArray[Any], *, is_left: bool
) -> Values:
    """The values at some rows, whose left or right arguments are the same."""
    fixed, free = (a, b[rows]) if is_left else (b, a[rows])
    parts = []
    for sample in range(a.shape[1]):
        matrix = matrix_of(structure, fixed[rows[0], sample], free.shape[2], is_left=is_left)
        value = field.product(matrix, field.centred(np.ascontiguousarray(free[:, sample].T)))
        if structure.is_relu:
            np.maximum(value, 0.0, out=value)
        parts.append(field.residues_of(value).T)
    return np.stack(parts, axis=1).astype(np.uint32)
