"""A partial sketch, which the generators read and extend.

A derivation visits the stages of a program from the last to the first.  It is a value: generators
return new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tensorwright.schedule import Primitive, ScheduleState, Stage
from tensorwright.tuning.space.derived.predicates import is_untouched
from tensorwright.tuning.space.sketch import Choice, Limit, SketchBuilder


@dataclass(frozen=True, slots=True)
class TiledStage:
    """A stage that a generator has tiled, for what is decided about it at the end.

    stage   computes the tiles                 host     stores them: the consumer, or the stage
    tile_loops   loops that hold a tile, largest first: (stage, loop)
    copies  whether its operands are copied as they lie, by steps that a card takes by itself
    is_element   a tile is what one thread has: what is read for an element may be computed there
    """

    stage: str
    host: str
    tile_loops: tuple[tuple[str, str], ...]
    copies: bool = True
    is_element: bool = False


@dataclass(frozen=True, slots=True)
class Derivation:
    """A partial sketch and the stage that is visited.

    target    of the kind that the generators are for
    current   the name of the stage to be decided, "" when all are
    visited   the stages that have been decided
    notes     what the generators did that made a difference: the name of the sketch's family
    placements  of stages: with the notes, the name of the sketch
    tiles     the stages that have been tiled
    """

    target: Any
    state: ScheduleState
    current: str
    steps: tuple[Primitive, ...] = ()
    choices: tuple[Choice, ...] = ()
    limits: tuple[Limit, ...] = ()
    visited: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    tiles: tuple[TiledStage, ...] = ()

    @classmethod
    def start(cls, state: ScheduleState, target: Any) -> Derivation:
        """Nothing decided, at the last stage."""
        return cls(target, state, state.stages[-1].name)

    @property
    def stage(self) -> Stage:
        """The stage that is visited."""
        return self.state.stage(self.current)

    @property
    def is_complete(self) -> bool:
        """Whether every stage has been decided."""
        return not self.current

    @property
    def elements(self) -> dict[str, tuple[str, str]]:
        """The loops in which a thread has one element: stage -> (stage, loop)."""
        return {tile.stage: tile.tile_loops[-1] for tile in self.tiles if tile.is_element}

    def grow(self) -> SketchBuilder:
        """A builder that goes on from here: do steps and open decisions, then call `then`."""
        builder = SketchBuilder(self.state)
        builder.steps = list(self.steps)
        builder.choices = list(self.choices)
        builder.limits = list(self.limits)
        return builder

    def then(
        self,
        builder: SketchBuilder,
        note: str = "",
        placement: str = "",
        tile: TiledStage | None = None,
    ) -> Derivation:
        """The derivation after the builder, with the current stage decided.

        The last undecided stage is next. A stage that has been scheduled counts as decided.
        """
        visited = self.visited | {self.current}
        state = builder.state
        open_stages = [
            s.name for s in state.stages if s.name not in visited and is_untouched(state, s)
        ]
        return replace(
            self,
            state=state,
            current=open_stages[-1] if open_stages else "",
            steps=tuple(builder.steps),
            choices=tuple(builder.choices),
            limits=tuple(builder.limits),
            visited=visited,
            notes=(*self.notes, note) if note else self.notes,
            placements=(*self.placements, placement) if placement else self.placements,
            tiles=(*self.tiles, tile) if tile is not None else self.tiles,
        )
