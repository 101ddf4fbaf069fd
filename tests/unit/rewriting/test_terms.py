"""Terms and rules: shared applications, inputs, substitution, names."""

from __future__ import annotations

import pickle

import pytest

from tensorwright.rewriting import terms
from tensorwright.rewriting.dims import Extent
from tensorwright.rewriting.text import parse_rule, parse_term, rule_text, term_text
from tensorwright_lab.rule_generation.operator_facts import operator_count


def test_applications_come_arguments_first_and_each_once():
    term = parse_term("ewadd(relu(?x), matmul(relu(?x), ?y))")
    assert [each.operator for each in terms.applications(term)] == ["relu", "matmul", "ewadd"]
    assert terms.applications(terms.Input("x")) == ()


def test_both_halves_of_a_split_are_one_operator():
    merged = parse_rule(
        "matmul(?x, ?y), matmul(?x, ?z) == split0[1, y.1](matmul(?x, concat[1](?y, ?z))),"
        " split1[1, y.1](matmul(?x, concat[1](?y, ?z)))"
    )
    assert operator_count(*merged.left) == 2
    assert operator_count(*merged.right) == 3


def test_inputs_of_parameters_count():
    term = parse_term("split0[1, y.1](relu(?x))")
    assert terms.input_names(term) == ("x", "y")


def test_terms_take_the_place_of_inputs_and_sizes_that_of_extents():
    term = parse_term("split0[1, y.1](?x)")
    found = terms.substitute(term, {"x": parse_term("relu(?z)")})
    assert term_text(found) == "split0[1, y.1](relu(?z))"
    numbers = {Extent("y", 1): 4}
    assert (
        term_text(terms.substitute(term, {}, lambda extent: numbers[extent])) == "split0[1, 4](?x)"
    )


def test_renaming_reaches_parameters_and_conditions():
    rule = parse_rule(
        "split0[1, x.1](concat[1](?x, ?y)) == ?x"
        " if rank(x) = 2 and x.1 = y.1 and x.0 >= 2 and y.0 divides x.0"
    )
    renamed = terms.rename_rule(rule, {"x": "y", "y": "x"})
    assert rule_text(renamed) == (
        "split0[1, y.1](concat[1](?y, ?x)) == ?y"
        " if rank(y) = 2 and y.1 = x.1 and y.0 >= 2 and x.0 divides y.0"
    )
    assert terms.rename_rule(renamed, {"x": "y", "y": "x"}) == rule
    assert terms.rename(terms.Input("q"), {"x": "y"}) == terms.Input("q")


def test_rules_that_differ_in_names_have_one_canonical_form():
    lines = ("ewadd(?a, ?b) == ewadd(?b, ?a)", "ewadd(?q, ?a) == ewadd(?a, ?q)")
    first, second = (terms.canonical_rule(parse_rule(line)) for line in lines)
    assert first == second
    assert rule_text(first) == "ewadd(?x1, ?x2) == ewadd(?x2, ?x1)"
    assert terms.canonical_rule(first) == first


def test_the_sides_of_a_rule_have_as_many_roots():
    x = terms.Input("x")
    with pytest.raises(ValueError, match="as many roots"):
        terms.Rule((x,), (x, x))
    with pytest.raises(ValueError, match="at least one"):
        terms.Rule((), ())


def test_rules_are_values():
    size = Extent("x", 0)
    atoms = (
        terms.Rank("x", 2),
        terms.Equal(size, 2),
        terms.AtLeast(size, 2),
        terms.Divides(2, size),
    )
    rule = terms.Rule(
        (terms.Apply("relu", (), (terms.Input("x"),)),), (terms.Input("x"),), condition=atoms
    )
    assert hash(rule) == hash(parse_rule(rule_text(rule)))


def test_a_parameter_becomes_several() -> None:
    term = parse_term("transpose[_p](relu(transpose[1, 0](?x)))")
    put = terms.with_params(term, lambda param: (0, 2, 1) if param == "_p" else (param,))
    assert term_text(put) == "transpose[0, 2, 1](relu(transpose[1, 0](?x)))"


def test_facts_speak_of_extents_and_take_other_sizes() -> None:
    (rank, fact) = parse_rule("?x == ?y if rank(x) = 2 and x.0 + y.1 >= 3").condition
    assert terms.names_in(rank) == {"x"}
    assert terms.extents_in(fact) == (Extent("x", 0), Extent("y", 1))
    assert terms.resized_fact(fact, lambda extent: extent.axis + 1) == terms.AtLeast(3, 3)
    assert terms.resized_fact(rank, lambda extent: 1) == rank


def test_the_hash_of_a_term_is_kept_and_does_not_travel() -> None:
    term, same = parse_term("relu(concat[1](?x, ?y))"), parse_term("relu(concat[1](?x, ?y))")
    assert hash(term) == hash(same) == term._hash
    copy = pickle.loads(pickle.dumps(term))
    assert copy == term
    assert not hasattr(copy, "_hash")  # texts hash otherwise in another process
    assert {copy: 1}[term] == 1
