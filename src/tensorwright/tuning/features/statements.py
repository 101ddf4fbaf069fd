"""The statements of a loop program, each with the loops, guards and buffers around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright.expr import Condition, Load, loads_of
from tensorwright.loop import (
    Allocate,
    Block,
    Buffer,
    Call,
    For,
    GroupStatement,
    If,
    LoopProgram,
    Prefetch,
    StartCopy,
    Stmt,
    Store,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A store and what is around it, outermost first.

    lives  the buffers that are allocated around it, each with the number of loops outside of that
    path   to it from the program's body: two statements share the loops on the common part of
           their paths
    """

    store: Store
    loops: tuple[For, ...]
    guards: tuple[Condition, ...]
    lives: tuple[tuple[Buffer, int], ...]
    path: tuple[int, ...]
    loop_steps: tuple[int, ...]  # the length of the path at which each loop begins
    is_copy: bool = False  # started here, awaited later

    def outside(self, buffer: Buffer) -> int:
        """The number of loops outside of the life of a buffer: 0 for one of the caller's."""
        return dict(self.lives).get(buffer, 0)

    @property
    def is_update(self) -> bool:
        """Whether it reads the element that it stores."""
        element = Load(self.store.buffer, self.store.indices)
        return any(load == element for load in loads_of(self.store.value))

    def shared_loops(self, other: Statement) -> int:
        """The number of loops around both statements."""
        common = 0
        for mine, theirs in zip(self.path, other.path, strict=False):
            if mine != theirs:
                break
            common += 1
        return sum(step <= common for step in self.loop_steps)


def statements_of(program: LoopProgram) -> tuple[Statement, ...]:
    """The stores of a program, in order; those that an intrinsic stands for too."""
    return tuple(_walk(program.body, _Around()))


@dataclass(frozen=True, slots=True)
class _Around:
    loops: tuple[For, ...] = ()
    guards: tuple[Condition, ...] = ()
    lives: tuple[tuple[Buffer, int], ...] = ()
    path: tuple[int, ...] = ()
    loop_steps: tuple[int, ...] = ()


def _walk(statement: Stmt, around: _Around) -> Iterator[Statement]:
    loops, guards, lives = around.loops, around.guards, around.lives
    path, steps = around.path, around.loop_steps
    match statement:
        case Block(parts):
            for n, part in enumerate(parts):
                yield from _walk(part, _Around(loops, guards, lives, (*path, n), steps))
        case For(_, _, _, body):
            inner = _Around((*loops, statement), guards, lives, path, (*steps, len(path)))
            yield from _walk(body, inner)
        case If(condition, then):
            yield from _walk(then, _Around(loops, (*guards, condition), lives, path, steps))
        case Allocate(buffer, body):
            life = (*lives, (buffer, len(loops)))
            yield from _walk(body, _Around(loops, guards, life, path, steps))
        case Call(_, _, meaning):
            yield from _walk(meaning, around)
        case Store():
            yield Statement(statement, loops, guards, lives, path, steps)
        case StartCopy(store):
            yield Statement(store, loops, guards, lives, path, steps, is_copy=True)
        case Prefetch() | GroupStatement():
            return
