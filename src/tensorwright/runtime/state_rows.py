"""The memory of a session's states in place, and the rows of it that a call reads and writes.

Each state lies in one piece of memory, whose first axis is that of its rows, with room for more.  A
call reads rows 0..end of a state that grows, and writes rows start..end; of a state of fixed length
it reads all, and writes where the model says.  A decoder has dozens of states, and makes a call for
each token.  So addresses are computed once for a piece of memory, and what differs by call is
vectors with a number for each state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.runtime.buffers import address_of, empty
from tensorwright.runtime.plan.plan import GrownState, Plan, WrittenState

Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]


class StateRows:
    """Pieces of memory, one for each of some states in place.

    counts      the rows in use; a call's end sets them
    is_shared   which other sessions have, too, so that a call must not write to them
    is_seen     of which the caller has views, so that their rows must not change
    """

    __slots__ = (
        "addresses",
        "counts",
        "grows",
        "is_seen",
        "is_shared",
        "memory",
        "names",
        "rooms",
        "row_bytes",
        "row_shapes",
        "states",
    )

    def __init__(
        self,
        states: Sequence[GrownState | WrittenState],
        memory: Sequence[base.Array],
        counts: Numbers | None = None,
        is_shared: Truths | None = None,
        is_seen: Truths | None = None,
    ) -> None:
        """Rows of memory, all of which are in use if `counts` is None."""
        none = np.zeros(len(memory), np.bool_)
        self.states, self.memory = tuple(states), tuple(memory)
        self.names = tuple(state.input for state in states)
        self.grows = np.array([isinstance(state, GrownState) for state in states], np.bool_)
        self.rooms = np.array([len(each) for each in memory], np.int64)
        self.addresses = np.array([address_of(each) for each in memory], np.int64)
        self.row_shapes = [each.shape[1:] for each in memory]
        bytes_of_rows = [math.prod(each.shape[1:]) * each.itemsize for each in memory]
        self.row_bytes = np.array(bytes_of_rows, np.int64)
        self.counts = self.rooms if counts is None else counts
        self.is_shared = none if is_shared is None else is_shared
        self.is_seen = none.copy() if is_seen is None else is_seen

    def count(self, name: str) -> int:
        """The rows of a state that are in use."""
        return int(self.counts[self.names.index(name)])

    def array(self, number: int, end: int | None = None) -> base.Array:
        """A view of a state, in the shape of the network; with `end`, of so many rows."""
        memory = self.memory[number]
        rows = memory[: self.counts[number]][:end]
        return np.transpose(rows, np.argsort(self.states[number].order(memory.ndim)))

    def forked(self) -> StateRows:
        """These rows for another session; neither of the two writes to them from now on."""
        self.is_shared = np.ones(len(self.memory), np.bool_)
        flags = (self.is_shared.copy(), self.is_seen.copy())
        return StateRows(self.states, self.memory, self.counts, *flags)

    def cut(self, end: int) -> StateRows:
        """These rows without those behind a position; memory that others see is left to them."""
        counts = np.where(self.grows, end, self.counts)
        is_shared = self.is_shared | (self.grows & self.is_seen)
        is_seen = self.is_seen & ~self.grows
        return StateRows(self.states, self.memory, counts, is_shared, is_seen)

    def call(self, new: Numbers) -> RowsOfCall:
        """What a call uses that makes each state so much longer; in other memory if it must."""
        ends = self.counts + new
        is_kept = self.is_shared | (self.is_seen & ~self.grows) | (ends > self.rooms)
        rows = self._with_own(is_kept, ends) if is_kept.any() else self
        return RowsOfCall(rows, self.counts * self.grows, ends)

    def _with_own(self, is_kept: Truths, ends: Numbers) -> StateRows:
        """These rows, some of them copied into memory of their own with room for so many."""
        memory = list(self.memory)
        for number in np.flatnonzero(is_kept).tolist():
            old, count, end = memory[number], self.counts[number], int(ends[number])
            room = len(old) if end <= len(old) else max(end, 2 * len(old))
            memory[number] = empty((room, *old.shape[1:]), base.DType.from_numpy(old.dtype))
            memory[number][:count] = old[:count]
        is_seen = self.is_seen & ~is_kept
        return StateRows(self.states, memory, self.counts, self.is_shared & ~is_kept, is_seen)


@dataclass(frozen=True, slots=True, eq=False)
class RowsOfCall:
    """The rows that a call uses: it reads 0..ends, and writes starts..ends."""

    rows: StateRows
    starts: Numbers
    ends: Numbers

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Those of the states that it reads."""
        pairs = zip(self.ends.tolist(), self.rows.row_shapes, strict=True)
        return tuple([(end, *row) for end, row in pairs])

    @property
    def written_addresses(self) -> Numbers:
        """Of the rows that it writes."""
        return self.rows.addresses + self.starts * self.rows.row_bytes

    def read(self) -> list[base.Array]:
        """Views of the rows that it reads."""
        return [memory[:end] for memory, end in zip(self.rows.memory, self.ends, strict=True)]

    def written(self) -> list[base.Array]:
        """Views of the rows that it writes."""
        return [all_[start:] for all_, start in zip(self.read(), self.starts, strict=True)]

    def end(self) -> StateRows:
        """The rows after the call."""
        self.rows.counts = self.ends
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class StatePlaces:
    """Where a plan's states in place are among its inputs and outputs.

    inputs, outputs     their positions           bases   those of their addresses in a frame
    others, results     the positions of the other inputs, and of the other outputs
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    others: tuple[int, ...]
    results: tuple[int, ...]
    bases: Numbers

    @classmethod
    def of(cls, plan: Plan) -> StatePlaces:
        """Those of a plan."""
        read = {spec.name: position for position, spec in enumerate(plan.inputs)}
        made = {spec.name: position for position, spec in enumerate(plan.outputs)}
        inputs = tuple([read.pop(state.input) for state in plan.states])
        outputs = tuple([made.pop(state.output) for state in plan.states])
        bases = [*inputs, *(len(plan.inputs) + position for position in outputs)]
        others, results = tuple(read.values()), tuple(made.values())
        return cls(inputs, outputs, others, results, 1 + np.array(bases, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRows:
    """The rows of a call, and where the executable has them among its inputs and outputs."""

    places: StatePlaces
    rows: RowsOfCall

    @property
    def addresses(self) -> Numbers:
        """Of the rows that are read, and of those that are written."""
        return np.concatenate((self.rows.rows.addresses, self.rows.written_addresses))

    def shapes(self, others: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
        """Those of all inputs, in order."""
        shapes = [array.shape for array in others]
        return _merged(self.places.inputs, self.rows.shapes, self.places.others, shapes)

    def inputs(self, others: Sequence[Any]) -> tuple[Any, ...]:
        """All inputs, in order."""
        return _merged(self.places.inputs, self.rows.read(), self.places.others, others)

    def outputs(self, results: Sequence[Any]) -> tuple[Any, ...]:
        """All outputs, in order."""
        return _merged(self.places.outputs, self.rows.written(), self.places.results, results)


def _merged(
    places: Sequence[int], states: Sequence[Any], free: Sequence[int], others: Sequence[Any]
) -> tuple[Any, ...]:
    merged: list[Any] = [None] * (len(places) + len(free))
    for position, each in zip((*places, *free), (*states, *others), strict=True):
        merged[position] = each
    return tuple(merged)
