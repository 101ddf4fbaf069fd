"""Known rules are proved, by saturation and by Z3; wrong ones are refuted by examples that hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorwright.farm import LocalFarm
from tensorwright.rewriting import evaluate_terms
from tensorwright.rewriting.axioms import load_axioms
from tensorwright.rewriting.egraph import Limits
from tensorwright.rewriting.library import listed_rules, load_library
from tensorwright.rewriting.prove import (
    Proved,
    Refuted,
    Unknown,
    problems_of,
    prove,
    prove_all,
    prover,
    smt,
    stamp_of,
    stamped,
)
from tensorwright.rewriting.prove.problem import Problem, holds_at
from tensorwright.rewriting.prove.saturate import instances_of, saturate
from tensorwright.rewriting.prove.smt import prove_with_z3
from tensorwright.rewriting.terms import Rule, input_names
from tensorwright.rewriting.text import parse_rule, parse_rules, rule_text

FOLDER = Path(__file__).parent


def rules_in(name: str) -> tuple[Rule, ...]:
    return parse_rules((FOLDER / name).read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("rule", listed_rules("known"), ids=lambda rule: rule.name)
def test_a_substitution_of_the_literature_is_proved(rule: Rule) -> None:
    outcome = prove(rule)
    assert isinstance(outcome, Proved), str(outcome)
    assert outcome.axioms
    assert outcome.resources > 0
    for left, right, chain in zip(rule.left, rule.right, outcome.chains, strict=True):
        ends = (chain[0].before, chain[-1].after)  # sizes are written as what they equal
        assert set(input_names(*ends)) == set(input_names(left, right))
        assert all(a.after == b.before for a, b in pairwise(chain))


def test_there_are_many_wrong_rules_of_each_kind() -> None:
    kinds = (FOLDER / "wrong.txt").read_text(encoding="utf-8").split("\n## ")[1:]
    counts = {kind.splitlines()[0]: len(parse_rules(kind.splitlines()[1:])) for kind in kinds}
    assert len(counts) == 8
    assert min(counts.values()) >= 8, counts
    assert sum(counts.values()) == len(rules_in("wrong.txt")) >= 60


@pytest.mark.parametrize("rule", rules_in("wrong.txt"), ids=rule_text)
def test_a_wrong_rule_is_refuted_by_an_example_that_holds(rule: Rule) -> None:
    outcome = prove(rule)
    assert isinstance(outcome, Refuted), str(outcome)
    assert outcome.counterexample.is_valid()
    inputs = dict(outcome.counterexample.inputs)
    assert all(
        holds_at(fact, {name: a.shape for name, a in inputs.items()}) for fact in rule.condition
    )
    values = evaluate_terms(rule.roots, inputs)
    pairs = list(zip(values[: len(rule.left)], values[len(rule.left) :], strict=True))
    assert any(a.shape != b.shape or not np.allclose(a, b, equal_nan=True) for a, b in pairs)
    left, right = pairs[outcome.counterexample.root]
    np.testing.assert_array_equal(left, outcome.counterexample.left)
    np.testing.assert_array_equal(right, outcome.counterexample.right)


def test_shapes_matter() -> None:
    """Merging two grouped convolutions is false; with one group it is true."""
    sides = (
        "conv2d[1, 1, same, none](?x, concat[0](?y, ?z)) == "
        "concat[1](conv2d[1, 1, same, none](?x, ?y), conv2d[1, 1, same, none](?x, ?z))"
    )
    assert isinstance(prove(parse_rule(sides)), Refuted)
    assert isinstance(prove(parse_rule(f"{sides} if x.1 = y.1")), Proved)


def test_shapes_between_two_steps_are_known_to_fit() -> None:
    rule = parse_rule(
        "conv2d[1, 1, same, none](conv2d[2, 2, valid, none](?x, ?v), ?w) == "
        "conv2d[2, 2, valid, none](conv2d[1, 1, valid, none](?x, ?v), ?w) if w.2 = 1 and w.3 = 1"
    )
    outcome = prove(rule)
    assert isinstance(outcome, Proved)
    assert outcome.axioms == ("conv-1x1-padding", "conv-1x1-stride")


def test_a_proved_rule_says_in_its_line_whether_floats_may_differ() -> None:
    rules = {rule.name: rule for rule in listed_rules("known")}
    lines = {}
    for name in ("associativity", "split-of-concat"):
        outcome = prove(rules[name])
        assert isinstance(outcome, Proved)
        lines[name] = rule_text(stamped(outcome))
        assert parse_rule(lines[name]) == stamped(outcome)
    assert lines["associativity"].endswith(f"[{stamp_of()}, reassociating]")
    assert lines["split-of-concat"].endswith(f"[{stamp_of()}]")


def test_z3_proves_from_instances_what_it_does_not_from_axioms() -> None:
    """Four groups merged into two, the kernel cut into quarters."""
    rules = {rule.name: rule for rule in listed_rules("known")}
    (problem,) = problems_of(rules["merge-groups-4-to-2"])
    found = saturate(problem, load_axioms())
    assert found is not None
    answer = prove_with_z3(problem, instances_of(found), rlimit=100_000)
    assert answer.is_proved, answer.reason
    assert "group-merge" in answer.core


def test_a_rule_is_proved_at_every_choice_of_ranks() -> None:
    for text, ranks in (
        ("relu(relu(?x)) == relu(?x)", 5),
        ("relu(relu(?x)) == relu(?x) if rank(x) = 2", 1),
        ("relu(concat[0](?x, ?y)) == concat[0](relu(?x), relu(?y))", 4),
    ):
        rule = parse_rule(text)
        outcome = prove(rule, confirm=False)
        assert isinstance(outcome, Proved)
        assert outcome.ranks == len(problems_of(rule)) == ranks


def test_what_no_axiom_says_is_unknown() -> None:
    outcome = prove(parse_rule("tanh(relu(?x)) == relu(tanh(?x)) if rank(x) = 1"))
    assert isinstance(outcome, Unknown)
    assert "axioms say nothing more" in outcome.reason


def test_a_divisor_that_is_always_zero_proves_nothing() -> None:
    nothing = "ewdiv(?y, ewsub(?x, ?x)) == ewdiv(?z, ewsub(?x, ?x)) if rank(x) = 1"
    outcome = prove(parse_rule(nothing))
    assert isinstance(outcome, Unknown)
    assert "divisor" in outcome.reason
    assert isinstance(prove(parse_rule("ewdiv(ewmul(?x, ?y), ?y) == ?x if rank(x) = 1")), Proved)


def test_sides_that_never_fit_are_unknown() -> None:
    outcome = prove(parse_rule("matmul(?x, ?x) == relu(?x) if rank(x) = 1"))
    assert isinstance(outcome, Unknown)
    assert "well-typed" in outcome.reason


def test_the_answer_is_the_same_again() -> None:
    rule = listed_rules("known")[0]
    assert prove(rule) == prove(rule)


def test_many_rules_in_processes() -> None:
    rules = (
        parse_rule("relu(relu(?x)) == relu(?x) if rank(x) = 2"),
        parse_rule("relu(?x) == ?x if rank(x) = 2"),
    )
    with LocalFarm(1) as farm:
        found = dict(prove_all(rules, farm))
    assert isinstance(found[0], Proved)
    assert isinstance(found[1], Refuted)
    assert found[1].counterexample.is_valid()


def test_the_stamp_follows_the_axioms() -> None:
    axioms = load_axioms()
    assert stamp_of(axioms) == stamp_of(axioms[::-1])
    assert stamp_of(axioms) != stamp_of(axioms[1:])


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each question to Z3, whether it was about some tensors alone."""
    asked: list[bool] = []
    attempt = smt._attempt

    def counted(*given: Any, is_ground: bool) -> smt.SmtAnswer:
        asked.append(is_ground)
        return attempt(*given, is_ground=is_ground)

    monkeypatch.setattr(smt, "_attempt", counted)
    monkeypatch.setattr(smt, "_ANSWERS", {})
    return asked


def test_questions_that_differ_in_words_have_one_answer(attempts: list[bool]) -> None:
    text = "conv2d[1, 1, same, WORD](concat[0](?x, ?y), ?w) == concat[0]"
    text += "(conv2d[1, 1, same, WORD](?x, ?w), conv2d[1, 1, same, WORD](?y, ?w))"
    found = []
    for word in ("none", "relu"):
        outcome = prove(parse_rule(text.replace("WORD", word)))
        assert isinstance(outcome, Proved)
        found.append((outcome.axioms, outcome.resources, len(attempts)))
    assert found[0] == found[1]
    assert attempts == [False]


def test_words_on_which_a_shape_depends_are_told_apart() -> None:
    """No axiom names them, and with stride 1 and a kernel of 1 the same must be true of sizes."""
    text = "relu(conv2d[1, 1, WORD, none](?x, ?w)) == conv2d[1, 1, WORD, relu](?x, ?w)"
    questions: list[Problem] = []
    for word in ("same", "valid", "p1_0_1_0", "p0_1_0_1"):
        (problem,) = problems_of(parse_rule(text.replace("WORD", word)))
        questions.append(problem)
    alike = (replace(each, facts=(), assumptions=questions[0].assumptions) for each in questions)
    assert len({smt._question(each, ()) for each in alike}) == 4


def test_words_that_an_axiom_names_are_told_apart(attempts: list[bool]) -> None:
    for word, other in (("same", "valid"), ("valid", "same")):
        text = f"conv2d[1, 1, {word}, none](?x, ?w) == conv2d[1, 1, {other}, none](?x, ?w)"
        asked = len(attempts)
        assert isinstance(prove(parse_rule(f"{text} if w.2 = 1 and w.3 = 1")), Proved)
        assert len(attempts) > asked


def test_what_z3_found_no_proof_for_with_quantifiers_is_asked_without_them_first(
    attempts: list[bool],
) -> None:
    rule = next(each.rule for each in load_library() if each.rule.name == "pad-into-conv")
    assert isinstance(prove(rule), Proved)
    assert attempts[:2] == [False, True]
    assert set(attempts[2:]) <= {True}


def test_a_rule_that_was_tried_is_not_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(prover, "refute", lambda *given: counted.append(1))
    rule = parse_rule("relu(relu(relu(relu(?x)))) == relu(?x)")
    few = Limits(rounds=4, nodes=800, matches=100)
    assert isinstance(prove(rule, limits=few, confirm=False), Proved)
    assert isinstance(prove(rule), Proved)
    assert counted == [1]
