"""The steps of a call in order: stretches of native steps, and steps in Python between them."""

from __future__ import annotations

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
)


@dataclass(frozen=True, slots=True)
class NativeSegment:
    """Steps begin..end: the runs first_run..last_run, which one foreign call does."""

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
    return runs, _segments(plan, 0, len(plan.steps), runs, cuts)


def _segments(
    plan: Plan, begin: int, end: int, runs: list[Run], cuts: dict[int, Team]
) -> tuple[Segment, ...]:
    """The segments of the steps begin..end; adds their runs to `runs`."""
    segments: list[Segment] = []

    def close(first: int, last: int) -> None:
        """Make one segment of the steps first..last, which lie between two steps in Python."""
        first_run, position = len(runs), first
        while position < last:
            team = cuts.get(position)
            stop = team.end if team else min((c for c in cuts if position < c < last), default=last)
            runs.append((position, stop, int(team is not None)))
            position = stop
        if first < last:
            segments.append(NativeSegment(first, last, first_run, len(runs)))

    after = begin
    for position, inner in blocks_of(plan.steps, begin, end):
        step = plan.steps[position]
        if not isinstance(step, HostStep | BranchStep | LoopStep):
            continue
        close(after, position)
        blocks = [_segments(plan, first, last, runs, cuts) for first, last in inner]
        match step:
            case HostStep():
                segments.append(HostSegment(position, step))
            case BranchStep():
                segments.append(BranchSegment(position, step, *blocks))
            case LoopStep():
                segments.append(LoopSegment(position, step, *blocks))
        after = inner[-1][1] if inner else position + 1
    close(after, end)
    return tuple(segments)
