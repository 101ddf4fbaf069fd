"""Check that a program is well formed: every pass and code generator may rely on it.

Refuse a program that a graphics processor has not enough threads, memory or instructions for.
"""

from __future__ import annotations

from math import prod
from typing import NoReturn

from tensorwright import base, expr
from tensorwright.expr import condition_sides as sides_of
from tensorwright.loop import ir
from tensorwright.loop.launches import LaunchNest, launches_of
from tensorwright.loop.traversal import has_barrier, reads_memory, room_of, walk
from tensorwright.schedule import THREADS, ForKind, Scope, may_not_be_inside

_AROUND_BARRIERS = THREADS | {ForKind.SERIAL, ForKind.UNROLLED}
_LOGIC = frozenset((expr.Fn.AND, expr.Fn.OR, expr.Fn.XOR, expr.Fn.NOT))


def verify(program: ir.LoopProgram, *, allow_decisions: bool = False) -> ir.LoopProgram:
    """Return the program if it is well formed.

    Requires: buffer names are unique; variables are used inside their loop and not bound again
              there; buffers are used inside their allocation, with an index per dimension; indices
              that no guard protects are inside, where that can be decided; dtypes agree; inputs and
              constants are not stored to; extents are ints once no decision is left, but for those
              of serial loops, which may follow a loop around; no vector loop inside a vector loop;
              no parallel loop inside a parallel, vector or device loop; no device loop inside a
              vector or parallel loop, no block inside a thread; barriers inside a loop over threads
              and in no other concurrent loop, under no condition that depends on the thread or on
              memory; shared buffers allocated around the loops over threads, not inside.
    Raises:   InternalError with the program and the statement marked; for decisions, too, unless
              they are allowed.
    """
    _Verifier(program, allow_decisions).run()
    return program


class _Verifier:
    """The names seen so far and the loops around the current statement; mutable, one per run."""

    def __init__(self, program: ir.LoopProgram, allow_decisions: bool) -> None:
        self._program = program
        self._allow_decisions = allow_decisions
        self._at: ir.Stmt | None = None
        self._names: set[str] = set()
        self._buffers: dict[ir.Buffer, base.Role | None] = {}
        self._threads: set[expr.Var] = set()  # the indices of the threads around

    def run(self) -> None:
        for parameter in self._program.parameters:
            self._parameter(parameter)
        self._statement(self._program.body, {}, (), guarded=False)

    def _fail(self, reason: str, remedy: str = "") -> NoReturn:
        page = base.Printer()
        ir.print_program(self._program, page, self._at, base.HERE)
        raise base.InternalError(
            stage="loop", where=self._program.name, reason=f"{reason}\n{page}", remedy=remedy
        )

    def _require(self, holds: bool, reason: str) -> None:
        if not holds:
            self._fail(reason)

    def _parameter(self, parameter: ir.Parameter) -> None:
        buffer = parameter.buffer
        self._declare(buffer, parameter.role)
        self._require(buffer.scope is Scope.GLOBAL, f"the parameter {buffer} is not global")
        if parameter.packing is not None:
            self._require(
                parameter.role is base.Role.CONSTANT, f"{buffer} is packed but not a constant"
            )
            extents = tuple(extent for _, extent in parameter.packing.axes)
            self._require(extents == buffer.shape, f"{buffer} is packed with axes {extents}")

    def _declare(self, buffer: ir.Buffer, role: base.Role | None) -> None:
        self._require(buffer.name not in self._names, f"two buffers are called {buffer.name}")
        self._names.add(buffer.name)
        self._buffers[buffer] = role
        for extent in buffer.shape:
            self._decisions(extent)
            self._require(not expr.free_vars(extent), f"the shape of {buffer} depends on a loop")

    def _decisions(self, index: expr.Index) -> None:
        symbols = expr.decisions_of(index)
        if symbols and not self._allow_decisions:
            names = ", ".join(sorted(map(str, symbols)))
            self._fail(f"{names} is not bound", "bind the decisions of its trace")

    # statements

    def _statement(
        self, statement: ir.Stmt, bounds: expr.Bounds, kinds: tuple[ForKind, ...], *, guarded: bool
    ) -> None:
        self._at = statement
        match statement:
            case ir.Block(statements):
                for part in statements:
                    self._statement(part, bounds, kinds, guarded=guarded)
            case ir.For():
                self._loop(statement, bounds, kinds, guarded=guarded)
            case ir.If(condition, then):
                for side in sides_of(condition):
                    self._index(side, bounds, guarded=guarded)
                self._same_for_threads(condition, then)
                self._statement(then, bounds, kinds, guarded=True)
            case ir.Allocate(buffer, body):
                self._allocate(buffer, kinds)
                self._statement(body, bounds, kinds, guarded=guarded)
                del self._buffers[buffer]
            case ir.Store():
                self._store(statement, bounds, guarded=guarded)
            case ir.GroupStatement():
                self._of_group(statement, bounds, kinds, guarded=guarded)
            case ir.Prefetch(buffer, indices):
                self._declared(buffer, indices)
                for index in indices:
                    self._index(index, bounds, guarded=True)
            case ir.Call(_, windows, meaning):
                for window in windows:
                    self._access(window.buffer, window.indices, bounds, guarded=guarded)
                self._statement(meaning, bounds, kinds, guarded=guarded)

    def _loop(
        self, loop: ir.For, bounds: expr.Bounds, kinds: tuple[ForKind, ...], *, guarded: bool
    ) -> None:
        self._require(loop.var not in bounds, f"a loop inside the loop over {loop.var} binds it")
        self._index(loop.extent, bounds, guarded=guarded)
        if not expr.symbols_of(loop.extent):
            self._require(
                isinstance(loop.extent, int) or loop.kind is ForKind.SERIAL,
                f"the extent {loop.extent} of {loop.var} is not a number",
            )
        wrong = [kind for kind in kinds if kind in may_not_be_inside(loop.kind)]
        if wrong:
            self._fail(f"a loop {loop.kind.note} inside a loop {wrong[0].note}")
        never = isinstance(loop.extent, int) and loop.extent <= 0
        inside = {**bounds, loop.var: expr.Range.of_extent(loop.extent)}
        if loop.kind in THREADS:
            self._threads.add(loop.var)
        self._statement(loop.body, inside, (*kinds, loop.kind), guarded=guarded or never)
        self._threads.discard(loop.var)

    def _of_group(
        self,
        statement: ir.GroupStatement,
        bounds: expr.Bounds,
        kinds: tuple[ForKind, ...],
        *,
        guarded: bool,
    ) -> None:
        if isinstance(statement, ir.LaunchBounds | ir.CommitCopies | ir.StartCopy):
            self._require(bool(THREADS.intersection(kinds)), "only threads of a group do that")
        else:
            self._barrier(kinds)
        match statement:
            case ir.LaneFold(buffer, indices):
                own = buffer.scope is Scope.LOCAL
                self._require(own, f"lanes exchange {buffer}, which is not their own")
                self._access(buffer, indices, bounds, guarded=guarded)
            case ir.StartCopy(store):
                is_copy = isinstance(store.value, expr.Load) and store.buffer.scope is Scope.SHARED
                self._require(is_copy, "only a copy into shared memory is started")
                self._store(store, bounds, guarded=guarded)
            case _:
                pass

    def _barrier(self, kinds: tuple[ForKind, ...]) -> None:
        self._require(bool(THREADS.intersection(kinds)), "a barrier outside of a group of threads")
        first = next(n for n, kind in enumerate(kinds) if kind in THREADS)
        inner = [kind for kind in kinds[first:] if kind not in _AROUND_BARRIERS]
        if inner:
            self._fail(f"a barrier inside a loop {inner[0].note}")

    # Theorem: all threads of a group decide a condition alike if it reads neither their indices nor
    # memory, which each of them may see in another state.
    def _same_for_threads(self, condition: expr.Condition, then: ir.Stmt) -> None:
        if not self._threads or not has_barrier(then):
            return
        sides = sides_of(condition)
        differs = expr.free_vars(*sides) & self._threads or reads_memory(*sides)
        self._require(not differs, f"a barrier under {condition}, which threads decide differently")

    def _allocate(self, buffer: ir.Buffer, kinds: tuple[ForKind, ...]) -> None:
        self._declare(buffer, None)
        is_inside = buffer.scope is Scope.SHARED and bool(THREADS.intersection(kinds))
        self._require(not is_inside, f"the shared buffer {buffer} is allocated by each thread")
        if buffer.scope is Scope.LOCAL and not self._allow_decisions:
            fixed = not any(expr.free_vars(extent) for extent in buffer.shape)
            self._require(fixed, f"the local buffer {buffer} has no fixed size")

    def _store(self, store: ir.Store, bounds: expr.Bounds, *, guarded: bool) -> None:
        buffer = store.buffer
        self._access(buffer, store.indices, bounds, guarded=guarded)
        role = self._buffers[buffer]
        self._require(
            role in (None, base.Role.OUTPUT), f"{buffer.name} is an input or a constant: no stores"
        )
        self._value(store.value, bounds, guarded=guarded)
        dtype = store.value.dtype
        self._require(dtype is buffer.dtype, f"a value of {dtype} goes into {buffer}")

    # values and indices

    def _value(self, value: expr.Value, bounds: expr.Bounds, *, guarded: bool) -> None:
        match value:
            case expr.Load(source, indices):
                self._access(source, indices, bounds, guarded=guarded)
            case expr.Apply(fn, args):
                self._require(len(args) == fn.arity, f"{fn.text} of {len(args)} arguments")
                dtypes = {arg.dtype for arg in args}
                self._require(len(dtypes) == 1, f"{value} mixes dtypes")
                if fn in _LOGIC:
                    self._require(dtypes == {base.DType.BOOL}, f"{value} wants bools")
            case expr.Select(condition, then, otherwise):
                self._require(then.dtype is otherwise.dtype, f"{value} mixes dtypes")
                if isinstance(condition, expr.ValueExpr):
                    self._require(condition.dtype is base.DType.BOOL, f"{value} wants a bool")
                else:
                    for side in sides_of(condition):
                        self._index(side, bounds, guarded=guarded)
                    guarded = True
            case _:
                pass
        for child in expr.children(value):
            self._value(child, bounds, guarded=guarded)

    def _declared(self, buffer: ir.Buffer, indices: tuple[expr.Index, ...]) -> None:
        self._require(buffer in self._buffers, f"{buffer} is used where it is not allocated")
        rank = len(buffer.shape)
        self._require(len(indices) == rank, f"{buffer} is used with {len(indices)} indices")

    def _index(self, index: expr.Index, bounds: expr.Bounds, *, guarded: bool) -> None:
        self._decisions(index)
        for var in expr.free_vars(index):
            self._require(var in bounds, f"the variable {var} is used outside its loop")
        for atom in expr.atoms_of(index):
            if isinstance(atom, expr.Element):
                self._access(atom.source, atom.indices, bounds, guarded=guarded)

    def _access(
        self,
        buffer: ir.Buffer,
        indices: tuple[expr.Index, ...],
        bounds: expr.Bounds,
        *,
        guarded: bool,
    ) -> None:
        self._declared(buffer, indices)
        for axis, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            self._index(index, bounds, guarded=guarded)
            reach = None if guarded else expr.interval(index, bounds)
            if reach is not None and not _may_be_inside(index, reach, extent):
                self._fail(
                    f"index {axis} of {buffer.name}, {index}, reaches {reach.low}..{reach.high}, "
                    f"outside 0..{extent}"
                )


def _may_be_inside(index: expr.Index, reach: expr.Range, extent: expr.Index) -> bool:
    """False if some iteration certainly has an index outside."""
    low, high = reach.low, reach.high
    if not (isinstance(low, int) and isinstance(high, int) and isinstance(extent, int)):
        return True
    if _is_affine(index):
        return low >= 0 and high < extent
    return high >= 0 and low < extent


# Theorem: an affine index takes both ends of its interval on a box of loops.
def _is_affine(index: expr.Index) -> bool:
    if isinstance(index, (int, expr.Var)):
        return True
    if isinstance(index, expr.Poly):
        return all(
            not monomial or (len(monomial) == 1 and isinstance(monomial[0], expr.Var))
            for monomial, _ in index.terms
        )
    return False


_CUDA_EXTENTS = {
    ForKind.BLOCK_Y: 65_535,
    ForKind.BLOCK_Z: 65_535,
    ForKind.THREAD_Z: 64,
}
"""The most of some indices.

Source:  NVIDIA, CUDA C++ Programming Guide, technical specifications per compute capability.
"""
_FIRST_WITH_COPIES = 80
"""The compute capability from which copies into shared memory go on by themselves."""


def check_group_limits(program: ir.LoopProgram, target: base.GpuTarget) -> ir.LoopProgram:
    """The program, if each of its launches may run on the target.

    Raises:  UnsupportedError for too many threads in a group, too large an index, more shared
             memory than a group may have, lanes that are in no warp, and copies in flight where the
             target has none.
    """
    for nest in launches_of(program).nests:
        _check(program, nest, target)
    return program


def _check(program: ir.LoopProgram, nest: LaunchNest, target: base.GpuTarget) -> None:
    threads = prod((loop.extent for loop in nest.threads), start=1)
    _need(program, target, "threads in a group", threads, target.threads_per_block)
    bytes_of = (room_of(buffer) * buffer.dtype.size_bytes for buffer in nest.shared)
    shared: expr.Index = sum(bytes_of, start=0)
    most = target.opt_in_shared_bytes
    _need(program, target, "bytes of shared memory in a group", shared, most)
    if target.api is base.GpuApi.CUDA:
        for kind, extent in _CUDA_EXTENTS.items():
            _need(program, target, f"iterations of {kind.value}", nest.extent(kind), extent)
    for part in walk(nest.body):
        if isinstance(part, ir.LaneFold):
            _need(program, target, "lanes that fold", part.lanes, target.warp)
        if isinstance(part, ir.StartCopy) and not _copies_by_itself(target):
            reason = f"copies that go on by themselves are not in {target}"
            raise _refused(program, reason, "pipeline with registers")


def _copies_by_itself(target: base.GpuTarget) -> bool:
    number = "".join(filter(str.isdigit, target.arch))
    return target.api is base.GpuApi.CUDA and bool(number) and int(number) >= _FIRST_WITH_COPIES


def _need(
    program: ir.LoopProgram, target: base.GpuTarget, what: str, count: expr.Index, most: int
) -> None:
    if isinstance(count, int) and count > most:
        reason = f"{count} {what} are more than the {most} of {target}"
        raise _refused(program, reason, "use smaller tiles")


def _refused(program: ir.LoopProgram, reason: str, remedy: str) -> base.UnsupportedError:
    where = f"program {program.name}"
    return base.UnsupportedError(stage="loop", where=where, reason=reason, remedy=remedy)
