"""What is written wrong is refused when `compute` is called, with what to write instead."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

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
    cast,
    compute,
    constant,
    exp,
    max_over,
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


def test_a_refusal_is_an_error_of_the_user_and_a_type_error() -> None:
    error = refused(lambda: row(lambda i: S[i - 1]))
    assert isinstance(error, base.UserError)
    assert isinstance(error, TypeError)
    assert pickle.loads(pickle.dumps(error)) == error


OUTSIDE = {
    "a row behind": (lambda c, i, j: X[c, i + 1, j], "dimension 1 is read at i + 1", "1..30"),
    "a row far behind": (lambda c, i, j: X[c, i + 100000, j], "i + 100000", "100000..100029"),
    "a row before": (lambda c, i, j: X[c, i - 1, j], "read at i - 1", "-1..28"),
    "on the wrong side": (
        lambda c, i, j: select(i > 0, X[c, i + 1, j], 0.0),
        "read at i + 1",
        "2..30",
    ),
    "where a value says so": (
        lambda c, i, j: select(X[c, i, j] > 0, X[c, i - 1, j], 0.0),
        "read at i - 1",
        "-1..28",
    ),
    "in the other branch": (
        lambda c, i, j: select(i < 29, 0.0 * X[c, i, j], X[c, i + 1, j]),
        "read at i + 1",
        "30..30",
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_reading_outside_names_index_range_and_extent(name: str) -> None:
    body, index, reach = OUTSIDE[name]
    error = refused(lambda: compute("a", (16, 30, 30), body))
    assert error.where.startswith("compute a: x[")
    assert index in error.reason
    assert f"takes {reach}; its extent is 30: 0..29" in error.reason
    assert "select(all_of(" in error.remedy
    assert "larger x" in error.remedy


@pytest.mark.parametrize(
    ("index", "remedy"),
    [
        (-1, "write 29 for the last one"),
        (-3, "write 27 for number 3 from the end"),
        (-31, "a number from 0 to 29"),
        (30, "a number from 0 to 29, or declare a larger x"),
    ],
)
def test_a_number_outside_is_refused_with_the_one_that_is_meant(index: int, remedy: str) -> None:
    error = refused(lambda: compute("a", (30,), lambda j: X[0, index, j]))
    assert f"dimension 1 is read at {index}, which takes {index}..{index}" in error.reason
    assert error.remedy.startswith(remedy)


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


TRUTH = {
    "max": lambda i: max(0.0, S[i]),
    "min": lambda i: min(S[i], 1.0),
    "if on a value": lambda i: S[i] if S[i] > 0 else 0.0,
    "if on an equality": lambda i: S[i] if S[i] == 0 else 0.0,
    "if on an index": lambda i: S[i] if i < 2 else -S[i],
    "if on equal indices": lambda i: S[i] if i == 2 else -S[i],
    "if on unequal indices": lambda i: S[i] if i != 2 else -S[i],
    "if on an axis": lambda i: S[i] if P < 1 else 0.0,
    "and": lambda i: select(i > 1 and i < 5, S[i], 0.0),
    "or": lambda i: select(i < 1 or i > 5, S[i], 0.0),
    "not": lambda i: select(not i < 1, S[i], 0.0),
    "a chain": lambda i: select(1 < i < 5, S[i], 0.0),
    "in": lambda i: select(i in (1, 2), S[i], 0.0),
    "max of indices": lambda i: S[max(i - 1, 0)],
    "a tensor": lambda i: S[i] if S else 0.0,
    "all": lambda i: select(all([i > 1, i < 5]), S[i], 0.0),
}


@pytest.mark.parametrize("name", TRUTH)
def test_nothing_is_true_before_the_program_runs(name: str) -> None:
    error = refused(lambda: row(TRUTH[name]))
    assert "no truth value" in error.reason
    assert "select(" in error.remedy
    assert "max_of" in error.remedy


NUMPY = {
    "maximum": (lambda i: np.maximum(S[i], 0.0), "max_of of"),
    "exp": (lambda i: np.exp(S[i]), "exp of"),
    "where": (lambda i: np.where(S[i] > 0, S[i], 0.0), "select of"),
    "sum": (lambda i: np.sum(S[i]), "sum_over of"),
    "sum of a tensor": (lambda i: np.sum(S), "sum_over of"),
    "minimum of an index": (lambda i: S[np.minimum(i, 3)], "min_of of"),
    "a method": (lambda i: S.sum(), "sum_over of"),
    "a method of a value": (lambda i: S[i].max(), "max_over of"),
    "a conversion": (lambda i: S[i].astype(np.int32), "cast of"),
    "asarray": (lambda i: np.asarray(S[i]), "tensorwright.expr"),
    "an array": (lambda i: np.ones(8) * S[i], "placeholder"),
    "an array read": (lambda i: np.ones(8)[i] * S[i], "placeholder"),
    "a list read": (lambda i: [1.0, 2.0][i] * S[i], "placeholder"),
    "math": (lambda i: math.exp(S[i]), "exp, log"),
    "float": (lambda i: float(S[i]), "exp, log"),
    "int": (lambda i: int(S[i]), "cast"),
}


@pytest.mark.parametrize("name", NUMPY)
def test_functions_of_numpy_and_python_are_refused_with_ours(name: str) -> None:
    body, ours = NUMPY[name]
    assert ours in refused(lambda: row(body)).remedy


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


ATTRIBUTES = {
    "T": (lambda: S.T, "x[j, i]"),
    "reshape": (lambda: S.reshape(4, 2), "x[i // 4, i % 4]"),
    "ndim": (lambda: S.ndim, "x.shape"),
    "unsqueeze": (lambda: S.unsqueeze(0), "tensorwright.expr"),
    "transpose": (lambda: S[0].transpose, "x[j, i]"),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_arrays_are_refused_with_what_to_write(name: str) -> None:
    ask, remedy = ATTRIBUTES[name]
    error = refused(ask)
    assert f"no attribute {name}" in error.reason
    assert remedy in error.remedy
    assert pickle.loads(pickle.dumps(error)) == error
    assert not hasattr(S, name)


AXES = {
    "forgotten": (lambda i: sum_over(X[0, i + P, Q], P), "axis q", "neither folded"),
    "forgotten by all": (lambda i: X[0, i, P], "axis p", "neither folded"),
    "folded for nothing": (lambda i: sum_over(X[0, i, P], P, Q), "axis q", "nothing in the body"),
    "folded twice": (lambda i: sum_over(X[0, i, P], P, P), "axis p", "two of its axes"),
    "named as a parameter": (lambda p: sum_over(X[0, p, P], P), "axis p", "two of its axes"),
    "two of one name": (lambda i: sum_over(X[0, i, P], P, reduce_axis("p", 2)), "axis p", "two of"),
    "an index": (lambda i: sum_over(X[0, i, i], i), "sum_over", "not an axis"),
    "a number": (lambda i: sum_over(X[0, i, P], 2), "sum_over", "not an axis"),
    "none": (lambda i: sum_over(X[0, i, i]), "sum_over", "over no axis"),
    "of an index": (lambda i: sum_over(P, P), "sum_over", "not a value"),
    "of a tensor": (lambda i: sum_over(S, P), "sum_over", "not a value"),
    "of a fold": (lambda i: sum_over(max_over(X[0, P, Q], P), Q), "sum_over", "a fold is not a"),
    "in a sum": (lambda i: sum_over(X[0, i, P], P) + 1.0, "sum over p", "a fold has no arithmetic"),
    "in a function": (lambda i: exp(sum_over(X[0, i, P], P)), "sum over p", "exp of a fold"),
}


@pytest.mark.parametrize("name", AXES)
def test_axes_that_are_folded_are_used_and_used_ones_folded(name: str) -> None:
    body, where, reason = AXES[name]
    error = refused(lambda: compute("a", (8,), body))
    assert where in error.where
    assert reason in error.reason


def test_an_index_of_another_compute_is_refused() -> None:
    kept: list[Value] = []
    compute("first", (4,), lambda b: kept.append(S[b]) or S[b])
    error = refused(lambda: compute("a", (8,), lambda i: kept[0] + S[i]))
    assert error.where == "compute a: axis b"


BODIES = {
    "a number": (lambda i: 0.0, "constant(0.0, DType.F32)"),
    "an index": (lambda i: i + 1, "cast(i + 1, DType.I32)"),
    "a condition": (lambda i: i < 3, "cast(condition, DType.BOOL)"),
    "a tensor": (lambda i: S, "x[i, j]"),
    "nothing": (lambda i: None, "give a number or a value"),
    "two": (lambda i: (S[i], S[i]), "each tensor has a compute of its own"),
    "a list inside": (lambda i: exp([S[i]]), "each tensor has a compute of its own"),
    "a matrix product": (lambda i: S @ S, "sum_over(x[i, k] * y[k, j], k)"),
    "a remainder of tensors": (lambda i: S % S, "x[i, j]"),
    "a float times an index": (lambda i: 1.0 * i, "cast(i, DType.F32)"),
    "an axis times a float": (lambda i: P * 1.0, "cast(i, DType.F32)"),
    "an index below a float": (lambda i: select(i < 0.5, S[i], 0.0), "cast(i, DType.F32)"),
    "an index equal to a float": (lambda i: select(i == 0.5, S[i], 0.0), "cast(i, DType.F32)"),
    "a text": (lambda i: i + "a", "cast(i, DType.F32)"),
    "a value of a condition multiplied": (
        lambda i: (S[i] > 0) * S[i],
        "cast(condition, DType.F32)",
    ),
    "a condition doubled": (lambda i: (S[i] > 0) * 2.0, "cast(condition, DType.F32)"),
    "types mixed the other way": (lambda i: T[i] + S[i], "cast(v, DType.F32)"),
    "a number beyond floats": (lambda i: S[i] * 10**400, "give a smaller number"),
    "a number beyond text": (lambda i: T[i] * 10**5000, "cast(v, DType.F32)"),
    "all of a dimension": (lambda i: S[:], "a variable of the body"),
    "a tensor with arithmetic": (lambda i: S * 2.0, "x[i, j]"),
    "a tensor added": (lambda i: S[i] + S, "x[i, j]"),
    "an index added": (lambda i: S[i] + i, "cast(i, DType.F32)"),
    "a condition multiplied": (lambda i: S[i] * (i < 2), "select(a, 1.0, value)"),
    "conditions joined by &": (lambda i: select((i > 1) & (i < 5), S[i], 0.0), "all_of(a, b)"),
    "a value among conditions": (
        lambda i: select(all_of(i > 1, S[i] > 0), S[i], 0.0),
        "&, | and ~",
    ),
    "an index divided": (lambda i: S[i / 2], "// rounds down"),
    "a float as an index": (lambda i: S[0.5], "an index is an integer"),
    "a value as an index": (lambda i: S[S[i]], "DType.I32"),
    "a bool as an index": (lambda i: S[True], "an index is an integer"),
    "a slice": (lambda i: S[i:], "an index is an integer"),
    "too many indices": (lambda i: S[i, i], "one index for each dimension"),
    "a number as condition": (lambda i: select(1, S[i], 0.0), "v != 0"),
    "a value as condition": (lambda i: select(S[i], S[i], 0.0), "v != 0"),
    "numbers chosen": (lambda i: select(i < 2, 1.0, 2.0), "constant(1.0, DType.F32)"),
    "types mixed": (lambda i: S[i] + T[i], "cast(v, DType.F32)"),
    "a fraction among integers": (lambda i: T[i] * 0.5, "cast(v, DType.F32)"),
    "integers divided": (lambda i: T[i] / 2, "// rounds down"),
    "exp of integers": (lambda i: exp(T[i]), "cast(v, DType.F32)"),
    "an integer to -1": (lambda i: T[i] ** -1, "cast(v, DType.F32)"),
    "a bool subtracted": (lambda i: cast(T[i], base.DType.BOOL) - True, "cast(v, DType.F32)"),
    "1000 in a byte": (lambda i: cast(T[i], base.DType.U8) + 1000, "cast(v, DType.F32)"),
    "half an integer": (lambda i: constant(0.5, base.DType.I32), ""),
    "a dtype of NumPy": (lambda i: cast(S[i], np.float32), "DType.F32"),
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_no_value_is_refused_with_what_to_write(name: str) -> None:
    body, remedy = BODIES[name]
    error = refused(lambda: row(body))
    assert error.where.startswith("compute a: ")
    assert remedy in error.remedy
    assert "Load(" not in str(error)
    assert "slice(" not in str(error)


ARGUMENTS = {
    "a negative extent": (lambda: placeholder("z", (-1, 3)), "placeholder z", "-1"),
    "a float": (lambda: placeholder("z", (2.0, 3)), "placeholder z", "2.0"),
    "a bool": (lambda: placeholder("z", (True, 3)), "placeholder z", "True"),
    "a text": (lambda: placeholder("z", "ab"), "placeholder z", "'ab'"),
    "a number": (lambda: placeholder("z", 8), "placeholder z", "shape 8"),
    "no name": (lambda: placeholder("", (8,)), "placeholder ''", "blank"),
    "a name that is none": (lambda: placeholder(7, (8,)), "placeholder 7", "not a text"),
    "a dtype that is none": (lambda: placeholder("z", (8,), "f32"), "dtype 'f32'", "not a DType"),
    "an axis of -1": (lambda: reduce_axis("k", -1), "reduce_axis k", "-1"),
    "half an axis": (lambda: reduce_axis("k", 0.5), "reduce_axis k", "0.5"),
    "an extent that moves": (
        lambda: row(lambda i: sum_over(cast(i, base.DType.F32), reduce_axis("k", i + 1))),
        "reduce_axis k",
        "changes from element to element",
    ),
    "a shape of a compute": (lambda: compute("a", (-1,), lambda i: S[i]), "compute a", "-1"),
    "floats of a compute": (lambda: compute("a", (8.0,), lambda i: S[i]), "compute a", "8.0"),
    "no name of a compute": (lambda: compute(" ", (8,), lambda i: S[i]), "compute ' '", "blank"),
    "no function": (lambda: compute("a", (8,), 0.0), "compute a", "not a function"),
    "too few parameters": (lambda: compute("a", (8, 8), lambda i: S[i]), "compute a", "takes 2"),
    "too many": (lambda: compute("a", (8,), lambda i, j: S[i]), "compute a", "takes 1 param"),
    "names": (lambda: compute("a", (8,), lambda *i: S[i[0]], "ij"), "compute a", "2 names"),
    "equal names": (
        lambda: compute("a", (8, 8), lambda *i: S[i[0]], ("i", "i")),
        "compute a: axis i",
        "two of its axes",
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_names_shapes_and_functions_are_checked(name: str) -> None:
    make, where, reason = ARGUMENTS[name]
    error = refused(make)
    assert where in error.where
    assert reason in error.reason


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
