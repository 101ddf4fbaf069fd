"""The protocol of a sketch generator, and the registered generators of users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from tensorwright.base import EXTENSIONS, UsageError
from tensorwright.tuning.space.derived.derivation import Derivation


class Verdict(Enum):
    """Whether a rule applies to the stage that is visited."""

    NO = "no"
    YES = "yes"
    YES_AND_SKIP_REST = "yes, and no rule after it"


class SketchRule(Protocol):
    """Decides about one stage. Rules hold no state: they are asked in any order, by any thread."""

    @property
    def name(self) -> str:
        """For people, and to unregister it."""

    def applies(self, view: Derivation) -> Verdict:
        """Whether it decides about `view.stage`."""

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The derivations that may come next; those of an illegal step are dropped silently."""


Applies = Callable[[Derivation], "Verdict | bool"]
Derive = Callable[[Derivation], "tuple[Derivation, ...]"]


@dataclass(frozen=True, slots=True)
class FunctionRule:
    """A rule made of two functions."""

    name: str
    asked: Applies
    derived: Derive

    def applies(self, view: Derivation) -> Verdict:
        """As `SketchRule.applies`; True is YES."""
        answer = self.asked(view)
        if isinstance(answer, Verdict):
            return answer
        return Verdict.YES if answer else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """As `SketchRule.derive`; sketches without a note get the name of the rule."""
        return tuple(
            replace(each, notes=(*each.notes, self.name)) if each.notes == view.notes else each
            for each in self.derived(view)
        )


_OWN: dict[str, SketchRule] = {}


def register_sketch_rule(rule: SketchRule) -> SketchRule:
    """Register your own rule, which is asked before those of the package.

    Raises:  UsageError if one of that name is registered.
    """
    if rule.name in _OWN:
        raise UsageError(
            stage="tune",
            where=f"sketch generator {rule.name}",
            reason="a generator of this name is registered already",
            remedy="give it another name, or unregister that one",
        )
    _OWN[rule.name] = rule
    EXTENSIONS.add(f"sketch generator {rule.name}")
    return rule


def unregister_sketch_rule(name: str) -> None:
    """Forget a registered rule.  Raises: UsageError if there is none of that name."""
    EXTENSIONS.discard(f"sketch generator {name}")
    if _OWN.pop(name, None) is None:
        registered = ", ".join(_OWN) or "none"
        raise UsageError(
            stage="tune",
            where=f"sketch generator {name}",
            reason="no generator of this name is registered",
            remedy=f"registered: {registered}",
        )


def sketch_rule(applies: Applies) -> Callable[[Derive], FunctionRule]:
    """Register a function as the rule for the stages for which `applies` returns true.

    Example:  @sketch_rule(applies=lambda view: view.current == "scores")
              def keep_in_cache(view): ...
    """

    def register(derive: Derive) -> FunctionRule:
        rule = FunctionRule(getattr(derive, "__name__", "rule"), applies, derive)
        register_sketch_rule(rule)
        return rule

    return register


def own_rules() -> tuple[SketchRule, ...]:
    """The rules that have been registered, in order."""
    return tuple(_OWN.values())
