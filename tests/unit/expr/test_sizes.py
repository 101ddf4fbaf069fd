"""Named sizes: what their bounds and divisors decide, their text, and numbers given for them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright import expr
from tensorwright.base import ExpressionError

n = expr.named_size("n", greatest=512, divisor=8)
m = expr.named_size("m", least=3, greatest=20)
k = expr.named_size("k")
NAMES = {"n": n, "m": m, "k": k}
CHECKED = settings(max_examples=100)
OPERATIONS = ("+", "-", "*", "//", "%", "min", "max")
TREES = st.recursive(
    st.sampled_from(["n", "m", "k"]) | st.integers(-6, 20),
    lambda inner: st.tuples(st.sampled_from(OPERATIONS), inner, inner),
    max_leaves=6,
)
VALUES = st.fixed_dictionaries(
    {
        "n": st.integers(1, 64).map(lambda part: part * 8),
        "m": st.integers(3, 20),
        "k": st.integers(1, 50),
    }
)


def built(tree, leaf, smaller, larger):
    """The tree over what its leaves stand for; divisors are kept positive."""
    if not isinstance(tree, tuple):
        return leaf(tree)
    operation, *parts = tree
    left, right = (built(part, leaf, smaller, larger) for part in parts)
    match operation:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "min":
            return smaller(left, right)
        case "max":
            return larger(left, right)
    right = larger(right, 1)
    return left // right if operation == "//" else left % right


def expression_of(tree) -> expr.Index:
    return built(tree, lambda leaf: NAMES.get(leaf, leaf), expr.minimum, expr.maximum)


@CHECKED
@given(TREES, VALUES)
def test_arithmetic_is_that_of_the_numbers(tree, values) -> None:
    number = built(tree, lambda leaf: values.get(leaf, leaf), min, max)
    assert expr.with_sizes(expression_of(tree), values) == number
    assert expr.with_sizes(expr.simplify(expression_of(tree), {}), values) == number


@CHECKED
@given(TREES)
def test_text_is_read_back_as_the_same_size(tree) -> None:
    size = expression_of(tree)
    assert expr.parse_size(str(size), NAMES.get) == size


@CHECKED
@given(TREES, VALUES)
def test_proofs_are_true(tree, values) -> None:
    size = expression_of(tree)
    number = expr.with_sizes(size, values)
    assert isinstance(number, int)
    assert number >= 0 or not expr.is_nonnegative(size)
    decided = expr.simplify_condition(expr.compare(expr.Relation.LT, size, 9), {})
    assert decided not in (True, False) or decided == (number < 9)


def test_what_a_divisor_divides_is_decided() -> None:
    assert n % 8 == 0
    assert n % 4 == 0
    assert (n // 8) * 8 is n
    assert (n + 3) // 16 is n // 16
    assert (n * m) % 8 == 0
    assert expr.exact_div(n * 3, 24) is n // 8
    assert n % 16 != 0
    assert m % 8 != 0


def test_equal_sizes_are_equal_objects() -> None:
    assert (k - 1) // 2 + 1 is (k + 1) // 2
    assert k // 2 // 3 is k // 6
    assert (k // 2 + 1) // 3 is (k + 2) // 6
    assert (3 * k - m + 5) // 2 is k - m + 2 + (k + m + 1) // 2
    assert expr.named_size("n", 3, 515, 8) is n


def test_bounds_prove_and_refuse() -> None:
    assert expr.is_nonnegative(512 - n)
    assert not expr.is_nonnegative(511 - n)
    assert expr.is_nonnegative(n - 8)
    assert not expr.is_nonnegative(n - 9)
    assert expr.is_nonnegative(m * k - 3)
    assert expr.is_nonnegative(20 * 512 - n * m)
    assert expr.simplify(expr.minimum(n, 600), {}) is n
    assert expr.simplify(expr.maximum(m, 3), {}) is m
    i = expr.Var("i")
    assert expr.is_nonnegative(511 - i, {i: expr.Range.of_extent(n)})
    assert not expr.is_nonnegative(510 - i, {i: expr.Range.of_extent(n)})
    assert expr.simplify((i + n * 8) // n, {i: expr.Range.of_extent(n)}) == 8


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (n, "n"),
        (2 * n * m + 1, "2*m*n + 1"),
        (n // 8, "n/8"),
        (n // 2, "4*(n/8)"),
        (n // 16, "n/8 // 2"),
        (-k, "-k"),
        (2 * (k // 3) - m, "2*(k // 3) - m"),
        ((k + 1) % 5, "(k + 1) % 5"),
        (expr.minimum(n, m + 1), "min(n, m + 1)"),
    ],
)
def test_text(size: expr.Index, text: str) -> None:
    assert str(size) == text
    assert expr.parse_size(text, NAMES.get) is size


def test_constraints_are_written_out() -> None:
    texts = [each.constraints for each in expr.named_sizes_of(n, m, k)]
    assert sorted(texts) == ["", "3 <= m <= 20", "n <= 512, n % 8 == 0"]
    assert [each.name for each in expr.named_sizes_of(n * k + m, k)] == ["m", "k", "n"]
    assert expr.with_sizes(n * k, {"n": 16}) is 16 * k


@pytest.mark.parametrize("number", [0, 12, 520])
def test_a_number_that_a_size_may_not_be_is_refused(number: int) -> None:
    with pytest.raises(ExpressionError, match=r"the size n fulfils n <= 512, n % 8 == 0"):
        expr.with_sizes(n + 1, {"n": number})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("3n",), "the name of a size is an identifier"),
        (("n", -1), "a size is not negative, and its divisor is positive"),
        (("n", 1, 7, 8), "no multiple of 8 is between 1 and 7"),
    ],
)
def test_a_size_that_cannot_be_is_refused(arguments, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        expr.named_size(*arguments)


def test_sizes_travel_between_processes() -> None:
    assert pickle.loads(pickle.dumps(n * m // 3)) is n * m // 3
    assert isinstance(expr.named_sizes_of(n)[0], expr.NamedSize)


@pytest.mark.parametrize(
    "arguments", [(3,), ("a b",), ("max",), ("n", "a"), ("n", 1.5), ("n", True)]
)
def test_a_size_needs_a_name_and_integers(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ExpressionError):
        expr.named_size(*arguments)


def test_room_is_never_too_little_and_grows_with_the_sizes() -> None:
    n, m = expr.named_size("n", greatest=9), expr.named_size("m", greatest=12, divisor=3)
    sizes = (
        n - m + 4,
        (n - m) // 2,
        n * m - 3,
        expr.maximum(n - 2 * m, 4),
        n % m,
        expr.minimum(n, 7) * m,
    )
    numbers = [(a, b) for a in range(1, 10) for b in range(3, 13, 3)]
    for size in (*sizes, -(-(4 * n - m + 30) // 8) * 8, 7):
        room = expr.room_for(size)
        rooms = {(a, b): expr.with_sizes(room, {"n": a, "m": b}) for a, b in numbers}
        for at in numbers:
            assert expr.with_sizes(size, {"n": at[0], "m": at[1]}) <= rooms[at], (size, at)
            assert rooms[at] <= rooms[9, 12], (size, at)
