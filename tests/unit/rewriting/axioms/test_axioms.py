"""The shipped axioms parse and print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorwright.base import UsageError
from tensorwright.rewriting import axioms as package
from tensorwright.rewriting.axioms import load_axioms, parse_axioms, set_hash
from tensorwright.rewriting.egraph import variables_of
from tensorwright.rewriting.prove import concrete_rule, problems_of
from tensorwright.rewriting.terms import Input
from tensorwright.rewriting.text import parse_rule, rule_text, term_text


def test_the_files_are_short() -> None:
    folder = Path(str(package.__file__)).parent
    lines = sum(len(f.read_text(encoding="utf-8").splitlines()) for f in folder.glob("*.rules"))
    assert lines < 1400


def test_an_axiom_is_written_out_for_each_axis() -> None:
    (first, *others) = parse_axioms("a: split0[_i, x._i](concat[_i](?x, ?y)) == ?x", "test")
    assert len(others) == 3
    assert str(first) == "a: split0[0, x.0](concat[0](?x, ?y)) == ?x"


def test_an_axiom_is_written_out_for_each_choice() -> None:
    text = "for _p; _a in (1, 0; 1) (0, 1; 0)\nb: relu(transpose[_p](concat[_a](?x, ?y))) == ?x"
    found = parse_axioms(text.replace("?x, ?y", "?x, ?x"), "test")
    assert [str(each) for each in found] == [
        "b: relu(transpose[1, 0](concat[1](?x, ?x))) == ?x",
        "b: relu(transpose[0, 1](concat[0](?x, ?x))) == ?x",
    ]


def test_lines_for_values_multiply_and_lists_have_names() -> None:
    pairs = "for _a; _b in different axes\nc: relu(split0[_a, 1](split0[_b, 2](?x))) == ?x"
    assert len(parse_axioms(pairs, "test")) == 12
    assert len(parse_axioms(pairs.replace("different", "rising"), "test")) == 6
    assert len(parse_axioms(f"for _z in (1) (2)\n{pairs.replace('1]', '_z]')}", "test")) == 24
    moved = "for _p; _a; _s in moved axes\nd: transpose[_p](?x) == reshape[_s](?x) if x._a = 1"
    texts = [str(each) for each in parse_axioms(moved, "test")]
    assert "d: transpose[0, 2, 1](?x) == reshape[x.0, x.2, x.1](?x) if x.1 = 1" in texts
    assert "d: transpose[2, 0, 1](?x) == reshape[x.2, x.0, x.1](?x) if x.2 = 1" in texts
    assert not any("transpose[2, 1, 0]" in text for text in texts)
    functions = [str(each) for each in parse_axioms("for _f in functions\ne: _f(?x) == ?x", "test")]
    assert "e: leaky_relu[_alpha](?x) == ?x" in functions


def test_parameters_are_computed_from_permutations() -> None:
    (turned,) = parse_axioms(
        "f: transpose[_p](concat[_a](?x, ?y)) == "
        "concat[~_p@_a](transpose[_p](?x), transpose[_p](?y))",
        "test",
    )
    assert [term_text(each) for each in turned.triggers] == [term_text(turned.rule.left[0])]
    assert parse_rule(str(turned)) == turned.rule
    rule = concrete_rule(turned.rule, {"_p": (2, 0, 1), "_a": (1,)})
    assert "concat[2](transpose[2, 0, 1](?x)" in rule_text(rule)
    impossible = concrete_rule(turned.rule, {"_p": (2, 0, 1), "_a": (3,)})
    assert problems_of(impossible) == ()


def test_a_computed_parameter_needs_its_variables() -> None:
    with pytest.raises(UsageError, match="neither side binds"):
        parse_axioms("g: transpose[_p](?x) == transpose[_q@_p](?x)", "test")


def test_triggers_bind_all_variables() -> None:
    for axiom in load_axioms():
        wanted = variables_of(*axiom.rule.roots)
        for trigger in axiom.triggers:
            assert not isinstance(trigger, Input)
            assert wanted <= variables_of(trigger)


def test_an_axiom_without_a_trigger_is_refused() -> None:
    with pytest.raises(UsageError, match="neither side binds"):
        parse_axioms("c: relu(?x) == tanh(?y)", "test")


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(UsageError, match="no such operator"):
        parse_axioms("c: relue(?x) == ?x", "test")


def test_the_hash_does_not_depend_on_order() -> None:
    axioms = load_axioms()
    assert set_hash(axioms) == set_hash(tuple(reversed(axioms)))
