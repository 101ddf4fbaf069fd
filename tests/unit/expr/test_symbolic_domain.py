"""Evaluation over terms: polynomials prove, free terms show what was computed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.unit.expr.programs import PROGRAMS, conv2d, matmul

from tensorwright.base import DType
from tensorwright.expr import (
    Combiner,
    Compute,
    Fn,
    Placeholder,
    SymbolicDomain,
    argmax_over,
    compute,
    evaluate,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
    topological_order,
)

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

    def apply(self, fn: Fn, args: tuple[Any, ...], dtype: DType) -> Poly:
        total: Polynomial = {}
        if fn is Fn.NEG:
            return Poly(tuple((m, -c) for m, c in args[0].terms))
        left, right = args
        if fn is Fn.MUL:
            for m1, c1 in left.terms:
                for m2, c2 in right.terms:
                    monomial = tuple(sorted(m1 + m2))
                    total[monomial] = total.get(monomial, Fraction(0)) + c1 * c2
            return Poly.of(total)
        sign = {Fn.ADD: 1, Fn.SUB: -1}[fn]
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

    def apply(self, fn: Fn, args: tuple[Any, ...], dtype: DType) -> str:
        return f"({fn.text} {' '.join(args)})"

    def select(self, condition: str, then: str, otherwise: str) -> str:
        return f"(if {condition} {then} {otherwise})"

    def cast(self, term: str, source: DType, target: DType) -> str:
        return f"({target} {term})"


RING = SymbolicDomain(Polynomials())
FREE = SymbolicDomain(FreeTerms())


def symbols(tensor: Placeholder, name: str = "") -> np.ndarray:
    array = np.empty(tensor.shape, object)
    for place in np.ndindex(array.shape):
        array[place] = Poly.of({(f"{name or tensor.name}{place}",): Fraction(1)})
    return array


def inputs_of(output: Compute) -> dict[Placeholder, np.ndarray]:
    return {t: symbols(t) for t in topological_order(output) if isinstance(t, Placeholder)}


def sum_of(left: Placeholder, right: Placeholder) -> Compute:
    return compute("sum", left.shape, lambda *i: left[i] + right[i])


def test_convolution_is_linear_in_its_weights():
    """conv(x, w1 + w2) == conv(x, w1) + conv(x, w2), proved for all values at this size."""
    layer = conv2d(channels=2, size=4, filters=2, stride=1, pad=1)
    x, w = (t for t in topological_order(layer) if isinstance(t, Placeholder))
    image, first, second = symbols(x), symbols(w, "w1"), symbols(w, "w2")
    both = RING.apply(Fn.ADD, (first, second), DType.F32)
    (merged,) = evaluate([layer], {x: image, w: both}, RING)
    (left,) = evaluate([layer], {x: image, w: first}, RING)
    (right,) = evaluate([layer], {x: image, w: second}, RING)
    assert merged.shape == (1, 2, 4, 4)
    assert (merged == RING.apply(Fn.ADD, (left, right), DType.F32)).all()
    assert not (merged == left).any()


def test_matmul_is_associative():
    a, b, c = placeholder("a", (2, 3)), placeholder("b", (3, 2)), placeholder("c", (2, 2))
    k, m = reduce_axis("k", 3), reduce_axis("m", 2)
    ab = compute("ab", (2, 2), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    abc = compute("abc", (2, 2), lambda i, j: sum_over(ab[i, m] * c[m, j], m))
    bc = compute("bc", (3, 2), lambda i, j: sum_over(b[i, m] * c[m, j], m))
    other = compute("other", (2, 2), lambda i, j: sum_over(a[i, k] * bc[k, j], k))
    left, right = evaluate([abc, other], {t: symbols(t) for t in (a, b, c)}, RING)
    assert (left == right).all()


@pytest.mark.parametrize(
    "name", ["conv grouped", "triple product", "im2col matmul", "one axis sum"]
)
def test_products_and_blocks_are_the_same_polynomials(name):
    output = PROGRAMS[name]
    (whole,) = evaluate([output], inputs_of(output), RING)
    (cramped,) = evaluate([output], inputs_of(output), RING, limit_bytes=3000)
    assert (whole == cramped).all()


def test_free_terms_show_the_computation():
    c = matmul(1, 1, 2)
    a, b = (t for t in topological_order(c) if isinstance(t, Placeholder))
    inputs = {a: np.array([["p", "q"]], object), b: np.array([["r"], ["s"]], object)}
    assert evaluate([c], inputs, FREE)[0].tolist() == [["(+ (* p r) (* q s))"]]


def test_padding_leaves_no_conditions():
    x = placeholder("x", (2,))
    padded = compute("y", (4,), lambda i: select(i < 2, x[i], 0.0))
    found = evaluate([padded], {x: np.array(["p", "q"], object)}, FREE)[0]
    assert found.tolist() == ["p", "q", "0.0", "0.0"]


def test_value_conditions_become_terms():
    x, k = placeholder("x", (2,)), reduce_axis("k", 2)
    inputs = {x: np.array(["p", "q"], object)}
    chosen = compute("y", (), lambda: select(x[0] < x[1], x[0], x[1]))
    assert evaluate([chosen], inputs, FREE)[0].item() == "(if (< p q) p q)"
    top = compute("y", (), lambda: max_over(x[k], k))
    assert evaluate([top], inputs, FREE)[0].item() == "(max p q)"
    place = compute("y", (), lambda: argmax_over(x[k], k))
    assert evaluate([place], inputs, FREE)[0].item() == "(if (< p q) 1 0)"


def test_elements_must_be_numbers():
    x, at = placeholder("x", (3,)), placeholder("at", (2,), DType.I64)
    y = compute("y", (2,), lambda i: x[at[i]])
    (found,) = evaluate([y], {x: symbols(x), at: np.array([2, 0])}, RING)
    assert found.tolist() == [symbols(x)[2], symbols(x)[0]]
    with pytest.raises(TypeError, match="is not a number"):
        evaluate([y], {x: symbols(x), at: symbols(at)}, RING)


def test_a_fold_of_one_element_is_the_element():
    assert RING.reduce(Combiner.SUM, symbols(placeholder("x", (1,))), (0,), DType.F32).shape == ()
