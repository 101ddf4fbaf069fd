"""Sizes: integers, or polynomials over extents in a normal form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.expr import FloorDiv
from tensorwright.rewriting.dims import Extent, atoms_of, parse_size, value_of

X, Y, Z = (Extent(name, axis) for name, axis in (("x", 0), ("x", 1), ("y", 0)))
VALUES = {X: 5, Y: 3, Z: 7}


def sizes(depth=3):
    """Sizes of all forms; divisors are extents or positive numbers, so that none is zero."""
    atoms = st.sampled_from([X, Y, Z]) | st.integers(-4, 9)
    divisors = st.sampled_from([X, Y, Z, X * Y, 2 * Z, X + 1]) | st.integers(1, 5)

    def larger(parts):
        return st.one_of(
            st.tuples(parts, parts).map(lambda pair: pair[0] + pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] - pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] * pair[1]),
            st.tuples(parts, divisors).map(lambda pair: pair[0] // pair[1]),
        )

    return st.recursive(atoms, larger, max_leaves=depth + 2)


@settings(max_examples=100)
@given(sizes())
def test_text_is_read_back_as_the_same_size(size):
    assert parse_size(str(size)) == size


@settings(max_examples=100)
@given(sizes(), sizes(), sizes())
def test_equal_polynomials_are_equal_objects(a, b, c):
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a + b) * c == a * c + b * c
    assert a - a == 0
    assert a * 1 == a
    assert (a + b) - b == a


@settings(max_examples=100)
@given(sizes(), sizes())
def test_arithmetic_is_that_of_the_values(a, b):
    left, right = value_of(a, VALUES), value_of(b, VALUES)
    assert value_of(a + b, VALUES) == left + right
    assert value_of(a * b, VALUES) == left * right
    assert value_of(a - b, VALUES) == left - right


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (X, "x.0"),
        (X + Y, "x.0 + x.1"),
        (X * Y + 1, "x.0*x.1 + 1"),
        (2 * X - Y, "2*x.0 - x.1"),
        (-X + 1, "-x.0 + 1"),
        ((X + 1) // 2, "(x.0 + 1) // 2"),
        (2 * (X // 2), "2*(x.0 // 2)"),
        (X // (2 * Y), "x.0 // (2*x.1)"),
        (6 // X, "6 // x.0"),
    ],
)
def test_text(size, text):
    assert str(size) == text
    assert parse_size(text) == size


def test_divisions_that_come_out_leave_no_quotient():
    assert (X * Y) // Y == X
    assert (2 * X * Y + 4 * Y) // (2 * Y) == X + 2
    assert (X + 1) // (X + 1) == 1
    assert FloorDiv(X, 2) == X // 2
    assert (X * X) // X == X


def test_what_depends_on_nothing_is_an_integer():
    assert X - X == 0
    assert isinstance(X - X + 3, int)
    assert isinstance(value_of(X * Y + Z // 2, VALUES), int)
    assert value_of(X * Y + Z // 2, VALUES) == 18


def test_some_extents_may_be_replaced_by_sizes():
    assert value_of(X * Y, {X: Z, Y: 2}) == 2 * Z
    assert value_of((X + 1) // 2, {X: 2 * Y - 1}) == Y
    with pytest.raises(KeyError):
        value_of(X, {})


def test_extents_are_found_in_quotients_too_each_once():
    assert sorted(map(str, atoms_of(X * Y + (X + Z) // Y))) == ["x.0", "x.1", "y.0"]
    assert atoms_of(3) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x.0 +", "ends too early"),
        ("x.0 y.1", "'y.1' is left over"),
        ("(x.0", "a bracket of a size is not closed"),
        ("x", "'x' is not understood"),
        ("x.0 ^ 2", "'^ 2' is not understood"),
        ("x.0 + )", "')' is not an extent"),
        ("", "ends too early"),
        ("x.0 // 0", "division by zero"),
    ],
)
def test_faults_name_the_place(text, said):
    with pytest.raises(ValueError, match=r"size|extent") as caught:
        parse_size(text)
    assert said in str(caught.value)


def test_multiples_of_a_number_leave_a_quotient() -> None:
    assert (X - 1) // 2 + 1 == (X + 1) // 2
    assert (2 * X + Y + 5) // 3 == (2 * X + Y + 2) // 3 + 1
    assert (4 * X + 1) // 2 == 2 * X
    assert str((X - Y) // 2) == "(x.0 + x.1) // 2 - x.1"


def test_quotients_of_quotients_are_one() -> None:
    for text in (
        "x.0 // 2 // 3",
        "(x.0 // 2 + 1) // 3",
        "(x.0 // 3 - 1) // 2",
        "(x.0 - 1) // 3 // 2",
    ):
        size = parse_size(text)
        assert str(size).count("//") == 1
        for value in range(1, 40):
            exact = eval(text.replace("x.0", str(value)))
            assert value_of(size, {Extent("x", 0): value}) == exact
