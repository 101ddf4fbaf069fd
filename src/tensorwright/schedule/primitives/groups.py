"""The primitives for groups of threads: what a graphics processor has and a processor has not.

Steps that stand for several others: one line of a trace instead of many.

The order in which blocks run, so that those that run at once read the same memory.

Let all threads of a group compute a tensor together.

Give a tensor several axes for one, so that elements far apart are computed together.

Share out a reduction over blocks.

Ask that several groups run on a multiprocessor at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from tensorwright import expr
from tensorwright.base import ScheduleError
from tensorwright.schedule.memory_layout import ForKind
from tensorwright.schedule.primitive import Checks, Primitive, applied, attached_stages
from tensorwright.schedule.primitives.loops import Fuse, Reorder, Split, loop_extent
from tensorwright.schedule.primitives.marks import Bind, Vectorize
from tensorwright.schedule.primitives.reductions import Rfactor
from tensorwright.schedule.state import AtRoot, ScheduleState, Stage, own_loops
from tensorwright.schedule.tails import is_zero


class Compound(Primitive):
    """A step that does others in order.

    Theorem: each of them keeps the meaning, so all of them do.
    """

    __slots__ = ()

    @abstractmethod
    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """The steps for a state; the stages and loops that they name are those of the state."""

    def _need_names(self, at: Checks) -> None:
        """Raise ScheduleError where the steps cannot be named."""

    def _need(self, at: Checks) -> None:
        self._need_names(at)
        now = at.state
        for step in self.steps(at.state):
            try:
                step.check(now)
            except ScheduleError as error:
                told = {"step": str(self), "reason": f"{step}: {error.reason}"}
                raise ScheduleError(**{**dict(error.fields), **told}) from None
            now = applied(step, now)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state after all of them."""
        for step in self.steps(state):
            state = applied(step, state)
        return state


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
    group: expr.Index

    def _need_names(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.rows)
        at.loop_of(self.stage, self.columns)
        if stage.loops[:2] != (self.rows, self.columns):
            reason = f"{self.rows} and {self.columns} are not the outermost loops"
            raise at.refuse(reason, "reorder them first", (self.stage, self.rows))

    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """Split, reorder, fuse, bind."""
        split = Split(self.stage, self.rows, (self.group,))
        outer, inner = split.children
        order = (outer, self.columns, inner)
        fuse = Fuse(self.stage, order)
        yield from (split, Reorder(self.stage, order), fuse)
        yield Bind(self.stage, fuse.fused, ForKind.BLOCK_X)


_INDICES = (ForKind.THREAD_Z, ForKind.THREAD_Y, ForKind.THREAD_X)


@dataclass(frozen=True, slots=True)
class Cooperate(Compound):
    """Share out all iterations of a stage over the threads, some lanes to each at a time.

    Rewrite:  for d0: for d1: P[d0, d1] = A[..]   with threads [y, x] and vector v
              ->  for p_0: for p_1 in 0..y @thread.y: for p_2 in 0..x @thread.x:
                    for p_3 in 0..v @vectorize: P[d0, d1] = A[..]
                  where d0*n1 + d1 = ((p_0*y + p_1)*x + p_2)*v + p_3
    Requires: one to three numbers of threads, the last is that of thread.x; the stage has loops,
              folds nothing, none of its loops is marked and nothing is placed in them.
    Neighbouring threads fetch neighbouring addresses, whatever the shape of the tensor's part.
    Source:   Zheng et al.: Ansor, OSDI 2020, section 4.2 (cooperative fetching).
    """

    stage: str
    threads: tuple[expr.Index, ...]
    vector: expr.Index = 1

    def _need_names(self, at: Checks) -> None:
        stage = at.stage_of(self.stage)
        if not 1 <= len(self.threads) <= len(_INDICES):
            raise at.refuse(f"{len(self.threads)} numbers of threads", "one to three")
        if not stage.loops:
            raise at.refuse(f"{self.stage} has no loops to share out")
        if stage.tensor.reduction is not None:
            reason = f"{self.stage} folds: its threads would share out one sum"
            raise at.refuse(reason, "cache_read what it reads, and share out the copy")
        placed = attached_stages(at.state, self.stage)
        if placed:
            raise at.refuse(f"{placed[0].name} is computed inside {self.stage}")

    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """Fuse, split, bind, vectorise."""
        loop = state.stage(self.stage).loops[0]
        if len(state.stage(self.stage).loops) > 1:
            fuse = Fuse(self.stage, state.stage(self.stage).loops)
            loop = fuse.fused
            yield fuse
        has_lanes = self.vector != 1
        split = Split(self.stage, loop, (*self.threads, *((self.vector,) if has_lanes else ())))
        yield split
        inner = split.children[1:]
        for index, child in zip(_INDICES[-len(self.threads) :], inner, strict=False):
            yield Bind(self.stage, child, index)
        if has_lanes:
            yield Vectorize(self.stage, inner[-1])


@dataclass(frozen=True, slots=True)
class SplitAxis(Primitive):
    """Store one axis of a tensor as several.

    Rewrite:  P[i] = e(i);  C[j] = f(P[g(j)])
              ->  P[i_o, i_i] = e(i_o*f + i_i);  C[j] = f(P[g(j)//f, g(j)%f])
              With several factors the axes are i_0, i_1, ...; factors[k] is the extent of i_(k+1).
              Where the factors do not divide the extent, the elements of the rest are never
              computed.
    Requires: the stage is not an output and not scheduled; the axis is one of the tensor, not of
              its reduction; its readers have not packed it and are not computed by an intrinsic;
              every factor >= 1; new axes have new names.
    The part that a tile needs is a box.  Of an axis that is cut into blocks, virtual threads,
    threads and inner elements, one thread's part is a box only where these are axes.
    Source:   TVM's transform_layout (Shao et al.: MetaSchedule, NeurIPS 2022).
    """

    stage: str
    axis: str
    factors: tuple[expr.Index, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the new axes, outermost first."""
        if len(self.factors) == 1:
            return (f"{self.axis}_o", f"{self.axis}_i")
        return tuple(f"{self.axis}_{n}" for n in range(len(self.factors) + 1))

    def _need(self, at: Checks) -> None:
        stage = at.stage_of(self.stage)
        at.need_no_output(self.stage, ": its shape is the caller's")
        at.need_unscheduled(stage)
        names = [axis.name for axis in (*stage.tensor.axes, *stage.tensor.reduce_axes)]
        if self.axis not in [axis.name for axis in stage.tensor.axes]:
            raise at.refuse(f"{self.stage} has no axis {self.axis}")
        if not self.factors:
            raise at.refuse("no factor is given", "give the extent of each inner axis")
        for factor in self.factors:
            if isinstance(factor, int) and factor < 1:
                raise at.refuse(f"factor {factor} is not positive")
        for name in self.axes:
            if name in names:
                raise at.refuse(f"{self.stage} already has an axis {name}")
        # Theorem: i <-> (i//f, i%f) is a bijection, so every reader finds the element that it read.
        for reader in at.state.readers(self.stage):
            if reader.intrinsic is not None:
                reason = f"{reader.name} is computed by {reader.intrinsic[1]}"
                raise at.refuse(reason, "tensorize last")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the tensor in its new shape, and its readers reading that."""
        stage = state.stage(self.stage)
        split, inside = self._split(stage)
        stand_in = expr.Placeholder(self.stage, split.shape, split.dtype)
        position = [axis.name for axis in stage.tensor.axes].index(self.axis)
        changed = state.with_stage(
            replace(stage, tensor=split, loops=own_loops(split), inside=inside)
        )
        for reader in state.readers(self.stage):
            tensor = self._reading(reader.tensor, stand_in, position)
            changed = changed.with_stage(replace(reader, tensor=tensor))
        return changed

    def _split(self, stage: Stage) -> tuple[expr.Compute, expr.Condition]:
        """The tensor with the new axes, and which of its elements the old one has."""
        tensor = stage.tensor
        old = next(axis for axis in tensor.axes if axis.name == self.axis)
        total = prod(self.factors, start=1)
        extents = (expr.ceil_div(old.extent, total), *self.factors)
        new = tuple(
            expr.Axis(expr.Var(name), n) for name, n in zip(self.axes, extents, strict=True)
        )
        number: expr.Index = 0
        for axis in new:
            number = number * axis.extent + axis.var
        body = expr.substitute_value(tensor.body, {old.var: number})
        inside = expr.substitute_condition(stage.inside, {old.var: number})
        if not is_zero(old.extent - extents[0] * total):
            inside = expr.all_of(inside, expr.compare(expr.Relation.LT, number, old.extent))
        axes: tuple[expr.Axis, ...] = ()
        for axis in tensor.axes:
            axes += new if axis is old else (axis,)
        return expr.Compute(tensor.name, axes, body, tensor.reduction), inside

    def _reading(
        self, tensor: expr.Compute, source: expr.Placeholder, position: int
    ) -> expr.Compute:
        """A reader of the tensor as a reader of its new shape."""

        def moved(indices: tuple[expr.Index, ...]) -> tuple[expr.Index, ...]:
            rest = indices[position]
            inner: list[expr.Index] = []
            for factor in reversed(self.factors):
                inner.append(expr.mod(rest, factor))
                rest = expr.floor_div(rest, factor)
            return (*indices[:position], rest, *reversed(inner), *indices[position + 1 :])

        def on_element(element: expr.Element) -> expr.Index:
            is_moved = element.source.name == self.stage
            return expr.Element(source, moved(element.indices)) if is_moved else element

        def on_index(index: expr.Index) -> expr.Index:
            return expr.map_elements(index, on_element)

        def on_load(load: expr.Load) -> expr.Value:
            return (
                expr.Load(source, moved(load.indices)) if load.source.name == self.stage else load
            )

        body = expr.rebuild(
            tensor.body,
            on_load,
            on_index,
            lambda condition: expr.map_condition(condition, on_index),
        )
        return expr.Compute(tensor.name, tensor.axes, body, tensor.reduction)


@dataclass(frozen=True, slots=True)
class SplitReduction(Compound):
    """Let blocks fold parts of a reduction, and a second launch fold their results.

    Rewrite:  C[i] = sum over k in 0..n of e(i, k)    with p parts
              ->  for b in 0..p @block.z: C_rf[b, i] = sum over k_i of e(i, b*ceil(n/p) + k_i)
                  C[i] = sum over b of C_rf[b, i]
    Requires: the stage is at the root and not scheduled yet; the loop is one of its reduction;
              parts >= 1.  Float sums are reassociated.
    Small outputs have fewer blocks than a card has multiprocessors; the reduction has more.
    Source:   Osama et al.: Stream-K, PPoPP 2023, section 2 (split-k).
    """

    stage: str
    loop: str
    parts: expr.Index

    @property
    def partial(self) -> str:
        """The name of the stage of partial results."""
        return f"{self.stage}_rf"

    def _need_names(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        if self.loop not in stage.reduce_loops:
            raise at.refuse(f"loop {self.loop} carries no reduction", "", at.here)
        if isinstance(self.parts, int) and self.parts < 1:
            raise at.refuse(f"{self.parts} parts are too few", "1 or more", at.here)
        if not isinstance(stage.placement, AtRoot):
            reason = f"{self.stage} is computed inside {stage.placement.stage}"
            raise at.refuse(reason, "split it before it is placed", at.here)
        if stage.loops != own_loops(stage.tensor):
            raise at.refuse(f"{self.stage} is already scheduled", "do this first", at.here)

    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """Split, factor, bind."""
        stage = state.stage(self.stage)
        extent = loop_extent(state, stage, self.loop)
        split = Split(self.stage, self.loop, (expr.ceil_div(extent, self.parts),))
        part = split.children[0]
        yield split
        yield Rfactor(self.stage, part, 0)
        yield Bind(self.partial, part, ForKind.BLOCK_Z)


@dataclass(frozen=True, slots=True)
class LaunchBounds(Primitive):
    """Let the compiler give each thread so few registers that some groups fit at once.

    Rewrite:  for b @block.x: for t @thread.x: S  ->  for b @block.x: for t @thread.x:
                                                        launch bounds: groups; S
    Requires: the stage is at the root, the launch is its; groups >= 1.
    Source:   NVIDIA, CUDA C++ Programming Guide, launch bounds.
    """

    stage: str
    groups: int

    def _need(self, at: Checks) -> None:
        stage = at.stage_of(self.stage)
        # Theorem: the number of registers changes no result.
        if not isinstance(stage.placement, AtRoot):
            reason = f"{self.stage} is computed in the launch of {stage.placement.stage}"
            raise at.refuse(reason, "name the stage around it")
        if self.groups < 1:
            raise at.refuse(f"{self.groups} groups are too few", "1 or more")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the number noted."""
        return state.with_stage(replace(state.stage(self.stage), groups=self.groups))
