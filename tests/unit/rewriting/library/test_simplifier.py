"""What an algebraic simplifier does to tensors: as much as is said to be proved is proved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.draws import some_of

from tensorwright.rewriting import Rule, parse_rules
from tensorwright.rewriting.prove import Proved, Refuted, Unknown, prove

_SAMPLE = 20
"""So many rules are proved with every run; all of them are `slow`."""


def parts() -> Mapping[str, tuple[str, ...]]:
    """The lines of the file by what becomes of them."""
    text = (Path(__file__).parent / "simplifier.rules").read_text(encoding="utf-8")
    found = {}
    for part in text.split("\n## ")[1:]:
        head, *lines = part.splitlines()
        found[head] = tuple(line for line in lines if line)
    return found


PARTS = parts()
PROVED, UNKNOWN, FALSE = (parse_rules(PARTS[head]) for head in ("proved", "unknown", "false"))
BEYOND = PARTS["not expressible"]


def named(rule: Rule) -> str:
    return rule.name


def test_names_are_names_of_one_rule() -> None:
    names = [rule.name for rule in (*PROVED, *UNKNOWN, *FALSE)]
    assert len(set(names)) == len(names)
    assert all(names)


def test_nine_tenths_can_be_said_and_nine_tenths_of_these_are_proved() -> None:
    """The numbers of docs/rules.md."""
    said = len(PROVED) + len(UNKNOWN)
    assert (len(PROVED), len(UNKNOWN), len(FALSE), len(BEYOND)) == (297, 13, 1, 30)
    assert said >= 0.9 * (said + len(BEYOND))
    assert len(PROVED) >= 0.9 * said


@pytest.mark.parametrize("rule", some_of(PROVED, _SAMPLE, "simplifier"), ids=named)
@pytest.mark.drawn
def test_a_sample_is_proved(rule: Rule) -> None:
    assert isinstance(prove(rule), Proved)


@pytest.mark.slow
@pytest.mark.parametrize("rule", PROVED, ids=named)
def test_all_are_proved(rule: Rule) -> None:
    assert isinstance(prove(rule, confirm=False), Proved)


@pytest.mark.slow
@pytest.mark.parametrize("rule", UNKNOWN, ids=named)
def test_what_is_unknown_is_neither_proved_nor_refuted(rule: Rule) -> None:
    """One that became provable belongs among the proved."""
    assert isinstance(prove(rule, confirm=False), Unknown)


@pytest.mark.parametrize("rule", FALSE, ids=named)
def test_what_is_false_is_refuted(rule: Rule) -> None:
    assert isinstance(prove(rule), Refuted)
