"""The condition that a rule needs is found from the shapes where it held."""

from __future__ import annotations

from tensorwright.rewriting.prove import Proved, prove
from tensorwright.rewriting.text import condition_text, parse_rule
from tensorwright_lab.rule_generation.generalize.least_condition import (
    conditioned,
    least_condition,
)


def test_one_group_is_found_to_be_needed() -> None:
    rule = parse_rule(
        "conv2d[1, 1, same, none](?x, concat[0](?y, ?z)) == "
        "concat[1](conv2d[1, 1, same, none](?x, ?y), conv2d[1, 1, same, none](?x, ?z))"
    )
    found = least_condition(rule, {"x": (2, 4, 5, 5), "y": (3, 4, 3, 3), "z": (2, 4, 3, 3)})
    assert found is not None
    assert (
        condition_text(found.condition)
        == "rank(x) = 4 and rank(y) = 4 and rank(z) = 4 and x.1 = z.1"
    )
    assert isinstance(prove(found), Proved)


def test_a_rule_that_always_holds_needs_ranks_alone() -> None:
    rule = parse_rule("transpose[1, 0](transpose[1, 0](?x)) == ?x")
    found = least_condition(rule, {"x": (4, 4)})
    assert found is not None
    assert condition_text(found.condition) == "rank(x) = 2"


def test_a_wrong_rule_has_none() -> None:
    assert least_condition(parse_rule("relu(?x) == ?x"), {"x": (2, 4)}) is None


def test_a_condition_is_found_without_a_shape() -> None:
    rule = parse_rule(
        "conv2d[1, 1, same, relu](?x, concat[0](enlarge[3, 3](?v), ?w)) == "
        "concat[1](conv2d[1, 1, same, relu](?x, ?v), conv2d[1, 1, same, relu](?x, ?w))"
    )
    found = conditioned(rule)
    assert found is not None
    assert condition_text(found.condition) == "x.1 = w.1"
    assert isinstance(prove(found), Proved)


def test_groups_that_must_be_alike() -> None:
    rule = parse_rule(
        "conv2d[1, 1, same, none](concat[1](?x, ?y), concat[0](?v, ?w)) == "
        "concat[1](conv2d[1, 1, same, none](?x, ?v), conv2d[1, 1, same, none](?y, ?w))"
    )
    found = conditioned(rule)
    assert found is not None
    assert condition_text(found.condition) == "x.1 = y.1 and v.0 = w.0"
    assert isinstance(prove(found), Proved)


def test_what_never_holds_has_no_condition() -> None:
    assert conditioned(parse_rule("relu(?x) == tanh(?x) if rank(x) = 2")) is None
