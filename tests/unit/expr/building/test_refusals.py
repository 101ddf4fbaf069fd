"""What is written wrong is refused when `compute` is called, with what to write instead."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.tables import check_transcript

import tensorwright
from tensorwright import base, expr, zoo
from tensorwright.expr import (
    Compute,
    Decision,
    Element,
    Value,
    Var,
    all_of,
    any_of,
    compute,
    constant,
    maximum,
    minimum,
    mod,
    negate,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.expr.symbolic import INSTEAD_OF_NUMPY, SAME_AS_NUMPY

PAGE = Path(__file__).with_name("refusals.txt")
S = placeholder("s", (8,))
T = placeholder("t", (8,), base.DType.I32)
X = placeholder("x", (16, 30, 30))
P, Q = reduce_axis("p", 3), reduce_axis("q", 3)


def refused(make: Callable[[], object]) -> base.ExpressionError:
    with pytest.raises(base.ExpressionError) as caught:
        make()
    return caught.value


def row(body: Callable[..., object], count: int = 8) -> Compute:
    return compute("a", (count,), body)


@pytest.mark.golden
def test_refusals_say_what_to_write_instead(request: pytest.FixtureRequest) -> None:
    """All of `refusals.txt`: what is written wrong, and the message."""
    names = {**vars(expr), "np": np, "math": math, "DType": base.DType, "row": row}
    names |= {"S": S, "T": T, "X": X, "P": P, "Q": Q}

    def answer(line: str) -> str:
        error = refused(lambda: eval(line, names))
        assert pickle.loads(pickle.dumps(error)) == error
        return str(error)

    check_transcript(request, PAGE, ">>> ", answer)


def test_a_refusal_is_an_error_of_the_user_and_a_type_error() -> None:
    error = refused(lambda: row(lambda i: S[i - 1]))
    assert isinstance(error, base.UserError)
    assert isinstance(error, TypeError)
    assert pickle.loads(pickle.dumps(error)) == error


INSIDE = {
    "guarded": lambda i, j: select(all_of(i >= 1, j < 29), X[0, i - 1, j + 1], 0.0),
    "guarded by both": lambda i, j: select(all_of(i + j >= 3, i + j < 33), X[0, i + j - 3, j], 0.0),
    "the branch that is left": lambda i, j: select(i < 29, X[0, i + 1, j], X[0, i, j]),
    "alternatives": lambda i, j: select(any_of(i < 3, i > 5), X[0, i // 2, j], X[0, i - 3, j]),
    "neither": lambda i, j: select(negate(any_of(i < 1, j < 1)), X[0, i - 1, j - 1], 0.0),
    "only where equal": lambda i, j: select(i == j, X[0, i - j, j], 0.0),
    "a triangle": lambda i, j: select(j <= i, X[0, i - j, j], 0.0),
    "a remainder": lambda i, j: X[0, (7 * i + j) % 30, (i - j) % 30],
    "held inside": lambda i, j: X[0, maximum(minimum(i * j, 29), 0), j],
    "every second": lambda i, j: select(i % 2 == 0, X[0, (i + 29 * (i % 2)) // 2, j], 0.0),
    "reflected": lambda i, j: X[0, abs(2 * i - 29), 29 - j],
    "a square": lambda i, j: select(i <= 5, X[0, i**2, j], 0.0),
    "never": lambda i, j: select(i < 0, X[0, i, 99], X[0, i, j]),
}


@pytest.mark.parametrize("name", INSIDE)
def test_reading_inside_is_accepted(name: str) -> None:
    compute("a", (30, 30), INSIDE[name])


def test_reading_inside_is_shown_for_large_extents_too() -> None:
    """By proof: there are too many points to look at each."""
    x, n = placeholder("x", (100_000, 4)), 100_000
    compute("a", (n, n), lambda i, j: select(all_of(j <= i, i < n), x[i - j, 0], 0.0))
    compute("a", (n, n), lambda i, j: select(i < 2, x[(i + j) // 3, 0], 0.0))
    error = refused(lambda: compute("a", (n, n), lambda i, j: select(j <= i + 1, x[i - j, 0], 0.0)))
    assert "read at i - j" in error.reason


def test_nothing_is_read_where_an_extent_is_zero() -> None:
    compute("a", (0,), lambda i: S[i + 9])
    empty, k = placeholder("e", (0,)), reduce_axis("k", 0)
    compute("a", (4,), lambda i: sum_over(empty[k + i], k))
    refused(lambda: row(lambda i: empty[i]))


def test_open_sizes_are_refused_only_where_they_are_certainly_wrong() -> None:
    n = Decision("n")
    x = placeholder("x", (n,))
    compute("a", (n,), lambda i: select(i > 0, x[i - 1], 0.0))
    compute("a", (n,), lambda i: x[n - 1 - i])
    refused(lambda: compute("a", (n,), lambda i: x[i + 1]))


def test_an_element_of_a_tensor_may_be_any_number_of_its_type() -> None:
    error = refused(lambda: row(lambda i: S[Element(T, (i,))]))
    assert "takes -2147483648..2147483647; its extent is 8: 0..7" in error.reason
    assert "mod(t[i], 8)" in error.remedy
    row(lambda i: S[maximum(minimum(Element(T, (i,)), 7), 0)])
    at = Element(T, (Var("i"),))
    row(lambda i: select(all_of(at >= 0, at < 8), S[at], 0.0))
    assert "not an index" in refused(lambda: row(lambda i: S[Element(S, (i,))])).reason


def test_an_index_is_divided_by_what_is_never_zero() -> None:
    row(lambda i: S[i // (i + 1)])
    row(lambda i: select(i > 0, S[7 // i], 0.0))
    for body in (lambda i: S[i // i], lambda i: S[7 % i], lambda i: S[mod(i, i)]):
        assert "may be 0" in refused(lambda body=body: row(body)).reason
    for body in (lambda i: S[i // 0], lambda i: S[i % -2]):
        assert "positive number" in refused(lambda body=body: row(body)).reason


def test_the_functions_that_are_named_exist() -> None:
    assert set(INSTEAD_OF_NUMPY.values()) <= set(expr.__all__)
    assert set(expr.__all__) >= SAME_AS_NUMPY
    assert all(hasattr(np, name) for name in (*INSTEAD_OF_NUMPY, *SAME_AS_NUMPY))


@pytest.mark.parametrize(
    "operand", [S, S[0], P, P.var, P < 1, sum_over(S[P], P)], ids=lambda each: type(each).__name__
)
def test_nothing_is_walked(operand: Any) -> None:
    for ask in (list, sum, len, tuple):
        error = refused(lambda ask=ask: ask(operand))
        assert "that Python can" in error.reason
        assert "sum_over(" in error.remedy
        assert ".shape" in error.remedy
    assert "any_over(" in refused(lambda: 0.0 in operand).remedy


def test_an_index_of_another_compute_is_refused() -> None:
    kept: list[Value] = []
    compute("first", (4,), lambda b: kept.append(S[b]) or S[b])
    error = refused(lambda: compute("a", (8,), lambda i: kept[0] + S[i]))
    assert error.where == "compute a: axis b"


def test_integers_of_numpy_are_extents_and_indices() -> None:
    x = placeholder("x", (np.int64(8), 3))
    assert compute("a", (np.int32(3),), lambda i: x[np.int64(7), i]).shape == (3,)
    assert placeholder("e", (0, 3)).shape == (0, 3)


@pytest.mark.parametrize("trace", [5, [5], {}, b"split"])
def test_a_trace_that_is_none_is_refused(trace: Any) -> None:
    with pytest.raises(base.UsageError, match="argument trace: it is of type"):
        tensorwright.compile(row(lambda i: S[i] + 1.0), trace=trace)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (S, "a placeholder is an input"),
        (S[0], "what expr.compute returns"),
        (np.ones(3), "what expr.compute returns"),
        (lambda i: S[i], "what expr.compute returns"),
    ],
)
def test_what_is_no_tensor_expression_is_refused_with_one(given: Any, remedy: str) -> None:
    with pytest.raises(base.UsageError) as caught:
        tensorwright.compile(given)
    assert remedy in caught.value.remedy


def test_a_name_for_the_command_line_is_imported() -> None:
    with pytest.raises(base.ModelError, match="a name for the command line") as caught:
        tensorwright.compile("own.py:layer")
    assert "from own import layer" in caught.value.remedy


@pytest.mark.parametrize(("kind", "loader"), base.SUITE_LOADERS.items())
def test_a_network_of_the_laboratory_is_made_by_its_function(kind: str, loader: str) -> None:
    with pytest.raises(
        base.ModelError, match="only commands read a network of the laboratory"
    ) as no:
        tensorwright.compile(f"{kind}:squeezenet")
    assert no.value.remedy.startswith("give a path, bytes, an onnx.ModelProto or a Graph; ")
    assert f"from tensorwright.zoo import {loader}\n" in no.value.remedy
    assert f"model = {loader}('squeezenet')" in no.value.remedy
    assert callable(getattr(zoo, loader))


def test_inputs_of_one_name_are_refused_when_it_is_compiled() -> None:
    one, other = placeholder("same", (8,)), placeholder("same", (8,))
    with pytest.raises(base.UsageError, match="two tensors are called same"):
        tensorwright.compile(compute("a", (8,), lambda i: one[i] + other[i]))


def test_outside_of_a_body_equality_says_whether_expressions_are_the_same() -> None:
    assert MappingProxyType({P.var + 1: 1})[P.var + 1] == 1
    assert S[P.var] == S[P.var]
    assert S[P.var] != S[Q.var]
    assert reduce_axis("p", 3) == P
    assert P != Q


def test_an_error_in_a_body_ends_the_body() -> None:
    with pytest.raises(ZeroDivisionError):
        row(lambda i: S[i] * (1 / 0))
    assert (P.var == Q.var) is False


def test_nothing_is_stored_into_a_tensor() -> None:
    def body(i: Var, j: Var) -> Value:
        X[0, i, j] = 0
        return X[0, i, j]

    error = refused(lambda: compute("a", (30, 30), body))
    assert error.where.endswith("x[0, i, j] = 0")
    assert error.remedy.startswith("return the value from the body; select(condition, a, b)")


@pytest.mark.parametrize(
    ("then", "otherwise", "first"),
    [(1, 0, "1, DType.I32"), (1, 0.5, "1, DType.F32"), (True, False, "True, DType.BOOL")],
)
def test_a_choice_between_numbers_names_their_own_type(
    then: float, otherwise: float, first: str
) -> None:
    error = refused(lambda: row(lambda i: select(i < 2, then, otherwise)))
    assert error.remedy == f"constant({first}) says of which type a number is"
    dtype = base.DType[first.rpartition(".")[2]]
    chosen = compute("a", (4,), lambda i: select(i < 2, constant(then, dtype), otherwise))
    assert chosen.dtype is dtype
