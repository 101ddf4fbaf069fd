"""What a template gets for a knob that it has named: what to do to its stages."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.expr import Index
from tensorwright.schedule import ComputeAt, ComputeInline, Reorder, Split, Tail, Unroll, Vectorize
from tensorwright.tuning.space.knobs import Annotation
from tensorwright.tuning.space.sketch import SketchBuilder


@dataclass(frozen=True, slots=True)
class SplitKnob:
    """Sizes of tiles inside each other, and what happens to the last ones where they do not divide.

    sizes   of the inner parts, outermost first; the outermost part has what they leave
    """

    name: str
    sizes: tuple[Index, ...]
    tail: Tail

    def apply(self, builder: SketchBuilder, stage: str, loop: str) -> tuple[str, ...]:
        """Split a loop so; gives the new loops, outermost first."""
        step = Split(stage, loop, self.sizes, self.tail)
        builder.do(step)
        return step.children


@dataclass(frozen=True, slots=True)
class ReorderKnob:
    """An order of some loops."""

    name: str
    loops: tuple[str, ...]

    def apply(self, builder: SketchBuilder, stage: str) -> tuple[str, ...]:
        """Order the loops so; gives them, outermost first."""
        builder.do(Reorder(stage, self.loops))
        return self.loops


@dataclass(frozen=True, slots=True)
class AnnotateKnob:
    """What is said of each of some loops."""

    name: str
    loops: tuple[str, ...]
    annotations: tuple[Annotation, ...]

    def apply(self, builder: SketchBuilder, stage: str) -> None:
        """Mark the loops so."""
        for loop, annotation in zip(self.loops, self.annotations, strict=True):
            if annotation is Annotation.UNROLL:
                builder.do(Unroll(stage, loop))
            elif annotation is Annotation.VECTORIZE:
                builder.do(Vectorize(stage, loop))


@dataclass(frozen=True, slots=True)
class AtLoop:
    """In a loop of a stage that reads it."""

    host: str
    loop: str

    def __str__(self) -> str:
        return f"{self.host}.{self.loop}"


ROOT = "root"
INLINE = "inline"
Place = AtLoop | str
"""Where a stage is computed: in a loop, `ROOT` (whole, before its readers), or `INLINE`."""


@dataclass(frozen=True, slots=True)
class ComputeAtKnob:
    """Where a stage is computed."""

    name: str
    place: Place

    def apply(self, builder: SketchBuilder, stage: str) -> None:
        """Compute a stage there."""
        if isinstance(self.place, AtLoop):
            builder.do(ComputeAt(stage, self.place.host, self.place.loop))
        elif self.place == INLINE:
            builder.do(ComputeInline(stage))
