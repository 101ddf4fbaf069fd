"""Give a stage without a consumer to fuse one: a copy out of a cache."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import CacheWrite
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.predicates import has_data_reuse, has_fusable_consumer
from tensorwright.tuning.space.derived.rule import Verdict
from tensorwright.tuning.space.derived.tiled_axes import can_be_tiled


@dataclass(frozen=True, slots=True)
class AddCacheWrite:
    """Compute a stage with reuse into a cache, so that its tiles can be fused with the copy."""

    name: str = "add cache write"

    def applies(self, view: Derivation) -> Verdict:
        """Where operands are used again, vectors fit, and nobody can be fused; partial results of a
        factored fold have few terms each and go without.
        """
        state, name = view.state, view.current
        if (
            name.endswith("_rf")
            or not has_data_reuse(state, name)
            or has_fusable_consumer(state, name)
        ):
            return Verdict.NO
        return Verdict.YES if can_be_tiled(state, name, view.target) else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The cache comes next; the copy is its consumer."""
        builder = view.grow()
        builder.do(CacheWrite(view.current))
        return (view.then(builder),)
