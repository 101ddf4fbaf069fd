"""Files of proved rules: a rule a line, under comments that say where the rules come from.

# Rules that ship with tensorwright
# origin: taso, up to 3 operators
transpose-transpose-to-input: transpose[1, 0](transpose[1, 0](?x1)) == ?x1  [4f12ab09/1]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path

from tensorwright.base import UsageError
from tensorwright.rewriting.terms import Rule
from tensorwright.rewriting.text import parse_rule, parse_rules, rule_text

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
    """Read the lines of a file of rules.

    Raises:  UsageError that names the place.
    """
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
