"""Values of applications, in batches: plain functions of plain data.

    values_of(structure of relu, (x,))         x (n, 2, 6) -> (n, 2, 6)
    values_of(structure of matmul, (a, b))     a (n, 2, 6), b (n, 2, 12) -> (n, 2, 8)
    row n is the application to row n of each

A tensor value is SAMPLES vectors of residues, one per random assignment of the inputs.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright_lab.rule_generation.fingerprint import field
from tensorwright_lab.rule_generation.fingerprint.field import centred
from tensorwright_lab.rule_generation.fingerprint.structure import (
    Affine,
    Bilinear,
    Constant,
    Direct,
    Linear,
    Pointwise,
    Structure,
    Window,
)

SAMPLES = 2
Values: TypeAlias = NDArray[np.uint32]
"""(count, SAMPLES, size)"""
_BLOCK = 1 << 21


def _windows(values: Values, structure: Window) -> field.Numbers:
    """Maxima in the order of the residues between -P/2 and P/2."""
    half = field.P // 2
    centred = (values.astype(np.int64) + half) % field.P
    low = np.full((*values.shape[:2], 1), -1, np.int64)
    padded = np.concatenate([centred, low], axis=2)
    best = padded[:, :, structure.places[:, 0]]
    for tap in range(1, structure.places.shape[1]):
        best = np.maximum(best, padded[:, :, structure.places[:, tap]])
    return ((best - half) % field.P).astype(np.uint64)


def _products(structure: Bilinear, a: Values, b: Values) -> field.Numbers:
    """op(a[n], b[n]) for each n, product by product."""
    padding = ((0, 0), (0, 0), (0, 1))
    left, right = np.pad(a, padding), np.pad(b, padding)
    total = np.zeros((*a.shape[:2], len(structure.left)), np.uint64)
    for at in range(structure.left.shape[1]):
        term = field.multiply(
            left[:, :, structure.left[:, at]], right[:, :, structure.right[:, at]]
        )
        total += term
    total = field.reduce(total)
    return field.relu(total) if structure.is_relu else total


def values_of(structure: Structure, arguments: tuple[Values, ...]) -> Values:
    """The values of n applications: argument number n of each."""
    match structure:
        case Constant(value):
            return np.broadcast_to(value, (1, SAMPLES, len(value))).astype(np.uint32)
        case Linear():
            return _sums(structure, arguments).astype(np.uint32)
        case Bilinear():
            size = len(structure.left) * arguments[0].shape[1]
            step = max(1, _BLOCK // size)
            a, b = factors(structure, *arguments)
            blocks = [
                _products(structure, a[at : at + step], b[at : at + step]).astype(np.uint32)
                for at in range(0, len(a), step)
            ]
            return np.concatenate(blocks)
        case Pointwise():
            return structure.apply(arguments[0]).astype(np.uint32)
        case Window():
            return _windows(arguments[0], structure).astype(np.uint32)
        case Affine():
            return _affine(structure, arguments).astype(np.uint32)
        case Direct():
            return structure.apply(arguments).astype(np.uint32)


_SPARSE = 32
"""Addends of a linear operator that are added one by one."""


@cache
def _addends(structure: Linear, argument: int) -> tuple[NDArray[np.intp], field.Numbers] | None:
    """Places and factors of the addends from one argument, (out, addends); None if many."""
    matrix = structure.matrices[argument]
    count = int((matrix != 0).sum(axis=1).max(initial=0))
    if count > _SPARSE:
        return None
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :count]
    return places, np.take_along_axis(matrix, places, axis=1)


def _sums(structure: Linear, arguments: tuple[Values, ...]) -> field.Numbers:
    """op(x[n], ...) for each n, addend by addend where they are few."""
    out = len(structure.matrices[0])
    total = np.zeros((*arguments[0].shape[:2], out), np.uint64)
    for number, x in enumerate(arguments):
        addends = _addends(structure, number)
        if addends is None:
            columns = centred(x.reshape(-1, x.shape[2]).T)
            rows = field.residues_of(field.product(centred(structure.matrices[number]), columns))
            total += rows.T.reshape(total.shape)
            continue
        places, weights = addends
        for at in range(places.shape[1]):
            part = x[:, :, places[:, at]]
            is_plain = bool((weights[:, at] == 1).all())
            total += part if is_plain else field.multiply(part, weights[:, at])
    return field.reduce(total)


def factors(structure: Bilinear, a: Values, b: Values) -> tuple[Values, Values]:
    """The two factors: a quotient is a product with the inverse."""
    return a, field.invert(b).astype(np.uint32) if structure.inverts_right else b


def _affine(structure: Affine, arguments: tuple[Values, ...]) -> field.Numbers:
    """x * scale + shift, the last two from the other arguments, sample by sample."""
    x, *operands = arguments
    affine = [
        structure.scale_and_shift([operand[0, at] for operand in operands])
        for at in range(x.shape[1])
    ]
    scale, shift = (np.stack(each) for each in zip(*affine, strict=True))
    return field.reduce(field.multiply(x, scale) + shift)
