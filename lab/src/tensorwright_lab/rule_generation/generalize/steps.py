"""Steps from candidate rules at the preset's shapes to rules for all shapes, as units of a farm.

    steps = GeneralizationSteps(preset.shapes, seed, units)
    steps.holding(rules)               those that hold at other random inputs, too
    steps.general(steps.instances(rules))     rules for all shapes

Each step is a function of a few rules, so that it can be spread like the enumeration; the order of
the rules stays.  Rules travel as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorwright.farm import Payload
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.terms import Rule, canonical_rule
from tensorwright.rewriting.text import parse_rule, rule_text
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator
from tensorwright_lab.rule_generation.generalize.generalize import generalize_alike
from tensorwright_lab.rule_generation.generalize.widening import ConcreteRule, widened

_EFFORTS = {"holding": 4e4, "widened": 3e4, "general": 3e5}
"""Microseconds of a unit, about."""
Shapes = dict[str, IntShape]
PlainRule = Sequence[Any]
"""A `ConcreteRule` as JSON has it: its text, and the shapes of its inputs by name."""


def holding(payload: Payload) -> Payload:
    """Of each rule whether it holds at other inputs than those of the fingerprints."""
    evaluator = Evaluator(_shapes(payload.data["shapes"]), payload.data["seed"])
    return Payload([evaluator.holds(parse_rule(text)) for text in payload.data["items"]])


def widened_rules(payload: Payload) -> Payload:
    """Rules with inputs in the place of what may be any tensor, with the shapes of the inputs."""
    shapes = _shapes(payload.data["shapes"])
    rules = (widened(parse_rule(text), shapes) for text in payload.data["items"])
    return Payload([[_canonical(each.rule), rule_text(each.rule), each.shapes] for each in rules])


def general_rules(payload: Payload) -> Payload:
    """What groups of rules that are alike become."""
    groups = [[_concrete(each) for each in group] for group in payload.data["items"]]
    return Payload([rule_text(rule) for group in groups for rule in generalize_alike(group)])


def _shapes(listed: Sequence[tuple[str, Sequence[int]]]) -> Shapes:
    return {name: tuple(shape) for name, shape in listed}


def _canonical(rule: Rule) -> str:
    """The same text for all rules that differ only in the names of inputs."""
    return rule_text(canonical_rule(rule))


def _concrete(plain: PlainRule) -> ConcreteRule:
    text, shapes = plain
    return ConcreteRule(parse_rule(text), tuple(_shapes(shapes).items()))


@dataclass(frozen=True, slots=True)
class GeneralizationSteps:
    """The steps, for rules over inputs of these shapes; `seed` as for the enumeration."""

    shapes: Shapes
    seed: int
    units: LevelUnits

    def trials(self, rules: Sequence[Rule], shapes: Shapes) -> list[bool]:
        """Of each rule whether it holds at random inputs of these shapes."""
        about = {"shapes": list(shapes.items()), "seed": self.seed}
        return self._spread("holding", [rule_text(rule) for rule in rules], about, name="common")

    def holding(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """The rules that hold once more."""
        holds = self._spread("holding", [rule_text(rule) for rule in rules], self._about)
        return tuple(rule for rule, kept in zip(rules, holds, strict=True) if kept)

    def instances(self, rules: Sequence[Rule]) -> list[list[PlainRule]]:
        """Rules as general as they hold, those together that differ only in names and shapes."""
        texts = [rule_text(rule) for rule in rules]
        groups: dict[str, list[PlainRule]] = {}
        for canonical, *plain in self._spread("widened", texts, self._about):
            groups.setdefault(canonical, []).append(plain)
        return list(groups.values())

    def general(self, groups: Sequence[Sequence[PlainRule]]) -> tuple[Rule, ...]:
        """Rules for all shapes."""
        return tuple(map(parse_rule, self._spread("general", groups, {}, 4)))

    @property
    def _about(self) -> dict[str, Any]:
        return {"shapes": list(self.shapes.items()), "seed": self.seed + 1}

    def _spread(
        self,
        step: str,
        items: Sequence[Any],
        about: dict[str, Any],
        count: int = 32,
        name: str = "",
    ) -> list[Any]:
        """What units of so many items give for them, in their order; kept under a name."""
        parts = [items[at : at + count] for at in range(0, len(items), count)]
        efforts = [_EFFORTS[step]] * len(parts)
        names = self.units.complete(
            step, lambda at: Payload({**about, "items": parts[at]}), efforts, name
        )
        return [each for name in names for each in self.units.folder.unit(name).data]
