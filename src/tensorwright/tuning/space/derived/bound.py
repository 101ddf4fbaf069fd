"""Sketches for graphics processors: stages without a decision are bound to blocks and threads.

What the device would refuse becomes limits of the decisions.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.tuning.space.defaults.grid import bind_rest
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.device_limits import keep_to_device
from tensorwright.tuning.space.derived.fetch_variants import fetch_variants
from tensorwright.tuning.space.derived.predicates import is_untouched
from tensorwright.tuning.space.derived.streams import can_stream, stream
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder


def bound_sketches(derivation: Derivation) -> Iterator[Sketch]:
    """The sketches of a complete derivation, by each way to fetch operands; none beyond limits."""
    family = ", ".join(derivation.notes) or "an element a thread"
    for words, builder in fetch_variants(derivation):
        _bind(builder, derivation)
        is_plain = not builder.choices and all(tile.is_element for tile in derivation.tiles)
        if is_plain or keep_to_device(builder, derivation.target):
            yield builder.sketch(f"{family}; {words}" if words else family, family)


def _bind(builder: SketchBuilder, derivation: Derivation) -> None:
    """Stream or bind the stages that no rule has decided."""
    elements = derivation.elements
    rest = [each for each in builder.state.stages if is_untouched(builder.state, each)]
    for stage in reversed(rest):
        if can_stream(builder.state.stage(stage.name)):
            elements[stage.name] = stream(builder, stage.name, derivation.target, elements)
    done = frozenset(
        stage.name for stage in builder.state.stages if not is_untouched(builder.state, stage)
    )
    bind_rest(builder, derivation.target, done)
