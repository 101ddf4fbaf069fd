"""Rules with parameter variables: proved for all values or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from tensorwright.base import UsageError
from tensorwright.rewriting import Rule, evaluate_terms, parse_rule
from tensorwright.rewriting.axioms import load_axioms
from tensorwright.rewriting.prove import (
    Proved,
    Refuted,
    cases_of,
    has_parameter_variables,
    problems_of,
    prove,
    sample_shapes,
    special_case,
)
from tensorwright.rewriting.prove.instances import sampled_instances

CONV = "conv2d[_h, _v, _pad, _act]"
PLAIN = "conv2d[_h, _v, _pad, none]"
POOL = "max_pool[_kh, _kw, _h, _v, _pad]"
POINT = "w.2 = 1 and w.3 = 1"
SQUARE = (
    "concat[_a](concat[_b](?x, ?y), concat[_b](?z, ?w)) == "
    "concat[_b](concat[_a](?x, ?z), concat[_a](?y, ?w))"
)
MEANS = (
    "reduce_mean[_a](concat[_b](?x, ?y)) == concat[_b](reduce_mean[_a](?x), reduce_mean[_a](?y))"
)
INSIDE = "slice[_axis, _c, _d](pad[_axis, _a, _b](?x)) == slice[_axis, _c - _a, _d - _a](?x)"
TRUE = (
    f"relu({PLAIN}(?x, ?w)) == conv2d[_h, _v, _pad, relu](?x, ?w)",
    f"relu({CONV}(?x, ?w)) == conv2d[_h, _v, _pad, relu](?x, ?w)",
    f"conv2d[_h, _v, same, _act](?x, ?w) == conv2d[_h, _v, valid, _act](?x, ?w) if {POINT}",
    f"split1[0, x.0]({CONV}(concat[0](?x, ?y), ?w)) == {CONV}(?y, ?w)",
    f"{SQUARE} if _a != _b",
    "split0[_axis, x._axis](concat[_axis](?x, ?y)) == ?x",
    "reduce_sum[_a](?x) == ?x if x._a = 1",
    "concat[_a](transpose[_p](?x), transpose[_p](?y)) == transpose[_p](concat[_p@_a](?x, ?y))",
    "transpose[_p](transpose[_q](?x)) == transpose[_q@_p](?x)",
    f"{MEANS} if _a != _b",
    "pad[_a, _b, _c](pad[_a, _d, _e](?x)) == pad[_a, _b + _d, _c + _e](?x)",
    "slice[_axis, 0, x._axis](pad[_axis, 0, _n](?x)) == ?x",
    f"{INSIDE} if _c >= _a and x._axis + _a >= _d",
    f"{PLAIN}(?x, pool_kernel[x.1, _a, _b]()) == avg_pool[_a, _b, _h, _v, _pad](?x)",
    "clip[_a, _b](clip[_a, _b](?x)) == clip[_a, _b](?x)",
    "reshape[_s](relu(relu(?x))) == relu(reshape[_s](?x))",
    f"{POOL}(relu(relu(?x))) == relu({POOL}(?x))",
)
FALSE = (
    f"{CONV}(?x, ?w) == conv2d[1, 1, same, _act](?x, ?w)",
    f"{CONV}(?x, ?w) == conv2d[_v, _h, _pad, _act](?x, ?w)",
    f"{PLAIN}(?x, ?w) == {CONV}(?x, ?w)",
    f"{PLAIN}(?x, ?w) == conv2d[_h, _v, same, none](?x, ?w)",
    f"{PLAIN}(?x, ?w) == conv2d[_h, _v, valid, none](?x, ?w) if {POINT}",
    SQUARE,
    "concat[_a](transpose[_p](?x), transpose[_p](?y)) == transpose[_p](concat[_a](?x, ?y))",
    "concat[_a](transpose[_p](?x), transpose[_p](?y)) == transpose[_p](concat[~_p@_a](?x, ?y))",
    "transpose[_p](transpose[_p](?x)) == ?x",
    MEANS,
    "pad[_a, _b, _c](?x) == pad[_a, _c, _b](?x)",
    "slice[_axis, _a, _b](?x) == ?x",
    "slice[_axis, 0, x._axis](pad[_axis, _m, _n](?x)) == ?x",
    "conv2d[_h, _v, same, none](?x, enlarge[_a, _b](?w)) == conv2d[_h, _v, same, none](?x, ?w)",
    "gelu[_a](?x) == gelu[_b](?x)",
    "clip[_a, _b](?x) == clip[_a, _c](?x)",
    "avg_pool[_kh, _kw, _h, _v, _pad](relu(?x)) == relu(avg_pool[_kh, _kw, _h, _v, _pad](?x))",
    f"{POOL}(?x) == ?x if x.2 = 1 and x.3 = 1 and _kh >= 2",
)


@pytest.mark.parametrize("text", TRUE)
def test_what_is_true_of_all_values_is_proved(text: str) -> None:
    assert isinstance(prove(parse_rule(text)), Proved)


@pytest.mark.parametrize("text", FALSE)
def test_what_is_false_of_some_values_is_not_proved(text: str) -> None:
    rule = parse_rule(text)
    outcome = prove(rule, confirm=False)
    assert not isinstance(outcome, Proved)
    if isinstance(outcome, Refuted):
        assert outcome.counterexample.is_valid()
        assert special_case(outcome.counterexample.rule, rule) is not None


def test_cases_are_dimensions_permutations_words_and_what_is_left_open() -> None:
    rule = parse_rule(f"relu({CONV}(?x, ?w)) == conv2d[_h, _v, _pad, relu](?x, ?w)")
    words = {
        (each.left[0].args[0].params[2], each.left[0].args[0].params[3]) for each in cases_of(rule)
    }
    assert words == {(pad, act) for pad in ("same", "_pad_") for act in ("none", "relu")}
    apart = parse_rule("reverse[_a](reverse[_b](?x)) == reverse[_b](reverse[_a](?x)) if _a != _b")
    assert len(cases_of(apart)) == 4 * 3
    turned = parse_rule("transpose[_p](relu(?x)) == relu(transpose[_p](?x))")
    assert len(cases_of(turned)) == 1 + 2 + 6 + 24
    plain = parse_rule("relu(relu(?x)) == relu(?x)")
    assert cases_of(plain) == (plain,)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("relu(?x) == relu(?x) if _a != _b", "_a is not a parameter of any operator"),
        ("slice[_a, 0, _a](?x) == ?x", "_a stands at parameters of different kinds"),
        ("broadcast[_n, _m](?x) == broadcast[_m, _n](?x)", "for one parameter, and for all that"),
    ],
)
def test_variables_of_no_kind_are_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        cases_of(parse_rule(text))


def test_a_proof_speaks_of_every_instance() -> None:
    """What is proved for all values holds, where it is evaluated, at values drawn at random."""
    tried = 0
    for text in TRUE:
        rule = parse_rule(text)
        for instance in sampled_instances(rule, 12, seed=3):
            for problem in problems_of(instance)[:1]:
                assert special_case(instance, rule) is not None
                for shapes in list(sample_shapes(problem, seed=5, tries=20))[:1]:
                    assert_equal_at(instance, shapes)
                    tried += 1
    assert tried > 60


def assert_equal_at(rule: Rule, shapes: dict[str, tuple[int, ...]]) -> None:
    generator = np.random.default_rng(1)
    inputs = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
    left, right = evaluate_terms(rule.roots, inputs)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


def test_axioms_are_special_cases_of_themselves() -> None:
    axioms = [axiom.rule for axiom in load_axioms() if has_parameter_variables(axiom.rule)][::25]
    for rule in axioms:
        special = special_case(rule, rule)
        assert special is not None
        assert special.is_renaming
    assert len(axioms) > 50


def test_a_special_case_fits_the_condition() -> None:
    general = parse_rule(
        "relu(concat[_a](?x, ?y)) == relu(?x) if x._a = 1 and _a != _b and y.0 >= _b"
    )
    for text, is_special in (
        ("relu(concat[1](?u, ?v)) == relu(?u) if u.1 = 1 and v.0 >= 2", False),
        ("relu(concat[1](?u, ?v)) == relu(?u) if u.0 = 1", False),
    ):
        assert (special_case(parse_rule(text), general) is not None) == is_special
    conv = parse_rule(f"{PLAIN}(?x, ?w) == conv2d[1, 1, _pad, none](?x, ?w) if x.2 = _h")
    assert special_case(
        parse_rule(
            "conv2d[3, 2, same, none](?a, ?b) == conv2d[1, 1, same, none](?a, ?b) if a.2 = 3"
        ),
        conv,
    )
    assert not special_case(
        parse_rule(
            "conv2d[3, 2, same, none](?a, ?b) == conv2d[1, 1, same, none](?a, ?b) if a.2 = 2"
        ),
        conv,
    )
