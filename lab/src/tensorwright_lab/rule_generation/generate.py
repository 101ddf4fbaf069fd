"""From a preset to candidate rules: enumerate, drop what smaller rules imply, generalise.

RELEASED with up to 2 operators        938 applications equal a class         (enumerate)
150 candidates at the preset's shapes  renaming, common subgraph, one step    (candidates)
33 rules for all shapes                instances, generalised, distinct       (generalize)
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tensorwright.farm import Farm
from tensorwright.rewriting.terms import Rule, canonical_rule
from tensorwright.rewriting.text import rule_text
from tensorwright_lab.rule_generation.answers import CALLER, Say
from tensorwright_lab.rule_generation.candidates.congruence import (
    distinct_equalities,
    without_common_subgraphs,
)
from tensorwright_lab.rule_generation.candidates.multi_root import (
    has_common_inputs,
    multi_root_pairs,
    multi_root_rule,
)
from tensorwright_lab.rule_generation.candidates.subsumption import without_subsumed
from tensorwright_lab.rule_generation.candidates.term_builder import TermBuilder
from tensorwright_lab.rule_generation.enumerate import enumerate
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits, WorkFolder, remove
from tensorwright_lab.rule_generation.forecast import LevelCost, forecast
from tensorwright_lab.rule_generation.generalize.steps import GeneralizationSteps
from tensorwright_lab.rule_generation.preset import Preset
from tensorwright_lab.rule_generation.presets import presets_of


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the pruning table.

    count     equalities that are left after the step
    time_s    seconds that the step took
    """

    name: str
    count: int
    time_s: float


@dataclass(frozen=True, slots=True)
class Generated:
    """Candidate rules and the statistics of their generation.

    graphs       terms that the classes represent
    two_outputs  graphs with two outputs: pairs of terms with so many operators together
    peak_bytes   the most memory of this process so far; `worker_bytes` that of the largest worker
    """

    rules: tuple[Rule, ...]
    stages: tuple[Stage, ...]
    graphs: float
    two_outputs: float
    peak_bytes: int
    worker_bytes: int


def generate_rules(
    preset_name: str,
    max_operators: int,
    seed: int = 0,
    progress: Say = lambda line: None,
    *,
    farm: Farm = CALLER,
    work: Path | None = None,
    sample: int = 1,
) -> Generated:
    """Candidate rules of a preset with up to so many operators on a side; not yet proved.

    The result is the same for any number of workers, and whether it was interrupted or not.

    farm    who does the units of work
    work    a folder that keeps what was found, see `remove_work`, and goes on with it; a temporary
            one if None
    sample  see `enumerate_terms`

    Raises:  UsageError for an unknown preset or a folder of another run, OutputError for a full
             disk, MachineError where a worker ends.
    """
    parts = presets_of(preset_name)
    tally = _Tally()
    rules: list[Rule] = []
    for preset in parts:
        say = progress if len(parts) == 1 else _prefixed(progress, preset.name)
        depth = min(max_operators, preset.deepest)
        with _folder(work, preset, depth, seed, sample) as folder:
            enumeration = enumerate.enumerate_terms(preset, depth, folder, seed, farm, say, sample)
            tally.note("initial", len(enumeration.equal))
            units = LevelUnits(folder, farm, say, depth)
            rules += _rules_of(enumeration, GeneralizationSteps(preset.shapes, seed, units), tally)
            tally.graphs += enumeration.graphs
            tally.two_outputs += enumeration.two_outputs
    kept = _distinct(rules)
    tally.note("distinct", len(kept))
    return Generated(
        kept,
        tally.stages(),
        tally.graphs,
        tally.two_outputs,
        _peak_bytes(resource.RUSAGE_SELF),
        _peak_bytes(resource.RUSAGE_CHILDREN),
    )


def plan_rules(
    preset_name: str,
    max_operators: int,
    seed: int = 0,
    progress: Say = lambda line: None,
    *,
    farm: Farm = CALLER,
) -> dict[str, tuple[LevelCost, ...]]:
    """The cost of `generate_rules` to enumerate, level by level, for each part of a preset.

    Raises:  as `generate_rules`.
    """
    costs: dict[str, tuple[LevelCost, ...]] = {}
    for preset in presets_of(preset_name):
        depth = min(max_operators, preset.deepest)
        with _folder(None, preset, depth, seed) as folder:
            costs[preset.name] = forecast(preset, depth, folder, seed, farm, progress)
    return costs


@dataclass(slots=True)
class _Tally:
    """Adds up counts and times of the steps over the parts of a preset."""

    counts: dict[str, int] = field(default_factory=dict)
    times_s: dict[str, float] = field(default_factory=dict)
    start: float = field(default_factory=time.perf_counter)
    graphs: float = 0.0
    two_outputs: float = 0.0

    def note(self, name: str, count: int) -> None:
        now = time.perf_counter()
        self.counts[name] = self.counts.get(name, 0) + count
        self.times_s[name] = self.times_s.get(name, 0.0) + now - self.start
        self.start = now

    def stages(self) -> tuple[Stage, ...]:
        return tuple(Stage(name, n, self.times_s[name]) for name, n in self.counts.items())


def _prefixed(say: Say, name: str) -> Say:
    return lambda line: say(f"{name}: {line}")


@contextmanager
def _folder(
    work: Path | None, preset: Preset, max_operators: int, seed: int, sample: int = 1
) -> Iterator[WorkFolder]:
    run = enumerate.run_of(preset, max_operators, seed, sample)
    if work is not None:
        yield WorkFolder(work / preset.name, run)
        return
    with tempfile.TemporaryDirectory(prefix="tensorwright-rules-") as name:
        yield WorkFolder(Path(name), run)


def remove_work(work: Path, preset_name: str) -> None:
    """Remove what `generate_rules` kept in a folder, and the folder if nothing else is in it."""
    for preset in presets_of(preset_name):
        if (work / preset.name).is_dir():
            remove(work / preset.name)
    if work.is_dir() and not any(work.iterdir()):
        work.rmdir()


def _rules_of(
    enumeration: enumerate.Enumeration, steps: GeneralizationSteps, tally: _Tally
) -> tuple[Rule, ...]:
    """The equalities of an enumeration as rules, step by step."""
    pairs = multi_root_pairs(enumeration, len(enumeration.applications))
    each = distinct_equalities(enumeration)
    tally.note("renaming", len(each.row) + len(pairs.first))
    remaining = without_common_subgraphs(enumeration, each, steps.trials)
    builder = TermBuilder(enumeration)
    both = zip(pairs.first, pairs.second, strict=True)
    multi_root = [multi_root_rule(builder, int(first), int(second)) for first, second in both]
    multi_root = [rule for rule in multi_root if not has_common_inputs(rule)]
    tally.note("common subgraph", len(remaining.row) + len(multi_root))
    rows = without_subsumed(enumeration, each, remaining, steps.units)
    tally.note("one step", len(rows) + len(multi_root))
    rules = steps.holding([*(builder.rule(int(row)) for row in rows), *multi_root])
    tally.note("evaluated", len(rules))
    groups = steps.instances(rules)
    tally.note("instances", len(groups))
    general = steps.general(groups)
    tally.note("generalised", len(general))
    return general


def _distinct(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Canonical names; of equal rules, and of those that exchange the sides, the first."""
    kept: dict[str, Rule] = {}
    for rule in rules:
        chosen = canonical_rule(rule)
        turned = canonical_rule(Rule(rule.right, rule.left, condition=rule.condition))
        if rule_text(turned) not in kept:
            kept.setdefault(rule_text(chosen), chosen)
    return tuple(kept.values())


def _peak_bytes(who: int) -> int:
    peak = resource.getrusage(who).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
