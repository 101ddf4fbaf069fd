"""The order in which blocks run, so that those that run at once read the same memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright.expr import Index
from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.primitive import Primitive, need_loop_of, refuse
from tensorwright.schedule.primitives.fuse import Fuse
from tensorwright.schedule.primitives.groups.compound import Compound
from tensorwright.schedule.primitives.marks import Bind
from tensorwright.schedule.primitives.reorder import Reorder
from tensorwright.schedule.primitives.split import Split
from tensorwright.schedule.state import ScheduleState


@dataclass(frozen=True, slots=True)
class BlockOrder(Compound):
    """Number the blocks so that some rows of them are gone through column by column.

    Rewrite:  for i in 0..n: for j in 0..m: S    with group g
              ->  for b in 0..ceil(n/g)*m*g @block.x: if i < n: S
                  where b = (i//g*m + j)*g + i%g
    Requires: the two outermost loops of a stage at the root, as they follow each other, neither of
              them marked or of a reduction; group >= 1.
    Cards start blocks in the order of their numbers.  Of g rows and some columns of blocks, the
    operands are read from the second cache: of one row, all columns would pass first.
    Source:   Tillet et al.: Triton, MAPL 2019; its matmul tutorial calls it grouped ordering.
    """

    stage: str
    rows: str
    columns: str
    group: Index

    def need(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the steps cannot be named."""
        stage = need_loop_of(self, state, self.stage, self.rows)
        need_loop_of(self, state, self.stage, self.columns)
        if stage.loops[:2] != (self.rows, self.columns):
            reason = f"{self.rows} and {self.columns} are not the outermost loops"
            raise refuse(self, state, reason, "reorder them first", (self.stage, self.rows))

    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """Split, reorder, fuse, bind."""
        split = Split(self.stage, self.rows, (self.group,))
        outer, inner = split.children
        order = (outer, self.columns, inner)
        fuse = Fuse(self.stage, order)
        yield from (split, Reorder(self.stage, order), fuse)
        yield Bind(self.stage, fuse.fused, ForKind.BLOCK_X)
