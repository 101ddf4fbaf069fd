"""Fingerprints and values of applications, in batches: plain functions of plain data.

A tensor value is SAMPLES vectors of residues, one per random assignment of the inputs.  Its
fingerprint is FUNCTIONALS random linear functionals of each, 124 bits in all, kept in two words.
Linear functionals pass through operators that are linear in an argument.  So the fingerprints of
`op(a, b)` for all a of one set and all b of another come from sums of two vectors, or one matrix
product, without computing a single value.  Only pointwise functions and maxima need the values.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType, InternalError
from tensorwright.expr import FieldDomain, Fn, residues
from tensorwright.rewrite.generate.field import (
    Numbers,
    P,
    invert,
    matmul,
    multiply,
    packed,
    reduce,
    relu,
)
from tensorwright.rewrite.generate.structure import (
    Affine,
    Bilinear,
    Constant,
    Linear,
    Pointwise,
    Structure,
    Window,
)
from tensorwright.rewrite.operators import IntShape

__all__ = [
    "FUNCTIONALS",
    "SAMPLES",
    "Keys",
    "Values",
    "keys_of_pairs",
    "keys_of_table",
    "values_of",
]

SAMPLES = 2
FUNCTIONALS = 2
Values: TypeAlias = NDArray[np.uint32]
"""(count, SAMPLES, size)"""
Keys: TypeAlias = NDArray[np.uint64]
"""(..., 2)"""
_BLOCK = 1 << 21
_WORD = np.uint64(31)


@cache
def functionals(shape: IntShape, seed: int) -> Numbers:
    """The random functionals of a shape, (FUNCTIONALS, size)."""
    digest = hashlib.sha256(f"functional {seed} {shape}".encode()).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    size = int(np.prod(shape, dtype=np.int64))
    return generator.integers(1, P, (FUNCTIONALS, size), dtype=np.uint64)


def keys_of(values: NDArray[np.uint64], shape: IntShape, seed: int) -> Keys:
    """The fingerprints of values (count, SAMPLES, size)."""
    return _packed(matmul(values, functionals(shape, seed).T))


def _packed(numbers: Numbers) -> Keys:
    """Residues (..., SAMPLES, FUNCTIONALS) as words (..., SAMPLES)."""
    return (numbers[..., 0] << _WORD) | numbers[..., 1]


def _windows(values: Values, structure: Window) -> Numbers:
    """Maxima in the order of the residues between -P/2 and P/2."""
    half = P // 2
    centred = (values.astype(np.int64) + half) % P
    low = np.full((*values.shape[:2], 1), -1, np.int64)
    padded = np.concatenate([centred, low], axis=2)
    best = padded[:, :, structure.places[:, 0]]
    for tap in range(1, structure.places.shape[1]):
        best = np.maximum(best, padded[:, :, structure.places[:, tap]])
    return ((best - half) % P).astype(np.uint64)


_FUNCTIONS = {"exp": Fn.EXP, "sigmoid": Fn.SIGMOID, "tanh": Fn.TANH}


def _pointwise(values: Values, name: str) -> Numbers:
    """relu as it is in the field; other functions as random functions of the residue."""
    if name == "relu":
        return relu(values)
    result = FieldDomain().apply(_FUNCTIONS[name], [packed(values)], DType.F64)
    return (residues(result) % P).astype(np.uint64)


def _products(structure: Bilinear, a: Values, b: Values) -> Numbers:
    """op(a[n], b[n]) for each n, product by product."""
    padding = ((0, 0), (0, 0), (0, 1))
    left, right = np.pad(a, padding), np.pad(b, padding)
    total = np.zeros((*a.shape[:2], len(structure.left)), np.uint64)
    for at in range(structure.left.shape[1]):
        term = multiply(left[:, :, structure.left[:, at]], right[:, :, structure.right[:, at]])
        total += term
    total = reduce(total)
    return relu(total) if structure.is_relu else total


def values_of(structure: Structure, arguments: tuple[Values, ...]) -> Values:
    """The values of n applications: argument number n of each."""
    match structure:
        case Constant(value):
            return np.broadcast_to(value, (1, SAMPLES, len(value))).astype(np.uint32)
        case Linear(matrices):
            parts = [matmul(x, m.T) for x, m in zip(arguments, matrices, strict=True)]
            total = parts[0] if len(parts) == 1 else reduce(parts[0] + parts[1])
            return total.astype(np.uint32)
        case Bilinear():
            size = len(structure.left) * SAMPLES
            step = max(1, _BLOCK // size)
            a, b = _factors(structure, *arguments)
            blocks = [
                _products(structure, a[at : at + step], b[at : at + step]).astype(np.uint32)
                for at in range(0, len(a), step)
            ]
            return np.concatenate(blocks)
        case Pointwise(name):
            return _pointwise(arguments[0], name).astype(np.uint32)
        case Window():
            return _windows(arguments[0], structure).astype(np.uint32)
        case Affine():
            return _affine(structure, arguments).astype(np.uint32)


def _factors(structure: Bilinear, a: Values, b: Values) -> tuple[Values, Values]:
    """What is multiplied: a quotient is a product with the inverse."""
    return a, invert(b).astype(np.uint32) if structure.inverts_right else b


def _affine(structure: Affine, arguments: tuple[Values, ...]) -> Numbers:
    """x * scale + shift, the last two from the other arguments, sample by sample."""
    x, *operands = arguments
    affine = [
        structure.scale_and_shift([operand[0, at] for operand in operands])
        for at in range(x.shape[1])
    ]
    scale, shift = (np.stack(each) for each in zip(*affine, strict=True))
    return reduce(multiply(x, scale) + shift)


def _adjoint(structure: Bilinear, functional: Numbers, sizes: tuple[int, int]) -> Numbers:
    """The matrix m with functional(op(a, b)) = a . m . b."""
    matrix = np.zeros((sizes[0] + 1, sizes[1] + 1), np.uint64)
    matrix[structure.left, structure.right] = functional[:, None]
    return matrix[:-1, :-1]


def keys_of_unary(
    structure: Structure, x: Values, shape: IntShape, seed: int, operands: tuple[Values, ...] = ()
) -> Keys:
    """The fingerprints of op(x[n]); `shape` is that of the result.

    operands  the arguments after the first, one value each
    """
    if isinstance(structure, Linear):
        weights = matmul(functionals(shape, seed), structure.matrices[0])
        return _packed(matmul(x, weights.T))
    step = max(1, _BLOCK // max(1, x.shape[1] * x.shape[2]))
    blocks = [
        keys_of(values_of(structure, (x[at : at + step], *operands)).astype(np.uint64), shape, seed)
        for at in range(0, len(x), step)
    ]
    return np.concatenate(blocks)


def keys_of_table(structure: Structure, a: Values, b: Values, shape: IntShape, seed: int) -> Keys:
    """The fingerprints of op(a[i], b[j]) for all i and j: (i, j, 2)."""
    chosen = functionals(shape, seed)
    if isinstance(structure, Linear):
        parts = [
            matmul(x, matmul(chosen, matrix).T)
            for x, matrix in zip((a, b), structure.matrices, strict=True)
        ]
        return _packed(reduce(parts[0][:, None] + parts[1][None]))
    if not isinstance(structure, Bilinear):
        raise InternalError(stage="rules", where="fingerprints", reason="no binary structure")
    a, b = _factors(structure, a, b)
    if structure.is_relu:
        return _keys_through_values(structure, a, b, shape, seed)
    result = np.empty((len(a), len(b), SAMPLES, FUNCTIONALS), np.uint64)
    for at, functional in enumerate(chosen):
        matrix = _adjoint(structure, functional, (a.shape[2], b.shape[2]))
        for sample in range(SAMPLES):
            right = matmul(matrix, np.ascontiguousarray(b[:, sample].T))
            result[:, :, sample, at] = matmul(a[:, sample], right)
    return _packed(result)


def _keys_through_values(
    structure: Bilinear, a: Values, b: Values, shape: IntShape, seed: int
) -> Keys:
    """For each argument of the smaller set the matrix of the operator, applied to the others."""
    is_left = len(a) <= len(b)
    few, many = (a, b) if is_left else (b, a)
    mine, other = structure.left, structure.right
    if not is_left:
        mine, other = other, mine
    rows = np.arange(len(mine))[:, None]
    weights = functionals(shape, seed).T
    keys = np.empty((len(few), len(many), SAMPLES), np.uint64)
    for number in range(len(few)):
        for sample in range(SAMPLES):
            matrix = np.zeros((many.shape[2] + 1, len(mine)), np.uint64)
            matrix[other, rows] = np.append(few[number, sample], np.uint32(0))[mine]
            value = matmul(many[:, sample], matrix[:-1])
            if structure.is_relu:
                value = relu(value)
            keys[number, :, sample] = _packed(matmul(value, weights))
    return keys if is_left else keys.transpose(1, 0, 2)


def keys_of_pairs(structure: Structure, a: Values, b: Values, shape: IntShape, seed: int) -> Keys:
    """The fingerprints of op(a[n], b[n])."""
    step = max(1, _BLOCK // max(a.shape[2], b.shape[2]) // SAMPLES)
    blocks = [
        keys_of(
            values_of(structure, (a[at : at + step], b[at : at + step])).astype(np.uint64),
            shape,
            seed,
        )
        for at in range(0, len(a), step)
    ]
    return np.concatenate(blocks)
