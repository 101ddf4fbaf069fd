"""`tensorwright rules prove | check | explain`: proofs of rules."""

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
from tensorwright.rewriting import prove
from tensorwright.rewriting.axioms import instances, load_axioms
from tensorwright.rewriting.library import library_text

REFUTED, UNKNOWN = 10, 11
"""The exit codes of `rules check` and `rules prove` for rules that are not proved."""


def _exit_code(outcomes: Sequence[prove.Outcome]) -> int:
    if any(isinstance(each, prove.Refuted) for each in outcomes):
        return REFUTED
    return 0 if all(isinstance(each, prove.Proved) for each in outcomes) else UNKNOWN


@click.command()
@click.argument("rule")
def check(rule: str) -> None:
    """Decide one rule: proved (exit code 0), refuted (10) or unknown (11).

    If the rule is false as it is written, the command looks for a condition under which it is
    proved.

    Example: tensorwright rules check "relu(relu(?x)) == relu(?x)"
    """
    outcome = prove.prove(rewriting.parse_rule(rule))
    click.echo(str(outcome))
    if isinstance(outcome, prove.Proved) and outcome.reassociating:
        click.echo("over the reals; floats may differ in the last bits")
    narrower = prove.conditioned(outcome.rule) if isinstance(outcome, prove.Refuted) else None
    if narrower is not None and isinstance(prove.prove(narrower), prove.Proved):
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
    outcomes: dict[int, prove.Outcome] = {}
    progress = ProgressLines("rules")
    with open_farm() as farm:
        for number, outcome in prove.prove_all(rules, farm):
            outcomes[number] = outcome
            progress.show(len(outcomes), len(rules))
            if not isinstance(outcome, prove.Proved):
                click.echo(f"{rewriting.rule_text(rules[number])}\n{outcome}")
    counts = Counter(type(outcome).__name__.lower() for outcome in outcomes.values())
    click.echo(f"{len(rules)} rules: {_counted(counts)}; stamp {prove.stamp_of()}")
    proved = (outcome for outcome in outcomes.values() if isinstance(outcome, prove.Proved))
    for basis, count in Counter(outcome.basis for outcome in proved).items():
        click.echo(f"  {count} rest on {basis.value}")
    old = sum(rule.stamp not in ("", prove.stamp_of()) for rule in rules)
    if old:
        click.echo(f"{old} have the stamp of other axioms or of another prover")
    if output is not None:
        kept = [
            replace(listed[number], rule=prove.stamped(each))
            for number, each in sorted(outcomes.items())
            if isinstance(each, prove.Proved)
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
    outcome = prove.prove(parsed)
    click.echo(str(outcome))
    if isinstance(outcome, prove.Proved):
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


COMMANDS = (prove_, check, explain)
