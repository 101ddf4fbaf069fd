"""Fingerprints: what is equal stays equal, what is not does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.unit.expr.programs import PROGRAMS, inputs_of, matmul, softmax

from tensorwright import expr
from tensorwright.base import DType
from tensorwright_lab.rule_generation.fingerprint.field_domain import FieldDomain, residues

FIELD = FieldDomain(seed=7)
COUNT = 64
X, Y, Z = (expr.placeholder(name, (COUNT,)) for name in "xyz")
Law = Callable[[expr.Value, expr.Value, expr.Value], expr.Value]


def field_inputs(output: expr.Compute, seed: int = 3) -> dict[expr.Placeholder, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        tensor: FIELD.random(tensor.shape, random) if tensor.dtype.is_float else array
        for tensor, array in inputs_of(output).items()
    }


def fingerprint(body: Law) -> np.ndarray:
    y = expr.compute("y", (COUNT,), lambda i: body(X[i], Y[i], Z[i]))
    random = np.random.default_rng(5)
    inputs = {tensor: FIELD.random(tensor.shape, random) for tensor in (X, Y, Z)}
    return residues(expr.evaluate([y], inputs, FIELD)[0])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x, y, z: x * (y + z), lambda x, y, z: x * y + x * z),
        (lambda x, y, z: (x - y) * (x + y), lambda x, y, z: x * x - y * y),
        (lambda x, y, z: x / y, lambda x, y, z: x * (1.0 / y)),
        (lambda x, y, z: x * 0.5 + x * 0.25, lambda x, y, z: x * 0.75),
        (lambda x, y, z: expr.exp(x + y), lambda x, y, z: expr.exp(x) * expr.exp(y)),
        (lambda x, y, z: expr.exp(x - y), lambda x, y, z: expr.exp(x) / expr.exp(y)),
        (lambda x, y, z: expr.exp(x * (y + z)), lambda x, y, z: expr.exp(x * y) * expr.exp(z * x)),
        (lambda x, y, z: expr.exp(x - x), lambda x, y, z: x / x),
        (lambda x, y, z: expr.tanh(x), lambda x, y, z: expr.sigmoid(x * 2.0) * 2.0 - 1.0),
        (lambda x, y, z: expr.tanh(-x), lambda x, y, z: -expr.tanh(x)),
        (lambda x, y, z: expr.sigmoid(-x), lambda x, y, z: 1.0 - expr.sigmoid(x)),
        (lambda x, y, z: expr.expm1(x) + 1.0, lambda x, y, z: expr.exp(x)),
        (lambda x, y, z: expr.log1p(x), lambda x, y, z: expr.log(x + 1.0)),
        (lambda x, y, z: expr.rsqrt(x), lambda x, y, z: 1.0 / expr.sqrt(x)),
        (lambda x, y, z: expr.pow_(x, 3.0), lambda x, y, z: x * x * x),
        (lambda x, y, z: expr.pow_(x, -2.0), lambda x, y, z: 1.0 / (x * x)),
        (lambda x, y, z: expr.pow_(x, 0.5), lambda x, y, z: expr.sqrt(x)),
        (
            lambda x, y, z: expr.max_of(x, expr.max_of(y, z)),
            lambda x, y, z: expr.max_of(expr.max_of(z, x), y),
        ),
        (
            lambda x, y, z: expr.min_of(x, expr.max_of(y, z)),
            lambda x, y, z: expr.max_of(expr.min_of(x, y), expr.min_of(x, z)),
        ),
        (lambda x, y, z: -expr.max_of(-x, -y), lambda x, y, z: expr.min_of(x, y)),
        (lambda x, y, z: expr.max_of(x, -x), lambda x, y, z: expr.abs_(x)),
        (lambda x, y, z: expr.relu(expr.relu(x)), lambda x, y, z: expr.relu(x)),
        (
            lambda x, y, z: expr.relu(expr.max_of(x, y)),
            lambda x, y, z: expr.max_of(expr.relu(x), expr.relu(y)),
        ),
        (lambda x, y, z: expr.select(x < y, y, x), lambda x, y, z: expr.max_of(x, y)),
        (lambda x, y, z: expr.erf(-x), lambda x, y, z: -expr.erf(x)),
        (lambda x, y, z: expr.cos(-x), lambda x, y, z: expr.cos(x)),
        (lambda x, y, z: expr.tan(x), lambda x, y, z: expr.sin(x) / expr.cos(x)),
        (
            lambda x, y, z: expr.erf(expr.exp(x + y)),
            lambda x, y, z: expr.erf(expr.exp(x) * expr.exp(y)),
        ),
    ],
)
def test_equal_expressions_have_equal_fingerprints(left: Law, right: Law):
    np.testing.assert_array_equal(fingerprint(left), fingerprint(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x, y, z: x + y, lambda x, y, z: x * y),
        (lambda x, y, z: expr.exp(x * y), lambda x, y, z: expr.exp(x) * expr.exp(y)),
        (lambda x, y, z: expr.exp(x) + expr.exp(y), lambda x, y, z: expr.exp(x + y)),
        (lambda x, y, z: expr.max_of(x, y), lambda x, y, z: x + y),
        (lambda x, y, z: expr.relu(x * x), lambda x, y, z: x * x + 1.0),
        (lambda x, y, z: expr.sqrt(x * x), lambda x, y, z: x),
        (lambda x, y, z: expr.tanh(x), lambda x, y, z: expr.sigmoid(x)),
        (lambda x, y, z: expr.tanh(x + y), lambda x, y, z: expr.tanh(x) + expr.tanh(y)),
        (lambda x, y, z: expr.erf(x), lambda x, y, z: expr.sin(x)),
        (lambda x, y, z: expr.pow_(x, 2.0), lambda x, y, z: expr.pow_(x, 3.0)),
        (lambda x, y, z: expr.pow_(x, y), lambda x, y, z: expr.pow_(y, x)),
        (lambda x, y, z: x * 0.1, lambda x, y, z: x * 0.1000001),
    ],
)
def test_different_expressions_have_different_fingerprints(left: Law, right: Law):
    assert (fingerprint(left) != fingerprint(right)).sum() > COUNT // 4


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_a_fingerprint_however_it_is_evaluated(name):
    output = PROGRAMS[name]
    inputs = field_inputs(output)
    (whole,) = expr.evaluate([output], inputs, FIELD)
    (cramped,) = expr.evaluate([output], inputs, FIELD, limit_bytes=3000)
    np.testing.assert_array_equal(whole, cramped)
    assert whole.shape == output.shape


def test_whole_numbers_agree_with_arithmetic():
    c = matmul(4, 3, 5)
    a, b = (t for t in expr.topological_order(c) if t is not c)
    random = np.random.default_rng(0)
    left, right = random.integers(-9, 9, (4, 5)), random.integers(-9, 9, (5, 3))
    inputs = {a: left.astype(np.float32), b: right.astype(np.float32)}
    np.testing.assert_array_equal(residues(expr.evaluate([c], inputs, FIELD)[0]), left @ right)


def test_softmax_does_not_depend_on_what_is_subtracted():
    k = expr.reduce_axis("k", 5)
    x = expr.placeholder("x", (3, 5))
    total = expr.compute("total", (3,), lambda i: expr.sum_over(expr.exp(x[i, k]), k))
    plain = expr.compute("y", (3, 5), lambda i, j: expr.exp(x[i, j]) / total[i])
    stable = softmax()
    (source,) = (t for t in expr.topological_order(stable) if isinstance(t, expr.Placeholder))
    data = FIELD.random((3, 5), np.random.default_rng(1))
    np.testing.assert_array_equal(
        residues(expr.evaluate([stable], {source: data}, FIELD)[0]),
        residues(expr.evaluate([plain], {x: data}, FIELD)[0]),
    )


def test_seeds_choose_other_functions():
    y = expr.compute("y", (COUNT,), lambda i: expr.sin(X[i]))
    data = {X: FIELD.random((COUNT,), np.random.default_rng(1))}
    assert (expr.evaluate([y], data, FIELD)[0] != expr.evaluate([y], data, FieldDomain(8))[0]).all()


def test_infinity_is_the_end_of_the_order():
    top = expr.compute("y", (COUNT,), lambda i: expr.max_of(X[i], float("-inf")))
    data = FIELD.random((COUNT,), np.random.default_rng(1))
    np.testing.assert_array_equal(expr.evaluate([top], {X: data}, FIELD)[0], data)
    k = expr.reduce_axis("k", 0)
    empty = expr.placeholder("x", (0,))
    lowest = expr.compute("y", (), lambda: expr.max_over(empty[k], k))
    (found,) = expr.evaluate([lowest], {empty: np.zeros(0, np.int64)}, FIELD)
    assert found < data.min()


def test_integers_stay_integers():
    c = matmul(dtype=DType.I32)
    inputs = inputs_of(c)
    np.testing.assert_array_equal(
        expr.evaluate([c], inputs, FIELD)[0], expr.evaluate([c], inputs)[0]
    )
