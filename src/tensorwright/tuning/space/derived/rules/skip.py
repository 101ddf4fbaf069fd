"""Leave a stage as it is."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.rule import Verdict


@dataclass(frozen=True, slots=True)
class Skip:
    """Go on to the next stage. Where a stage is computed is decided at the end."""

    name: str = "skip"

    def applies(self, view: Derivation) -> Verdict:
        """Always, where no rule before says that it had the last word."""
        return Verdict.YES

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The same state at the next stage."""
        return (view.then(view.grow()),)
