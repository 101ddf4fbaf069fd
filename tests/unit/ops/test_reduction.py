"""Folds over axes and matrix products against NumPy and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.ops.apply import apply, check, floats, ints

FOLDS: dict[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_l1": lambda x, **how: np.sum(np.abs(x), **how),
    "reduce_l2": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    "reduce_sum_square": lambda x, **how: np.sum(x * x, **how),
    "reduce_log_sum": lambda x, **how: np.log(np.sum(x, **how)),
    "reduce_log_sum_exp": lambda x, **how: np.log(np.sum(np.exp(x), **how)),
}


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(), (1,), (-1, 0), (0, 1, 2)])
def test_folds(name: str, axes: tuple[int, ...], keepdims: bool) -> None:
    x = floats(3, 4, 5, low=0.5, high=1.5)
    expected = FOLDS[name](x, axis=axes or None, keepdims=keepdims)
    check(name, expected, x, axes=axes, keepdims=keepdims)


def test_folds_of_integers_and_of_one_number() -> None:
    n = ints(3, 4, dtype=np.int32)
    check("reduce_sum", n.sum(axis=1, dtype=np.int32), n, axes=(1,), keepdims=False)
    check("reduce_max", n.max(), n, keepdims=False)
    one = np.array(3.0, np.float32)
    check("reduce_sum", one, one)
    check("reduce_log_sum_exp", one, one)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64])
def test_means_and_norms_of_integers_lose_their_fraction(dtype: Any) -> None:
    n = (np.arange(600).reshape(2, 300) % 2 == 0).astype(dtype)  # more than a byte counts
    n[0] *= dtype(0 if np.iinfo(dtype).min == 0 else -1)
    wrapped = n.sum(axis=1, dtype=dtype).astype(np.float64)
    check("reduce_mean", np.trunc(wrapped / 300).astype(dtype), n, axes=(1,), keepdims=False)
    few = n[:, :20]
    expected = np.trunc(np.sqrt((few * few).sum(axis=1))).astype(dtype)
    check("reduce_l2", expected, few, axes=(1,), keepdims=False)


def test_log_sum_exp_is_stable() -> None:
    x = np.array([[1000.0, 1000.0], [-np.inf, -np.inf]], np.float32)
    (result,) = apply("reduce_log_sum_exp", x, axes=(1,), keepdims=False)
    assert result.tolist() == [pytest.approx(1000 + np.log(2)), -np.inf]


def test_folds_of_bools() -> None:
    p = ints(4, 5, low=0, high=2).astype(bool)
    check("reduce_any", p.any(axis=0), p, axes=(0,), keepdims=False)
    check("reduce_all", p.all(axis=1), p, axes=(1,), keepdims=False)
    check("reduce_max", p.max(axis=0), p, axes=(0,), keepdims=False)
    check("reduce_min", p.min(axis=0), p, axes=(0,), keepdims=False)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("name", "function"), [("argmax", np.argmax), ("argmin", np.argmin)])
def test_positions_of_extremes(name: str, function: Callable[..., Any], axis: int) -> None:
    x = ints(4, 5, 6, low=0, high=3)
    check(name, function(x, axis=axis, keepdims=True), x, axis=axis)
    last = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis)
    check(name, last, x, axis=axis, keepdims=False, select_last_index=True)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (6, 4, 5)),
        ((4,), (4,)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((1, 1), (1, 1)),
        ((2, 3, 0), (2, 0, 4)),
    ],
)
def test_matrix_products(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = floats(*left), floats(*right)
    check("matmul", np.matmul(a, b), a, b)


@pytest.mark.parametrize("trans_a", [True, False])
@pytest.mark.parametrize("trans_b", [True, False])
@pytest.mark.parametrize("addend", [None, (), (5,), (3, 1), (3, 5)])
def test_gemm(trans_a: bool, trans_b: bool, addend: tuple[int, ...] | None) -> None:
    a, b = floats(*((4, 3) if trans_a else (3, 4))), floats(*((5, 4) if trans_b else (4, 5)))
    product = (a.T if trans_a else a) @ (b.T if trans_b else b)
    turned = {"trans_a": trans_a, "trans_b": trans_b}
    if addend is None:
        check("gemm", product, a, b, **turned)
        check("gemm", 0.5 * product, a, b, alpha=0.5, **turned)
    else:
        c = floats(*addend)
        check("gemm", product + c, a, b, c, **turned)
        check("gemm", 2 * product + 0.5 * c, a, b, c, alpha=2.0, beta=0.5, **turned)


def test_products_of_codes() -> None:
    a, b = ints(2, 3, 4, low=0, high=255, dtype=np.uint8), ints(4, 5, dtype=np.int8)
    wide = np.matmul(a.astype(np.int32), b.astype(np.int32))
    check("matmul_integer", wide, a, b)
    of_a, of_b = np.array(7, np.uint8), np.array([1, 2, 3, -4, 5], np.int8)
    wide = np.matmul(a.astype(np.int32) - 7, b.astype(np.int32) - of_b.astype(np.int32))
    check("matmul_integer", wide, a, b, of_a, of_b)
    rows = np.array([1, 2, 3], np.uint8)
    wide = np.matmul(a.astype(np.int32) - rows.astype(np.int32)[:, None], b.astype(np.int32))
    check("matmul_integer", wide, a, b, rows)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("bij, bjk -> bik", [(2, 3, 4), (2, 4, 5)]),
        ("ij->ji", [(3, 4)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (6, 4, 5)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...i->...", [(2, 3)]),
        ("i...,i->...", [(2, 3), (2,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    x = [floats(*shape) for shape in shapes]
    check("einsum", torch.einsum(equation, *map(torch.from_numpy, x)), *x, equation=equation)
