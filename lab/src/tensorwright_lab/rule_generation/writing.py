"""Make the shipped rules from several sources, each rule once.

    schemas.rules, constants.rules    listed by hand: for all parameters, and of constants
    taso, up to 3 operators           generated, pruned, proved for all parameters for which it goes
    volumes, up to 3 operators        the same over volumes
    full, up to 2 operators           what those before do not imply
    known.rules                       listed by hand; finally all are pruned together

The same seed gives the same text, on every machine and with any number of processes.

The last stages of `rules generate`: prove candidates, drop implied ones, write the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from tensorwright.base import write_atomically
from tensorwright.cli.arguments.output import ProgressLines
from tensorwright.cli.printing import print_table
from tensorwright.farm import Farm
from tensorwright.rewriting import Rule, rule_text
from tensorwright.rewriting.library import LibraryRule, library_text, listed_rules
from tensorwright_lab.rule_generation import Generated, LevelCost, Stage, generate_rules, presets_of
from tensorwright_lab.rule_generation.answers import CALLER
from tensorwright_lab.rule_generation.selection import (
    Progress,
    Selection,
    minimise_rules,
    select_rules,
    sides_key,
)

SOURCES = (("taso", 3), ("volumes", 3), ("full", 2))
"""Presets, and how many operators a side may have, in order: a later source adds what the earlier
ones do not imply; no part is enumerated twice.
"""

SCHEMAS, CONSTANTS, KNOWN = (
    "listed by hand, for all parameters",
    "listed by hand, of constants",
    "listed by hand",
)


@dataclass(frozen=True, slots=True)
class Built:
    """The rules of a file, and the statistics of their sources.

    text    of the file
    tables  the pruning table of each source, by its origin
    failed  candidates that were refuted, or neither proved nor refuted, with the reason
    """

    rules: tuple[LibraryRule, ...]
    text: str
    tables: tuple[tuple[str, tuple[Stage, ...]], ...]
    failed: tuple[tuple[Rule, str], ...]


def build_library(
    seed: int = 0,
    farm: Farm = CALLER,
    verdicts: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
    progress: Callable[[Progress], None] = lambda each: None,
) -> Built:
    """Generate, prove and prune all sources, then the rules that are listed by hand.

    Finally all are pruned together: what is listed by hand is often more general.

    Raises:  MachineError where Z3 is missing; OutputError where verdicts cannot be written.
    """
    kept: tuple[Rule, ...] = ()
    rules: list[LibraryRule] = []
    tables: list[tuple[str, tuple[Stage, ...]]] = []
    failed: list[tuple[Rule, str]] = []
    names = {sides_key(rule): rule.name for rule in listed_rules("known")}

    def add(origin: str, stages: Sequence[Stage], candidates: Sequence[Rule]) -> None:
        nonlocal kept
        selection = select_rules(candidates, farm, kept, verdicts, progress, names)
        new = selection.kept[len(kept) :]
        tables.append((origin, (*stages, *stages_of(selection, len(kept)))))
        rules.extend(LibraryRule(rule, origin) for rule in new)
        failed.extend([*((rule, "refuted") for rule in selection.refuted), *selection.unknown])
        kept = selection.kept

    add(SCHEMAS, (), listed_rules("schemas"))
    add(CONSTANTS, (), listed_rules("constants"))
    for part, max_operators in _parts().items():
        origin = f"{part}, up to {max_operators} operators"
        say(f"{origin}:")
        generated = generate_rules(part, max_operators, seed, say, farm=farm)
        add(origin, generated.stages, generated.rules)
    say(f"{KNOWN}:")
    add(KNOWN, (), listed_rules("known"))
    last = minimise_rules(kept, farm, verdicts)
    tables.append(("together", (Stage("implied", len(last.kept), last.elapsed_s),)))
    remaining = {rule.name for rule in last.kept}
    rules = [each for each in rules if each.rule.name in remaining]
    head = (
        "Rules that ship with tensorwright; docs/rules.md says how to read them.",
        f"Written by: tensorwright rules generate --shipped --seed {seed} -o FILE",
    )
    return Built(tuple(rules), library_text(head, rules), tuple(tables), tuple(failed))


def _parts() -> dict[str, int]:
    """The enumerations of all sources, each once, and their operators."""
    selection: dict[str, int] = {}
    for preset, max_operators in SOURCES:
        for part in presets_of(preset):
            selection.setdefault(part.name, max_operators)
    return selection


def stages_of(selection: Selection, before: int = 0) -> tuple[Stage, ...]:
    """The last lines of the pruning table; the time is shared by what the processes did.

    before  how many rules were there already
    """
    kept = len(selection.kept) - before
    failed = len(selection.refuted) + len(selection.unknown)
    busy_s = selection.derive_s + selection.prove_s
    share = selection.derive_s / busy_s if busy_s else 1.0
    return (
        Stage("implied", kept + failed, selection.elapsed_s * share),
        Stage("proved", kept, selection.elapsed_s * (1.0 - share)),
    )


_WORKERS = (1, 2, 8, 32, 128, 512)
_IS_ESTIMATE = (
    "A level after one of which a part was made is an estimate: that of `released` with four "
    "operators is 3 % above the true number of applications, later levels may be further off."
)
_BYTES_PER_S = 1e9
"""What a client sends and hears at most: 10 Gbit/s."""


def write_selected(generated: Generated, origin: str, output: Path, farm: Farm) -> None:
    """Prove and prune candidates, print the pruning table, write the rules that are kept.

    Verdicts are kept beside the output; the same command continues after Ctrl-C.
    """
    verdicts = verdicts_of(output)
    with _kept_on_interrupt(verdicts):
        selection = select_rules(generated.rules, farm, verdicts=verdicts, progress=_progress())
    head = (f"Rules of {origin}: proved, and none implied by the others.",)
    rules = [LibraryRule(rule, origin) for rule in selection.kept]
    write_atomically(output, library_text(head, rules))
    print_stages((*generated.stages, *stages_of(selection)))
    _print_failures([*((rule, "refuted") for rule in selection.refuted), *selection.unknown])
    counts = (
        f"{len(selection.implied)} implied",
        f"{len(selection.refuted)} refuted",
        f"{len(selection.unknown)} neither proved nor refuted",
    )
    click.echo(", ".join(counts))
    click.echo(f"{len(selection.kept)} rules written to {output}; verdicts in {verdicts}")


def write_shipped(output: Path, seed: int, farm: Farm) -> None:
    """Make the shipped file again, with its pruning tables."""
    verdicts = verdicts_of(output)
    with _kept_on_interrupt(verdicts):
        built = build_library(seed, farm, verdicts=verdicts, say=click.echo, progress=_progress())
    write_atomically(output, built.text)
    for origin, stages in built.tables:
        click.echo(f"{origin}:")
        print_stages(stages)
    _print_failures(built.failed)
    click.echo(f"{len(built.rules)} rules written to {output}; verdicts in {verdicts}")


@contextmanager
def _kept_on_interrupt(verdicts: Path) -> Iterator[None]:
    """Say after Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"Verdicts are kept in {verdicts}: the same command continues.", err=True)
        raise


def verdicts_of(output: Path) -> Path:
    """The file of answers while rules for this file are proved."""
    return output.with_name(f"{output.name}.verdicts")


def print_stages(stages: Iterable[Stage]) -> None:
    """Print the pruning table."""
    cells = [(stage.name, f"{stage.count:,}", f"{stage.time_s:.2f}") for stage in stages]
    print_table(("step", "left", "seconds"), cells)


def print_plan(costs: Sequence[LevelCost]) -> None:
    """Print what the levels of an enumeration take, and how long on some numbers of workers."""
    cells = [
        (
            str(cost.level),
            f"{cost.graphs:,.0f}",
            f"{cost.applications:,.0f}",
            f"{cost.shards:,.0f}",
            f"{cost.shard_s:.2f}",
            *(f"{size / 1e9:,.2f}" for size in (cost.sent_bytes, cost.answered_bytes)),
            f"{cost.kept_bytes / 1e9:,.2f}",
            f"{cost.work_s / 3600:,.2f}",
        )
        for cost in costs
    ]
    heads = "level", "graphs", "applications", "shards", "s a shard", "GB sent", "GB answered"
    print_table((*heads, "GB kept", "hours of a worker"), cells)
    if any(cost.share > 1 for cost in costs):
        click.echo(_IS_ESTIMATE)
    for cost in costs:
        if cost.expected_s:
            times = f"took {cost.took_s:.2f} s; the level before expects {cost.expected_s:.2f} s"
            click.echo(f"level {cost.level}: shards of {cost.tried:,} applications {times}")
    for workers in _WORKERS:
        elapsed_s = sum(cost.elapsed_s(workers, _BYTES_PER_S) for cost in costs)
        click.echo(f"{workers:>4} workers: {elapsed_s / 3600:,.2f} hours")


def _print_failures(failed: Iterable[tuple[Rule, str]]) -> None:
    for rule, reason in failed:
        click.echo(f"not kept: {rule_text(rule)}\n  {reason}", err=True)


def _progress() -> Callable[[Progress], None]:
    lines = ProgressLines("candidates")

    def show(each: Progress) -> None:
        lines.show(each.done, each.total, each.here, f", {each.kept} rules kept")

    return show
