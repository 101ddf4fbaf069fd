"""Packing constants: equal to the definition, element by element, and fast."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.base import InternalError
from tensorwright.expr import Condition, Decision, Index, Var, all_of, any_of, substitute
from tensorwright.expr import substitute_condition as substituted
from tensorwright.loop import Packing, pack

A, B, C, D = (Var(name) for name in "abcd")


def by_definition(array: np.ndarray, packing: Packing) -> np.ndarray:
    packed = np.zeros([extent for _, extent in packing.axes], array.dtype)
    for place in itertools.product(*(range(extent) for _, extent in packing.axes)):
        values = dict(zip((var for var, _ in packing.axes), place, strict=True))
        if substituted(packing.valid, values) is True:
            packed[place] = array[tuple(substitute(i, values) for i in packing.indices)]
    return packed


def check(packing: Packing) -> None:
    size = int(np.prod(packing.source_shape))
    array = np.arange(1, size + 1, dtype=np.float32).reshape(packing.source_shape)
    np.testing.assert_array_equal(pack(array, packing), by_definition(array, packing))


@pytest.mark.parametrize(
    "packing",
    [
        Packing(((A, 4), (B, 3)), (B, A), True, (3, 4)),  # transposed
        Packing(((A, 2), (B, 3), (C, 4)), (A * 4 + C, B), True, (8, 3)),  # tiled
        Packing(((A, 2), (B, 3), (C, 4)), (A * 4 + C, B), A * 4 + C < 7, (7, 3)),  # padded
        Packing(((A, 5),), (4 - A,), True, (5,)),  # reversed
        Packing(((A, 5),), (A - 1,), all_of(A >= 1, A - 1 < 3), (3,)),  # padded on both sides
        Packing(((A, 6), (B, 2)), (A % 3, A // 3 + B), True, (3, 3)),  # not affine
        Packing(((A, 6), (B, 2)), (A % 4, B), A % 4 < 3, (3, 2)),  # not affine, guarded
        Packing(((A, 4), (B, 4)), (A, B), any_of(A < B, B < 1), (4, 4)),  # a mask
        Packing(((A, 4), (B, 4)), (A,), True, (4,)),  # repeated
        Packing(((A, 3),), (A * 100,), A < 1, (10,)),  # padding would be large
        Packing(((A, 3),), (A,), False, (3,)),
        Packing((), (2,), True, (3,)),
        Packing(((A, 0), (B, 3)), (B,), True, (3,)),
        Packing(((A, 2),), (), True, ()),
    ],
)
def test_packed_as_defined(packing: Packing) -> None:
    check(packing)


@st.composite
def packings(draw: st.DrawFn) -> Packing:
    axes = tuple((var, draw(st.integers(1, 4))) for var in (A, B, C)[: draw(st.integers(1, 3))])
    source = tuple(draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 3))))
    indices: list[Index] = []
    for _ in source:
        index: Index = draw(st.integers(-2, 3))
        for var, _ in axes:
            index = index + var * draw(st.integers(-1, 3))
        if draw(st.integers(0, 3)) == 0:
            index = index // draw(st.integers(1, 3))
        indices.append(index)
    inside: list[Condition] = []
    for index, extent in zip(indices, source, strict=True):
        inside += [index >= 0, index < extent]
    extra = draw(st.sampled_from([True, A < 2, any_of(A < 1, A >= 2)]))
    return Packing(axes, tuple(indices), all_of(*inside, extra), source)


@settings(max_examples=75)
@given(packings())
def test_random_packings(packing: Packing) -> None:
    check(packing)


def test_a_wrong_shape_and_an_unbound_size_are_refused() -> None:
    packing = Packing(((A, 3),), (A,), True, (3,))
    with pytest.raises(InternalError, match=r"has shape \(4,\), not \(3,\)"):
        pack(np.zeros(4), packing)
    with pytest.raises(InternalError, match=r"the extent \?t is not bound"):
        pack(np.zeros(3), Packing(((A, Decision("t")),), (A,), True, (3,)))


def test_four_million_weights_take_a_moment() -> None:
    array = np.ones((512, 512, 4, 4), np.float32)
    axes = ((A, 32), (B, 512), (Var("h"), 4), (Var("w"), 4), (C, 16))
    packing = Packing(axes, (A * 16 + C, B, Var("h"), Var("w")), True, array.shape)
    start = time.perf_counter()
    pack(array, packing)
    assert time.perf_counter() - start < 2.0  # 0.05 s on a free core
