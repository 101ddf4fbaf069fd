"""One suite for every number domain: a new domain is one more subclass at the end.

Numbers are small integers and their halves, which all domains hold exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tensorwright import expr
from tensorwright.base import DType
from tensorwright_lab.rule_generation.fingerprint.field_domain import FieldDomain

F64, I64, BOOL = DType.F64, DType.I64, DType.BOOL
A = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, -1.5]])
B = np.array([[2.0, 2.0, -0.5], [-3.0, 4.0, 1.0]])


class DomainSuite:
    """What `Domain` promises; `domain` is the one under test."""

    domain: expr.Domain

    def given(self, array: Any, dtype: DType = F64) -> expr.Array:
        """Numbers in the domain's storage."""
        return self.domain.inject(np.asarray(array, dtype.numpy), dtype)

    def same(self, found: expr.Array, expected: Any, dtype: DType = F64) -> bool:
        """Whether stored values are the images of these numbers."""
        wanted = self.given(expected, dtype)
        return found.shape == wanted.shape and bool(np.all(found == wanted))

    @pytest.mark.parametrize("dtype", [F64, I64, BOOL])
    def test_inputs_keep_their_shape_and_have_the_storage(self, dtype: DType) -> None:
        for shape in ((), (1,), (2, 3), (0, 4)):
            stored = self.given(np.ones(shape), dtype)
            assert stored.shape == shape
            assert stored.dtype == self.domain.storage(dtype)

    @pytest.mark.parametrize("dtype", [F64, I64, BOOL])
    def test_a_constant_has_no_dimensions_and_is_the_input_of_that_number(
        self, dtype: DType
    ) -> None:
        constant = self.domain.const(1, dtype)
        assert constant.shape == ()
        assert self.same(constant, 1, dtype)

    def test_integers_become_values_and_indices_again(self) -> None:
        numbers = np.array([[0, 7], [-3, 1 << 20]], np.int64)
        values = self.domain.from_index(numbers, I64)
        assert self.same(values, numbers, I64)
        back = self.domain.to_index(values)
        assert back.dtype == np.int64
        np.testing.assert_array_equal(back, numbers)
        assert self.same(self.domain.from_index(numbers, F64), numbers)

    @pytest.mark.parametrize(
        ("fn", "number"),
        [(expr.Fn.ADD, np.add), (expr.Fn.SUB, np.subtract), (expr.Fn.MUL, np.multiply)],
        ids=["+", "-", "*"],
    )
    def test_arithmetic_is_exact_and_broadcasts(self, fn: expr.Fn, number: np.ufunc) -> None:
        whole = self.domain.apply(fn, (self.given(A), self.given(B)), F64)
        assert self.same(whole, number(A, B))
        row = self.domain.apply(fn, (self.given(A), self.given(B[0])), F64)
        assert self.same(row, number(A, B[0]))
        one = self.domain.apply(fn, (self.given(A), self.domain.const(2, F64)), F64)
        assert self.same(one, number(A, 2))

    def test_quotients_undo_products(self) -> None:
        divisor = self.given(np.array([[2.0, 4.0, -0.5], [-8.0, 4.0, 1.0]]))
        product = self.domain.apply(expr.Fn.MUL, (self.given(A), divisor), F64)
        assert self.same(self.domain.apply(expr.Fn.DIV, (product, divisor), F64), A)

    def test_equality_gives_bools_by_which_values_choose(self) -> None:
        is_equal = self.domain.apply(expr.Fn.EQ, (self.given(A), self.given(A * [1, 2, 1])), F64)
        chosen = self.domain.select(is_equal, self.given(A), self.given(B))
        assert self.same(chosen, np.where(A == A * [1, 2, 1], A, B))

    def test_known_conditions_choose_too(self) -> None:
        condition = np.array([True, False, True])
        chosen = self.domain.select(condition, self.given(A), self.given(B))
        assert self.same(chosen, np.where(condition, A, B))

    def test_a_cast_to_the_same_type_changes_nothing(self) -> None:
        assert self.same(self.domain.cast(self.given(A), F64, F64), A)
        widened = self.domain.cast(self.given([1, -2], I64), I64, F64)
        assert self.same(widened, [1.0, -2.0])

    @pytest.mark.parametrize("combiner", [expr.Combiner.SUM, expr.Combiner.PROD])
    @pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
    def test_folds_drop_their_axes(self, combiner: expr.Combiner, axes: tuple[int, ...]) -> None:
        kind = self.domain.accumulator(combiner, F64)
        found = self.domain.reduce(combiner, self.given(A + 1), axes, kind)
        fold = np.sum if combiner is expr.Combiner.SUM else np.prod
        assert self.same(np.asarray(found), fold(A + 1, axis=axes))

    @pytest.mark.parametrize("combiner", [expr.Combiner.MAX, expr.Combiner.MIN])
    def test_the_largest_and_smallest_are_a_lattice(self, combiner: expr.Combiner) -> None:
        both = self.domain.apply(combiner.fn, (self.given(A), self.given(B)), F64)
        stacked = np.stack([self.given(A), self.given(B)])
        folded = self.domain.reduce(combiner, stacked, (0,), F64)
        assert bool(np.all(folded == both))
        again = self.domain.apply(combiner.fn, (both, self.given(A)), F64)
        assert bool(np.all(again == both))

    @pytest.mark.parametrize("combiner", [expr.Combiner.ARGMAX, expr.Combiner.ARGMIN])
    def test_positions_are_integers_of_the_first_among_equals(
        self, combiner: expr.Combiner
    ) -> None:
        numbers = np.array([[2.0, 5.0, 5.0], [1.0, 1.0, 1.0]])
        found = self.domain.reduce(combiner, self.given(numbers), (1,), F64)
        find = np.argmax if combiner is expr.Combiner.ARGMAX else np.argmin
        np.testing.assert_array_equal(self.domain.to_index(found), find(numbers, axis=1))

    def test_products_of_matrices_are_sums_of_products(self) -> None:
        left, right = np.stack([A, B]), np.stack([B.T, A.T])
        found = self.domain.matmul(self.given(left), self.given(right), F64)
        assert self.same(found, left @ right)

    def test_nothing_that_is_given_is_changed(self) -> None:
        stored, other = self.given(A), self.given(B)
        self.domain.apply(expr.Fn.ADD, (stored, other), F64)
        self.domain.select(np.array([True, False, True]), stored, other)
        self.domain.reduce(expr.Combiner.SUM, stored, (0,), F64)
        self.domain.matmul(stored[None], other.T[None], F64)
        assert self.same(stored, A)
        assert self.same(other, B)

    def test_an_expression_has_the_same_meaning_everywhere(self) -> None:
        x, y, k = (
            expr.placeholder("x", (2, 3), F64),
            expr.placeholder("y", (3, 2), F64),
            expr.reduce_axis("k", 3),
        )
        z = expr.compute("z", (2, 2), lambda i, j: expr.sum_over(x[i, k] * y[k, j] * 2.0, k))
        (found,) = expr.evaluate([z], {x: self.given(A), y: self.given(B.T)}, self.domain)
        assert self.same(found, 2 * A @ B.T)


class TestNumpyDomain(DomainSuite):
    domain = expr.NUMPY


class TestFieldDomain(DomainSuite):
    domain = FieldDomain(seed=5)


class ExactNumbers:
    """Terms that are rational numbers, and bools."""

    def const(self, value: float | int | bool, dtype: DType) -> Any:
        return bool(value) if dtype is BOOL else Fraction(value)

    def integer(self, term: Any) -> int:
        if term != int(term):
            raise TypeError(f"{term} is not whole")
        return int(term)

    def apply(self, fn: expr.Fn, args: tuple[Any, ...], dtype: DType) -> Any:
        a, b = args
        match fn:
            case expr.Fn.ADD:
                return a + b
            case expr.Fn.SUB:
                return a - b
            case expr.Fn.MUL:
                return a * b
            case expr.Fn.DIV:
                return a / b
            case expr.Fn.MAX:
                return max(a, b)
            case expr.Fn.MIN:
                return min(a, b)
            case expr.Fn.EQ:
                return a == b
            case expr.Fn.LT:
                return a < b
        raise TypeError(fn.text)

    def select(self, condition: Any, then: Any, otherwise: Any) -> Any:
        return then if condition else otherwise

    def cast(self, term: Any, source: DType, target: DType) -> Any:
        return term


class TestSymbolicDomain(DomainSuite):
    domain = expr.SymbolicDomain(ExactNumbers())
