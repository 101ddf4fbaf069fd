"""A candidate: one schedule of a space."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright.schedule import format_trace
from tensorwright.tuning.space.sketch import Sketch, Space


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule to be measured: its text, and how it came about, for learning.

    sketch      name of the sketch, "" for a trace from elsewhere
    decisions   sorted pairs (name, value)
    predicted_s what its proposer expects, as `Prediction.seconds`; None if it expects nothing
    """

    trace: str
    sketch: str = ""
    decisions: tuple[tuple[str, int], ...] = ()
    predicted_s: float | None = field(default=None, compare=False)


def candidate_of(sketch: Sketch, decisions: tuple[tuple[str, int], ...]) -> Candidate:
    """The candidate of a sketch and its decisions."""
    return Candidate(format_trace(sketch.bound(dict(decisions))), sketch.name, decisions)


def default_candidate(space: Space) -> Candidate:
    """The schedule of an untuned program."""
    sketch = space.sketches[0]
    return candidate_of(sketch, tuple(sorted(sketch.defaults.items())))
