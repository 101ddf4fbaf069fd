"""The launches of a program for graphics processors.

    program ::= Allocate(global buffer, program) | Block((nest, ...)) | nest
    nest    ::= For(block index, nest) | group           a launch, each iteration is a group
    group   ::= Allocate(shared buffer, group) | For(thread index, group) | body

A back end writes one function for each nest. Nests run one after another, and each sees the stores
of those before it. In the body of a group each thread runs all statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright.base import InternalError
from tensorwright.expr import Index, Var
from tensorwright.loop.ir import Allocate, Block, Buffer, For, LoopProgram, Stmt
from tensorwright.loop.traversal import walk
from tensorwright.schedule import BLOCKS, THREADS, ForKind, Scope


@dataclass(frozen=True, slots=True)
class LaunchNest:
    """What one launch runs.

    blocks   loops over block indices, outermost first; each index occurs at most once
    shared   buffers that each group has
    threads  loops over thread indices, outermost first; each index occurs at most once
    body     what each thread runs; its local buffers are inside
    """

    blocks: tuple[For, ...]
    shared: tuple[Buffer, ...]
    threads: tuple[For, ...]
    body: Stmt

    def extent(self, kind: ForKind) -> Index:
        """The extent of a block or thread index; 1 if no loop is bound to it."""
        loop = self._loop(kind)
        return 1 if loop is None else loop.extent

    def index(self, kind: ForKind) -> Var | None:
        """The variable that stands for a block or thread index; None if no loop is bound."""
        loop = self._loop(kind)
        return None if loop is None else loop.var

    def _loop(self, kind: ForKind) -> For | None:
        bound = (*self.blocks, *self.threads)
        return next((loop for loop in bound if loop.kind is kind), None)


@dataclass(frozen=True, slots=True)
class Launches:
    """A program as launches.

    whole   global buffers that are not parameters: one of each for a call
    nests   in the order in which they run
    """

    whole: tuple[Buffer, ...]
    nests: tuple[LaunchNest, ...]


def launches_of(program: LoopProgram) -> Launches:
    """The launches of a program, after lowering or after all passes.

    Raises:  InternalError if the loops over blocks and threads are not in this form.
    """
    whole: list[Buffer] = []
    body = program.body
    while isinstance(body, Allocate) and body.buffer.scope is Scope.GLOBAL:
        whole.append(body.buffer)
        body = body.body
    nests = body.statements if isinstance(body, Block) else (body,)
    return Launches(tuple(whole), tuple(_nest(program, nest) for nest in nests))


def _nest(program: LoopProgram, nest: Stmt) -> LaunchNest:
    blocks: list[For] = []
    while isinstance(nest, For) and nest.kind in BLOCKS:
        blocks.append(nest)
        nest = nest.body
    shared: list[Buffer] = []
    threads: list[For] = []
    while True:
        if isinstance(nest, For) and nest.kind in THREADS:
            threads.append(nest)
            nest = nest.body
        elif isinstance(nest, Allocate) and nest.buffer.scope is Scope.SHARED and not threads:
            shared.append(nest.buffer)
            nest = nest.body
        else:
            break
    bound = [loop.kind for loop in (*blocks, *threads)]
    wrong = next(_misplaced(nest), None)
    if wrong is None and len(set(bound)) != len(bound):
        wrong = "two loops are bound to one index"
    if wrong is not None:
        raise InternalError(stage="loop", where=program.name, reason=f"{wrong}\n{program}")
    return LaunchNest(tuple(blocks), tuple(shared), tuple(threads), nest)


def _misplaced(body: Stmt) -> Iterator[str]:
    """A statement that may not be in the body of a group."""
    for part in walk(body):
        if isinstance(part, For) and part.kind in BLOCKS | THREADS | {ForKind.PARALLEL}:
            yield f"a loop {part.kind.note} is inside what each thread runs"
        if isinstance(part, Allocate) and part.buffer.scope is not Scope.LOCAL:
            yield f"the buffer {part.buffer} is allocated inside what each thread runs"
