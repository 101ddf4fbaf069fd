"""`tensorwright rules`: list, prove, check and explain rules: which graphs compute the same."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import click

from tensorwright import base, rewriting
from tensorwright.cli.arguments.machine import OpenFarm, farm_options
from tensorwright.cli.arguments.output import ProgressLines, check_writable
from tensorwright.cli.printing import print_table
from tensorwright.rewriting import library, operators, prove
from tensorwright.rewriting.axioms import instances, load_axioms
from tensorwright.rewriting.library import library_text

_COLUMNS = 80
_LETTERS = {
    operators.ArgumentRole.TENSOR: "xyzt",
    operators.ArgumentRole.NUMBER: "c",
    operators.ArgumentRole.KERNEL: "w",
    operators.ArgumentRole.VARIANCE: "v",
}


def read_rules(path: Path | None) -> tuple[library.LibraryRule, ...]:
    """The rules of a file, or those that ship with the package."""
    return library.read_library(_lines(path))


def read_head(path: Path | None) -> tuple[str, ...]:
    """The comment at the top of a file of rules."""
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
    raise base.UsageError(
        stage="rules",
        where=f"rule {name}",
        reason=f"there is no rule of this name in {path or 'the shipped file'}",
        remedy=base.did_you_mean(name, rules, "tensorwright rules list shows all names"),
    )


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


_CONDITIONED = base.LaboratoryPart(
    "a condition", "rule_generation.generalize.least_condition", "conditioned"
)
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

    If the rule is false as it is written, the laboratory looks for a condition under which it is
    proved.

    Example: tensorwright rules check "relu(relu(?x)) == relu(?x)"
    """
    outcome = prove.prove(rewriting.parse_rule(rule))
    click.echo(str(outcome))
    if isinstance(outcome, prove.Proved) and outcome.reassociating:
        click.echo("over the reals; floats may differ in the last bits")
    narrower: rewriting.Rule | None = None
    if isinstance(outcome, prove.Refuted) and base.has_laboratory():
        narrower = _CONDITIONED.load()(outcome.rule)
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
        base.write_atomically(output, library_text(read_head(file), kept))
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


_OF_LABORATORY = {
    name: base.LaboratoryPart(f"command rules {name}", module, f"{word}_command")
    for name, module, word in (
        ("generate", "rule_generation.command", "generate"),
        ("coverage", "rule_generation.known_rules", "coverage"),
        ("derive", "rule_generation.known_rules", "derive"),
        ("axioms", "axiom_checks.command", "axioms"),
        ("suggest-axioms", "axiom_checks.command", "suggest"),
    )
}


class _Group(click.Group):
    """The commands for rules, and those of the laboratory if it is installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = super().list_commands(ctx)
        return sorted([*names, *_OF_LABORATORY]) if base.has_laboratory() else names

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return a command."""
        if name in _OF_LABORATORY:
            command: click.Command = _OF_LABORATORY[name].load()
            return command
        return super().get_command(ctx, name)


@click.group(cls=_Group)
def command() -> None:
    """Generate, prove, explain and check rules: which graphs of operators compute the same."""


for _each in (list_, operators_command, prove_, check, explain):
    command.add_command(_each)
