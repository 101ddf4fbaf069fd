"""Rules as text: what is printed is read back, and faults name place and remedy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.base import UsageError
from tensorwright.rewriting.dims import Extent
from tensorwright.rewriting.operators import OPERATORS
from tensorwright.rewriting.prove import Proved, prove
from tensorwright.rewriting.terms import Apply, AtLeast, Divides, Equal, Input, Rank, Rule
from tensorwright.rewriting.text import parse_rule, parse_rules, parse_term, rule_text, term_text

NAMES = st.sampled_from(["x", "y", "w1", "scale"])
EXTENTS = st.builds(Extent, NAMES, st.integers(0, 3))
SIZES = st.recursive(
    EXTENTS | st.integers(0, 9),
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda pair: pair[0] + pair[1]),
        st.tuples(parts, parts).map(lambda pair: pair[0] * pair[1]),
        st.tuples(parts, EXTENTS | st.integers(1, 4)).map(lambda pair: pair[0] // pair[1]),
    ),
    max_leaves=4,
)


@st.composite
def applications(draw, args):
    """An application of any operator; neither parameters nor shapes need fit."""
    operator = draw(st.sampled_from(OPERATORS))
    params = []
    for parameter in operator.parameters:
        for _ in range(draw(st.integers(1, 3)) if parameter.repeats else 1):
            if parameter.words:
                params.append(draw(st.sampled_from(parameter.words)))
            else:
                params.append(draw(SIZES if parameter.is_size else st.integers(0, 5)))
    return Apply(operator.name, tuple(params), tuple(draw(args) for _ in range(operator.arity)))


TERMS = st.recursive(st.builds(Input, NAMES), applications, max_leaves=6)
ATOMS = st.one_of(
    st.builds(Rank, NAMES, st.integers(0, 4)),
    st.builds(Equal, SIZES, SIZES),
    st.builds(AtLeast, SIZES, SIZES),
    st.builds(Divides, SIZES, SIZES),
)


@st.composite
def rules(draw):
    count = draw(st.integers(1, 2))
    sides = [tuple(draw(TERMS) for _ in range(count)) for _ in range(2)]
    return Rule(
        *sides,
        name=draw(st.sampled_from(["", "merge", "relu-concat", "r_17"])),
        condition=tuple(draw(st.lists(ATOMS, max_size=3))),
        stamp=draw(st.sampled_from(["", "ab12cd z3-4.15", "0"])),
        reassociating=draw(st.booleans()),
    )


@settings(max_examples=75)
@given(TERMS)
def test_terms_are_read_back(term):
    assert parse_term(term_text(term)) == term


@settings(max_examples=75)
@given(rules())
def test_rules_are_read_back(rule):
    line = rule_text(rule)
    assert "\n" not in line
    assert parse_rule(line) == rule
    assert rule_text(parse_rule(line)) == line


def test_spaces_do_not_matter():
    wide = parse_rule("  a-name :ewadd( ?x ,?y )==  ewadd(?y,?x)   if  rank( x )=2  ")
    assert rule_text(wide) == "a-name: ewadd(?x, ?y) == ewadd(?y, ?x) if rank(x) = 2"


def test_a_file_has_comments_and_empty_lines():
    lines = ["# rules", "", "relu(relu(?x)) == relu(?x)", "  # indented", "?x == ?x"]
    assert [rule_text(rule) for rule in parse_rules(lines)] == [lines[2], lines[4]]


FAULTS = (
    ("relu(?x", "')' is expected before 'its end'"),
    ("relu ?x", "'(' is expected before '?x'"),
    ("ewadd(?x, )", "a name is expected before ')'"),
    ("?", "a name is expected before 'its end'"),
    ("relu(?x) ?y", "'?y' is left over"),
    ("concat[1(?x, ?y)", "a [ is not closed"),
    ("concat[1,](?x, ?y)", "a size ends too early"),
    ("split0[1, x.](?x)", "'x.' is not understood"),
    ("ones[2 3]()", "'3' is left over"),
    ("ones[x.0 // 0]()", "division by zero"),
)


@pytest.mark.parametrize(("text", "reason"), FAULTS)
def test_faults_of_terms_name_place_and_remedy(text, reason):
    with pytest.raises(UsageError) as caught:
        parse_term(text)
    assert reason in caught.value.reason
    assert text in caught.value.where
    assert "operator[params]" in caught.value.remedy


@pytest.mark.parametrize(
    ("line", "reason", "remedy"),
    [
        ("?x * 2 == ?x + ?x", "2 is a number", "2 * x is ewadd(?x, ?x)"),
        ("2 * ?x == ewadd(?x, ?x)", "2 is a number", "scalar_mul(?x, ?c)"),
        ("ewadd(?x, -1.5e3) == ?x", "-1.5e3 is a number", "a tensor of rank 0"),
        ("1 == ones()", "1 is a number", "1 is ones()"),
        ("?x + ?y == ?y + ?x", "+ is not an operator of rules", "ewadd(?x, ?y)"),
        ("relu(?x @ ?y) == ?x", "@ is not an operator of rules", "matmul(?x, ?y)"),
        ("?x ** ?y == ?x", "** is not an operator of rules", "ewpow(?x, ?y)"),
        ("neg(?x) == -?x", "- is not an operator of rules", "-x is neg(?x)"),
        ("relu(x) == ?x", "x alone is not a term", "?x for a tensor"),
    ],
)
def test_what_stands_for_arithmetic_is_said_what_to_write_for(line, reason, remedy):
    with pytest.raises(UsageError) as caught:
        parse_rule(line)
    assert reason in caught.value.reason
    assert remedy in caught.value.remedy


def test_what_is_said_to_write_is_a_rule():
    for line in ("scalar_mul(?x, ones()) == ?x", "ewsub(?x, ?y) == ewadd(?x, neg(?y))"):
        assert isinstance(prove(parse_rule(line), confirm=False), Proved)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("relu(?x)", "there is no =="),
        ("?x, ?y == ?x", "2 roots on the left, 1 on the right"),
        ("?x == ?x if x.0", "a condition is"),
        ("?x == ?x if rank(x) = 2 and", "'rank(x)' is not understood"),
        ("?x == ?x if x.0 = y", "'y' is not understood"),
        ("?x == relu(?x", "')' is expected"),
        ("?x == ?y == ?z", "'== ?z' is left over"),
        (" == ?x", "a name is expected"),
    ],
)
def test_faults_of_rules_name_place_and_remedy(line, reason):
    with pytest.raises(UsageError) as caught:
        parse_rule(line)
    assert reason in caught.value.reason
    assert caught.value.stage == "rules"
    assert caught.value.remedy


def test_the_line_of_a_fault_is_named():
    with pytest.raises(UsageError) as caught:
        parse_rules(["# good", "?x == ?x", "relu(?x == ?x"])
    assert "line 3" in caught.value.where
