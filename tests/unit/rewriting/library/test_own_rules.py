"""Rules of the user's own: proved when they are read, or refused with file and line."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tensorwright.base import UsageError
from tensorwright.farm import Farm
from tensorwright.rewriting import Rule, parse_rule, rule_text
from tensorwright.rewriting.library import load_library, read_own_rules
from tensorwright.rewriting.prove import Outcome, prove, stamp_of

MODULE = importlib.import_module("tensorwright.rewriting.library")
TWICE = "relu(relu(relu(?x))) == relu(?x)"
THREE = "matmul(matmul(matmul(?x, ?a), ?b), ?c) == matmul(?x, matmul(?a, matmul(?b, ?c)))"
FALSE = "matmul(?x, ?y) == matmul(?y, ?x)"


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of rules for which a proof is asked for; found here, without Z3."""
    names: list[str] = []

    def prove_here(rules: Sequence[Rule], farm: Farm) -> Iterator[tuple[int, Outcome]]:
        for place, rule in enumerate(rules):
            names.append(rule.name)
            yield place, prove(rule, confirm=False)

    monkeypatch.setattr(MODULE.prove, "prove_all", prove_here)
    return names


def write(folder: Path, *lines: str) -> Path:
    path = folder / "my own.rules"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rules_are_proved_stamped_and_named(tmp_path: Path, asked: list[str]) -> None:
    path = write(tmp_path, "# mine", "", f"thrice: {TWICE}", THREE)
    thrice, three = read_own_rules([path])
    assert asked == ["thrice", "own-my-own-4"]
    assert rule_text(thrice) == f"thrice: {TWICE}  [{stamp_of()}]"
    assert three.name == "own-my-own-4"
    assert three.reassociating, "the mark is that of the proof"


def test_texts_are_rules_too(asked: list[str]) -> None:
    (rule,) = read_own_rules([f"thrice: {TWICE}"])
    assert rule.stamp == stamp_of()
    with pytest.raises(UsageError, match=r"rule 'matmul.*: the rule is false"):
        read_own_rules([FALSE])


def test_rules_for_all_parameters_are_proved_for_all(asked: list[str]) -> None:
    text = "relu(max_pool[_a, _b, _h, _v, _pad](?x)) == max_pool[_a, _b, _h, _v, _pad](relu(?x))"
    (rule,) = read_own_rules([f"pools: tanh({text.replace(' == ', ') == tanh(')})"])
    assert rule.stamp == stamp_of()
    assert "_pad" in rule_text(rule)


def test_names_are_unlike_all_others(tmp_path: Path) -> None:
    shipped = load_library()[0].rule.name
    path = write(tmp_path, f"{shipped}: {TWICE}", f"{shipped}: {THREE}")
    assert [rule.name for rule in read_own_rules([path])] == [f"{shipped}-2", f"{shipped}-3"]


def test_what_ships_is_passed_over(tmp_path: Path, asked: list[str]) -> None:
    shipped = next(each.rule for each in load_library() if each.rule.name == "associativity")
    other = str(rule_text(replace(shipped, name="mine", stamp=""))).replace("?x1", "?left")
    assert "?left" in other
    assert read_own_rules([write(tmp_path, other)]) == ()
    assert asked == []


@pytest.mark.parametrize("stamp", ["", "  [00000000/1]", "  [{stamp}]"], ids=["no", "old", "own"])
@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_stamp_is_believed_only_where_asked_for_and_of_today(
    tmp_path: Path, asked: list[str], stamp: str, is_trusted: bool
) -> None:
    path = write(tmp_path, f"thrice: {TWICE}{stamp.format(stamp=stamp_of())}")
    (rule,) = read_own_rules([path], is_trusted=is_trusted)
    assert rule == parse_rule(f"thrice: {TWICE}  [{stamp_of()}]")
    assert asked == ([] if is_trusted and "{" in stamp else ["thrice"])


def test_a_false_rule_with_a_stamp_is_refused_but_for_trust(tmp_path: Path) -> None:
    true, false = f"thrice: {TWICE}", f"swapped: {FALSE}  [{stamp_of()}]"
    path = write(tmp_path, true, false)
    with pytest.raises(UsageError, match=rf"file {path}, line 2: the rule is false"):
        read_own_rules([path])
    assert [rule.name for rule in read_own_rules([path], is_trusted=True)] == ["thrice", "swapped"]
    path = write(tmp_path, true, f"swapped: {FALSE}  [00000000/1]")
    with pytest.raises(UsageError, match="line 2: the rule is false"):
        read_own_rules([path], is_trusted=True)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("tanh(relu(?x)) == relu(tanh(?x))", "the rule is not proved: unknown: the axioms say"),
        ("blend(?x) == ?x", "knows no such operator"),
        ("relu(?x, ?y) == ?x", "it has 2 arguments and takes 1"),
        ("relu(?x) == relu(?x) if y.0 = 2", "neither side of the rule has this input"),
        ("relu[1](?x) == ?x", "the rule is not proved: unknown: there are no shapes"),
        ("conv2d[_h, 1, same, none](?x, ?w) == ?x", "the rule is false"),
        ("relu(?x) == relu(?x) if _a >= 1", "_a is not a parameter of any operator"),
        ("slice[_a, 0, _a](?x) == ?x", "_a stands at parameters of different kinds"),
        ("broadcast[_n, _m](?x) == broadcast[_m, _n](?x)", "_n stands for one parameter, and for"),
        ("relu(?x) == ?x, ?x", "1 roots on the left"),
        ("relu(?x) == relu(?x) if x is small", "a condition is"),
        ("relu[(?x) == relu(?x)", "is not closed"),
    ],
)
def test_what_is_no_proved_rule_is_named_with_its_line(
    tmp_path: Path, line: str, text: str
) -> None:
    path = write(tmp_path, "", "# next", line)
    with pytest.raises(UsageError) as caught:
        read_own_rules([path])
    assert caught.value.where.startswith(f"file {path}, line 3")
    assert text in caught.value.reason


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_own_rules([tmp_path / "missing.rules"])
    path = tmp_path / "bytes.rules"
    path.write_bytes(b"\xff\xfe==")
    with pytest.raises(UsageError, match="it is not text"):
        read_own_rules([str(path)])
