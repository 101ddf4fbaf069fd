"""A rule found at one size is said for all: sizes in its parameters, and the weakest condition."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.rule_generation.tiny import units_in

from tensorwright.rewriting.meaning import evaluate_terms
from tensorwright.rewriting.prove import problems_of, sample_shapes
from tensorwright.rewriting.terms import Rank
from tensorwright.rewriting.text import parse_rule, rule_text
from tensorwright_lab.rule_generation.generalize.generalize import (
    generalize,
    generalize_alike,
)
from tensorwright_lab.rule_generation.generalize.steps import GeneralizationSteps
from tensorwright_lab.rule_generation.generalize.widening import (
    ConcreteRule,
    RandomShapes,
    agree_at,
    widened,
)

SHAPES = {
    **dict.fromkeys(("x", "y", "z"), (2, 4)),
    **dict.fromkeys(("w", "v"), (4, 4)),
    **dict.fromkeys(("i", "j"), (2, 4, 5, 5)),
    **dict.fromkeys(("k", "l"), (4, 4, 3, 3)),
    **dict.fromkeys(("t", "u"), (2, 3, 4)),
    "s": (),
    "m": (4, 4, 1, 3),
    "p": (4, 4, 1, 1),
    "g": (4, 2, 3, 3),
    "d": (4, 1, 3, 3),
    "b": (2, 1, 4),
    "c": (2, 1, 4),
    "n": (2, 8),
}
CONV = "conv2d[1, 1, same, none]"
LINES = Path(__file__).with_name("generalized.txt").read_text().splitlines()
RULES = [line for line in LINES if line and not line.startswith("#")]
FOUND = list(zip(RULES[::2], RULES[1::2], strict=True))
MAX_POOL = "max_pool[3, 3, 1, 1, same]"
UNEXPLAINED = (
    "relu(ewadd(?x, ?y)) == ewadd(relu(?x), relu(?y))",
    f"{MAX_POOL}(ewadd(?i, ?j)) == ewadd({MAX_POOL}(?i), {MAX_POOL}(?j))",
    "concat[0](?x, ?y) == concat[0](?y, ?x)",
    "relu(eye[4]()) == eye[4]()",  # speaks of no input
)


@pytest.mark.parametrize(("found", "wanted"), FOUND)
def test_a_rule_is_said_for_all_shapes(found, wanted):
    rule = generalize(parse_rule(found), SHAPES)
    assert rule is not None
    assert rule_text(rule) == wanted


@pytest.mark.parametrize("line", UNEXPLAINED)
def test_what_is_false_in_floats_or_about_nothing_is_dropped(line):
    assert generalize(parse_rule(line), SHAPES) is None


def test_extents_of_1_and_ranks_become_conditions():
    shapes = {"x": (2, 1)}
    assert generalize(parse_rule("transpose[1, 0](?x) == reshape[4, 2](?x)"), shapes) is None
    found = generalize(parse_rule("transpose[1, 0](?x) == reshape[1, 2](?x)"), shapes)
    assert found is not None
    assert rule_text(found) == "transpose[1, 0](?x) == reshape[x.1, x.0](?x) if x.1 = 1"
    found = generalize(parse_rule("reshape[2, 1](?x) == ?x"), shapes)
    assert found is not None
    assert rule_text(found) == "reshape[x.0, x.1](?x) == ?x if rank(x) = 2"


SIZES = "broadcast[2, 4, 5, 5](reshape[1, 4, 1, 1](ones[4]()))"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        # shared parts
        (
            f"ewadd(?i, {SIZES}) == ewadd({SIZES}, ?i)",
            "ewadd(?i, ?any1_2_4_5_5) == ewadd(?any1_2_4_5_5, ?i)",
        ),
        (f"{CONV}(?i, enlarge[3, 3](?m)) == {CONV}(?i, ?m)",) * 2,
        ("relu(ewmul(relu(?x), relu(?y))) == ewmul(relu(?x), relu(?y))",) * 2,
        # repeated inputs
        (
            "concat[0](?x, concat[0](?x, ?y)) == concat[0](concat[0](?x, ?x), ?y)",
            "concat[0](?x_0, concat[0](?x_1, ?y)) == concat[0](concat[0](?x_0, ?x_1), ?y)",
        ),
        ("split0[0, 2](concat[0](?x, ?x)) == ?x", "split0[0, 2](concat[0](?x_0, ?x_1)) == ?x_0"),
        (
            "ewmul(?x, ewadd(?x, ?y)) == ewadd(ewmul(?x, ?y), ewmul(?x, ?x))",
            "ewmul(?x_0, ewadd(?x_1, ?y)) == ewadd(ewmul(?x_0, ?y), ewmul(?x_0, ?x_1))",
        ),
        ("ewadd(relu(?x), relu(?x)) == relu(ewadd(?x, ?x))",) * 2,
    ],
)
def test_a_rule_is_an_instance_of_a_more_general_one(found, wanted):
    assert rule_text(widened(parse_rule(found), SHAPES).rule) == wanted


@settings(max_examples=20)
@given(st.sampled_from([wanted for _, wanted in FOUND]), st.integers(0, 2**32 - 1))
def test_a_general_rule_holds_at_any_shapes_that_meet_its_condition(line, seed):
    rule = parse_rule(line)
    generator = np.random.default_rng(seed)
    for problem in problems_of(rule):
        for shapes in islice(sample_shapes(problem, seed, largest=5), 1):
            inputs = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
            values = evaluate_terms(rule.roots, inputs)
            count = len(rule.left)
            for a, b in zip(values[:count], values[count:], strict=True):
                assert a.shape == b.shape
                assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


def holds(text):
    rule = parse_rule(text)
    return RandomShapes(rule).holds(rule.condition)


def test_trials_tell_true_from_false():
    assert holds("matmul(?x, ewadd(?y, ?z)) == ewadd(matmul(?x, ?y), matmul(?x, ?z))")
    assert not holds("matmul(?x, ?y) == matmul(?y, ?x)")
    commuted = parse_rule("matmul(?x, ?y) == matmul(?y, ?x)")
    assert agree_at(commuted, {"x": (1, 1), "y": (1, 1)})
    assert not agree_at(commuted, {"x": (2, 2), "y": (2, 2)})
    assert not holds("ewdiv(?x, relu(?x)) == ewdiv(relu(?x), ?x)")  # x / 0
    assert not holds("relu(?x) == ?x if x.0 >= 100 and x.1 >= 100")  # no such shapes


def test_shapes_that_refute_a_rule_refute_it_under_every_condition_true_there():
    text = "matmul(?x, ?y) == matmul(?y, ?x) if rank(x) = 2 and rank(y) = 2"
    trial = RandomShapes(parse_rule(text))
    ranks, square = parse_rule(text).condition, parse_rule(f"{text} and x.0 = 2").condition
    assert not trial.refutes(square)
    assert not trial.holds(square)
    assert trial.refutes(square)
    assert trial.refutes(ranks)
    assert not trial.refutes(parse_rule(f"{text} and x.0 = 1").condition)
    assert trial.holds(parse_rule(f"{text} and x.0 = 1 and x.1 = 1").condition)


def test_rules_found_at_several_shapes_are_said_once(tmp_path):
    lines = (
        "relu(transpose[1, 0](?x)) == transpose[1, 0](relu(?x))",
        "relu(transpose[1, 0](?w)) == transpose[1, 0](relu(?w))",
        f"{CONV}(?i, concat[0](?k, ?l)) == concat[1]({CONV}(?i, ?k), {CONV}(?i, ?l))",
        f"{CONV}(?j, concat[0](?l, ?k)) == concat[1]({CONV}(?j, ?l), {CONV}(?j, ?k))",
    )
    steps = GeneralizationSteps(SHAPES, 0, units_in(tmp_path / "units"))
    groups = steps.instances([parse_rule(line) for line in lines])
    assert [len(group) for group in groups] == [2, 2]
    assert [len(steps.general([group])) for group in groups] == [1, 1]


def test_shapes_of_which_a_rule_speaks_are_not_tried_again(monkeypatch):
    line = f"{CONV}(?x, concat[0](?v, ?w)) == concat[1]({CONV}(?x, ?v), {CONV}(?x, ?w))"
    shapes = (
        {"x": (2, 2, 2, 2), "v": (2, 2, 1, 1), "w": (2, 2, 1, 1)},
        {"x": (5, 4, 8, 7), "v": (3, 4, 2, 6), "w": (2, 4, 2, 6)},
        {"x": (2, 4, 5, 5), "v": (4, 4, 3, 3), "w": (4, 4, 3, 3)},
    )
    tried = []

    def noted(rule, own):
        tried.append(own)
        return generalize(rule, own)

    monkeypatch.setattr("tensorwright_lab.rule_generation.generalize.generalize.generalize", noted)
    found = [ConcreteRule(parse_rule(line), tuple(each.items())) for each in shapes]
    (rule,) = generalize_alike(found)
    assert [fact for fact in rule.condition if not isinstance(fact, Rank)]  # one group
    assert tried == [{"x1": (5, 4, 8, 7), "x2": (3, 4, 2, 6), "x3": (2, 4, 2, 6)}]
