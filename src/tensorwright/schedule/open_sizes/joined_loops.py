"""Traces in which two open loops of a stage, which stand for one position, are one loop.

A product of open rows is one axis (`join_open_axes`); a stage that separates these rows again, as a
transposition does, still has a loop for the batch and one for the sequence.  Tiles of both together
fill where tiles of each do not: 12 sequences of 1 position are one tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from math import prod
from typing import Any

from tensorwright import expr
from tensorwright.schedule.primitive import Primitive
from tensorwright.schedule.primitives import Fuse, Reorder, Split, Vectorize
from tensorwright.schedule.state import ScheduleState
from tensorwright.schedule.trace import Trace

Names = Mapping[tuple[str, str], str]  # (stage, loop) -> the loop that stands for it


def with_joined_loops(state: ScheduleState, trace: Trace) -> Trace:
    """The trace with one loop instead of two that stand for one position, where it tiles them.

    Rewrite:  split n by 1, h by 12   ->   fuse n and h, split n_h by 12
              Each later step that names a part of n or h names that part of n_h.
    """
    if not any(reads_again(stage.tensor) for stage in state.stages):
        return trace
    for stage in state.stages:
        for outer, inner in _one_position(stage.tensor):
            plan = _plan(trace, stage.tensor, outer, inner)
            if plan is not None:
                trace = plan.rewritten(trace)
                break
    return trace


def reads_again(tensor: expr.Compute) -> bool:
    """Whether a fold reads the same elements for all values of an open axis: a tile of that axis
    reads them once.
    """
    if tensor.reduction is None:
        return False
    open_axes = {axis.var for axis in tensor.axes if expr.named_sizes_of(axis.extent)}
    return any(open_axes - expr.free_vars(*load.indices) for load in expr.loads_of(tensor.body))


def renamed(step: Primitive, names: Names) -> Primitive:
    """The step with the loops that stand for those that it names, each once."""
    changes: dict[str, Any] = {}
    given = {field.name: getattr(step, field.name) for field in fields(step)}  # type: ignore[arg-type]
    host = given.get("host", given.get("stage", ""))
    for name in ("loop", "loops"):
        value = given.get(name)
        if isinstance(value, str):
            changes[name] = names.get((host, value), value)
        elif isinstance(value, tuple):
            changes[name] = tuple(dict.fromkeys(names.get((host, each), each) for each in value))
    return replace(step, **changes) if changes else step  # type: ignore[type-var]


def _one_position(tensor: expr.Compute) -> Iterator[tuple[str, str]]:
    """Pairs of open axes that are not neighbours and that a tensor uses as one position."""
    is_open = [axis for axis in tensor.axes if expr.named_sizes_of(axis.extent)]
    for outer, inner in combinations(is_open, 2):
        if expr.is_one_position(tensor.body, outer, inner):
            yield outer.name, inner.name


@dataclass(frozen=True, slots=True)
class _Plan:
    """How two loops of a stage become one.

    first    the step before which they are fused, and which becomes the split of the fused loop
    other    the split that vanishes, if any
    between  the loops between them
    """

    stage: str
    loops: tuple[str, str]
    between: tuple[str, ...]
    first: Primitive
    splits: Mapping[str, Split]  # by loop

    def rewritten(self, trace: Trace) -> Trace:
        """The trace with the loop of both."""
        outer, inner = self.loops
        fuse = Fuse(self.stage, self.loops)
        split = self._split(fuse.fused)
        names = dict(self._names(split))
        steps: list[Primitive] = []
        for step in trace:
            if step is self.first:
                if self.between:
                    steps.append(Reorder(self.stage, (outer, inner, *self.between)))
                steps += [fuse, split]
            if step in self.splits.values():
                continue
            new = renamed(step, names)
            if isinstance(step, Fuse) and isinstance(new, Fuse):
                is_one = len(new.loops) == 1
                names[step.stage, step.fused] = new.loops[0] if is_one else new.fused
                if is_one:
                    continue
            if new == step or new not in steps:  # a mark of both loops is one of the fused loop
                steps.append(new)
        return tuple(steps)

    def _split(self, fused: str) -> Split:
        outer, inner = (self.splits.get(loop) for loop in self.loops)
        assert inner is not None, "planned where there is one"
        rows = prod(() if outer is None else outer.factors, start=inner.factors[-1])
        return replace(inner, loop=fused, factors=(*inner.factors[:-1], rows))

    def _names(self, split: Split) -> Iterator[tuple[tuple[str, str], str]]:
        for loop, given in self.splits.items():
            last = len(given.children) - 1
            for n, child in enumerate(given.children):
                at = n if loop == self.loops[1] else -1 if n == last else 0
                yield (self.stage, child), split.children[at]
        yield (self.stage, self.loops[0]), split.children[0]  # where it is not split


def _plan(trace: Trace, tensor: expr.Compute, outer: str, inner: str) -> _Plan | None:
    """None where the trace does not tile the inner loop once, or makes lanes of one of both."""
    own = [step for step in trace if getattr(step, "stage", "") == tensor.name]
    splits = [step for step in own if isinstance(step, Split)]
    of_both = [step for step in splits if step.loop in (outer, inner)]
    by_loop = {step.loop: step for step in of_both}
    parts = {child for step in of_both for child in step.children}
    lanes = {step.loop for step in own if isinstance(step, Vectorize)}
    if inner not in by_loop or len(by_loop) < len(of_both) or lanes & {outer, inner, *parts}:
        return None
    names = [axis.name for axis in tensor.axes]
    between = tuple(names[names.index(outer) + 1 : names.index(inner)])
    return _Plan(tensor.name, (outer, inner), between, splits[0], by_loop)
