"""Stages that are not tiled: inlined into their readers, cached, or left."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import CacheWrite, ComputeInline
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.predicates import (
    has_data_reuse,
    has_fusable_consumer,
    is_strict_inlinable,
)
from tensorwright.tuning.space.derived.rule import Verdict
from tensorwright.tuning.space.derived.tiled_axes import plan_axes


@dataclass(frozen=True, slots=True)
class AlwaysInline:
    """Replace a strict inlinable stage by its definition in its readers."""

    name: str = "always inline"

    def applies(self, view: Derivation) -> Verdict:
        """If the stage is strict inlinable; nothing else is tried with it then."""
        if is_strict_inlinable(view.state, view.current):
            return Verdict.YES_AND_SKIP_REST
        return Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The program without the stage."""
        builder = view.grow()
        builder.do(ComputeInline(view.current))
        return (view.then(builder),)


@dataclass(frozen=True, slots=True)
class AddCacheWrite:
    """Compute a stage with reuse into a cache, so that its tiles can be fused with the copy."""

    name: str = "add cache write"

    def applies(self, view: Derivation) -> Verdict:
        """If operands are used again, vectors fit, no consumer can be fused, and terms are many."""
        state, name = view.state, view.current
        if (
            name.endswith("_rf")
            or not has_data_reuse(state, name)
            or has_fusable_consumer(state, name)
        ):
            return Verdict.NO
        has_vectors = plan_axes(state, name, name, view.target) is not None
        return Verdict.YES if has_vectors else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The cache comes next; the copy is its consumer."""
        builder = view.grow()
        builder.do(CacheWrite(view.current))
        return (view.then(builder),)


@dataclass(frozen=True, slots=True)
class Skip:
    """Go on to the next stage. The placement of this one is decided at the end."""

    name: str = "skip"

    def applies(self, view: Derivation) -> Verdict:
        """Always, unless a generator before was the last for this stage."""
        return Verdict.YES

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The same state at the next stage."""
        return (view.then(view.grow()),)
