"""Reuse distances: the bytes that were touched since the last use of each operand of a step.

A network runs repeatedly, so the last use may be in the previous run.  An operand with a distance
of a few kilobytes is in a near cache; the distance of weights is a whole run.

Source:   Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2),
          1970 (stack distance); here bytes that are touched twice in between count twice, but
          the distance is never more than the bytes of the whole network.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright.base import number_in
from tensorwright.runtime import (
    CollectStep,
    CopyStep,
    HostStep,
    KernelStep,
    Plan,
    Span,
    Step,
    spans_of_step,
)


@dataclass(frozen=True, slots=True)
class Operand:
    """The data that a step reads or writes in one span of memory.

    size_bytes      the touched bytes of the span
    distance_bytes  the size of a cache that still holds the data, including the data
    """

    size_bytes: int
    distance_bytes: int


def operands_of(plan: Plan) -> tuple[tuple[Operand, ...], ...]:
    """The operands of each step, if the network has run before."""
    spans = [tuple(s for s in spans_of_step(plan, step) if s[1] < s[2]) for step in plan.steps]
    whole_bytes = plan.arena_bytes + sum(
        spec.size_bytes for spec in (*plan.inputs, *plan.outputs, *plan.constants)
    )
    history = _History()
    results: list[tuple[Operand, ...]] = []
    for run in range(2):
        results = []
        for step, places in zip(plan.steps, spans, strict=True):
            distances = [history.distance_bytes(span) for span in places]
            sizes = _sizes(step, places)
            history.touch(places, sum(sizes))
            if run == 0:
                continue
            step_bytes = sum(sizes)
            results.append(
                tuple(
                    Operand(size, min(whole_bytes, distance + step_bytes))
                    for size, distance in zip(sizes, distances, strict=True)
                )
            )
    return tuple(results)


def _sizes(step: Step, places: tuple[Span, ...]) -> list[int]:
    """The touched size of each span.

    A kernel may move less than its operands hold, if it looks up rows of a table.  The difference
    is subtracted from the largest operand.
    """
    sizes = [end - begin for _, begin, end in places]
    if isinstance(step, KernelStep) and sizes:
        spare = max(0, sum(sizes) - number_in(step.bytes_moved))
        largest = sizes.index(max(sizes))
        sizes[largest] -= min(spare, sizes[largest])
    return sizes


def moved_bytes_of(step: Step) -> int:
    """The bytes that a step of any kind moves at least."""
    match step:
        case KernelStep():
            return number_in(step.bytes_moved)
        case HostStep(inputs=inputs, outputs=outputs):
            return sum(typed.type.size_bytes for typed in (*inputs, *outputs))
        case CopyStep(size_bytes=size_bytes):
            return 2 * number_in(size_bytes)
        case CollectStep(source):
            return 2 * source.type.size_bytes
        case _:
            return 0


@dataclass(slots=True)
class _History:
    """The last use of each span, by a clock that counts touched bytes; mutable."""

    clock_bytes: int = 0
    _touched: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

    def distance_bytes(self, span: Span) -> int:
        """The bytes touched since the last use of any part of a span; all bytes if unused."""
        name, begin, end = span
        times = (
            when
            for first, last, when in self._touched.get(name, ())
            if first < end and begin < last
        )
        return self.clock_bytes - max(times, default=0)

    def touch(self, places: tuple[Span, ...], size_bytes: int) -> None:
        """Note that a step touches these spans, `size_bytes` bytes in all."""
        self.clock_bytes += size_bytes
        for name, begin, end in places:
            kept = [
                each
                for each in self._touched.get(name, ())
                if not (begin <= each[0] and each[1] <= end)
            ]
            self._touched[name] = [*kept, (begin, end, self.clock_bytes)]
