"""`tensorwright rules list | derive`: the shipped rules, and what follows from them.

Read the files of rules and the names of rules that commands take.

`tensorwright rules coverage`: at how many places of networks each rule can be applied.

`tensorwright rules operators`: list the operators of rules.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import click

from tensorwright import rewriting
from tensorwright.base import LaboratoryPart, UsageError, did_you_mean
from tensorwright.cli.arguments.models import check_model, read_graph, row_name, short_name
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing import print_table, write_objects
from tensorwright.graph import simplify
from tensorwright.rewriting import library, operators
from tensorwright.rewriting.candidates import places_of_rules
from tensorwright.rewriting.derivation import Derived, derive, rule_set
from tensorwright.rewriting.networks import read_network

_COLUMNS = 80
_LETTERS = {
    operators.ArgumentRole.TENSOR: "xyzt",
    operators.ArgumentRole.NUMBER: "c",
    operators.ArgumentRole.KERNEL: "w",
    operators.ArgumentRole.VARIANCE: "v",
}


def read_rules(path: Path | None) -> tuple[library.LibraryRule, ...]:
    """The rules of a file, or those that ship with the package.

    Raises:  UsageError for a file that cannot be read, or a line that is not a rule.
    """
    return library.read_library(_lines(path))


def read_head(path: Path | None) -> tuple[str, ...]:
    """The comment at the top of a file of rules.

    Raises:  UsageError for a file that cannot be read.
    """
    return library.head_of(_lines(path))


def _lines(path: Path | None) -> list[str]:
    return library.rule_lines(library.shipped_path() if path is None else path)


def named_rule(name: str, path: Path | None) -> rewriting.Rule:
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
            click.echo(rewriting.rule_text(each.rule))
    _print_counts("operator", (word for each in chosen for word in _operators(each.rule)))
    _print_counts("origin", (each.origin or "-" for each in chosen))
    click.echo(f"{len(chosen)} of {len(every)} rules")


def _fits(
    each: library.LibraryRule, operators: tuple[str, ...], origin: str | None, name: str | None
) -> bool:
    return (
        set(operators) <= _operators(each.rule)
        and (origin is None or origin in each.origin)
        and (name is None or fnmatchcase(each.rule.name, name))
    )


def _operators(rule: rewriting.Rule) -> frozenset[str]:
    """The names of a rule's operators; for an output of an operator, the operator's name, too."""
    names = rewriting.operator_names(*rule.roots)
    return names | {rewriting.operator_named(name).output_of for name in names} - {""}


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


@click.command("operators")
def operators_command() -> None:
    """List the operators of rules: parameters in brackets, then arguments.

    The top of tensorwright/rewriting/operators/__init__.py says what each operator means.

    Example: tensorwright rules operators
    """
    for operator in operators.OPERATORS:
        click.echo(textwrap.fill(_signature(operator), _COLUMNS, subsequent_indent=" " * 8))
        for parameter in operator.parameters:
            values = _values(parameter)
            if values:
                click.echo(f"    {parameter.name}: {values}")
    click.echo(
        "?c is a number, as a tensor of rank 0; ?w a kernel; ?v is not negative.\n"
        "A parameter before ... may be repeated; a number may be a size, x.1 + y.1.\n"
        "A name that begins with _ instead of a parameter stands for any value."
    )


def _signature(operator: operators.RewriteOperator) -> str:
    """How an operator is written: `conv2d[stride_h, stride_w, padding, activation](?x, ?w)`."""
    names = [f"{each.name}{', ...' * each.repeats}" for each in operator.parameters]
    params = f"[{', '.join(names)}]" if names else ""
    return f"{operator.name}{params}({', '.join(_arguments(operator))})"


def _arguments(operator: operators.RewriteOperator) -> Iterator[str]:
    left = {role: iter(letters) for role, letters in _LETTERS.items()}
    return (f"?{next(left[role])}" for role in operator.arguments)


def _values(parameter: operators.Parameter) -> str:
    """The words that a parameter may be, or examples of them; "" if it is a number."""
    if parameter.form and not parameter.words:
        first = parameter.samples[0]
        return f"a number as a word: {operators.number_of_word(first)} is {first}"
    like = f"words like {parameter.samples[0]}" if parameter.samples else ""
    return ", ".join(filter(None, (*parameter.words, like)))


COMMANDS = (list_, derive_, operators_command)
