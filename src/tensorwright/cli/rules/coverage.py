"""`tensorwright rules coverage`: at how many places of networks each rule can be applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from tensorwright.base import LaboratoryPart
from tensorwright.cli.arguments.models import check_model, read_graph, row_name, short_name
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing.tables import print_table, write_objects
from tensorwright.cli.rules.reading import read_rules
from tensorwright.graph import simplify
from tensorwright.rewriting.candidates import places_of_rules
from tensorwright.rewriting.networks import read_network

Places = Mapping[str, int]
_USUAL = "rewriting"


@click.command("coverage")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--suite", "suites", multiple=True, metavar="NAME", help="A whole suite.")
@click.option("--file", type=click.Path(path_type=Path), help="Rules instead of the shipped ones.")
@click.option("--json", "output", metavar="FILE", help="Write the counts to this file.")
def command(
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
        places_by_network[name] = places_of_rules(read_network(simplify(read_graph(name))), rules)
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
