"""`tensorwright rules coverage | derive`: where rules can be applied, and what follows from them.

A place is where a rule can be applied in a network as it was read.

    relu(concat[_axis](?x, ?y)) == ...     at the relu of a concatenation, from left to right, and
                                           where relus are concatenated, from right to left
    matmul(?x, ?y), matmul(?x, ?z) == ...  a pair of products that share a tensor is a place
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from tensorwright import rewriting
from tensorwright.base import LaboratoryPart
from tensorwright.cli.arguments.models import check_model, read_graph, short_name
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing import print_table
from tensorwright.cli.rules import read_rules
from tensorwright.graph import simplify
from tensorwright.rewriting import egraph, library, networks
from tensorwright.rewriting.terms import Rule
from tensorwright_lab.rows import row_name, write_objects
from tensorwright_lab.rule_generation.derivation import Derived, derive, rule_set

UNKNOWN = 11
"""The exit code of `rules derive` if no derivation is found."""


@click.command("derive")
@click.argument("rule", metavar='"LEFT == RIGHT"')
@click.option("--file", type=click.Path(path_type=Path), help="A file instead of the shipped one.")
def derive_command(rule: str, file: Path | None) -> None:
    """Say whether a rule follows from the shipped ones, and from which.

    The exit status is 0 if it follows, and 11 if it does not.

    Example: tensorwright rules derive "relu(relu(relu(?x))) == relu(?x)"
    """
    wanted = rewriting.parse_rule(rule)
    rules_by_name = _by_name(read_rules(file))
    derived = derive(wanted, rule_set(rules_by_name.values()))
    if derived is None:
        click.echo("no derivation was found from these rules")
        click.get_current_context().exit(UNKNOWN)
    click.echo(_told(derived))
    click.echo("rules:" if derived.names else "both sides are the same")
    for name in derived.names:
        click.echo(f"  {rewriting.rule_text(rules_by_name[name])}")


def _by_name(rules: Iterable[library.LibraryRule]) -> dict[str, rewriting.Rule]:
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
            lines.append(f"  {rewriting.term_text(chain[0].before)}")
        for step in chain:
            lines.append(f"    by {step.rule}" + ("" if step.forward else ", from right to left"))
            lines.append(f"  {rewriting.term_text(step.after)}")
    return "\n".join(lines)


Places = Mapping[str, int]
_USUAL = "rewriting"


@click.command("coverage")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--suite", "suites", multiple=True, metavar="NAME", help="A whole suite.")
@click.option("--file", type=click.Path(path_type=Path), help="Rules instead of the shipped ones.")
@click.option("--json", "output", metavar="FILE", help="Write the counts to this file.")
def coverage_command(
    models: tuple[str, ...], suites: tuple[str, ...], file: Path | None, output: str | None
) -> None:
    """Count the places of networks at which each rule can be applied.

    Each rule is tried once, on the network as it is read, without applying other rules. Without
    MODEL and --suite the command takes the networks of the suite rewriting.

    Example: tensorwright rules coverage light:inception_v1
    """
    chosen = suites or (() if models else (_USUAL,))
    listed = (LaboratoryPart(f"suite {name}", "suites", "suite").load()(name) for name in chosen)
    names = tuple(dict.fromkeys((*models, *(each for names in listed for each in names))))
    for name in names:
        check_model(name)
    check_writable(output, *names, file)
    rules = [each.rule for each in read_rules(file)]
    places_by_network: dict[str, Places] = {}
    for name in names:
        places_by_network[name] = places_of_rules(
            networks.read_network(simplify(read_graph(name))), rules
        )
        click.echo(f"{row_name(name)}: {_counted(places_by_network[name])}")
    _print(places_by_network, [rule.name for rule in rules])
    if output is not None:
        write_objects(output, {"rules": len(rules)}, list(_rows(places_by_network)))


def _counted(places: Places) -> str:
    matching = sum(map(bool, places.values()))
    return f"{sum(places.values())} places, {matching} of {len(places)} rules"


def _print(places_by_network: Mapping[str, Places], rules: Sequence[str]) -> None:
    """Print a row for each rule that matches somewhere, the totals, and the names of the others."""
    totals = {rule: sum(places[rule] for places in places_by_network.values()) for rule in rules}
    used = sorted((rule for rule in rules if totals[rule]), key=lambda rule: -totals[rule])
    rows = [
        _row(rule, [places_by_network[name][rule] for name in places_by_network], totals[rule])
        for rule in used
    ]
    sums = [sum(places.values()) for places in places_by_network.values()]
    kinds = [sum(map(bool, places.values())) for places in places_by_network.values()]
    rows += [_row("places", sums, sum(sums)), _row("rules", kinds, len(used))]
    print_table(("rule", *(short_name(name) for name in places_by_network), "total"), rows)
    idle = [rule for rule in rules if not totals[rule]]
    click.echo(f"{len(used)} of {len(rules)} rules match somewhere")
    if idle:
        click.echo(f"{len(idle)} match nowhere: {', '.join(idle)}")


def _row(name: str, counts: Sequence[int], total: int) -> tuple[str, ...]:
    return (name, *(str(count) if count else "." for count in counts), str(total))


def _rows(places_by_network: Mapping[str, Places]) -> list[dict[str, object]]:
    return [
        {
            "model": row_name(name),
            "places": sum(places.values()),
            "rules": {rule: count for rule, count in places.items() if count},
        }
        for name, places in places_by_network.items()
    ]


def places_of_rules(network: networks.Network, rules: Iterable[Rule]) -> dict[str, int]:
    """The number of places of each rule, by its name; those of several roots that share no tensor
    have none, since no search tries them.
    """
    listed = tuple(rules)
    runner = egraph.Runner(network.terms, egraph.Limits(), lambda data: not data.is_constant)
    counts = dict.fromkeys((rule.name for rule in listed), 0)
    for rewrite in rule_set(listed).rewrites:
        counts[rewrite.name] = len(set(_places(runner, rewrite)))
    return counts


def _places(
    runner: egraph.Runner[networks.TensorData], rewrite: egraph.Rewrite
) -> Iterator[frozenset[egraph.Id]]:
    """The classes of the roots of each match where the rule can be applied."""
    for trigger in rewrite.triggers:
        first, *others = (frozenset(each.variables.tensors) for each in trigger.patterns)
        if others and not first.intersection(*others):
            continue
        options = [runner.index.options(pattern) for pattern in trigger.patterns]
        for roots, bound in egraph.joined(options):
            classes = frozenset(roots)
            match = egraph.Match.of(rewrite.variables, bound)
            if len(classes) == len(roots) and runner.planned(rewrite, match) is not None:
                yield classes
