"""Terms up to the names of their inputs, as hashes computed in batches.

    matmul(x1, w1)     sequence [0, 3], form f
    matmul(x2, w1)     sequence [1, 3], form f: the other with inputs renamed
    matmul(x1, x1)     sequence [0], another form

The *sequence* of a term lists its inputs in the order of their first appearance (numbers, -1 after
the last).  The *form* of a term is a hash of what is left when each input is replaced by its place
in the sequence and its kind.  Two terms have equal forms if and only if (but for a collision of 64
bits) one is the other with inputs of the same kind renamed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

WIDTH = 6
"""Inputs of a term at most: one more than binary operators."""
Sequences: TypeAlias = NDArray[np.int8]
Forms: TypeAlias = NDArray[np.uint64]


def mix(state: NDArray[Any], number: NDArray[Any]) -> Forms:
    """64 bits that depend on both (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = np.asarray(state, np.uint64) * np.uint64(3) + np.asarray(number).astype(np.uint64)
        mixed = (mixed + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def merge(left: Sequences, right: Sequences) -> tuple[Sequences, Forms]:
    """The sequence of a term with two arguments, and the places of the second's inputs in it.

    Shapes:  left, right (n, WIDTH) -> (n, WIDTH), (n) with four bits per place
    """
    merged = np.array(left.T, order="C")
    count = np.count_nonzero(merged >= 0, axis=0).astype(np.int8)
    places = np.zeros(len(left), np.uint64)
    for item in np.ascontiguousarray(right.T):
        position = np.zeros(len(left), np.int8)
        for at, column in enumerate(merged, 1):
            position += (column == item) * np.int8(at)
        is_new = (position == 0) & (item >= 0)
        position[is_new] = count[is_new] + 1
        new = np.flatnonzero(is_new & (count < WIDTH))
        merged[count[new], new] = item[new]
        count[new] += 1
        places = (places << np.uint64(4)) | np.where(item >= 0, position, 0).astype(np.uint64)
    return merged.T, places


def form_of(code: NDArray[Any], form_a: Forms, form_b: Forms, places: Forms) -> Forms:
    """The form of an application; `code` tells operator and parameters."""
    return mix(mix(mix(form_a, form_b), places), code)


def pair_form(
    left: tuple[Forms, Sequences], right: tuple[Forms, Sequences]
) -> tuple[Forms, NDArray[np.bool_]]:
    """A hash of an equality up to renaming and exchange of sides, and where sides are exchanged."""
    forward = mix(mix(left[0], right[0]), merge(left[1], right[1])[1])
    backward = mix(mix(right[0], left[0]), merge(right[1], left[1])[1])
    return np.minimum(forward, backward), backward < forward
