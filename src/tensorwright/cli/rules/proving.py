"""`tensorwright rules prove | check | explain | axioms | suggest-axioms`: proofs of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from tensorwright import rewriting
from tensorwright.base import write_atomically
from tensorwright.cli.arguments.machine import OpenFarm, farm_options
from tensorwright.cli.arguments.output import ProgressLines, check_writable
from tensorwright.cli.rules.library import named_rule, read_head, read_rules
from tensorwright.rewriting.axioms import instances, load_axioms, set_hash
from tensorwright.rewriting.library import library_text
from tensorwright.rewriting.prove import (
    FALSE_GOALS,
    FULL,
    QUICK,
    Checked,
    Outcome,
    Proved,
    Refuted,
    Validation,
    check_axioms,
    conditioned,
    consistency,
    missing_properties,
    prove,
    prove_all,
    stamp_of,
    stamped,
)

REFUTED, UNKNOWN = 10, 11
"""The exit codes of `rules check` and `rules prove` for rules that are not proved."""


def _exit_code(outcomes: Sequence[Outcome]) -> int:
    if any(isinstance(each, Refuted) for each in outcomes):
        return REFUTED
    return 0 if all(isinstance(each, Proved) for each in outcomes) else UNKNOWN


@click.command()
@click.argument("rule")
def check(rule: str) -> None:
    """Decide one rule: proved (exit code 0), refuted (10) or unknown (11).

    If the rule is false as it is written, the command looks for a condition under which it is
    proved.

    Example: tensorwright rules check "relu(relu(?x)) == relu(?x)"
    """
    outcome = prove(rewriting.parse_rule(rule))
    click.echo(str(outcome))
    if isinstance(outcome, Proved) and outcome.reassociating:
        click.echo("over the reals; floats may differ in the last bits")
    narrower = conditioned(outcome.rule) if isinstance(outcome, Refuted) else None
    if narrower is not None and isinstance(prove(narrower), Proved):
        click.echo(f"it is proved if {rewriting.condition_text(narrower.condition)}")
    click.get_current_context().exit(_exit_code([outcome]))


@click.command("prove")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@farm_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the proved rules, with stamps."
)
def prove_(file: Path | None, open_farm: OpenFarm, output: Path | None) -> None:
    """Decide every rule of a file; exit code 10 if one is refuted, 11 if one is unknown.

    Without FILE: the rules that ship with tensorwright.

    Example: tensorwright rules prove my.rules --processes 2
    """
    listed = read_rules(file)
    rules = [each.rule for each in listed]
    check_writable(output, file)
    outcomes: dict[int, Outcome] = {}
    progress = ProgressLines("rules")
    with open_farm() as farm:
        for number, outcome in prove_all(rules, farm):
            outcomes[number] = outcome
            progress.show(len(outcomes), len(rules))
            if not isinstance(outcome, Proved):
                click.echo(f"{rewriting.rule_text(rules[number])}\n{outcome}")
    counts = Counter(type(outcome).__name__.lower() for outcome in outcomes.values())
    click.echo(f"{len(rules)} rules: {_counted(counts)}; stamp {stamp_of()}")
    proved = (outcome for outcome in outcomes.values() if isinstance(outcome, Proved))
    for basis, count in Counter(outcome.basis for outcome in proved).items():
        click.echo(f"  {count} rest on {basis.value}")
    old = sum(rule.stamp not in ("", stamp_of()) for rule in rules)
    if old:
        click.echo(f"{old} have the stamp of other axioms or of another prover")
    if output is not None:
        kept = [
            replace(listed[number], rule=stamped(each))
            for number, each in sorted(outcomes.items())
            if isinstance(each, Proved)
        ]
        write_atomically(output, library_text(read_head(file), kept))
    click.get_current_context().exit(_exit_code(list(outcomes.values())))


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items())) or "none"


@click.command()
@click.argument("rule", metavar="NAME|RULE")
@click.option("--file", type=click.Path(path_type=Path), help="The file with the rule NAME.")
def explain(rule: str, file: Path | None) -> None:
    """Show both graphs of a rule and the axioms of its proof, or an example where it fails.

    NAME is the name of a shipped rule, or of a rule in --file.

    Example: tensorwright rules explain "relu(relu(?x)) == relu(?x)"
    """
    parsed = rewriting.parse_rule(rule) if "==" in rule else named_rule(rule, file)
    for word, side in (("left", parsed.left), ("right", parsed.right)):
        click.echo(f"{word}:")
        for line in _drawn(side):
            click.echo(f"  {line}")
    outcome = prove(parsed)
    click.echo(str(outcome))
    if isinstance(outcome, Proved):
        axioms_by_name = instances(load_axioms())
        click.echo("axioms:")
        for name in outcome.axioms:
            click.echo(f"  {axioms_by_name[name][0]}")


def _drawn(roots: tuple[rewriting.Term, ...]) -> list[str]:
    """A graph as text: one line for each different application of an operator."""
    names: dict[rewriting.Term, str] = {}
    lines = []
    for each in rewriting.applications(*roots):
        names[each] = f"t{len(names)}"
        params = f"[{', '.join(map(str, each.params))}]" if each.params else ""
        args = ", ".join(names.get(arg, rewriting.term_text(arg)) for arg in each.args)
        lines.append(f"{names[each]} = {each.operator}{params}({args})")
    return [*lines, "-> " + ", ".join(names.get(root, rewriting.term_text(root)) for root in roots)]


@click.command()
@click.option("--validate", "wanted", is_flag=True, help="Evaluate both sides at many shapes.")
@click.option("--budget", type=click.Choice(["quick", "full"]), default="quick", show_default=True)
@click.option("--processes", default=2, show_default=True, type=click.IntRange(1))
def axioms(wanted: bool, budget: str, processes: int) -> None:
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
def suggest_axioms(file: Path, open_farm: OpenFarm) -> None:
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


COMMANDS = (prove_, check, explain, axioms, suggest_axioms)
