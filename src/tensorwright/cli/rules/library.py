"""`tensorwright rules list | derive`: the shipped rules, and what follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import click

from tensorwright.cli.printing.tables import print_table
from tensorwright.cli.rules.reading import read_rules
from tensorwright.rewriting import (
    Rule,
    operator_named,
    operator_names,
    parse_rule,
    rule_text,
    term_text,
)
from tensorwright.rewriting.derivation import Derived, derive, rule_set
from tensorwright.rewriting.library import LibraryRule

UNKNOWN = 11
"""The exit code of `rules derive` if no derivation is found."""

_file_option = click.option(
    "--file", type=click.Path(path_type=Path), help="A file instead of the shipped one."
)


@click.command("list")
@click.option("--operator", multiple=True, help="Only rules with this operator; may be repeated.")
@click.option("--origin", help="Only rules whose origin contains this.")
@click.option("--name", metavar="PATTERN", help="Only names like this: 'matmul-*'.")
@click.option("--counts", is_flag=True, help="Only the counts, by operator and by origin.")
@_file_option
def list_(
    operator: tuple[str, ...], origin: str | None, name: str | None, counts: bool, file: Path | None
) -> None:
    """List rules with the counts by operator and by origin.

    Example: tensorwright rules list --operator matmul --operator concat
    """
    every = read_rules(file)
    chosen = [each for each in every if _fits(each, operator, origin, name)]
    if not counts:
        for each in chosen:
            click.echo(rule_text(each.rule))
    _print_counts("operator", (word for each in chosen for word in _operators(each.rule)))
    _print_counts("origin", (each.origin or "-" for each in chosen))
    click.echo(f"{len(chosen)} of {len(every)} rules")


def _fits(
    each: LibraryRule, operators: tuple[str, ...], origin: str | None, name: str | None
) -> bool:
    return (
        set(operators) <= _operators(each.rule)
        and (origin is None or origin in each.origin)
        and (name is None or fnmatchcase(each.rule.name, name))
    )


def _operators(rule: Rule) -> frozenset[str]:
    """The names of a rule's operators; for an output of an operator, the operator's name, too."""
    names = operator_names(*rule.roots)
    return names | {operator_named(name).output_of for name in names} - {""}


def _print_counts(title: str, words: Iterable[str]) -> None:
    counts = sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))
    if counts:
        print_table((title, "rules"), [(word, str(count)) for word, count in counts])


@click.command("derive")
@click.argument("rule", metavar='"LEFT == RIGHT"')
@_file_option
def derive_(rule: str, file: Path | None) -> None:
    """Say whether a rule follows from the shipped ones, and from which.

    The exit status is 0 if it follows, and 11 if it does not.

    Example: tensorwright rules derive "relu(relu(relu(?x))) == relu(?x)"
    """
    wanted = parse_rule(rule)
    rules_by_name = _by_name(read_rules(file))
    derived = derive(wanted, rule_set(rules_by_name.values()))
    if derived is None:
        click.echo("no derivation was found from these rules")
        click.get_current_context().exit(UNKNOWN)
    click.echo(_told(derived))
    click.echo("rules:" if derived.names else "both sides are the same")
    for name in derived.names:
        click.echo(f"  {rule_text(rules_by_name[name])}")


def _by_name(rules: Iterable[LibraryRule]) -> dict[str, Rule]:
    """The rules by name; a rule without a name gets its number as a name."""
    named = (
        replace(each.rule, name=each.rule.name or f"rule-{number}")
        for number, each in enumerate(rules, 1)
    )
    return {rule.name: rule for rule in named}


def _told(derived: Derived) -> str:
    lines = [f"follows from {', '.join(derived.names) or 'nothing'}"]
    for chain in derived.chains:
        if chain:
            lines.append(f"  {term_text(chain[0].before)}")
        for step in chain:
            lines.append(f"    by {step.rule}" + ("" if step.forward else ", from right to left"))
            lines.append(f"  {term_text(step.after)}")
    return "\n".join(lines)


COMMANDS = (list_, derive_)
