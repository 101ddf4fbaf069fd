"""`tensorwright rules axioms | suggest-axioms`: judge the properties on which proofs rest.

Candidates that hold and have no proof, grouped by the property that may be missing.

    exp(tanh(relu(?x))) == exp(relu(tanh(?x)))      the heads are equal: their arguments are
    tanh(relu(matmul(?x, ?y))) == relu(tanh(...))   both sides have matmul(?x, ?y): an input
    tanh(relu(?x)) == relu(tanh(?x))                explains both

A candidate is pared down first: arguments that both sides share become inputs, as long as the
equality still holds.  The rest is the smallest equality that the axioms do not give; candidates
with the same rest lack the same property.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tensorwright import rewriting
from tensorwright.cli.arguments.machine import OpenFarm, farm_options
from tensorwright.cli.rules import read_rules
from tensorwright.rewriting import terms
from tensorwright.rewriting.axioms import instances, load_axioms, set_hash
from tensorwright.rewriting.prove import Proved, Refuted, problems_of, prove_all
from tensorwright.rewriting.prove.refute import refute
from tensorwright_lab.axiom_checks.validation import (
    FALSE_GOALS,
    FULL,
    QUICK,
    Checked,
    Validation,
    check_axioms,
    consistency,
)
from tensorwright_lab.rule_generation.generalize.widening import with_subterm
from tensorwright_lab.rule_generation.operator_facts import operator_count


@dataclass(frozen=True, slots=True)
class MissingProperty:
    """An equality that holds at small sizes, and the candidates that it would explain."""

    rule: terms.Rule
    candidates: tuple[terms.Rule, ...]


def missing_properties(unproved: Iterable[terms.Rule]) -> tuple[MissingProperty, ...]:
    """The properties that unproved candidates seem to lack, those that explain most first.

    Candidates that evaluation refutes are left out.
    """
    by_property: dict[terms.Rule, list[terms.Rule]] = {}
    for rule in unproved:
        if not _holds(rule):
            continue
        by_property.setdefault(_pared(rule), []).append(rule)
    order = sorted(
        by_property,
        key=lambda rule: (-len(by_property[rule]), operator_count(*rule.roots), str(rule)),
    )
    return tuple(MissingProperty(rule, tuple(by_property[rule])) for rule in order)


def _holds(rule: terms.Rule) -> bool:
    problems = problems_of(rule)
    return bool(problems) and refute(problems) is None


def _pared(rule: terms.Rule) -> terms.Rule:
    """Simplify while the equality holds, and give it the names of a canonical rule."""
    bare = replace(rule, name="", stamp="")
    for smaller in _simpler(bare):
        kept = _without_foreign(smaller)
        if _holds(kept):
            return _pared(kept)
    return terms.canonical_rule(bare)


def _without_foreign(rule: terms.Rule) -> terms.Rule:
    """The rule without conditions on inputs that it no longer has."""
    names = terms.input_names(*rule.roots)
    kept = tuple(fact for fact in rule.condition if terms.names_in(fact) <= set(names))
    return replace(rule, condition=kept)


def _simpler(rule: terms.Rule) -> Iterator[terms.Rule]:
    """One pair of roots alone; a common subterm as an input; the arguments of equal heads."""
    if len(rule.left) > 1:
        for left, right in zip(rule.left, rule.right, strict=True):
            yield replace(rule, left=(left,), right=(right,))
        return
    left, right = rule.left[0], rule.right[0]
    if (
        isinstance(left, terms.Apply)
        and isinstance(right, terms.Apply)
        and (left.operator, left.params) == (right.operator, right.params)
    ):
        for one, other in zip(left.args, right.args, strict=True):
            if one != other:
                yield replace(rule, left=(one,), right=(other,))
    shared = set(terms.applications(left)) & set(terms.applications(right))
    fresh = _fresh(rule)
    for term in sorted(shared, key=lambda each: (-operator_count(each), str(each))):
        if term not in (left, right):
            put = (with_subterm(side, term, terms.Input(fresh)) for side in (left, right))
            yield replace(rule, left=(next(put),), right=(next(put),))


def _fresh(rule: terms.Rule) -> str:
    taken = terms.input_names(*rule.roots)
    return next(f"t{n}" for n in range(len(taken) + 1) if f"t{n}" not in taken)


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
