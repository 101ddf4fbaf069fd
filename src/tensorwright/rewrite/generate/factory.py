"""From a preset to candidate rules: enumerate, rename, drop common subgraphs, generalise."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from tensorwright.rewrite.generate.candidates import candidates_of
from tensorwright.rewrite.generate.enumerate import enumerate_terms
from tensorwright.rewrite.generate.generalize import generalize
from tensorwright.rewrite.generate.presets import preset_named
from tensorwright.rewrite.prune import prune_common
from tensorwright.rewrite.terms import Rule, canonical_rule
from tensorwright.rewrite.text import rule_text

__all__ = ["Generated", "Stage", "generate_rules"]


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
    """Candidate rules and how they came about.

    graphs      terms that the classes represent
    peak_bytes  the most memory of this process so far
    """

    rules: tuple[Rule, ...]
    stages: tuple[Stage, ...]
    graphs: float
    peak_bytes: int


def generate_rules(
    preset_name: str,
    max_operators: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> Generated:
    """Candidate rules of a preset with up to so many operators on a side; not yet proved.

    Raises:  UsageError for an unknown preset.
    """
    preset = preset_named(preset_name)
    shapes = {each.name: each.shape for each in preset.inputs}
    stages: list[Stage] = []
    start = time.perf_counter()

    def note(name: str, count: int) -> None:
        nonlocal start
        now = time.perf_counter()
        stages.append(Stage(name, count, now - start))
        start = now

    found = enumerate_terms(preset, max_operators, seed, progress)
    note("initial", len(found.equal))
    candidates = candidates_of(found, max_operators)
    note("renaming", len(candidates.rules))
    kept = prune_common(candidates.rules)
    note("common subgraph", len(kept))
    rules = _distinct([generalize(rule, shapes) for rule in kept])
    note("generalised", len(rules))
    return Generated(rules, tuple(stages), found.graphs, _peak_bytes())


def _distinct(rules: list[Rule | None]) -> tuple[Rule, ...]:
    """Canonical names; of equal rules, and of those that exchange the sides, the first."""
    kept: dict[str, Rule] = {}
    for rule in rules:
        if rule is None:
            continue
        chosen = canonical_rule(rule)
        turned = canonical_rule(Rule(rule.right, rule.left, condition=rule.condition))
        if rule_text(turned) not in kept:
            kept.setdefault(rule_text(chosen), chosen)
    return tuple(kept.values())


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
