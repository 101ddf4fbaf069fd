"""What AutoTVM's templates for graphics processors share: tiles of blocks, and of their threads.

A block computes a tile of the result.  A knob says for each axis into how many blocks, virtual
threads, threads and inner elements it is split; these divide the extent.  Virtual threads are what
one thread computes far apart: an unrolled loop inside that of the threads.  For each part of the
reduction the threads of a block fetch together what they read into shared memory.

Source:  Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018; the templates of its
         program, TVM, for CUDA, whose names the knobs have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tensorwright import schedule
from tensorwright.base import GpuTarget
from tensorwright.expr import Index
from tensorwright.tuning.space.defaults.pointwise import bind_fused, bind_rest
from tensorwright.tuning.space.derived.derivation import fusable_consumer, is_untouched
from tensorwright.tuning.space.derived.thread_tiles import stored_axes
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import constant_stages, inline_elementwise, is_cheap
from tensorwright.tuning.space.templates.configuration import Configuration, Filter

_MOST_ACCUMULATORS = 128  # of a thread: as many registers are left for operands and addresses
_UNROLL = "auto_unroll_max_step"


@dataclass(slots=True)
class BlockTiles:
    """A fold in the threads of the stage that stores it; mutable while its template runs.

    fold, host   the stages that fold and that store; the second is a copy where no reader fits
    stored       for each axis of the fold that of the host
    copies       of what the fold reads, in shared memory
    tile         loops of the fold in a thread
    sizes        for each axis of the host that is split: (virtual threads,) threads, inner elements
    terms        how many terms each inner loop of the reduction has
    """

    s: SketchBuilder
    cfg: Configuration
    fold: str
    host: str
    stored: Mapping[str, str]
    copies: tuple[str, ...]
    tile: list[str] = field(default_factory=list)
    sizes: dict[str, tuple[Index, ...]] = field(default_factory=dict)
    terms: dict[str, Index] = field(default_factory=dict)

    @property
    def threads(self) -> Index:
        """How many threads a block has."""
        return prod(sizes[-2] for sizes in self.sizes.values())

    @property
    def each(self) -> tuple[Index, ...]:
        """How many elements a thread has, as factors."""
        return tuple(n for sizes in self.sizes.values() for n in (*sizes[:-2], sizes[-1]))

    def split(
        self, name: str, axis: str, default: Sequence[int], passes: Filter | None = None
    ) -> None:
        """Split an axis of the fold by a knob: blocks, (virtual threads,) threads, inner elements.

        default   sizes of all parts but the first, three where there are virtual threads
        """
        parts = len(default) + 1
        knob = self.cfg.define_split(
            name,
            self.extent(axis),
            parts,
            filter=passes,
            default=tuple(default),
            node=self.fold,
        )
        if self.extent(axis) == 1:
            return
        self.sizes[self.stored[axis]] = knob.sizes
        if len(knob.sizes) == 2:
            self.tile.append(axis)
            return
        step = schedule.SplitAxis(self.fold, axis, knob.sizes)
        self.s.do(step)
        _, virtual, _, inner = step.axes
        self.tile += [virtual, inner]

    def nest(self) -> str:
        """Bind the blocks and threads of the host, and compute the fold in a thread.

        Gives the loop over blocks.
        """
        s, host = self.s, self.host
        blocks: list[str] = []
        threads: list[str] = []
        virtual: list[str] = []
        inner: list[str] = []
        for axis, sizes in self.sizes.items():
            step = schedule.Split(host, axis, sizes, schedule.Tail.EXACT)
            s.do(step)
            block, *apart, thread, last = step.children
            blocks.append(block)
            threads.append(thread)
            virtual += apart
            inner.append(last)
        named = {*blocks, *threads, *virtual, *inner}
        blocks = [*(x for x in s.state.stage(host).loops if x not in named), *blocks]
        s.do(schedule.Reorder(host, (*blocks, *threads, *virtual, *inner)))
        block = bind_fused(s, host, tuple(blocks), schedule.ForKind.BLOCK_X)
        thread = bind_fused(s, host, tuple(threads), schedule.ForKind.THREAD_X)
        for loop in (*virtual, *inner):
            s.do(schedule.Unroll(host, loop))
        s.limit(prod(self.each), _MOST_ACCUMULATORS)
        s.do(schedule.ComputeAt(self.fold, host, thread))
        return block

    def split_fold(self, name: str, axis: str, default: Sequence[int]) -> tuple[str, ...]:
        """Split an axis of the reduction by a knob; its loops, outermost first.

        axis      "" if the program has none (the taps of 1 x 1): there is a knob, and no loop
        default   sizes of all parts but the first
        """
        extent = self.extent(axis) if axis else 1
        parts = len(default) + 1
        knob = self.cfg.define_split(name, extent, parts, default=tuple(default), node=self.fold)
        if extent == 1:
            return ()
        loops = knob.apply(self.s, self.fold, axis)
        self.terms[loops[-1]] = knob.sizes[-1]
        return loops

    def compute(self, folds: Sequence[tuple[str, ...]], steps: Sequence[int]) -> str:
        """Order the loops of the fold, and unroll those of a thread's tile.

        folds   the loops of each axis of the reduction
        steps   values of the knob that says how much is unrolled besides
        Gives the loop in which a part of the reduction is fetched, "" if there is one part.
        """
        split = [loops for loops in folds if loops]
        outer = [loops[0] for loops in split if len(loops) > 1]
        middle = [loop for loops in split for loop in loops[1:-1]]
        inner = [loops[-1] for loops in split]
        self.terms |= {loop: self.extent(loop) for loop in inner if loop not in self.terms}
        named = {*outer, *middle, *inner, *self.tile}
        units = [x for x in self.s.state.stage(self.fold).loops if x not in named]
        self.s.do(schedule.Reorder(self.fold, (*units, *outer, *middle, *inner, *self.tile)))
        for loop in (*middle, *self._unrolled(inner, steps), *self.tile):
            self.s.do(schedule.Unroll(self.fold, loop))
        return outer[-1] if outer else ""

    def _unrolled(self, inner: Sequence[str], steps: Sequence[int]) -> Sequence[str]:
        """The unrolled inner loops of the reduction: all or taps, up to the steps of a knob."""
        most = self.cfg.define_knob(_UNROLL, tuple(steps)) if steps else 0
        if not most:
            return ()
        has_choice = len(inner) > 1
        is_whole = not has_choice or self.cfg.define_knob("unrolled", ("terms", "taps")) == "terms"
        loops = inner if is_whole else inner[1:]
        self.s.limit(prod((*self.each, *(self.terms[loop] for loop in loops))), most)
        return loops

    def fetch(self, host: str, loop: str) -> None:
        """Let the threads of a block fetch all that the fold reads, in a loop of a stage."""
        for copy in self.copies:
            self.s.do(schedule.ComputeAt(copy, host, loop))
            self.s.do(schedule.Cooperate(copy, (self.threads,)))

    def extent(self, axis: str) -> int:
        """How many iterations an axis of the fold has."""
        tensor = self.s.state.stage(self.fold).tensor
        axes = {each.name: each for each in (*tensor.axes, *tensor.reduce_axes)}
        return axes[axis].length


def open_tiles(s: SketchBuilder, cfg: Configuration, name: str) -> BlockTiles:
    """The tiles of a fold, which its reader stores; if none can, a copy of the fold's result."""
    consumer = fusable_consumer(s.state, name)
    if consumer is None or not is_untouched(s.state, consumer):
        write = schedule.CacheWrite(name)
        s.do(write)
        fold, host = write.cached, name
    else:
        fold, host = name, consumer.name
    copies = tuple(_copies(s, fold))
    tensors = (s.state.stage(each).tensor for each in (fold, host))
    stored = {own: stored for stored, own in stored_axes(*tensors)}
    return BlockTiles(s, cfg, fold, host, stored, copies)


def _copies(s: SketchBuilder, fold: str) -> Iterator[str]:
    """Shared copies of what a fold reads; what is cheap is computed while it is fetched."""
    for source in sorted(schedule.reads_of(s.state.stage(fold).tensor)):
        read = schedule.CacheRead(source, fold, schedule.Scope.SHARED)
        s.do(read)
        inline = schedule.ComputeInline(source)
        is_made = s.state.has_stage(source) and schedule.is_legal(inline, s.state)
        if is_made and is_cheap(s.state.stage(source).tensor.body):
            s.do(inline)
        yield read.copy


def inline_others(s: SketchBuilder, name: str) -> None:
    """Let the builder compute constants, and inline cheap stages after a fold."""
    fold_constants(s)
    inline_elementwise(s, keep=schedule.reads_of(s.state.stage(name).tensor))


def fold_constants(s: SketchBuilder) -> None:
    """Let the builder compute stages that depend on constants only."""
    for name in constant_stages(s.state):
        if schedule.is_legal(schedule.FoldConstant(name), s.state):
            s.do(schedule.FoldConstant(name))


def bind_others(s: SketchBuilder, cfg: Configuration) -> None:
    """Bind what no step of a template has scheduled: a thread computes an element."""
    assert isinstance(cfg.target, GpuTarget), "a template of this kind gets no other target"
    done = frozenset(x.name for x in s.state.stages if not is_untouched(s.state, x))
    bind_rest(s, cfg.target, done)
