"""Fetch what later iterations of a loop read while the present one computes.

A loop whose body fills shared buffers and then reads them is made a pipeline: each buffer becomes a
ring of as many slots as stages, and the fill of an iteration is done some iterations before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorwright import expr
from tensorwright.loop import ir
from tensorwright.loop.traversal import map_children, substitute_statement, walk
from tensorwright.schedule import CopyMechanism, Scope


@dataclass(frozen=True, slots=True)
class PipelinedLoop:
    """A loop to be made a pipeline, and the shared buffers that its body fills."""

    var: expr.Var
    extent: expr.Index
    stages: int
    mechanism: CopyMechanism
    buffers: frozenset[ir.Buffer]


def make_pipeline(nest: ir.Stmt, wanted: PipelinedLoop) -> ir.Stmt:
    """A nest whose threads are joined, with the loop as a pipeline.

    Rewrite:  shared S: for k in 0..n: { S[i] = A[k, i]; use S[j] }
      registers, 2 stages
        ->  shared S (2, ..): S[0, i] = A[0, i]
            for k in 0..n: { if k+1 < n: R = A[k+1, i];  use S[k%2, j];
                             if k+1 < n: S[(k+1)%2, i] = R }
      cp_async, s stages
        ->  shared S (s, ..): for d < s-1: { if d < n: start S[d, i] = A[d, i]; commit }
            for k in 0..n: { wait for all batches but s-2;
                             if k+s-1 < n: start S[(k+s-1)%s, i] = A[k+s-1, i]; commit
                             use S[k%s, j] }
    Theorem:  what the fill reads is whole before the loop, so it may be read earlier.  Of s slots,
              the one that is filled for iteration k+s-1 is that of iteration k-1, which is over.
              Barriers are placed afterwards: one is left in each iteration.
    """
    return _in_nest(nest, wanted, _ring(wanted, wanted.stages), _written_out)


def outline_pipeline(nest: ir.Stmt, wanted: PipelinedLoop) -> ir.Stmt:
    """The nest with the memory of the pipeline, for counting: each fill stays, as an async copy.

    Rewrite:  shared S: for k in 0..n: { S[i] = A[k, i]; use S[j] }
            ->  shared S (s, ..): for k in 0..n: { start S[0, i] = A[k, i]; use S[0, j] }

    A loop with one iteration is not pipelined then: it has one slot and no registers.
    """
    slots = 1 + (wanted.stages - 1) * _is_repeated(wanted)
    return _in_nest(nest, wanted, _ring(wanted, slots), _outlined)


def _is_repeated(wanted: PipelinedLoop) -> expr.Index:
    """1 if the loop has more than one iteration, else 0."""
    return expr.minimum(wanted.extent - 1, 1)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The loop of a pipeline, the rings of its buffers, what fills them and what uses them.

    local   the buffers that each iteration has for itself
    """

    loop: ir.For
    ring: Mapping[ir.Buffer, ir.Buffer]
    fills: tuple[ir.Stmt, ...]
    uses: tuple[ir.Stmt, ...]
    local: tuple[ir.Buffer, ...]

    def with_body(self, body: ir.Stmt) -> ir.For:
        """The loop with another body, which has the local buffers."""
        for buffer in reversed(self.local):
            body = ir.Allocate(buffer, body)
        return replace(self.loop, body=body)


_Form: TypeAlias = Callable[[_Parts, PipelinedLoop], ir.Stmt]


def _ring(wanted: PipelinedLoop, slots: expr.Index) -> dict[ir.Buffer, ir.Buffer]:
    return {each: replace(each, shape=(slots, *each.shape)) for each in wanted.buffers}


def _in_nest(
    statement: ir.Stmt, wanted: PipelinedLoop, ring: Mapping[ir.Buffer, ir.Buffer], form: _Form
) -> ir.Stmt:
    match statement:
        case ir.Allocate(buffer, body) if buffer in ring:
            return ir.Allocate(ring[buffer], _in_nest(body, wanted, ring, form))
        case ir.For(var) if var == wanted.var and _stores_to(statement, wanted.buffers):
            return _pipeline(statement, wanted, ring, form)
        case _:
            return map_children(lambda part: _in_nest(part, wanted, ring, form), statement)


def _stores_to(statement: ir.Stmt, buffers: frozenset[ir.Buffer]) -> bool:
    return any(isinstance(part, ir.Store) and part.buffer in buffers for part in walk(statement))


def _pipeline(
    loop: ir.For, wanted: PipelinedLoop, ring: Mapping[ir.Buffer, ir.Buffer], form: _Form
) -> ir.Stmt:
    local: list[ir.Buffer] = []
    body = loop.body
    while isinstance(body, ir.Allocate):
        local.append(body.buffer)
        body = body.body
    parts = body.statements if isinstance(body, ir.Block) else (body,)
    fills = tuple(part for part in parts if _stores_to(part, wanted.buffers))
    uses = tuple(part for part in parts if part not in fills)
    return form(_Parts(loop, ring, fills, uses, tuple(local)), wanted)


def _outlined(parts: _Parts, wanted: PipelinedLoop) -> ir.Stmt:
    copies = (_started(_in_slot(fill, parts.ring, 0)) for fill in parts.fills)
    body = ir.block(*copies, *(_in_slot(use, parts.ring, 0) for use in parts.uses))
    if wanted.mechanism is CopyMechanism.REGISTERS:
        for fill in reversed(parts.fills):
            own, _ = _share_of(fill)
            body = ir.Allocate(replace(own, shape=(_is_repeated(wanted), *own.shape)), body)
    return parts.with_body(body)


def _written_out(parts: _Parts, wanted: PipelinedLoop) -> ir.Stmt:
    if wanted.mechanism is CopyMechanism.REGISTERS:
        return _through_registers(parts, wanted)
    return _by_copies(parts, wanted)


def _through_registers(parts: _Parts, wanted: PipelinedLoop) -> ir.Stmt:
    loop, ring, fills = parts.loop, parts.ring, parts.fills
    var, following = loop.var, loop.var + 1
    shares = [_share_of(fill) for fill in fills]
    loads = [_stored_in(fill, own) for fill, own in zip(fills, shares, strict=True)]
    stores = [_loaded_from(fill, own) for fill, own in zip(fills, shares, strict=True)]
    slot = expr.mod(following, wanted.stages)
    body = ir.block(
        ir.guarded(
            following < loop.extent, substitute_statement(ir.block(*loads), {var: following})
        ),
        *(_in_slot(use, ring, expr.mod(var, wanted.stages)) for use in parts.uses),
        ir.guarded(
            following < loop.extent,
            _in_slot(substitute_statement(ir.block(*stores), {var: following}), ring, slot),
        ),
    )
    for own, _ in reversed(shares):
        body = ir.Allocate(own, body)
    first = [_in_slot(substitute_statement(fill, {var: 0}), ring, 0) for fill in fills]
    return ir.block(*first, parts.with_body(body))


def _by_copies(parts: _Parts, wanted: PipelinedLoop) -> ir.Stmt:
    loop, ring = parts.loop, parts.ring
    var, stages = loop.var, wanted.stages

    def started(iteration: expr.Index) -> ir.Stmt:
        moved = substitute_statement(ir.block(*parts.fills), {var: iteration})
        copies = _started(_in_slot(moved, ring, expr.mod(iteration, stages)))
        return ir.block(
            ir.guarded(expr.compare(expr.Relation.LT, iteration, loop.extent), copies),
            ir.CommitCopies(),
        )

    body = ir.block(
        ir.WaitCopies(stages - 2),
        started(var + (stages - 1)),
        *(_in_slot(use, ring, expr.mod(var, stages)) for use in parts.uses),
    )
    return ir.block(*(started(d) for d in range(stages - 1)), parts.with_body(body))


_Share = tuple[ir.Buffer, tuple[expr.Var, ...]]


def _share_of(fill: ir.Stmt) -> _Share:
    """A buffer for what one thread stores in a fill, and the loops that count it."""
    loops = [part for part in walk(fill) if isinstance(part, ir.For)]
    (store,) = (part for part in walk(fill) if isinstance(part, ir.Store))
    shape = tuple(loop.extent for loop in loops)
    own = ir.Buffer(f"{store.buffer.name}_next", shape, store.buffer.dtype, Scope.LOCAL)
    return own, tuple(loop.var for loop in loops)


def _stored_in(fill: ir.Stmt, share: _Share) -> ir.Stmt:
    """The fill of a thread's own share."""
    if isinstance(fill, ir.Store):
        return ir.Store(share[0], share[1], fill.value)
    return map_children(lambda part: _stored_in(part, share), fill)


def _loaded_from(fill: ir.Stmt, share: _Share) -> ir.Stmt:
    """The fill from the registers that hold the thread's share."""
    if isinstance(fill, ir.Store):
        return replace(fill, value=expr.Load(*share))
    return map_children(lambda part: _loaded_from(part, share), fill)


def _started(fill: ir.Stmt) -> ir.Stmt:
    if isinstance(fill, ir.Store):
        return ir.StartCopy(fill)
    return map_children(_started, fill)


def _in_slot(statement: ir.Stmt, ring: Mapping[ir.Buffer, ir.Buffer], slot: expr.Index) -> ir.Stmt:
    """A statement with the accesses of some buffers in one slot of their rings."""

    def on_element(element: expr.Element) -> expr.Index:
        source = element.source
        if isinstance(source, ir.Buffer) and source in ring:
            return expr.Element(ring[source], (slot, *element.indices))
        return element

    def on_index(index: expr.Index) -> expr.Index:
        return expr.map_elements(index, on_element)

    def on_condition(condition: expr.Condition) -> expr.Condition:
        return expr.map_condition(condition, on_index)

    def on_load(load: expr.Load) -> expr.Value:
        source = load.source
        if isinstance(source, ir.Buffer) and source in ring:
            return expr.Load(ring[source], (slot, *load.indices))
        return load

    def on_statement(part: ir.Stmt) -> ir.Stmt:
        match part:
            case ir.Store(buffer, indices, value):
                moved_indices = tuple(map(on_index, indices))
                changed = expr.rebuild(value, on_load, on_index, on_condition)
                if buffer in ring:
                    return ir.Store(ring[buffer], (slot, *moved_indices), changed)
                return ir.Store(buffer, moved_indices, changed)
            case ir.If(condition, then):
                return ir.If(on_condition(condition), on_statement(then))
            case ir.Call(intrinsic, windows, meaning):
                moved = tuple(
                    ir.Window(ring[w.buffer], (slot, *w.indices)) if w.buffer in ring else w
                    for w in windows
                )
                return ir.Call(intrinsic, moved, on_statement(meaning))
            case _:
                return map_children(on_statement, part)

    return on_statement(statement)
