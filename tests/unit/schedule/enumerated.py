"""All steps of a schedule with small arguments, and the check that what is accepted is right.

A state's steps are each primitive at each stage and loop.  A case is an expression, some steps
before, and a step; where several come before, some of them are drawn.  One that is accepted must
keep the meaning: its program, as it is lowered and after the passes of its target, gives what the
evaluator gives, without a read outside of a buffer or of what nobody has stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise, permutations, product
from random import Random
from typing import Any

import numpy as np
from tests.unit.schedule.expressions import Expression, finished, is_for_card

from tensorwright.base import ScheduleError
from tensorwright.loop import LoopProgram, launches_of, lower, verify
from tensorwright.schedule import (
    ALGORITHMS,
    PRIMITIVES,
    Bind,
    BlockOrder,
    CacheRead,
    CacheWrite,
    ComputeAt,
    Cooperate,
    CopyMechanism,
    ForKind,
    Fuse,
    LaunchBounds,
    Layout,
    LayoutKind,
    PackConstant,
    Pipeline,
    Prefetch,
    PrefetchNext,
    Primitive,
    Reorder,
    ReverseComputeAt,
    Rfactor,
    ScheduleState,
    Scope,
    SetScope,
    Skipped,
    SkipZeros,
    Split,
    SplitAxis,
    SplitReduction,
    Tail,
    Tensorize,
    Trace,
    UseAlgorithm,
    analyse,
    format_trace,
    parse_trace,
    reads_of,
    replay,
    uses_algorithm,
)
from tensorwright.schedule.intrinsics import INTRINSICS
from tensorwright_lab.loop_interpreter import interpret

_INDICES = (ForKind.BLOCK_X, ForKind.BLOCK_Y, ForKind.THREAD_X, ForKind.THREAD_Y)
_LAYOUTS = ((LayoutKind.PLAIN, 0), (LayoutKind.PADDED, 1), (LayoutKind.XOR, 32))
_PIPELINES = (
    *((2, CopyMechanism.REGISTERS), (3, CopyMechanism.REGISTERS)),
    *((2, CopyMechanism.CP_ASYNC), (3, CopyMechanism.CP_ASYNC)),
)


# -- all steps


@dataclass(frozen=True)
class Steps:
    """All steps of a state; `few`: with fewer numbers, for states that have steps behind them."""

    state: ScheduleState
    few: bool = False

    def all(self) -> Iterator[Primitive]:
        """Of all primitives, in their order."""
        return chain.from_iterable(map(self.of, PRIMITIVES))

    def of(self, kind: type) -> Iterator[Primitive]:
        """Of one primitive: `_STEPS` lists them, or they are one for each stage or loop."""
        special = _STEPS.get(kind)
        if special is not None:
            yield from special(self)
            return
        arguments = {"stage": self.names, "loop": self.loops}
        names = [name for name in kind.__dataclass_fields__ if name in arguments]  # type: ignore[attr-defined]
        if names == ["stage"]:
            yield from map(kind, self.names)
        else:
            yield from (kind(stage, loop) for stage, loop in self.loops)

    @property
    def names(self) -> list[str]:
        """The stages."""
        return [stage.name for stage in self.state.stages]

    @property
    def loops(self) -> list[tuple[str, str]]:
        """All loops, each with its stage."""
        return [(stage.name, loop) for stage in self.state.stages for loop in stage.loops]

    @property
    def tensors(self) -> list[str]:
        """The inputs, and the stages."""
        return [*(tensor.name for tensor in self.state.inputs), *self.names]

    def extent(self, stage: str, loop: str) -> int:
        """The iterations of a loop."""
        extent = analyse(self.state).nests[stage].extents[loop]
        assert isinstance(extent, int)
        return extent

    def numbers(self, extent: int) -> tuple[int, ...]:
        """The factors of an extent that are tried."""
        all_numbers = (2, extent + 1) if self.few else (1, 2, 3, extent, extent + 1)
        return tuple(dict.fromkeys(all_numbers))

    def factors(self, extent: int) -> tuple[tuple[int, ...], ...]:
        """Factors of a split into two or three loops."""
        pairs = ((2, 2),) if self.few else ((2, 2), (1, 3), (2, extent), (extent + 1, 1))
        return (*((n,) for n in self.numbers(extent)), *pairs)


def _splits(steps: Steps) -> Iterator[Primitive]:
    for stage, loop in steps.loops:
        for factors in steps.factors(steps.extent(stage, loop)):
            yield from (Split(stage, loop, factors, tail) for tail in Tail)


def _fusions(steps: Steps) -> Iterator[Primitive]:
    for stage in steps.state.stages:
        count = len(stage.loops)
        for first in range(count):
            yield from (
                Fuse(stage.name, stage.loops[first:end]) for end in range(first + 2, count + 1)
            )
        if count > 1:
            yield Fuse(stage.name, stage.loops[1::-1])


def _orders(steps: Steps) -> Iterator[Primitive]:
    most = 3 if steps.few else 4
    for stage in steps.state.stages:
        loops = stage.loops
        if len(loops) < 2:
            continue
        orders = islice(permutations(loops), 1, None)
        if len(loops) > most:
            swapped = ((second, first) for first, second in pairwise(loops))
            rotated = (*loops[1:], loops[0]), (loops[-1], *loops[:-1])
            orders = chain(swapped, (loops[::-1],), rotated)
        yield from (Reorder(stage.name, order) for order in orders)


def _bindings(steps: Steps) -> Iterator[Primitive]:
    indices = _INDICES[::2] if steps.few else _INDICES
    yield from (Bind(*loop, index) for loop in steps.loops for index in indices)


def _placements(kind: type[ComputeAt | ReverseComputeAt]) -> Callable[[Steps], Iterator[Primitive]]:
    return lambda steps: (kind(name, *loop) for name in steps.names for loop in steps.loops)


def _copies(steps: Steps) -> Iterator[Primitive]:
    scopes = (Scope.LOCAL,) if steps.few else (Scope.LOCAL, Scope.SHARED)
    for tensor, reader in product(steps.tensors, steps.names):
        if tensor not in reads_of(steps.state.stage(reader).tensor):
            yield CacheRead(tensor, reader)
            continue
        rank = len(steps.state.source(tensor).shape)
        orders = (
            ((), tuple(reversed(range(rank)))) if steps.few else ((), *permutations(range(rank)))
        )
        for scope, order in product(scopes, orders):
            yield CacheRead(tensor, reader, scope, order)


def _factored(steps: Steps) -> Iterator[Primitive]:
    for stage, loop in steps.loops:
        yield from (
            Rfactor(stage, loop, position) for position in ((-1, 0) if steps.few else (-1, 0, 1))
        )


def _skips(steps: Steps) -> Iterator[Primitive]:
    for stage in steps.state.stages:
        axes = [axis.name for axis in (*stage.tensor.reduce_axes, *stage.tensor.axes)]
        for tensor, axis, of in product(reads_of(stage.tensor), axes, Skipped):
            yield SkipZeros(stage.name, tensor, axis, of)


def _prefetches(steps: Steps) -> Iterator[Primitive]:
    for (stage, loop), tensor in product(steps.loops, steps.tensors):
        yield from (Prefetch(stage, tensor, loop, n) for n in ((1,) if steps.few else (1, 3)))


def _shared_out(steps: Steps) -> Iterator[Primitive]:
    threads = ((2,), (2, 3)) if steps.few else ((1,), (2,), (7,), (2, 3), (2, 1, 2))
    for name, count, vector in product(steps.names, threads, (1, 2) if steps.few else (1, 2, 3)):
        yield Cooperate(name, count, vector)


def _block_orders(steps: Steps) -> Iterator[Primitive]:
    for stage in steps.state.stages:
        if len(stage.loops) > 1:
            yield from (BlockOrder(stage.name, *stage.loops[:2], n) for n in (1, 2, 3))
            yield BlockOrder(stage.name, *stage.loops[1::-1], 2)


def _reductions(steps: Steps) -> Iterator[Primitive]:
    for stage, loop in steps.loops:
        yield from (
            SplitReduction(stage, loop, n) for n in steps.numbers(steps.extent(stage, loop))
        )


def _axes(steps: Steps) -> Iterator[Primitive]:
    for stage in steps.state.stages:
        for axis in (*stage.tensor.axes, *stage.tensor.reduce_axes):
            yield from (SplitAxis(stage.name, axis.name, n) for n in steps.factors(axis.length))


_STEPS: dict[type, Callable[[Steps], Iterator[Primitive]]] = {
    Split: _splits,
    Fuse: _fusions,
    Reorder: _orders,
    Bind: _bindings,
    ComputeAt: _placements(ComputeAt),
    ReverseComputeAt: _placements(ReverseComputeAt),
    CacheRead: _copies,
    CacheWrite: lambda s: (CacheWrite(n, e) for n in s.names for e in (Scope.LOCAL, Scope.SHARED)),
    Rfactor: _factored,
    PackConstant: lambda s: (PackConstant(*each) for each in product(s.tensors, s.names)),
    Tensorize: lambda s: (Tensorize(*loop, i.name) for loop in s.loops for i in INTRINSICS),
    Prefetch: _prefetches,
    PrefetchNext: lambda s: (
        PrefetchNext(stage, tensor, loop) for (stage, loop), tensor in product(s.loops, s.tensors)
    ),
    UseAlgorithm: lambda s: (UseAlgorithm(n, a.name) for n in s.names for a in ALGORITHMS),
    SkipZeros: _skips,
    SetScope: lambda s: (SetScope(*each) for each in product(s.names, Scope)),
    Cooperate: _shared_out,
    BlockOrder: _block_orders,
    Layout: lambda s: (Layout(name, *each) for name in s.names for each in _LAYOUTS),
    LaunchBounds: lambda s: (LaunchBounds(*each) for each in product(s.names, (0, 2))),
    Pipeline: lambda s: (Pipeline(*loop, *each) for loop in s.loops for each in _PIPELINES),
    SplitReduction: _reductions,
    SplitAxis: _axes,
}
"""The steps of those primitives that have more arguments than a stage and a loop of it."""


# -- checking

_Accepted = list[tuple[Primitive, ScheduleState]]


@dataclass
class Tally:
    """What has been checked, by primitive; mutable.

    untried  steps that are accepted and whose programs are not run: there are many like them
    faults   texts, each with the trace that repeats it
    """

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    untried: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    faults: list[str] = field(default_factory=list)


class Enumeration:
    """Cases of one expression, and what it gives; mutable: each program is run once."""

    def __init__(self, name: str, expression: Expression, tally: Tally) -> None:
        self.name, self.expression, self.tally = name, expression, tally
        self.arrays = expression.arrays()
        self.answers = expression.answers(self.arrays)
        self.seen: set[LoopProgram] = set()

    def try_all(self, before: Trace, state: ScheduleState, steps: Steps, most: int) -> _Accepted:
        """Check all steps after some others; gives those that are legal and right.

        most   of the accepted steps of a primitive, so many are run, evenly among them; 0 is all
        """
        accepted: dict[type, _Accepted] = {}
        for step in steps.all():
            after = self.check(before, state, step)
            if after is not None:
                accepted.setdefault(type(step), []).append((step, after))
        return [
            (step, after)
            for kind, listed in accepted.items()
            for step, after in self._some(kind.__name__, listed, most)
            if self.is_right((*before, step), after)
        ]

    def _some(self, kind: str, accepted: _Accepted, most: int) -> _Accepted:
        chosen = evenly(accepted, most or len(accepted))
        self.tally.untried[kind] += len(accepted) - len(chosen)
        return chosen

    def check(self, before: Trace, state: ScheduleState, step: Primitive) -> ScheduleState | None:
        """The state after a step that is accepted; None where it is refused, or fails."""
        kind = type(step).__name__
        try:
            assert parse_trace(str(step)) == (step,), "it does not parse as it prints"
            step.check(state)
            after = step.apply(state)
        except ScheduleError:
            self.tally.refused[kind] += 1
        except Exception as error:  # noqa: BLE001 -- whatever is raised is what is looked for
            self._note((*before, step), error)
        else:
            self.tally.accepted[kind] += 1
            return after
        return None

    def is_right(self, trace: Trace, state: ScheduleState) -> bool:
        """Whether the program of a state gives what the expression means."""
        try:
            self._run(lower(state), self._tolerance(trace))
        except Exception as error:  # noqa: BLE001 -- as above
            self._note(trace, error)
            return False
        return True

    def _note(self, trace: Trace, error: Exception) -> None:
        self.tally.wrong[type(trace[-1]).__name__] += 1
        told = f"{type(error).__name__}: {error}"
        self.tally.faults.append(f"{self.name}\n{format_trace(trace)}\n{told}")

    def _tolerance(self, trace: Trace) -> tuple[float, float]:
        """Relative and absolute: algorithms round otherwise, and all numbers are below 100."""
        if uses_algorithm(trace):
            return 1e-5, 1e-3
        return (0.0, 0.0) if self.expression.is_exact else (2e-6, 0.0)

    def _run(self, program: LoopProgram, tolerance: tuple[float, float]) -> None:
        if program in self.seen:
            return
        self.seen.add(program)
        self.tally.programs += 1
        for each in (program, finished(program)):
            verify(each)
            if is_for_card(each):
                launches_of(each)
            results = interpret(each, self.arrays)
            assert results.keys() == self.answers.keys(), f"the outputs are {', '.join(results)}"
            for name, answer in self.answers.items():
                np.testing.assert_allclose(results[name], answer, *tolerance, err_msg=name)


def evenly(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of some items, evenly among them."""
    count = min(most, len(items))
    return [items[(2 * n + 1) * len(items) // (2 * count)] for n in range(count)]


def representatives(before: ScheduleState, accepted: _Accepted, each: int) -> _Accepted:
    """So many accepted steps of each primitive, evenly among those that make different loops.

    Steps of loops of a reduction, and steps of others, count as two primitives.
    """
    by_kind: dict[tuple[type, bool], dict[LoopProgram, tuple[Primitive, ScheduleState]]] = {}
    folding = {(s.name, loop) for s in before.stages for loop in s.reduce_loops}
    for step, state in accepted:
        place = getattr(step, "stage", ""), getattr(step, "loop", "")
        kind = by_kind.setdefault((type(step), place in folding), {})
        kind.setdefault(lower(state), (step, state))
    return [one for kept in by_kind.values() for one in evenly(tuple(kept.values()), each)]


def enumerate_schedules(
    name: str, expression: Expression, tally: Tally, *, each: int, most: int
) -> None:
    """Check all steps of an expression, and all steps after one step before.

    each   the steps of each primitive that are taken as the one before; each algorithm is one
    most   of the accepted steps of a primitive after another step, so many are run; 0 is all
    """
    cases = Enumeration(name, expression, tally)
    accepted = cases.try_all((), expression.state, Steps(expression.state), 0)
    algorithms = [pair for pair in accepted if isinstance(pair[0], UseAlgorithm)]
    others = [pair for pair in accepted if pair not in algorithms]
    others = representatives(expression.state, others, each)
    for first, after in (*algorithms, *others):
        cases.try_all((first,), after, Steps(after, few=True), most)


def enumerate_after(
    name: str, expression: Expression, trace: Trace, tally: Tally, *, most: int
) -> None:
    """Check all steps after a whole schedule."""
    state = replay(expression.state, trace)
    Enumeration(name, expression, tally).try_all(trace, state, Steps(state, few=True), most)


_TRIED = 6


def walk(
    name: str, expression: Expression, kinds: Sequence[type], source: Random, tally: Tally
) -> None:
    """Check the program after two to twelve such steps that are drawn.

    kinds   the primitives to draw from; one that is listed more often is drawn more often
    """
    cases, state = Enumeration(name, expression, tally), expression.state
    trace: Trace = ()
    for _ in range(source.randint(2, 12)):
        steps = list(Steps(state, few=source.random() < 0.5).of(source.choice(kinds)))
        for step in source.sample(steps, min(_TRIED, len(steps))):
            after = cases.check(trace, state, step)
            if after is not None:
                trace, state = (*trace, step), after
                break
    if trace:
        cases.is_right(trace, state)
