"""The derivation: every generator that applies, stage by stage, until all stages are decided.

Its sketches are annotated, without doubles, the likeliest first.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter

from tensorwright.base import ByKind, ScheduleError, Target, TargetKind, of_kind
from tensorwright.schedule import ScheduleState, Trace, uses_algorithm
from tensorwright.tuning.space.derived.annotate import sketches_of
from tensorwright.tuning.space.derived.bound import bound_sketches
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.rule import SketchRule, Verdict, own_rules
from tensorwright.tuning.space.derived.rules import (
    GENERATORS,
    WINOGRAD_RULES,
)
from tensorwright.tuning.space.sketch import Sketch, distinct

_MOST_COMPLETE = 64  # ways to decide about everything; the first found are kept
MOST_SKETCHES = 9
_MOST_OF_ALGORITHM = 6

FINISHERS: ByKind[Callable[[Derivation], Iterator[Sketch]]] = {
    TargetKind.CPU: (sketches_of,),
    TargetKind.GPU: (bound_sketches,),
}
"""What makes sketches of a complete derivation, the likeliest first; one for each kind."""


def derive(
    state: ScheduleState, target: Target, rules: Sequence[SketchRule] | None = None
) -> Iterator[Derivation]:
    """Every way to decide about all stages, those of the first generators first, none twice.

    rules   those that are asked, in order; a user's and then those of the target's kind if None
    """
    if rules is None:
        rules = (*own_rules(), *of_kind(GENERATORS, target, "sketch generators"))
    partial = [Derivation.start(state, target)]
    seen: set[tuple[str, Trace]] = set()
    complete = 0
    while partial and complete < _MOST_COMPLETE:
        view = partial.pop()
        key = view.current, view.steps
        if key in seen:
            continue
        seen.add(key)
        if view.is_complete:
            complete += 1
            yield view
        else:
            partial += reversed(list(_next(view, rules)))


def _next(view: Derivation, rules: Sequence[SketchRule]) -> Iterator[Derivation]:
    """The derivations that every applicable generator makes of a partial sketch."""
    for rule in rules:
        verdict = rule.applies(view)
        if verdict is Verdict.NO:
            continue
        try:
            yield from rule.derive(view)
        except ScheduleError:
            continue  # an illegal step: the generators after it are asked
        if verdict is Verdict.YES_AND_SKIP_REST:
            return


def derived_sketches(
    state: ScheduleState, target: Target, most: int = MOST_SKETCHES
) -> Iterator[Sketch]:
    """Up to `most` sketches: of every family the likeliest, then of every family the next.

    Each is worked out when it is asked for.
    """
    (finish,) = of_kind(FINISHERS, target, "finishers of sketches")
    return islice(distinct(_in_turns(map(finish, derive(state, target))), attrgetter("name")), most)


def tiled_sketches(
    state: ScheduleState,
    target: Target,
    rules: Sequence[SketchRule] | None = None,
    most: int = MOST_SKETCHES,
) -> Iterator[Sketch]:
    """As `derived_sketches`, of the derivations that tile something.

    rules   as in `derive`
    """
    (finish,) = of_kind(FINISHERS, target, "finishers of sketches")
    tiled = (each for each in derive(state, target, rules) if each.tiles)
    return islice(_in_turns(map(finish, tiled)), most)


def likeliest_sketch(state: ScheduleState, target: Target) -> Iterator[Sketch]:
    """The first of the derived sketches: the schedule of an untuned program."""
    return islice(derived_sketches(state, target), 1)


def batched_winograd_sketches(state: ScheduleState, target: Target) -> Iterator[Sketch]:
    """Those for graphics processors that compute a convolution by Winograd's algorithm."""
    sketches = tiled_sketches(state, target, WINOGRAD_RULES, _MOST_OF_ALGORITHM)
    return (sketch for sketch in sketches if uses_algorithm(sketch.trace))


def _in_turns(alternatives: Iterable[Iterator[Sketch]]) -> Iterator[Sketch]:
    """The first of each, then the second of each, and so on."""
    while True:
        more: list[Iterator[Sketch]] = []
        for sketches in alternatives:
            for sketch in islice(sketches, 1):
                yield sketch
                more.append(sketches)
        if not more:
            return
        alternatives = more
