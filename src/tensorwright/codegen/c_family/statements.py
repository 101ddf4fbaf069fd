"""Statements in a language of the C family: stores, branches, serial loops and vectors.

Subclasses write what differs by kind of machine: other loops, buffers, barriers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tensorwright import loop
from tensorwright.codegen.analysis import Facts, Linear
from tensorwright.codegen.c_family.dialect import Lines, Names, Val
from tensorwright.codegen.c_family.helpers import Helpers, VariesByLane
from tensorwright.codegen.c_family.values import Piece, Tile, Values, VectorLoop, stored_as
from tensorwright.codegen.statements import StatementWalk
from tensorwright.expr import Condition, Fn, Load, Value


class Statements(Values, StatementWalk[str]):
    """Write statements into one function; a kind of machine says how its buffers are."""

    def __init__(self, helpers: Helpers, names: Names, facts: Facts) -> None:
        super().__init__(helpers, names)
        self.facts = facts

    def _store(self, store: loop.Store) -> None:
        offset = self._offset_or_none(store)
        if offset is None:
            self._each_lane(store)
            return
        storage, value = self.storage(store.buffer), store.value
        if self.lanes > 1 and not offset.step:
            fold = loop.folded_operand(store)
            if fold is not None:
                self._fold(store, *fold)
                return
        result = self.value(value)
        if self.lanes == 1 or not offset.step:
            result = self.operations.lane_of(self.bind(result), 0) if result.lanes > 1 else result
            self.assign(storage, offset, result)
        elif isinstance(storage, Tile):
            vector = self.operations.spread(result, self.lanes)
            self.out.add(f"{self.tile_variable(storage, offset.const)} = {vector.text};")
        elif not self._store_neighbours(storage, offset, result):
            result = self.bind(result)
            for lane in range(self.lanes):
                at = offset._replace(const=offset.const + lane * offset.step, step=0)
                self.assign(storage, at, self.operations.lane_of(result, lane))

    def _store_neighbours(self, piece: Piece, offset: Linear, result: Val) -> bool:
        """Write a vector at once; False if adjacent lanes are not adjacent in memory."""
        most, dtype = self.dialect.vectors.most_lanes, piece.dtype
        is_same = self.dialect.value(dtype) == self.dialect.element(dtype)
        if offset.step != 1 or (most and self.lanes > most):
            return False
        if is_same:
            return self.store_vector(piece, offset, self.operations.spread(result, self.lanes))
        if not self.is_converted(dtype):
            return False
        stored = self.operations.by_lane(
            lambda part: Val(self.operations.store(part.text, dtype), stored_as(dtype)),
            stored_as(dtype),
            (self.operations.spread(result, self.lanes),),
        )
        return self.store_vector(replace(piece, dtype=stored_as(dtype)), offset, stored)

    def _offset_or_none(self, store: loop.Store) -> Linear | None:
        """The offset of a store; None if it is not linear in the lanes."""
        try:
            return self.element_offset(store.buffer, store.indices)
        except VariesByLane:
            if self.lanes == 1:
                raise
            return None

    def assign(self, storage: Piece | Tile, offset: Linear, value: Val) -> None:
        """Store one element."""
        text = value.text
        if isinstance(storage, Piece):
            text = self.operations.store(text, storage.dtype)
        self.out.add(f"{self.element_at(storage, offset)} = {text};")

    def _each_lane(self, statement: loop.Stmt) -> None:
        """Write a statement once for each lane of the vector loop around."""
        for lane in range(self.lanes):
            with self.lane(lane):
                self.statement(statement)

    def _fold(self, store: loop.Store, fn: Fn, operand: Value) -> None:
        """Fold the values of all lanes into the one element that they write."""
        total = self.operations.fold(fn, self.operations.spread(self.value(operand), self.lanes))
        offset = self.element_offset(store.buffer, store.indices)
        old = self.value(Load(store.buffer, store.indices))
        self.assign(self.storage(store.buffer), offset, self.operations.apply(fn, (old, total)))

    @contextmanager
    def _counted(self, nest: loop.For, first: str, stop: str, last: int) -> Iterator[str]:
        name = self.counter(nest, last)
        head = f"for ({self.helpers.index} {name} = {first}; {name} < {stop}; {name}++)"
        with self.out.block(head):
            yield name

    def counter(self, nest: loop.For, last: int) -> str:
        """A new name for a variable that counts the iterations of a loop."""
        name = self.names.fresh(nest.var.name)
        self.ranges[name] = (0, last)
        return name

    def _plain(self, nest: loop.For, extent: Linear) -> None:
        self.serial(nest, "0", self.sum(extent), extent)

    def _is_in_vector(self) -> bool:
        return self.vector is not None

    def _vector(self, nest: loop.For, start: Linear, lanes: int, active: int) -> None:
        if lanes == 1:
            self._copy(nest, start)
            return
        self.vector, self.lanes = VectorLoop(nest.var.name, start, lanes), lanes
        self._copy(nest, start._replace(step=1))
        self.vector, self.lanes = None, 1

    def _if(self, condition: Condition, then: loop.Stmt) -> None:
        try:
            decided = self.condition(condition)
        except VariesByLane:
            if self.lanes == 1:
                raise
            self._each_lane(loop.If(condition, then))
            return
        if decided is True:
            self.statement(then)
        elif decided is not False:
            with self.out.block(f"if {decided}"):
                self.statement(then)


def function_text(head: str, parameters: Iterable[str], body: Lines, unused: str = "") -> str:
    """A function without unused values; it marks the parameters that it does not use."""
    lines: list[str] = []
    used: set[str] = set()
    for line in reversed(body.lines):
        defined = re.match(r"\s*const \w+ (\w+) = ", line)
        if defined is None or defined[1] in used:
            used.update(re.findall(r"[A-Za-z_]\w*", line))
            lines.append(line)
    used.discard(unused)
    voided = [f"    (void){name};" for name in parameters if name not in used]
    return "\n".join((f"{head} {{", *voided, *reversed(lines), "}", ""))
