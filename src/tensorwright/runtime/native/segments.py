"""The steps of a call in order: stretches of native steps, and steps in Python between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.runtime.plan.plan import (
    BranchStep,
    HostStep,
    LoopStep,
    Plan,
    Team,
    TypedRef,
    blocks_of,
    native_steps,
)


@dataclass(frozen=True, slots=True)
class NativeSegment:
    """Steps begin..end, with all their blocks: runs first_run..last_run, in one foreign call."""

    begin: int
    end: int
    first_run: int
    last_run: int


@dataclass(frozen=True, slots=True)
class HostSegment:
    """Step `index` runs in Python."""

    index: int
    step: HostStep[TypedRef]


@dataclass(frozen=True, slots=True)
class BranchSegment:
    """Step `index` chooses which segments run."""

    index: int
    step: BranchStep[TypedRef]
    then: tuple[Segment, ...]
    otherwise: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class LoopSegment:
    """Step `index` decides how often segments run."""

    index: int
    step: LoopStep[TypedRef]
    body: tuple[Segment, ...]


Segment: TypeAlias = NativeSegment | HostSegment | BranchSegment | LoopSegment
Run: TypeAlias = tuple[int, int, int]


def cut_into_segments(plan: Plan) -> tuple[list[Run], tuple[Segment, ...]]:
    """The driver's table of runs, and the segments that use it."""
    runs: list[Run] = []
    cuts = {team.begin: team for team in plan.teams}
    native = native_steps(plan.steps)
    return runs, _segments(plan, 0, len(plan.steps), runs, cuts, native)


def _segments(
    plan: Plan,
    begin: int,
    end: int,
    runs: list[Run],
    cuts: dict[int, Team],
    native: Sequence[bool],
) -> tuple[Segment, ...]:
    """The segments of the steps begin..end; adds their runs to `runs`."""
    segments: list[Segment] = []
    blocks = tuple(blocks_of(plan.steps, begin, end))
    tops = {position for position, _ in blocks}

    def close(first: int, last: int) -> None:
        """Make one segment of the steps first..last, which lie between two steps in Python."""
        first_run, position = len(runs), first
        while position < last:
            team = cuts.get(position)
            later = [each for each in tops & cuts.keys() if position < each < last]
            stop = team.end if team else min(later, default=last)
            runs.append((position, stop, int(team is not None)))
            position = stop
        if first < last:
            segments.append(NativeSegment(first, last, first_run, len(runs)))

    after = begin
    for position, inner in blocks:
        step = plan.steps[position]
        if native[position]:
            continue
        close(after, position)
        sides = [_segments(plan, *side, runs, cuts, native) for side in inner]
        match step:
            case HostStep():
                segments.append(HostSegment(position, step))
            case BranchStep():
                segments.append(BranchSegment(position, step, *sides))
            case LoopStep():
                segments.append(LoopSegment(position, step, *sides))
        after = inner[-1][1] if inner else position + 1
    close(after, end)
    return tuple(segments)
