"""Read the files of rules and the names of rules that commands take."""

from __future__ import annotations

from pathlib import Path

from tensorwright.base import UsageError, did_you_mean
from tensorwright.rewriting import Rule
from tensorwright.rewriting.library import (
    LibraryRule,
    head_of,
    read_library,
    rule_lines,
    shipped_path,
)


def read_rules(path: Path | None) -> tuple[LibraryRule, ...]:
    """The rules of a file, or those that ship with the package.

    Raises:  UsageError for a file that cannot be read, or a line that is not a rule.
    """
    return read_library(_lines(path))


def read_head(path: Path | None) -> tuple[str, ...]:
    """The comment at the top of a file of rules.

    Raises:  UsageError for a file that cannot be read.
    """
    return head_of(_lines(path))


def _lines(path: Path | None) -> list[str]:
    return rule_lines(shipped_path() if path is None else path)


def named_rule(name: str, path: Path | None) -> Rule:
    """The rule of this name in a file, or among those that ship with the package.

    Raises:  UsageError for an unknown name; it suggests the nearest name.
    """
    rules = {each.rule.name: each.rule for each in read_rules(path)}
    if name in rules:
        return rules[name]
    raise UsageError(
        stage="rules",
        where=f"rule {name}",
        reason=f"there is no rule of this name in {path or 'the shipped file'}",
        remedy=did_you_mean(name, rules, "tensorwright rules list shows all names"),
    )
