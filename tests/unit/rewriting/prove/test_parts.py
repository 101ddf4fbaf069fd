"""The parts of the prover: what is known of extents, polynomials."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.expr import Fn
from tensorwright.rewriting.assumptions import assume
from tensorwright.rewriting.dims import parse_size
from tensorwright.rewriting.prove.validation.polynomials import Polynomials
from tensorwright.rewriting.terms import AtLeast, Divides, Equal, Fact


def equal(left: str, right: str) -> Fact:
    return Equal(parse_size(left), parse_size(right))


def test_equalities_are_solved() -> None:
    known = assume([equal("x.1", "y.0"), equal("y.0 + z.0", "w.0")])
    assert known is not None
    assert known.entails(equal("w.0", "x.1 + z.0"))
    assert not known.entails(equal("w.0", "x.1"))


def test_extents_are_positive() -> None:
    known = assume([])
    assert known is not None
    assert known.entails(AtLeast(parse_size("x.0 + y.0"), parse_size("x.0 + 1")))
    assert not known.entails(AtLeast(parse_size("x.0"), 2))
    assert assume([equal("x.0 + y.0", "x.0")]) is None


def test_lower_bounds_add_up() -> None:
    known = assume([AtLeast(parse_size("x.0"), 3), AtLeast(parse_size("y.0"), 2)])
    assert known is not None
    assert known.entails(AtLeast(parse_size("x.0 + y.0"), 5))
    assert not known.entails(AtLeast(parse_size("x.0 + y.0"), 6))


def test_quotients_are_bounded_by_what_is_divided() -> None:
    known = assume([AtLeast(parse_size("x.0"), parse_size("w.0"))])
    assert known is not None
    windows = parse_size("(x.0 - w.0) // 2 + 1")
    assert known.entails(AtLeast(windows, 1))
    assert not known.entails(AtLeast(windows, 2))
    assert not known.entails(AtLeast(parse_size("(w.0 - x.0) // 2 + 1"), 1))


def test_a_number_that_is_divided_is_a_product() -> None:
    known = assume([Divides(2, parse_size("x.0"))])
    assert known is not None
    assert known.entails(equal("2*(x.0 // 2)", "x.0"))
    assert known.entails(Divides(2, parse_size("3*x.0")))
    assert not known.entails(Divides(2, parse_size("x.0 + 1")))


def test_normal_forms() -> None:
    terms = Polynomials()
    x, y = terms.atom("x"), terms.atom("y")

    def of(fn: Fn, *args: object) -> object:
        return terms.apply(fn, args, DType.F64)

    total = of(Fn.ADD, x, y)
    assert of(Fn.MUL, total, total) == of(
        Fn.ADD, of(Fn.MUL, x, of(Fn.ADD, x, of(Fn.ADD, y, y))), of(Fn.MUL, y, y)
    )
    assert of(Fn.MUL, of(Fn.DIV, x, y), y) == x
    assert of(Fn.EXP, total) == of(Fn.MUL, of(Fn.EXP, y), of(Fn.EXP, x))
    assert of(Fn.MAX, of(Fn.MAX, x, y), x) == of(Fn.MAX, y, x)
    assert of(Fn.TANH, x) != of(Fn.TANH, y)


def test_common_factors_are_taken_out_of_equalities() -> None:
    known = assume([equal("a.0 + b.0", "c.0 + d.0"), equal("a.0 + d.0", "c.0 + b.0")])
    assert known is not None
    assert known.entails(equal("b.0", "d.0"))
    known = assume([equal("q.0*a.0", "a.0")])
    assert known is not None
    assert known.entails(equal("q.0", "1"))


def test_what_divides_each_other_is_equal() -> None:
    a, b = parse_size("a.0"), parse_size("b.0")
    known = assume([Divides(a, b), Divides(b, a)])
    assert known is not None
    assert known.entails(Equal(a, b))
    known = assume([Divides(a, 1)])
    assert known is not None
    assert known.entails(Equal(a, 1))
