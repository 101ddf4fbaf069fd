"""Sketches for graphics processors: what no rule has decided is bound to blocks and threads, and
what the device would refuse is noted as limits of the decisions.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.tuning.space.defaults.grid import bind_rest
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.device_limits import device_limits
from tensorwright.tuning.space.derived.predicates import is_untouched
from tensorwright.tuning.space.derived.streams import can_stream, stream
from tensorwright.tuning.space.sketch import Sketch


def bound_sketches(derivation: Derivation) -> Iterator[Sketch]:
    """The sketch of a complete derivation; none where its choice by rule is beyond the device."""
    builder = derivation.grow()
    elements = derivation.elements
    rest = [each for each in builder.state.stages if is_untouched(builder.state, each)]
    for stage in reversed(rest):
        if can_stream(builder.state.stage(stage.name)):
            place = stream(builder, stage.name, derivation.target, elements)
            elements[stage.name] = place
    done = frozenset(
        stage.name for stage in builder.state.stages if not is_untouched(builder.state, stage)
    )
    bind_rest(builder, derivation.target, done)
    if builder.choices or not all(tile.is_element for tile in derivation.tiles):
        defaults = builder.sketch("").defaults
        for limit in device_limits(builder.state, derivation.target):
            if limit.holds(defaults):
                builder.limits += [limit] if limit.names else []
            elif not limit.is_wish:
                return  # the device would refuse the choice by rule
    yield builder.sketch(", ".join(derivation.notes) or "an element a thread")
