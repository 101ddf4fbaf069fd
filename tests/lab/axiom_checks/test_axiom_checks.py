"""The shipped axioms are true at many shapes; what proofs lack is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorwright.base import DType
from tensorwright.cli.rules import command
from tensorwright.expr import Fn
from tensorwright.rewriting.axioms import instances, load_axioms, parse_axioms
from tensorwright.rewriting.text import parse_rules, term_text
from tensorwright_lab.axiom_checks.command import missing_properties
from tensorwright_lab.axiom_checks.polynomials import Polynomials
from tensorwright_lab.axiom_checks.validation import Budget, consistency, derivable, validate

SHORT = Budget(shapes=2, largest=2, tries=2000, volume=60, whole=False)
NAMES = instances(load_axioms())


def called(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(args))
    return result.exit_code, result.output


@pytest.mark.parametrize("name", NAMES)
def test_an_axiom_holds_at_some_shapes(name: str) -> None:
    """`tensorwright rules axioms --validate` tries many more."""
    found = validate(name, NAMES[name], SHORT)
    assert found.faults == ()
    assert found.shapes >= 2 or found.complete


def test_a_shortcut_follows_from_the_others_and_a_basic_property_does_not() -> None:
    axioms = load_axioms()
    assert NAMES["concat-ones"][0].shortcut
    assert derivable("concat-ones", axioms)
    assert not NAMES["relu-relu"][0].shortcut
    assert not derivable("relu-relu", axioms)


def test_an_axiom_without_parameters_and_extents_has_one_shape() -> None:
    found = validate("scalar-rank-0", NAMES["scalar-rank-0"], SHORT)
    assert (found.shapes, found.complete) == (1, True)


def test_validation_finds_a_false_axiom() -> None:
    wrong = parse_axioms("wrong: relu(ewadd(?x, ?y)) == ewadd(relu(?x), relu(?y))", "test")
    assert validate("wrong", wrong, SHORT).faults


def test_validation_finds_what_holds_at_equal_extents_alone() -> None:
    wrong = parse_axioms(
        "wrong: transpose[1, 0](split0[0, _at](?x)) == transpose[1, 0](split0[1, _at](?x))", "test"
    )
    assert validate("wrong", wrong, SHORT).faults


def test_normal_forms_of_an_order() -> None:
    terms = Polynomials()
    x, y = terms.atom("x"), terms.atom("y")

    def of(fn: Fn, *args: object) -> object:
        return terms.apply(fn, args, DType.F64)

    minus_x, minus_y = of(Fn.NEG, x), of(Fn.NEG, y)
    assert of(Fn.MIN, x, y) == of(Fn.NEG, of(Fn.MAX, minus_x, minus_y))
    assert of(Fn.ABS, minus_x) == of(Fn.ABS, x)
    one, zero = terms.const(1, DType.F64), terms.const(0, DType.F64)
    assert of(Fn.LT, x, x) == zero
    assert of(Fn.LE, x, of(Fn.ADD, x, one)) == one
    assert of(Fn.EQ, x, of(Fn.ADD, x, one)) == zero
    assert of(Fn.LT, x, y) not in (zero, one)
    assert terms.select(one, x, y) == x
    assert terms.select(of(Fn.LT, x, y), x, y) != terms.select(of(Fn.LT, x, y), y, x)


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


def test_axioms_are_listed() -> None:
    code, text = called("axioms")
    assert code == 0
    assert "transpose-matmul:" in text


def test_suggest_axioms(tmp_path: Path) -> None:
    source = tmp_path / "a.rules"
    source.write_text("exp(tanh(relu(?x))) == exp(relu(tanh(?x))) if rank(x) = 2\n")
    code, text = called("suggest-axioms", str(source), "--processes", "1")
    assert code == 0
    assert "tanh(relu(?x1)) == relu(tanh(?x1))" in text
    assert "1 of 1 unproved, 1 properties missing" in text


def test_the_axioms_prove_no_false_goal() -> None:
    assert consistency(load_axioms()) == ()


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
