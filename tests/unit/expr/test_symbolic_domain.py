"""Evaluation over terms: polynomials prove, free terms show what was computed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.unit.expr.programs import PROGRAMS, conv2d, matmul

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.expr import select

Polynomial = dict[tuple[str, ...], Fraction]


@dataclass(frozen=True)
class Poly:
    """A polynomial: sorted monomials of symbols with rational coefficients, none zero."""

    terms: tuple[tuple[tuple[str, ...], Fraction], ...]

    @staticmethod
    def of(terms: Polynomial) -> Poly:
        return Poly(tuple(sorted((m, c) for m, c in terms.items() if c)))


class Polynomials:
    """The terms of a commutative ring."""

    def const(self, value: Any, dtype: DType) -> Poly:
        return Poly.of({(): Fraction(value)})

    def integer(self, term: Poly) -> int:
        if any(monomial for monomial, _ in term.terms):
            raise TypeError(f"{term} is not a number")
        return int(dict(term.terms).get((), 0))

    def apply(self, fn: expr.Fn, args: tuple[Any, ...], dtype: DType) -> Poly:
        total: Polynomial = {}
        if fn is expr.Fn.NEG:
            return Poly(tuple((m, -c) for m, c in args[0].terms))
        left, right = args
        if fn is expr.Fn.MUL:
            for m1, c1 in left.terms:
                for m2, c2 in right.terms:
                    monomial = tuple(sorted(m1 + m2))
                    total[monomial] = total.get(monomial, Fraction(0)) + c1 * c2
            return Poly.of(total)
        sign = {expr.Fn.ADD: 1, expr.Fn.SUB: -1}[fn]
        total = dict(left.terms)
        for monomial, scale in right.terms:
            total[monomial] = total.get(monomial, Fraction(0)) + sign * scale
        return Poly.of(total)

    def select(self, condition: Any, then: Any, otherwise: Any) -> Any:
        raise TypeError("a ring has no order")

    def cast(self, term: Poly, source: DType, target: DType) -> Poly:
        return term


class FreeTerms:
    """Texts: nothing is simplified."""

    def const(self, value: Any, dtype: DType) -> str:
        return str(value)

    def integer(self, term: str) -> int:
        return int(term)

    def apply(self, fn: expr.Fn, args: tuple[Any, ...], dtype: DType) -> str:
        return f"({fn.text} {' '.join(args)})"

    def select(self, condition: str, then: str, otherwise: str) -> str:
        return f"(if {condition} {then} {otherwise})"

    def cast(self, term: str, source: DType, target: DType) -> str:
        return f"({target} {term})"


RING = expr.SymbolicDomain(Polynomials())
FREE = expr.SymbolicDomain(FreeTerms())


def symbols(tensor: expr.Placeholder, name: str = "") -> np.ndarray:
    array = np.empty(tensor.shape, object)
    for place in np.ndindex(array.shape):
        array[place] = Poly.of({(f"{name or tensor.name}{place}",): Fraction(1)})
    return array


def inputs_of(output: expr.Compute) -> dict[expr.Placeholder, np.ndarray]:
    return {
        t: symbols(t) for t in expr.topological_order(output) if isinstance(t, expr.Placeholder)
    }


def sum_of(left: expr.Placeholder, right: expr.Placeholder) -> expr.Compute:
    return expr.compute("sum", left.shape, lambda *i: left[i] + right[i])


def test_convolution_is_linear_in_its_weights():
    """conv(x, w1 + w2) == conv(x, w1) + conv(x, w2), proved for all values at this size."""
    layer = conv2d(channels=2, size=4, filters=2, stride=1, pad=1)
    x, w = (t for t in expr.topological_order(layer) if isinstance(t, expr.Placeholder))
    image, first, second = symbols(x), symbols(w, "w1"), symbols(w, "w2")
    both = RING.apply(expr.Fn.ADD, (first, second), DType.F32)
    (merged,) = expr.evaluate([layer], {x: image, w: both}, RING)
    (left,) = expr.evaluate([layer], {x: image, w: first}, RING)
    (right,) = expr.evaluate([layer], {x: image, w: second}, RING)
    assert merged.shape == (1, 2, 4, 4)
    assert (merged == RING.apply(expr.Fn.ADD, (left, right), DType.F32)).all()
    assert not (merged == left).any()


def test_matmul_is_associative():
    a, b, c = (
        expr.placeholder("a", (2, 3)),
        expr.placeholder("b", (3, 2)),
        expr.placeholder("c", (2, 2)),
    )
    k, m = expr.reduce_axis("k", 3), expr.reduce_axis("m", 2)
    ab = expr.compute("ab", (2, 2), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))
    abc = expr.compute("abc", (2, 2), lambda i, j: expr.sum_over(ab[i, m] * c[m, j], m))
    bc = expr.compute("bc", (3, 2), lambda i, j: expr.sum_over(b[i, m] * c[m, j], m))
    other = expr.compute("other", (2, 2), lambda i, j: expr.sum_over(a[i, k] * bc[k, j], k))
    left, right = expr.evaluate([abc, other], {t: symbols(t) for t in (a, b, c)}, RING)
    assert (left == right).all()


@pytest.mark.parametrize(
    "name", ["conv grouped", "triple product", "im2col matmul", "one axis sum"]
)
def test_products_and_blocks_are_the_same_polynomials(name):
    output = PROGRAMS[name]
    (whole,) = expr.evaluate([output], inputs_of(output), RING)
    (cramped,) = expr.evaluate([output], inputs_of(output), RING, limit_bytes=3000)
    assert (whole == cramped).all()


def test_free_terms_show_the_computation():
    c = matmul(1, 1, 2)
    a, b = (t for t in expr.topological_order(c) if isinstance(t, expr.Placeholder))
    inputs = {a: np.array([["p", "q"]], object), b: np.array([["r"], ["s"]], object)}
    assert expr.evaluate([c], inputs, FREE)[0].tolist() == [["(+ (* p r) (* q s))"]]


def test_padding_leaves_no_conditions():
    x = expr.placeholder("x", (2,))
    padded = expr.compute("y", (4,), lambda i: select(i < 2, x[i], 0.0))
    found = expr.evaluate([padded], {x: np.array(["p", "q"], object)}, FREE)[0]
    assert found.tolist() == ["p", "q", "0.0", "0.0"]


def test_value_conditions_become_terms():
    x, k = expr.placeholder("x", (2,)), expr.reduce_axis("k", 2)
    inputs = {x: np.array(["p", "q"], object)}
    chosen = expr.compute("y", (), lambda: select(x[0] < x[1], x[0], x[1]))
    assert expr.evaluate([chosen], inputs, FREE)[0].item() == "(if (< p q) p q)"
    top = expr.compute("y", (), lambda: expr.max_over(x[k], k))
    assert expr.evaluate([top], inputs, FREE)[0].item() == "(max p q)"
    place = expr.compute("y", (), lambda: expr.argmax_over(x[k], k))
    assert expr.evaluate([place], inputs, FREE)[0].item() == "(if (< p q) 1 0)"


def test_elements_must_be_numbers():
    x, at = expr.placeholder("x", (3,)), expr.placeholder("at", (2,), DType.I64)
    y = expr.compute("y", (2,), lambda i: x[at[i]])
    (found,) = expr.evaluate([y], {x: symbols(x), at: np.array([2, 0])}, RING)
    assert found.tolist() == [symbols(x)[2], symbols(x)[0]]
    with pytest.raises(TypeError, match="is not a number"):
        expr.evaluate([y], {x: symbols(x), at: symbols(at)}, RING)


def test_a_fold_of_one_element_is_the_element():
    assert (
        RING.reduce(expr.Combiner.SUM, symbols(expr.placeholder("x", (1,))), (0,), DType.F32).shape
        == ()
    )
