"""The results of knobs, which a template applies to its stages."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.expr import Index
from tensorwright.schedule import ComputeAt, ComputeInline, Reorder, Split, Tail, Unroll, Vectorize
from tensorwright.tuning.space.knobs import Annotation
from tensorwright.tuning.space.sketch import SketchBuilder


@dataclass(frozen=True, slots=True)
class SplitKnob:
    """Sizes of nested tiles, and what happens to the last ones if they do not divide.

    sizes   of the inner parts, outermost first; the outermost part has the rest
    """

    name: str
    sizes: tuple[Index, ...]
    tail: Tail

    def apply(self, builder: SketchBuilder, stage: str, loop: str) -> tuple[str, ...]:
        """Split a loop by these sizes; gives the new loops, outermost first."""
        step = Split(stage, loop, self.sizes, self.tail)
        builder.do(step)
        return step.children


@dataclass(frozen=True, slots=True)
class ReorderKnob:
    """An order of some loops."""

    name: str
    loops: tuple[str, ...]

    def apply(self, builder: SketchBuilder, stage: str) -> tuple[str, ...]:
        """Order the loops; gives them, outermost first."""
        builder.do(Reorder(stage, self.loops))
        return self.loops


@dataclass(frozen=True, slots=True)
class AnnotateKnob:
    """The annotations of some loops."""

    name: str
    loops: tuple[str, ...]
    annotations: tuple[Annotation, ...]

    def apply(self, builder: SketchBuilder, stage: str) -> None:
        """Annotate the loops."""
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
Location = AtLoop | str
"""Where a stage is computed: in a loop, `ROOT` (whole, before its readers), or `INLINE`."""


@dataclass(frozen=True, slots=True)
class ComputeAtKnob:
    """Where a stage is computed."""

    name: str
    location: Location

    def apply(self, builder: SketchBuilder, stage: str) -> None:
        """Compute a stage there."""
        if isinstance(self.location, AtLoop):
            builder.do(ComputeAt(stage, self.location.host, self.location.loop))
        elif self.location == INLINE:
            builder.do(ComputeInline(stage))
