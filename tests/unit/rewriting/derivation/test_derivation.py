"""What follows from rules, and what rewrites as much as another rule."""

from __future__ import annotations

from dataclasses import replace

from tensorwright.rewriting import Rule, condition_text, parse_rule, parse_rules
from tensorwright.rewriting.egraph import Limits
from tensorwright_lab.rule_generation.derivation import derive, rule_set
from tensorwright_lab.rule_generation.selection import sides_key, systematic_name
from tensorwright_lab.rule_generation.selection.examine import subsuming_rules, tidied

FIRST = "split0[1, x.1](concat[1](?x, ?y)) == ?x"
SECOND = "split1[1, x.1](concat[1](?x, ?y)) == ?y"
SPREAD = "matmul(?x, concat[1](?y, ?z)) == concat[1](matmul(?x, ?y), matmul(?x, ?z))"
MERGED = "matmul(?x, concat[1](?y, ?z))"
MERGE = (
    "matmul(?x, ?y), matmul(?x, ?z) == "
    f"split0[1, y.1]({MERGED}), split1[1, y.1]({MERGED}) if rank(x) = 2"
)
LINEAR = (
    "conv2d[1, 1, same, none](?x, concat[0](?v, ?w)) == concat[1]("
    "conv2d[1, 1, same, none](?x, ?v), conv2d[1, 1, same, none](?x, ?w)) if x.1 = v.1"
)


def named(*texts: str) -> tuple[Rule, ...]:
    return tuple(replace(parse_rule(text), name=f"r{n}") for n, text in enumerate(texts))


def test_a_rule_follows_from_others_by_name() -> None:
    found = derive(parse_rule(MERGE), rule_set(named(FIRST, SECOND, SPREAD)))
    assert found is not None
    assert found.names == ("r0", "r1", "r2")
    assert [step.rule for step in found.chains[0]] == ["r0", "r2"]


def test_nothing_follows_from_nothing() -> None:
    assert derive(parse_rule(FIRST), rule_set(())) is None
    same = derive(parse_rule("relu(?x) == relu(?x)"), rule_set(()))
    assert same is not None
    assert same.names == ()


def test_what_takes_products_apart_cannot_merge_them() -> None:
    apart = named(FIRST, SECOND, SPREAD)
    assert subsuming_rules(parse_rule(MERGE), rule_set(apart)) is None
    merge = replace(parse_rule(MERGE), name="merge")
    other = parse_rule(
        "relu(matmul(?a, ?b)), relu(matmul(?a, ?c)) == relu(split0[1, b.1](matmul(?a, concat[1]"
        "(?b, ?c)))), relu(split1[1, b.1](matmul(?a, concat[1](?b, ?c)))) if rank(a) = 2"
    )
    assert subsuming_rules(other, rule_set((*apart, merge))) == ("merge",)


def test_what_forgets_an_input_is_used_from_its_own_side() -> None:
    special = parse_rule("split0[1, x.1](concat[1](relu(?x), ?y)) == relu(?x)")
    assert subsuming_rules(special, rule_set(named(FIRST))) == ("r0",)
    assert subsuming_rules(parse_rule(FIRST), rule_set(named("relu(relu(?x)) == relu(?x)"))) is None


def test_a_rule_is_used_only_where_its_condition_is_known() -> None:
    sides = (
        "conv2d[1, 1, same, none](?a, concat[0](?b, concat[0](?c, ?d))) == concat[1]("
        "conv2d[1, 1, same, none](?a, ?b), conv2d[1, 1, same, none](?a, concat[0](?c, ?d)))"
    )
    rules = rule_set(named(LINEAR))
    assert subsuming_rules(parse_rule(sides), rules) is None
    assert subsuming_rules(parse_rule(f"{sides} if a.1 = b.1"), rules) == ("r0",)


def test_a_rule_of_one_rank_says_nothing_of_others() -> None:
    rules = rule_set(named("relu(relu(?x)) == relu(?x) if rank(x) = 2"))
    wanted = "relu(relu(relu(?x))) == relu(?x)"
    assert subsuming_rules(parse_rule(f"{wanted} if rank(x) = 2"), rules) == ("r0",)
    assert subsuming_rules(parse_rule(wanted), rules) is None


def test_sizes_of_constants_are_variables() -> None:
    rules = rule_set(
        named(
            "relu(eye[n.0]()) == eye[n.0]() if rank(n) = 1",
            "relu(ones[n.0, n.1]()) == ones[n.0, n.1]()",
        )
    )
    assert subsuming_rules(parse_rule("relu(relu(eye[x.1]())) == eye[x.1]()"), rules) == ("r0",)
    assert subsuming_rules(parse_rule("relu(ones[x.1, 3]()) == ones[x.1, 3]()"), rules) == ("r1",)
    assert (
        subsuming_rules(parse_rule("relu(ones[x.1, 3, 2]()) == ones[x.1, 3, 2]()"), rules) is None
    )


def test_sizes_that_divide_each_other_are_told() -> None:
    sides = "pad[0, 0, 2*x.0](relu(relu(?x))), ?y == pad[0, 0, 2*x.0](relu(?x)), relu(?y)"
    rule = parse_rule(f"{sides} if y.0 divides x.0 and x.0 // y.0 divides y.0")
    rules = rule_set(named("relu(relu(?x)) == relu(?x)", "?y == relu(?y)"))
    found = derive(rule, rules)
    assert found is not None
    assert found.names == ("r0", "r1")


def test_small_rules_are_tried_before_a_graph_is_filled() -> None:
    """Rules as large as what is asked put so many terms in that nothing is found beside them."""
    small = named(
        "ewadd(?x, ?y) == ewadd(?y, ?x)",
        "ewadd(ewadd(?x, ?y), ?z) == ewadd(?x, ewadd(?y, ?z))",
    )
    large = parse_rules(
        f"large-{turn}: ewadd(?x, ?y) == ewadd({turn}({turn}(?y)), {turn}({turn}(?x)))"
        for turn in ("relu", "exp", "tanh", "sigmoid")
    )
    wanted = parse_rule(
        "relu(ewadd(ewadd(?a, ?b), ewadd(?c, ?d))) == relu(ewadd(ewadd(?d, ?b), ewadd(?c, ?a)))"
    )
    few = Limits(rounds=6, nodes=80, matches=200)
    both = rule_set((*small, *large))
    assert subsuming_rules(wanted, both, few) == ("r0", "r1")
    assert subsuming_rules(wanted, rule_set(small), few) == ("r0", "r1")


def test_conditions_are_tidied() -> None:
    rule = parse_rule(
        "relu(?x) == ?y if x.0 + x.1 = x.1 + y.0 and x.0 + y.1 = y.0 + x.1 and y.0 = x.0"
    )
    assert condition_text(tidied(rule).condition) == "x.0 = y.0 and y.1 = x.1"


def test_names_go_by_the_sides() -> None:
    turned = parse_rule("?b == split0[1, b.1](concat[1](?b, ?a)) if rank(b) = 2")
    assert sides_key(turned) == sides_key(parse_rule(FIRST))
    assert sides_key(turned) != sides_key(parse_rule(SECOND))


def test_names_say_both_sides() -> None:
    rule = parse_rule(MERGE)
    assert systematic_name(rule) == "matmul-matmul-to-split-matmul-concat"
    assert systematic_name(parse_rule(FIRST)) == "split-concat-to-input"
