"""Inline what costs nothing to evaluate again."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import ComputeInline
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.predicates import is_strict_inlinable
from tensorwright.tuning.space.derived.rule import Verdict


@dataclass(frozen=True, slots=True)
class AlwaysInline:
    """Replace a strict inlinable stage by its definition in its readers."""

    name: str = "always inline"

    def applies(self, view: Derivation) -> Verdict:
        """Where the stage is strict inlinable; nothing else is tried with it then."""
        if is_strict_inlinable(view.state, view.current):
            return Verdict.YES_AND_SKIP_REST
        return Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The program without the stage."""
        builder = view.grow()
        builder.do(ComputeInline(view.current))
        return (view.then(builder),)
