"""Known rules are proved, by saturation and by Z3; wrong ones are refuted by examples that hold."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tensorwright.rewrite.axioms import load_axioms
from tensorwright.rewrite.prove import (
    Proved,
    Refuted,
    Unknown,
    consistency,
    missing_properties,
    prove,
    prove_all,
    stamp_of,
)
from tensorwright.rewrite.terms import Rule, input_names
from tensorwright.rewrite.text import parse_rule, parse_rules, rule_text, term_text

FOLDER = Path(__file__).parent


def rules_in(name: str) -> tuple[Rule, ...]:
    return parse_rules((FOLDER / name).read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("rule", rules_in("well_known.txt"), ids=lambda rule: rule.name)
def test_a_substitution_of_the_literature_is_proved(rule: Rule) -> None:
    outcome = prove(rule)
    assert isinstance(outcome, Proved), str(outcome)
    assert outcome.axioms
    assert outcome.resources > 0
    for left, right, chain in zip(rule.left, rule.right, outcome.chains, strict=True):
        ends = (chain[0].before, chain[-1].after)  # sizes are written as what they equal
        assert set(input_names(*ends)) == set(input_names(left, right))
        assert all(a.after == b.before for a, b in pairwise(chain))


def test_there_are_many_wrong_rules() -> None:
    assert len(rules_in("wrong.txt")) >= 60


@pytest.mark.parametrize("rule", rules_in("wrong.txt"), ids=rule_text)
def test_a_wrong_rule_is_refuted_by_an_example_that_holds(rule: Rule) -> None:
    outcome = prove(rule)
    assert isinstance(outcome, Refuted), str(outcome)
    assert outcome.counterexample.is_valid()
    assert outcome.counterexample.inputs


def test_the_axioms_prove_no_false_goal() -> None:
    assert consistency(load_axioms()) == ()


def test_shapes_matter() -> None:
    """Merging two grouped convolutions is false; with one group it is true."""
    sides = (
        "conv2d[1, 1, same, none](?x, concat[0](?y, ?z)) == "
        "concat[1](conv2d[1, 1, same, none](?x, ?y), conv2d[1, 1, same, none](?x, ?z))"
    )
    assert isinstance(prove(parse_rule(sides)), Refuted)
    assert isinstance(prove(parse_rule(f"{sides} if x.1 = y.1")), Proved)


def test_what_no_axiom_says_is_unknown() -> None:
    outcome = prove(parse_rule("tanh(relu(?x)) == relu(tanh(?x)) if rank(x) = 1"))
    assert isinstance(outcome, Unknown)
    assert "axioms say nothing more" in outcome.reason


def test_sides_that_never_fit_are_unknown() -> None:
    outcome = prove(parse_rule("matmul(?x, ?x) == relu(?x) if rank(x) = 1"))
    assert isinstance(outcome, Unknown)
    assert "well-typed" in outcome.reason


def test_the_answer_is_the_same_again() -> None:
    rule = rules_in("well_known.txt")[0]
    assert prove(rule) == prove(rule)


def test_many_rules_in_processes() -> None:
    rules = (
        parse_rule("relu(relu(?x)) == relu(?x) if rank(x) = 2"),
        parse_rule("relu(?x) == ?x if rank(x) = 2"),
    )
    found = dict(prove_all(rules, workers=1))
    assert isinstance(found[0], Proved)
    assert isinstance(found[1], Refuted)


def test_the_stamp_follows_the_axioms() -> None:
    axioms = load_axioms()
    assert stamp_of(axioms) == stamp_of(axioms[::-1])
    assert stamp_of(axioms) != stamp_of(axioms[1:])


def test_unproved_candidates_are_grouped_by_what_they_lack() -> None:
    """All three lack that tanh and relu commute."""
    rules = parse_rules(
        [
            "tanh(relu(?x)) == relu(tanh(?x)) if rank(x) = 2",
            "exp(tanh(relu(?x))) == exp(relu(tanh(?x))) if rank(x) = 2",
            "tanh(relu(matmul(?x, ?y))) == relu(tanh(matmul(?x, ?y))) if rank(x) = 2",
            "relu(?x) == ?x if rank(x) = 2",
        ]
    )
    groups = missing_properties(rules)
    texts = [(term_text(g.rule.left[0]), len(g.candidates)) for g in groups]
    assert texts[0][0] == "tanh(relu(?x1))"
    assert sum(count for _, count in texts) == 3
