"""Choose where the elements of a shared tensor lie.

Fetch for later iterations of a loop while the present one computes.

Choose whether the threads of a group share a tensor.

Stage a tensor through a copy: cache_read before a reader, cache_write after a computation.

Ask for data some iterations before it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright import expr
from tensorwright.schedule import memory_layout
from tensorwright.schedule.primitive import (
    Checks,
    Primitive,
    need_legal_nesting,
    runs_inside_after,
)
from tensorwright.schedule.sharing import fetched_in
from tensorwright.schedule.state import (
    PipelineRequest,
    PrefetchRequest,
    ScheduleState,
    fresh_stage,
    reads_of,
    redirect,
)
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class Layout(Primitive):
    """Lay a tensor out in shared memory so that threads ask different banks.

    Rewrite:  shared P: address of P[i, j] = i*n + j
              ->  padded, amount p:  i*(n + p) + j
                  xor, amount b:     the chunks of 16 bytes of a row of b bytes change places by i
    Requires: the stage is not an output; plain has the amount 0, padded at least 1, xor 32, 64 or
    128. Only shared memory is laid out so: elsewhere the step has no effect.
    Source:   NVIDIA CUTLASS 3 (CuTe), Swizzle; TVM's storage_align for the padding.
    """

    stage: str
    kind: memory_layout.LayoutKind
    amount: int = 0

    def _need(self, at: Checks) -> None:
        at.stage_of(self.stage)
        at.need_no_output(self.stage, ": its memory is the caller's")
        # Theorem: an address is a bijection of the indices, and nothing else of the program reads
        # addresses.
        if not memory_layout.has_amount(self.kind, self.amount):
            remedy = (
                f"plain 0, padded 1 or more, xor one of {', '.join(map(str, memory_layout.SPANS))}"
            )
            raise at.refuse(f"{self.kind.value} has no amount {self.amount}", remedy)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the layout noted."""
        layout = memory_layout.MemoryLayout(self.kind, self.amount)
        return state.with_stage(replace(state.stage(self.stage), layout=layout))


@dataclass(frozen=True, slots=True)
class Pipeline(Primitive):
    """Hide the latency of memory: what a loop fetches is fetched some iterations ahead.

    Rewrite:  for k: { shared S = A[k];  C += f(S) }
              ->  for k: { fetch A[k+1];  C += f(S[k%2]);  S[(k+1)%2] = what was fetched }
              registers  two stages: through registers of the threads
              cp_async   two or more: by copies that go on while threads compute, from sm_80 on
    Requires: the loop is serial and no loop of the stage is pipelined yet; in it, threads compute
              shared tensors together, without folding, from what is whole before the nest begins;
              registers take two stages, cp_async two or more and copies of elements of 4 bytes or
              more.
    The meaning is that of the loop: slots, waits and barriers are made when it is lowered.
    Source:   Huang et al.: ALCOP, MLSys 2023, for pipelines over a memory hierarchy.
    """

    stage: str
    loop: str
    stages: int = 2
    mechanism: memory_layout.CopyMechanism = memory_layout.CopyMechanism.REGISTERS

    def _need(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        if stage.kind(self.loop) is not memory_layout.ForKind.SERIAL:
            raise at.refuse(f"loop {self.loop} is not serial", "", at.here)
        if stage.pipeline is not None:
            raise at.refuse(f"loop {stage.pipeline.loop} is pipelined already", "", at.here)
        if self.stages < 2:
            raise at.refuse(f"{self.stages} stages fetch nothing ahead", "2 or more")
        if self.mechanism is memory_layout.CopyMechanism.REGISTERS and self.stages != 2:
            raise at.refuse("registers hold what one iteration fetches", "2 stages, or cp_async")
        if not fetched_in(at.state, self.stage, self.loop, self.mechanism):
            reason = f"no tensor is fetched into shared memory in {self.loop}"
            remedy = "cache_read what it reads, shared, and compute the copy there"
            raise at.refuse(reason, remedy, at.here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the pipeline noted."""
        request = PipelineRequest(self.loop, self.stages, self.mechanism)
        return state.with_stage(replace(state.stage(self.stage), pipeline=request))


@dataclass(frozen=True, slots=True)
class SetScope(Primitive):
    """Let all threads of a group share a tensor, or each have its own.

    Rewrite:  for t @thread.x: { local P: P[part of t] = ..; C = .. P[..] }
              ->  shared P: for t @thread.x: { P[my share] = ..; barrier; C = .. P[..]; barrier }
    Requires: the stage is not an output; the scope is local or shared; tiles that are promised to
              be whole stay so.
    The scope is that of the tensor's memory inside a loop: a tensor that is computed whole, at the
    root, lives in main memory.  A tensor that several threads touch is shared, whatever scope is
    asked for.
    """

    stage: str
    scope: memory_layout.Scope

    def _need(self, at: Checks) -> None:
        at.stage_of(self.stage)
        at.need_no_output(self.stage, ": its memory is the caller's")
        if self.scope is memory_layout.Scope.GLOBAL:
            reason = "what is computed inside a loop has no memory of the whole call"
            raise at.refuse(reason, "local or shared")
        # Theorem: the part that all threads of a group read holds the part that each of them reads,
        # so computing it gives every reader the same numbers.
        need_legal_nesting(at)
        need_whole_tiles(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the scope noted."""
        return state.with_stage(replace(state.stage(self.stage), scope=self.scope))


@dataclass(frozen=True, slots=True)
class CacheRead(Primitive):
    """Let one reader read a copy of a tensor, with its dimensions in another order if wanted.

    Rewrite:  C[i] = f(A[g(i)])   ->   A_cache[j] = A[j];  C[i] = f(A_cache[g(i)])
              order [1, 0]:            A_cache[k, j] = A[j, k];  ...
    Requires: the reader reads the tensor (an input or a stage); there is no copy of that name yet;
              `order` is empty or a permutation of the dimensions (dimension n of the copy is
              dimension order[n] of the tensor); the reader has not packed the tensor and is not
              computed by an intrinsic; the tensor is not computed inside another stage, nor the
              reader after the tile of one.
    """

    tensor: str
    reader: str
    scope: memory_layout.Scope = memory_layout.Scope.LOCAL
    order: tuple[int, ...] = ()

    @property
    def copy(self) -> str:
        """The name of the copy."""
        return f"{self.tensor}_{self.reader}_cache"

    def _need(self, at: Checks) -> None:
        reader = at.stage_of(self.reader)
        if at.state.has_stage(self.tensor):
            at.need_all_elements(at.state.stage(self.tensor))
        if self.tensor not in reads_of(reader.tensor):
            raise at.refuse(f"{self.reader} does not read {self.tensor}")
        if (self.tensor, self.reader) in at.state.packed:
            raise at.refuse(f"{self.reader} has packed {self.tensor}", "copy it first")
        at.need_plain_loops(reader)
        at.need_new_stage(self.copy)
        rank = len(at.state.source(self.tensor).shape)
        if self.order and sorted(self.order) != list(range(rank)):
            raise at.refuse(f"{self.order} is not an order of {rank} dimensions")
        # Theorem: the copy is made at the root, right before the nest that holds the reader; so
        # what it copies must be whole by then, and the reader must not run in an earlier nest.
        source = at.state.stage(self.tensor) if at.state.has_stage(self.tensor) else None
        for stage in (source, reader):
            if stage is not None and runs_inside_after(at.state, stage, or_at=stage is source):
                raise at.refuse(f"{stage.name} is computed inside another stage", "copy it first")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the copy before the reader."""
        reader = state.stage(self.reader)
        source = state.source(self.tensor)
        plain = tuple(expr.Axis(expr.Var(f"d{n}"), extent) for n, extent in enumerate(source.shape))
        order = self.order or tuple(range(len(plain)))
        axes = tuple(plain[n] for n in order)
        body = expr.Load(source, tuple(axis.var for axis in plain))
        stand_in = expr.Placeholder(self.copy, tuple(a.extent for a in axes), source.dtype)
        copied = fresh_stage(expr.Compute(self.copy, axes, body), self.scope)
        changed = redirect(reader.tensor, {self.tensor: stand_in}, order)
        reading = replace(reader, tensor=changed)
        return state.with_stages(self.reader, copied, reading)


@dataclass(frozen=True, slots=True)
class CacheWrite(Primitive):
    """Compute a tensor into a buffer of its own and copy the result out.

    Rewrite:  C[i] = e(i)   ->   C_cache[i] = e(i);  C[i] = C_cache[i]
    Requires: the stage is not scheduled; there is no stage of the copy's name yet.
    """

    stage: str
    scope: memory_layout.Scope = memory_layout.Scope.LOCAL

    @property
    def cached(self) -> str:
        """The name of the stage that computes."""
        return f"{self.stage}_cache"

    def _need(self, at: Checks) -> None:
        at.unscheduled(self.stage)
        at.need_new_stage(self.cached)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the computation in the cache and the stage copying it."""
        tensor = state.stage(self.stage).tensor
        computed = expr.Compute(self.cached, tensor.axes, tensor.body, tensor.reduction)
        stand_in = expr.Placeholder(self.cached, tensor.shape, tensor.dtype)
        copied = expr.Compute(
            self.stage, tensor.axes, expr.Load(stand_in, tuple(axis.var for axis in tensor.axes))
        )
        return state.with_stages(self.stage, fresh_stage(computed, self.scope), fresh_stage(copied))


@dataclass(frozen=True, slots=True)
class Prefetch(Primitive):
    """Prefetch what a stage will read of a tensor some iterations of a loop later.

    Rewrite:  for i: S(A[g(i)])   ->   for i: prefetch A[g(i + distance)]; S(A[g(i)])
    Requires: the stage reads the tensor; distance >= 1; the loop is not bound to a block.
    """

    stage: str
    tensor: str
    loop: str
    distance: expr.Index = 1

    def _need(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        if self.tensor not in reads_of(stage.tensor):
            raise at.refuse(f"{self.stage} does not read {self.tensor}")
        if isinstance(self.distance, int) and self.distance < 1:
            raise at.refuse(f"distance {self.distance} is not positive")
        need_legal_nesting(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the prefetch noted."""
        request = PrefetchRequest(self.tensor, self.loop, self.distance)
        return _asking(state, self.stage, request)


@dataclass(frozen=True, slots=True)
class PrefetchNext(Primitive):
    """While a part of a packed constant is used, prefetch the part that is used after it.

    A stage that is computed inside the loops of another reads a part of the constant for each
    position of the loops on which the constant depends. The other loops read the same part again:
    the tiles of a band read the same weights.  Each of these tiles prefetches its share of the next
    part into the second cache, spread over the iterations of `loop`. Memory is then read during the
    arithmetic, which saves 5 to 20 % of a network's time.  A part that only one tile reads is not
    prefetched: the processor itself recognises that it is read in order, and the next part may be
    megabytes away.  It is only if `ahead` says how far: where each byte takes several instructions,
    as packed codes do, the processor does not read far enough ahead by itself.

    Rewrite:  for part: for tile: for k: S(P[part, k, :])
              ->  for part: for tile: for k: { prefetch P[part + 1, k, the tile's share];
                                               S(P[part, k, :]) }
    Requires: the constant is packed for the stage; the loop is not bound to a block; ahead >= 0.

    ahead   so many parts later in memory, also where one tile alone reads a part; 0: the next part
    """

    stage: str
    tensor: str
    loop: str
    ahead: expr.Index = 0

    def _need(self, at: Checks) -> None:
        at.loop_of(self.stage, self.loop)
        if (self.tensor, self.stage) not in at.state.packed:
            raise at.refuse(f"{self.tensor} is not packed for {self.stage}")
        if isinstance(self.ahead, int) and self.ahead < 0:
            raise at.refuse(f"{self.ahead} parts ahead lie before this one")
        need_legal_nesting(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the prefetch noted."""
        request = PrefetchRequest(self.tensor, self.loop, self.ahead, is_next_part=True)
        return _asking(state, self.stage, request)


def _asking(state: ScheduleState, name: str, request: PrefetchRequest) -> ScheduleState:
    stage = state.stage(name)
    return state.with_stage(replace(stage, prefetches=(*stage.prefetches, request)))
