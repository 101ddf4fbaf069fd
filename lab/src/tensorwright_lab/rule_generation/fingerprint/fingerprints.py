"""Fingerprints of applications, in batches: plain functions of plain data.

    keys_of(values (n, 2, 6), (2, 3), seed)           (n, 2): 62 bits for each sample
    keys_of_table(ewadd, a, b, (2, 3), seed)          (i, j, 2) for all pairs, from i + j sums
    two terms are taken for equal                     where both words of their keys are

The fingerprint of a value is FUNCTIONALS random linear functionals of each of its samples, 62 bits
in one word.  Linear functionals pass through operators that are linear in an argument.  So the
fingerprints of `op(a, b)` for all a of one set and all b of another come from sums of two vectors,
or one matrix product, without computing a single value.  Only pointwise functions and maxima need
the values; a convolution with relu is one matrix product for each kernel.

Values of a bilinear operator at pairs of arguments of which one occurs in many pairs.

    factored_values(matmul, a, b, left, right)     left [0, 0, 0], right [1, 2, 3]: one product
    of the matrix "multiply by row 0" with the rows 1, 2, 3 serves all three
    what it gives                                   values (3, 2, 8), those of `values_of`

With one argument fixed the operator is a matrix, and one product of matrices serves all pairs that
have it.  Where arguments rarely recur, or the sums are short, the pairs are multiplied one by one.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.fingerprint import field
from tensorwright_lab.rule_generation.fingerprint.field import (
    Centred,
    Numbers,
    P,
    centred,
    multiply,
    product,
    residues_of,
)
from tensorwright_lab.rule_generation.fingerprint.kernels import Values, factors, values_of
from tensorwright_lab.rule_generation.fingerprint.structure import Bilinear, Linear, Structure

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


FUNCTIONALS = 2
Keys: TypeAlias = NDArray[np.uint64]
"""(..., samples)"""
_BLOCK = 1 << 21
_COLUMNS = 1 << 10
_WORD = np.uint64(31)


@cache
def functionals(shape: IntShape, seed: int) -> Numbers:
    """The random functionals of a shape, (FUNCTIONALS, size)."""
    digest = hashlib.sha256(f"functional {seed} {shape}".encode()).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    size = int(np.prod(shape, dtype=np.int64))
    return generator.integers(1, P, (FUNCTIONALS, size), dtype=np.uint64)


def _words(numbers: Numbers) -> Keys:
    """Residues (FUNCTIONALS, ...) as words (...)."""
    words: Keys = (numbers[0] << _WORD) | numbers[1]
    return words


def _columns(values: Values, sample: int) -> Centred:
    """One sample of values as columns, (size, count)."""
    return centred(np.ascontiguousarray(values[:, sample].T))


def keys_of(values: Values, shape: IntShape, seed: int) -> Keys:
    """The fingerprints of values (count, samples, size): (count, samples)."""
    return _projected(centred(functionals(shape, seed)), values)


def _projected(weights: Centred, values: Values) -> Keys:
    """Functionals (FUNCTIONALS, size) of values as words."""
    parts = [
        _words(residues_of(product(weights, _columns(values, sample))))
        for sample in range(values.shape[1])
    ]
    return np.stack(parts, axis=1)


def keys_of_unary(
    structure: Structure, x: Values, shape: IntShape, seed: int, operands: tuple[Values, ...] = ()
) -> Keys:
    """The fingerprints of op(x[n]); `shape` is that of the result.

    operands  the arguments after the first, one value each
    """
    if isinstance(structure, Linear):
        return _projected(_through(structure, 0, shape, seed), x)
    step = max(1, _BLOCK // max(1, x.shape[1] * x.shape[2]))
    blocks = [
        keys_of(values_of(structure, (x[at : at + step], *operands)), shape, seed)
        for at in range(0, len(x), step)
    ]
    return np.concatenate(blocks)


@cache
def _through(structure: Linear, argument: int, shape: IntShape, seed: int) -> Centred:
    """The functionals of a result, as functionals of an argument."""
    matrix = centred(structure.matrices[argument])
    return product(centred(functionals(shape, seed)), matrix)


def keys_of_table(structure: Structure, a: Values, b: Values, shape: IntShape, seed: int) -> Keys:
    """The fingerprints of op(a[i], b[j]) for all i and j: (i, j, samples)."""
    if isinstance(structure, Linear):
        parts = [_residues(_through(structure, at, shape, seed), x) for at, x in enumerate((a, b))]
        total = parts[0][:, :, :, None] + parts[1][:, :, None, :]
        keys = _words(np.minimum(total, total - np.uint64(P)))
        return keys.transpose(1, 2, 0)
    if not isinstance(structure, Bilinear):
        left, right = np.repeat(a, len(b), axis=0), np.tile(b, (len(a), 1, 1))
        return keys_of_pairs(structure, left, right, shape, seed).reshape(len(a), len(b), -1)
    a, b = factors(structure, a, b)
    keys = np.empty((len(a), len(b), a.shape[1]), np.uint64)
    for sample in range(a.shape[1]):
        if structure.is_relu:
            keys[:, :, sample] = _through_values(structure, a, b, sample, shape, seed)
        else:
            keys[:, :, sample] = _bilinear(structure, a, b, sample, shape, seed)
    return keys


def _residues(weights: Centred, values: Values) -> Numbers:
    """Functionals of values: (FUNCTIONALS, samples, count)."""
    samples = range(values.shape[1])
    parts = [residues_of(product(weights, _columns(values, sample))) for sample in samples]
    return np.stack(parts, axis=1)


def _adjoint(structure: Bilinear, functional: Numbers, sizes: tuple[int, int]) -> Numbers:
    """The matrix m with functional(op(a, b)) = a . m . b."""
    matrix = np.zeros((sizes[0] + 1, sizes[1] + 1), np.uint64)
    matrix[structure.left, structure.right] = functional[:, None]
    return matrix[:-1, :-1]


def _bilinear(
    structure: Bilinear, a: Values, b: Values, sample: int, shape: IntShape, seed: int
) -> Keys:
    """Words (i, j): the functionals of one side's operators, applied to the other side."""
    sizes = (a.shape[2], b.shape[2])
    both = len(a) * len(b)
    left_first = len(a) * sizes[0] * sizes[1] + both * sizes[1]
    right_first = len(b) * sizes[0] * sizes[1] + both * sizes[0]
    is_left = left_first <= right_first
    few, many = (a, b) if is_left else (b, a)
    rows = centred(few[:, sample])
    weights = []
    for functional in functionals(shape, seed):
        matrix = centred(_adjoint(structure, functional, sizes))
        weights.append(product(rows, matrix if is_left else matrix.T))
    products = product(np.concatenate(weights), _columns(many, sample))
    words = _words(residues_of(products).reshape(FUNCTIONALS, len(few), len(many)))
    return words if is_left else words.T


def _through_values(
    structure: Bilinear, a: Values, b: Values, sample: int, shape: IntShape, seed: int
) -> Keys:
    """For each argument of the smaller set the matrix of the operator, applied to the others."""
    is_left = len(a) <= len(b)
    few, many = (a, b) if is_left else (b, a)
    weights = centred(functionals(shape, seed))
    words = np.empty((len(few), len(many)), np.uint64)
    matrices = [
        matrix_of(structure, each, many.shape[2], is_left=is_left) for each in few[:, sample]
    ]
    for at in range(0, len(many), _COLUMNS):
        columns = _columns(many[at : at + _COLUMNS], sample)
        for number, matrix in enumerate(matrices):
            value = product(matrix, columns)
            np.maximum(value, 0.0, out=value)
            fingerprints = _words(residues_of(product(weights, value)))
            words[number, at : at + _COLUMNS] = fingerprints
    return words if is_left else words.T


def keys_of_pairs(structure: Structure, a: Values, b: Values, shape: IntShape, seed: int) -> Keys:
    """The fingerprints of op(a[n], b[n])."""
    if isinstance(structure, Linear):
        parts = [_residues(_through(structure, at, shape, seed), x) for at, x in enumerate((a, b))]
        total = parts[0] + parts[1]
        return _words(np.minimum(total, total - np.uint64(P))).T
    step = max(1, _BLOCK // max(a.shape[2], b.shape[2]) // a.shape[1])
    blocks = []
    for at in range(0, len(a), step):
        left, right = a[at : at + step], b[at : at + step]
        if isinstance(structure, Bilinear) and not structure.is_relu:
            blocks.append(_pairs(structure, *factors(structure, left, right), shape, seed))
        else:
            blocks.append(keys_of(values_of(structure, (left, right)), shape, seed))
    return np.concatenate(blocks)


def _pairs(structure: Bilinear, a: Values, b: Values, shape: IntShape, seed: int) -> Keys:
    """Words (n, samples): the functionals of op(a[n], .), applied to b[n]."""
    keys = np.empty(a.shape[:2], np.uint64)
    sizes = (a.shape[2], b.shape[2])
    chosen = [centred(_adjoint(structure, each, sizes).T) for each in functionals(shape, seed)]
    for sample in range(a.shape[1]):
        left, right = _columns(a, sample), np.ascontiguousarray(b[:, sample].T)
        sums = []
        for matrix in chosen:
            weights = residues_of(product(matrix, left))
            sums.append(multiply(weights, right).sum(axis=0) % np.uint64(P))
        keys[:, sample] = _words(np.stack(sums))
    return keys
