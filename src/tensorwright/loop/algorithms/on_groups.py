"""Loop algorithms for graphics processors: a launch per statement, a thread per iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from tensorwright.expr import Relation, Var, ceil_div, compare
from tensorwright.loop.ir import Allocate, Block, For, If, LoopProgram, Stmt, block
from tensorwright.loop.passes import verify
from tensorwright.loop.traversal import substitute_statement
from tensorwright.schedule import ForKind, Scope

_THREADS = 64
_MOST_OWN_BYTES = 16 << 10  # of a thread; what is larger lies in the memory of the device


def on_groups(program: LoopProgram) -> LoopProgram | None:
    """The program with its parallel loops dealt out to blocks and threads.

    None if the local buffers of a thread need more memory than a card has for each.
    """
    if sum(_own_bytes(program.body)) > _MOST_OWN_BYTES:
        return None
    body = program.body
    statements = body.statements if isinstance(body, Block) else (body,)
    return verify(replace(program, body=block(*map(_launch, statements))))


def _launch(statement: Stmt) -> Stmt:
    """A launch of a statement at the root: one thread for each iteration of independent loops."""
    if not isinstance(statement, For) or statement.kind not in (ForKind.PARALLEL, ForKind.VECTOR):
        return _serial(statement)
    if isinstance(statement.body, For) and statement.body.kind is ForKind.VECTOR:
        inner = statement.body
        pieces = _dealt(inner, _serial(inner.body))
        if isinstance(pieces, For):  # a block for each iteration of the outer loop, too
            return For(statement.var, statement.extent, ForKind.BLOCK_Y, pieces)
    return _dealt(statement, _serial(statement.body))


def _dealt(loop: For, body: Stmt) -> Stmt:
    """A loop over blocks of threads; the last block may have more threads than iterations."""
    extent = loop.extent
    threads = min(extent, _THREADS) if isinstance(extent, int) else _THREADS
    blocks, own = Var(f"{loop.var.name}_b"), Var(f"{loop.var.name}_t")
    number = blocks * threads + own
    body = substitute_statement(body, {loop.var: number})
    if not isinstance(extent, int) or extent % threads:
        body = If(compare(Relation.LT, number, extent), body)
    group = For(own, threads, ForKind.THREAD_X, body)
    return For(blocks, ceil_div(extent, threads), ForKind.BLOCK_X, group)


def _serial(statement: Stmt) -> Stmt:
    """The work of one thread: loops in lock step become serial loops."""
    match statement:
        case For(var, extent, kind, body):
            plain = ForKind.SERIAL if kind in (ForKind.VECTOR, ForKind.PARALLEL) else kind
            return For(var, extent, plain, _serial(body))
        case If(condition, then):
            return If(condition, _serial(then))
        case Allocate(buffer, body):
            return Allocate(buffer, _serial(body))
        case Block(statements):
            return block(*map(_serial, statements))
        case _:
            return statement


def _own_bytes(statement: Stmt) -> Iterator[int]:
    """The bytes of each buffer that a thread has of its own."""
    match statement:
        case For(_, _, _, body) | If(_, body):
            yield from _own_bytes(body)
        case Allocate(buffer, body):
            if buffer.scope is Scope.LOCAL:
                yield prod(buffer.extents) * buffer.dtype.size_bytes
            yield from _own_bytes(body)
        case Block(statements):
            for each in statements:
                yield from _own_bytes(each)
        case _:
            pass
