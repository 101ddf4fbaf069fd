"""From candidates to kept rules: what is dropped follows from what is kept, always the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorwright.farm import LocalFarm
from tensorwright.rewriting import Rule, parse_rules, rule_text
from tensorwright.rewriting.prove import stamp_of
from tensorwright_lab.rule_generation.derivation import derive, rule_set
from tensorwright_lab.rule_generation.selection import (
    Progress,
    Selection,
    minimise_rules,
    select_rules,
)
from tensorwright_lab.rule_generation.selection.examine import subsuming_rules

CANDIDATES = parse_rules(
    """
    relu(relu(relu(?x1))) == relu(?x1) if rank(x1) = 2
    relu(relu(?x1)) == relu(?x1) if rank(x1) = 2
    relu(relu(?x1)) == relu(?x1) if rank(x1) = 4
    transpose[1, 0](transpose[1, 0](?x1)) == ?x1
    transpose[1, 0](relu(?x1)) == relu(transpose[1, 0](?x1))
    relu(transpose[1, 0](relu(?x1))) == transpose[1, 0](relu(?x1))
    transpose[1, 0](relu(transpose[1, 0](?x1))) == relu(?x1)
    relu(?x1) == ?x1 if rank(x1) = 2
    tanh(relu(?x1)) == relu(tanh(?x1)) if rank(x1) = 2
    split0[0, x1.0](concat[0](?x1, relu(?x2))) == ?x1 if rank(x1) = 2 and rank(x2) = 2
    split0[0, x1.0](concat[0](?x1, ?x2)) == ?x1 if rank(x1) = 2 and rank(x2) = 2
    """.splitlines()
)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("selection") / "verdicts"


@pytest.fixture(scope="module")
def selection(verdicts: Path) -> Selection:
    with LocalFarm(2) as farm:
        return select_rules(CANDIDATES, farm, verdicts=verdicts)


def texts(rules: tuple[Rule, ...]) -> list[str]:
    return [rule_text(rule) for rule in rules]


def test_the_small_and_general_are_kept(selection: Selection) -> None:
    stamp = stamp_of()
    assert texts(selection.kept) == [
        (
            "split-concat-to-input: "
            f"split0[_axis, x1._axis](concat[_axis](?x1, ?x2)) == ?x1  [{stamp}]"
        ),
        f"transpose-transpose-to-input: transpose[1, 0](transpose[1, 0](?x1)) == ?x1  [{stamp}]",
        f"relu-relu-to-relu: relu(relu(?x1)) == relu(?x1)  [{stamp}]",
        (
            "transpose-relu-to-relu-transpose: "
            f"transpose[_perm](relu(?x1)) == relu(transpose[_perm](?x1))  [{stamp}]"
        ),
    ]


def test_what_is_false_or_not_proved_is_said(selection: Selection) -> None:
    assert texts(selection.refuted) == ["relu(?x1) == ?x1 if rank(x1) = 2"]
    ((rule, reason),) = selection.unknown
    assert rule_text(rule).startswith("tanh(relu(?x1))")
    assert reason


def test_fewer_rules_subsuming_rules(selection: Selection) -> None:
    """Every dropped rule follows from the kept ones, and from those that are named alone."""
    kept = {rule.name: rule for rule in selection.kept}
    assert len(selection.implied) == len(CANDIDATES) - len(kept) - 2
    for dropped in selection.implied:
        assert subsuming_rules(dropped.rule, rule_set(kept.values())) is not None
        named = rule_set(kept[name] for name in dropped.names)
        assert derive(dropped.rule, named) is not None


def test_no_kept_rule_follows_from_those_before_it(selection: Selection) -> None:
    for number, rule in enumerate(selection.kept):
        assert subsuming_rules(rule, rule_set(selection.kept[:number])) is None


def test_a_run_goes_on_where_it_was_stopped(selection: Selection, verdicts: Path) -> None:
    lines = verdicts.read_text().splitlines()
    answers = {json.loads(line)["answer"] for line in lines}
    assert answers == {"implied", "open", "proved", "refuted", "unknown"}
    half = verdicts.with_name("half")
    half.write_text("\n".join(lines[:-4]) + '\n{"key": "cut o')
    told: list[Progress] = []
    again = select_rules(CANDIDATES[::-1], verdicts=half, progress=told.append)
    assert again.kept == selection.kept
    assert again.implied == selection.implied
    assert len(told) == 4
    assert [each.done for each in told] == [1, 2, 3, 4]  # the kept ones, looked at once more
    assert told[-1].total == told[-1].here == len(selection.kept)
    known: list[Progress] = []
    assert select_rules(CANDIDATES, verdicts=half, progress=known.append).kept == selection.kept
    assert known == []


def test_rules_that_are_there_already_count(selection: Selection) -> None:
    more = select_rules(CANDIDATES[:7], kept=selection.kept)
    assert more.kept == selection.kept


def test_a_rule_is_not_dropped_for_a_larger_one() -> None:
    lines = (
        "small: relu(?x) == tanh(?x)",
        "large: relu(relu(relu(?x))) == tanh(?x)",
        "twice: relu(relu(?x)) == relu(?x)",
    )
    rules = parse_rules(lines)
    assert subsuming_rules(rules[0], rule_set(rules[1:])) == ("large", "twice")
    found = minimise_rules(rules)
    assert [rule.name for rule in found.kept] == ["small", "twice"]
    assert [(each.rule.name, each.names) for each in found.implied] == [
        ("large", ("small", "twice"))
    ]


def test_rules_that_imply_each_other_are_not_both_dropped() -> None:
    rules = parse_rules(
        (
            "first: relu(?x) == tanh(?x)",
            "second: relu(?x) == exp(?x)",
            "third: tanh(?x) == exp(?x)",
        )
    )
    assert [rule.name for rule in minimise_rules(rules).kept] == ["first", "second"]
