"""Make the shipped rules from several sources, each rule once.

    schemas.rules, constants.rules    listed by hand: for all parameters, and of constants
    taso, up to 3 operators           generated, pruned, proved for all parameters for which it goes
    volumes, up to 3 operators        the same over volumes
    full, up to 2 operators           what those before do not imply
    known.rules                       listed by hand; finally all are pruned together

The same seed gives the same text, on every machine and with any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorwright.farm import Farm
from tensorwright.rewriting.library.own_rules import LibraryRule, library_text, listed_rules
from tensorwright.rewriting.terms import Rule
from tensorwright_lab.rule_generation import Stage, generate_rules, presets_of
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
