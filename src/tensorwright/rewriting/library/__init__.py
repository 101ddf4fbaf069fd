"""The rules that ship with the package, and those of the user, of which only proved ones are used.

`tensorwright rules generate --shipped` writes `shipped.rules`: the rules of the laboratory's
presets, and those rules of the hand-written `schemas.rules`, `constants.rules` and `known.rules`
that the others do not imply.

    read_own_rules(["mine.rules", "matmul(?x, relu(?w)) == ..."])    proved rules, or an error

Rules that ship were proved before.  The user's rules are proved when they are read, with any stamp,
because a file can be edited.  A user who trusts a file may accept those rules that carry the stamp
of these axioms and this prover; the others are still proved.

A file has a rule a line, under comments that say where the rules come from.

    # Rules that ship with tensorwright
    # origin: taso, up to 3 operators
    transpose-transpose-to-input: transpose[1, 0](transpose[1, 0](?x1)) == ?x1  [4f12ab09/1]
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path
from typing import NoReturn
from tensorwright.base import UsageError
from tensorwright.farm import LocalFarm
from tensorwright.graph import free_name
from tensorwright.rewriting import prove
from tensorwright.rewriting.terms import Rule, canonical_rule
from tensorwright.rewriting.text import numbered_rules, parse_rule, parse_rules, rule_text


_ORIGIN = "# origin:"


@dataclass(frozen=True, slots=True)
class LibraryRule:
    """A rule and where it comes from; "" where its file does not say."""

    rule: Rule
    origin: str = ""


def shipped_path() -> Path:
    """The file of rules that ships with the package."""
    return Path(__file__).parent / "shipped.rules"


@cache
def load_library() -> tuple[LibraryRule, ...]:
    """The rules that ship with the package, in the order of the file."""
    return read_library(shipped_path().read_text(encoding="utf-8").splitlines())


def listed_rules(name: str) -> tuple[Rule, ...]:
    """The rules of a file that is written by hand, `constants`, `known` or `schemas`."""
    path = Path(__file__).parent / f"{name}.rules"
    return parse_rules(path.read_text(encoding="utf-8").splitlines())


def rule_lines(path: Path) -> list[str]:
    """The lines of a file of rules.  Raises: UsageError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        remedy = "give a text file of rules; docs/rules.md shows one"
        raise UsageError(
            stage="rules", where=f"file {path}", reason=reason, remedy=remedy
        ) from error


def read_library(lines: Iterable[str]) -> tuple[LibraryRule, ...]:
    """Read the lines of a file of rules."""
    rules: list[LibraryRule] = []
    origin = ""
    for line in lines:
        text = line.strip()
        if text.startswith(_ORIGIN):
            origin = text.removeprefix(_ORIGIN).strip()
        elif text and not text.startswith("#"):
            rules.append(LibraryRule(parse_rule(text), origin))
    return tuple(rules)


def head_of(lines: Iterable[str]) -> tuple[str, ...]:
    """The comment at the top of a file, its lines without their mark."""
    comment = takewhile(lambda line: line.startswith("#") and not line.startswith(_ORIGIN), lines)
    return tuple(line.removeprefix("#").strip() for line in comment)


def library_text(head: Sequence[str], rules: Iterable[LibraryRule]) -> str:
    """The text of a file of rules; `head` are lines of comment without their mark."""
    lines = [f"# {line}".rstrip() for line in head]
    for origin, group in groupby(rules, key=lambda each: each.origin):
        if origin:
            lines += ["", f"{_ORIGIN} {origin}"]
        lines += [rule_text(each.rule) for each in group]
    return "\n".join(lines) + "\n"


_MOST_WORKERS = 2


@dataclass(frozen=True, slots=True)
class _Listed:
    """A rule and where it stands."""

    rule: Rule
    where: str


def read_own_rules(
    sources: Sequence[str | os.PathLike[str]], *, is_trusted: bool = False
) -> tuple[Rule, ...]:
    """The rules of files, or of texts, which have a `==`; without those that ship anyway.

    Each has a name of its own: one that is missing or taken is made from the name of its file.
    is_trusted   whether a rule with the stamp of this prover is believed

    Raises:  UsageError that names file and line for what cannot be read, is refuted or unknown;
             MachineError where a proof is needed and Z3 is not installed.
    """
    shipped = {_meaning(each.rule) for each in load_library()}
    listed = [
        _checked(each)
        for source in sources
        for each in _listed(source)
        if _meaning(each.rule) not in shipped
    ]
    believed = [is_trusted and each.rule.stamp == prove.stamp_of() for each in listed]
    unproved = [each for each, is_known in zip(listed, believed, strict=True) if not is_known]
    proved = iter(_proved(unproved))
    rules = [
        each.rule if is_known else next(proved)
        for each, is_known in zip(listed, believed, strict=True)
    ]
    return tuple(_named(rules))


def _listed(source: str | os.PathLike[str]) -> Iterator[_Listed]:
    text = os.fspath(source)
    if isinstance(source, str) and "==" in text:
        yield _Listed(parse_rule(text), f"rule {text!r}")
        return
    stem = re.sub(r"\W", "-", Path(text).stem)
    try:
        for number, rule in numbered_rules(rule_lines(Path(text))):
            named = replace(rule, name=rule.name or f"own-{stem}-{number}")
            yield _Listed(named, f"file {text}, line {number}")
    except UsageError as error:
        raise error.at(f"file {text}, {error.where}") from None


def _meaning(rule: Rule) -> str:
    """The rule without its name and stamp, and with canonical variables."""
    return rule_text(canonical_rule(replace(rule, name="", stamp="", reassociating=False)))


def _checked(each: _Listed) -> _Listed:
    """Refuse a rule with operators that do not exist, or parameters that they do not have."""
    try:
        for case in prove.cases_of(each.rule)[:1]:
            prove.problems_of(case)
    except UsageError as error:
        raise error.at(f"{each.where}, {error.where}") from None
    return each


def _proved(listed: Sequence[_Listed]) -> list[Rule]:
    """The rules with their stamps.  Raises: UsageError for the first that is not proved."""
    if not listed:
        return []
    with LocalFarm(min(_MOST_WORKERS, len(listed))) as farm:
        outcomes = dict(prove.prove_all([each.rule for each in listed], farm))
    rules = []
    for number, each in enumerate(listed):
        outcome = outcomes[number]
        if not isinstance(outcome, prove.Proved):
            _refuse(each, outcome)
        rules.append(prove.stamped(outcome))
    return rules


def _refuse(each: _Listed, outcome: prove.Outcome) -> NoReturn:
    if isinstance(outcome, prove.Refuted):
        reason = "the rule is false: there are inputs for which its sides differ"
    else:
        reason = f"the rule is not proved: {str(outcome).splitlines()[0]}"
    text = rule_text(replace(each.rule, name="", stamp="", reassociating=False))
    remedy = f"tensorwright rules check {text!r} says more"
    raise UsageError(stage="rules", where=each.where, reason=reason, remedy=remedy)


def _named(rules: Sequence[Rule]) -> Iterator[Rule]:
    """The rules, each with a name that no other has, those that ship included."""
    taken = {*(each.rule.name for each in load_library())}
    for rule in rules:
        name = free_name(rule.name or "own", taken, 2, "-")
        taken.add(name)
        yield replace(rule, name=name)
