"""Steps from candidate rules at the preset's shapes to rules for all shapes, in several processes.

    steps = GeneralizationSteps(preset.shapes, seed, workers=2, say=print)
    steps.holding(rules)               those that hold at other random inputs, too
    steps.general(steps.instances(rules))     rules for all shapes

Each step is a plain function of a few rules, so that it can be spread like the enumeration; the
order of the rules stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.terms import Rule
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator
from tensorwright_lab.rule_generation.generalize.generalize import alike, generalize_alike
from tensorwright_lab.rule_generation.generalize.widening import FoundRule, widened
from tensorwright_lab.rule_generation.parallel import map_chunks
from tensorwright_lab.rule_generation.progress import Meter, Say

_ITEMS, _SLOW_ITEMS = 32, 4
"""Items of a part, of quick steps and of slow ones."""
_FEW = 16
"""Parts that other processes are not worth."""
Item = TypeVar("Item")
Result = TypeVar("Result")
Shapes = dict[str, IntShape]


def _holding(shapes: Shapes, seed: int, rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules that hold at other inputs than those of the fingerprints."""
    evaluator = Evaluator(shapes, seed)
    return tuple(rule for rule in rules if evaluator.holds(rule))


def _widened(shapes: Shapes, rules: Sequence[Rule]) -> tuple[FoundRule, ...]:
    """Rules with inputs in the place of what may be any tensor."""
    return tuple(widened(rule, shapes) for rule in rules)


def _general(groups: Sequence[Sequence[FoundRule]]) -> tuple[Rule, ...]:
    return tuple(rule for group in groups for rule in generalize_alike(group))


@dataclass(frozen=True, slots=True)
class GeneralizationSteps:
    """The steps, for rules over inputs of these shapes; `seed` as for the enumeration."""

    shapes: Shapes
    seed: int
    workers: int
    say: Say

    def holding(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """The rules that hold once more."""
        return self._spread("evaluated", partial(_holding, self.shapes, self.seed + 1), rules)

    def instances(self, rules: Sequence[Rule]) -> tuple[tuple[FoundRule, ...], ...]:
        """Rules as general as they hold, those together that are alike."""
        return alike(self._spread("instances", partial(_widened, self.shapes), rules))

    def general(self, groups: Sequence[Sequence[FoundRule]]) -> tuple[Rule, ...]:
        """Rules for all shapes."""
        return self._spread("generalised", _general, groups, _SLOW_ITEMS)

    def _spread(
        self,
        label: str,
        job: Callable[[Sequence[Item]], tuple[Result, ...]],
        items: Sequence[Item],
        count: int = _ITEMS,
    ) -> tuple[Result, ...]:
        parts = [tuple(items[at : at + count]) for at in range(0, len(items), count)]
        meter = Meter(self.say, label, len(parts))
        results: list[Result] = []
        for result in map_chunks(job, parts, self.workers if len(parts) > _FEW else 1):
            results += result
            meter.add(1)
        return tuple(results)
