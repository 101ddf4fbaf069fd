"""Fingerprints: what is equal stays equal, what is not does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.unit.expr.programs import PROGRAMS, inputs_of, matmul, softmax

from tensorwright.base import DType
from tensorwright.expr import (
    Compute,
    FieldDomain,
    Placeholder,
    Value,
    abs_,
    compute,
    cos,
    erf,
    evaluate,
    exp,
    expm1,
    log,
    log1p,
    max_of,
    max_over,
    min_of,
    placeholder,
    pow_,
    reduce_axis,
    relu,
    residues,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    sum_over,
    tan,
    tanh,
    topological_order,
)

FIELD = FieldDomain(seed=7)
COUNT = 64
X, Y, Z = (placeholder(name, (COUNT,)) for name in "xyz")
Law = Callable[[Value, Value, Value], Value]


def field_inputs(output: Compute, seed: int = 3) -> dict[Placeholder, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        tensor: FIELD.random(tensor.shape, random) if tensor.dtype.is_float else array
        for tensor, array in inputs_of(output).items()
    }


def fingerprint(body: Law) -> np.ndarray:
    y = compute("y", (COUNT,), lambda i: body(X[i], Y[i], Z[i]))
    random = np.random.default_rng(5)
    inputs = {tensor: FIELD.random(tensor.shape, random) for tensor in (X, Y, Z)}
    return residues(evaluate([y], inputs, FIELD)[0])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x, y, z: x * (y + z), lambda x, y, z: x * y + x * z),
        (lambda x, y, z: (x - y) * (x + y), lambda x, y, z: x * x - y * y),
        (lambda x, y, z: x / y, lambda x, y, z: x * (1.0 / y)),
        (lambda x, y, z: x * 0.5 + x * 0.25, lambda x, y, z: x * 0.75),
        (lambda x, y, z: exp(x + y), lambda x, y, z: exp(x) * exp(y)),
        (lambda x, y, z: exp(x - y), lambda x, y, z: exp(x) / exp(y)),
        (lambda x, y, z: exp(x * (y + z)), lambda x, y, z: exp(x * y) * exp(z * x)),
        (lambda x, y, z: exp(x - x), lambda x, y, z: x / x),
        (lambda x, y, z: tanh(x), lambda x, y, z: sigmoid(x * 2.0) * 2.0 - 1.0),
        (lambda x, y, z: tanh(-x), lambda x, y, z: -tanh(x)),
        (lambda x, y, z: sigmoid(-x), lambda x, y, z: 1.0 - sigmoid(x)),
        (lambda x, y, z: expm1(x) + 1.0, lambda x, y, z: exp(x)),
        (lambda x, y, z: log1p(x), lambda x, y, z: log(x + 1.0)),
        (lambda x, y, z: rsqrt(x), lambda x, y, z: 1.0 / sqrt(x)),
        (lambda x, y, z: pow_(x, 3.0), lambda x, y, z: x * x * x),
        (lambda x, y, z: pow_(x, -2.0), lambda x, y, z: 1.0 / (x * x)),
        (lambda x, y, z: pow_(x, 0.5), lambda x, y, z: sqrt(x)),
        (lambda x, y, z: max_of(x, max_of(y, z)), lambda x, y, z: max_of(max_of(z, x), y)),
        (
            lambda x, y, z: min_of(x, max_of(y, z)),
            lambda x, y, z: max_of(min_of(x, y), min_of(x, z)),
        ),
        (lambda x, y, z: -max_of(-x, -y), lambda x, y, z: min_of(x, y)),
        (lambda x, y, z: max_of(x, -x), lambda x, y, z: abs_(x)),
        (lambda x, y, z: relu(relu(x)), lambda x, y, z: relu(x)),
        (lambda x, y, z: relu(max_of(x, y)), lambda x, y, z: max_of(relu(x), relu(y))),
        (lambda x, y, z: select(x < y, y, x), lambda x, y, z: max_of(x, y)),
        (lambda x, y, z: erf(-x), lambda x, y, z: -erf(x)),
        (lambda x, y, z: cos(-x), lambda x, y, z: cos(x)),
        (lambda x, y, z: tan(x), lambda x, y, z: sin(x) / cos(x)),
        (lambda x, y, z: erf(exp(x + y)), lambda x, y, z: erf(exp(x) * exp(y))),
    ],
)
def test_equal_expressions_have_equal_fingerprints(left: Law, right: Law):
    np.testing.assert_array_equal(fingerprint(left), fingerprint(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x, y, z: x + y, lambda x, y, z: x * y),
        (lambda x, y, z: exp(x * y), lambda x, y, z: exp(x) * exp(y)),
        (lambda x, y, z: exp(x) + exp(y), lambda x, y, z: exp(x + y)),
        (lambda x, y, z: max_of(x, y), lambda x, y, z: x + y),
        (lambda x, y, z: relu(x * x), lambda x, y, z: x * x + 1.0),
        (lambda x, y, z: sqrt(x * x), lambda x, y, z: x),
        (lambda x, y, z: tanh(x), lambda x, y, z: sigmoid(x)),
        (lambda x, y, z: tanh(x + y), lambda x, y, z: tanh(x) + tanh(y)),
        (lambda x, y, z: erf(x), lambda x, y, z: sin(x)),
        (lambda x, y, z: pow_(x, 2.0), lambda x, y, z: pow_(x, 3.0)),
        (lambda x, y, z: pow_(x, y), lambda x, y, z: pow_(y, x)),
        (lambda x, y, z: x * 0.1, lambda x, y, z: x * 0.1000001),
    ],
)
def test_different_expressions_have_different_fingerprints(left: Law, right: Law):
    assert (fingerprint(left) != fingerprint(right)).sum() > COUNT // 4


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_a_fingerprint_however_it_is_evaluated(name):
    output = PROGRAMS[name]
    inputs = field_inputs(output)
    (whole,) = evaluate([output], inputs, FIELD)
    (cramped,) = evaluate([output], inputs, FIELD, limit_bytes=3000)
    np.testing.assert_array_equal(whole, cramped)
    assert whole.shape == output.shape


def test_whole_numbers_agree_with_arithmetic():
    c = matmul(4, 3, 5)
    a, b = (t for t in topological_order(c) if t is not c)
    random = np.random.default_rng(0)
    left, right = random.integers(-9, 9, (4, 5)), random.integers(-9, 9, (5, 3))
    inputs = {a: left.astype(np.float32), b: right.astype(np.float32)}
    np.testing.assert_array_equal(residues(evaluate([c], inputs, FIELD)[0]), left @ right)


def test_softmax_does_not_depend_on_what_is_subtracted():
    k = reduce_axis("k", 5)
    x = placeholder("x", (3, 5))
    total = compute("total", (3,), lambda i: sum_over(exp(x[i, k]), k))
    plain = compute("y", (3, 5), lambda i, j: exp(x[i, j]) / total[i])
    stable = softmax()
    (source,) = (t for t in topological_order(stable) if isinstance(t, Placeholder))
    data = FIELD.random((3, 5), np.random.default_rng(1))
    np.testing.assert_array_equal(
        residues(evaluate([stable], {source: data}, FIELD)[0]),
        residues(evaluate([plain], {x: data}, FIELD)[0]),
    )


def test_seeds_choose_other_functions():
    y = compute("y", (COUNT,), lambda i: sin(X[i]))
    data = {X: FIELD.random((COUNT,), np.random.default_rng(1))}
    assert (evaluate([y], data, FIELD)[0] != evaluate([y], data, FieldDomain(8))[0]).all()


def test_infinity_is_the_end_of_the_order():
    top = compute("y", (COUNT,), lambda i: max_of(X[i], float("-inf")))
    data = FIELD.random((COUNT,), np.random.default_rng(1))
    np.testing.assert_array_equal(evaluate([top], {X: data}, FIELD)[0], data)
    k = reduce_axis("k", 0)
    empty = placeholder("x", (0,))
    lowest = compute("y", (), lambda: max_over(empty[k], k))
    (found,) = evaluate([lowest], {empty: np.zeros(0, np.int64)}, FIELD)
    assert found < data.min()


def test_integers_stay_integers():
    c = matmul(dtype=DType.I32)
    inputs = inputs_of(c)
    np.testing.assert_array_equal(evaluate([c], inputs, FIELD)[0], evaluate([c], inputs)[0])
