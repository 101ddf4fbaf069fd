"""The parts of the prover: what is known of extents, axioms within reach."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from tests.draws import random_source

from tensorwright.rewriting import assumptions
from tensorwright.rewriting.assumptions import Assumptions, assume
from tensorwright.rewriting.axioms import parse_axioms
from tensorwright.rewriting.dims import Size, parse_size
from tensorwright.rewriting.prove.saturate import within_reach
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


def test_axioms_that_cannot_be_reached_are_left_out() -> None:
    axioms = parse_axioms(
        "a: sigmoid(tanh(?x)) == exp(?x)\nb: exp(relu(?x)) == relu(?x)\nc: neg(neg(?x)) == ?x",
        "test",
    )
    found = within_reach(axioms, frozenset({"relu"}))
    assert [each.name for each in found] == ["a", "b"]  # b makes exp of relu, a sigmoid of exp
    assert [each.name for each in within_reach(axioms, frozenset({"neg"}))] == ["c"]


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


@pytest.mark.drawn
def test_what_is_skipped_for_its_number_is_not_known_to_be_positive() -> None:
    """Against the rule without the short cut, over random sizes and bounds."""
    chance = random_source(5)
    atoms = [parse_size(text) for text in ("x.0", "x.1", "y.0", "x.0*y.0", "(x.1 - 2) // 2")]

    def any_size() -> Size:
        return sum((chance.randint(-2, 2) * each for each in chance.sample(atoms, 2)), start=0)

    answers = []
    for _ in range(400):
        bounds = tuple(any_size() + chance.randint(-2, 2) for _ in range(3))
        gap = any_size() + chance.randint(-3, 3)
        known = Assumptions(positive=bounds)
        sums = [0, *bounds, *(a + b for a, b in combinations_with_replacement(bounds, 2))]
        if assumptions._cleared(gap) is None:
            expected = any(assumptions._is_nonnegative(gap - each) for each in sums)
            assert known._is_nonnegative(gap) == expected
            answers.append(expected)
    assert 20 < sum(answers) < len(answers) - 20
