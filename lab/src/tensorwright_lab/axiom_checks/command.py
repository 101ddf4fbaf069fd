"""`tensorwright rules axioms | suggest-axioms`: judge the properties on which proofs rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tensorwright import rewriting
from tensorwright.cli.arguments.machine import OpenFarm, farm_options
from tensorwright.cli.rules.library import read_rules
from tensorwright.rewriting.axioms import instances, load_axioms, set_hash
from tensorwright.rewriting.prove import Proved, Refuted, prove_all
from tensorwright_lab.axiom_checks.missing import missing_properties
from tensorwright_lab.axiom_checks.validation import (
    FALSE_GOALS,
    FULL,
    QUICK,
    Checked,
    Validation,
    check_axioms,
    consistency,
)


@click.command("axioms")
@click.option("--validate", "wanted", is_flag=True, help="Evaluate both sides at many shapes.")
@click.option("--budget", type=click.Choice(["quick", "full"]), default="quick", show_default=True)
@click.option("--processes", default=2, show_default=True, type=click.IntRange(1))
def axioms_command(wanted: bool, budget: str, processes: int) -> None:
    """List the operator properties on which proofs rest, or validate them.

    Example: tensorwright rules axioms --validate --budget quick
    """
    axioms_by_name = instances(load_axioms())
    if not wanted:
        for each in axioms_by_name.values():
            more = f"  ({len(each)} like it)" if len(each) > 1 else ""
            click.echo(f"{each[0]}{more}")
        return
    checked: list[Checked] = []
    for result in check_axioms(QUICK if budget == "quick" else FULL, processes):
        checked.append(result)
        click.echo(_validated(result.validation))
    shapes = sum(each.validation.shapes for each in checked)
    faults = sum(len(each.validation.faults) for each in checked)
    click.echo(
        f"{len(axioms_by_name)} properties, {shapes} shapes, {faults} faults; "
        f"hash {set_hash(load_axioms())}"
    )
    proved = consistency(load_axioms())
    click.echo(f"consistency: {len(proved)} of {len(FALSE_GOALS)} false goals are proved")
    click.echo(_redundancy(checked))
    click.get_current_context().exit(1 if faults or proved else 0)


def _validated(validation: Validation) -> str:
    sampled = f", {validation.sampled} by random inputs" if validation.sampled else ""
    whole = ", 4x4x4x4 among them" if validation.whole else ""
    every = " (there are no others)" if validation.complete else ""
    counts = f"{validation.shapes} shapes{every}, {validation.unequal} unequal{whole}{sampled}"
    line = f"{validation.name}: {counts}"
    return "\n".join([line, *(f"  FALSE: {fault}" for fault in validation.faults)])


def _redundancy(checked: Sequence[Checked]) -> str:
    """Lines that say which properties follow from the others, and which shortcuts do not."""
    base = [each for each in checked if not each.is_shortcut]
    shortcuts = [each for each in checked if each.is_shortcut]
    lines = [
        f"redundancy: {len(base)} properties, and {len(shortcuts)} shortcuts that follow from them"
    ]
    for word, listed in (
        ("follow from the other properties", [each for each in base if each.follows]),
        ("are shortcuts and were not derived", [each for each in shortcuts if not each.follows]),
    ):
        if listed:
            names = ", ".join(each.validation.name for each in listed)
            lines.append(f"  {len(listed)} {word}: {names}")
    return "\n".join(lines)


@click.command("suggest-axioms")
@click.argument("file", type=click.Path(path_type=Path))
@farm_options
def suggest_command(file: Path, open_farm: OpenFarm) -> None:
    """List the smallest equalities that would prove the unproved candidates of a file.

    Example: tensorwright rules suggest-axioms candidates.rules
    """
    rules = [each.rule for each in read_rules(file)]
    with open_farm() as farm:
        outcomes = dict(prove_all(rules, farm))
    unknown = sorted(
        number for number, each in outcomes.items() if not isinstance(each, Proved | Refuted)
    )
    missing = missing_properties(rules[number] for number in unknown)
    for each in missing:
        click.echo(f"{rewriting.rule_text(each.rule)}    explains {len(each.candidates)}")
    click.echo(f"{len(unknown)} of {len(rules)} unproved, {len(missing)} properties missing")
