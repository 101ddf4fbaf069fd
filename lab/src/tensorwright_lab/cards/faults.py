"""Programs for groups of threads with a fault, to test the checks that must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tensorwright.loop import (
    Allocate,
    Barrier,
    LoopProgram,
    Stmt,
    WaitCopies,
    block,
    launches_of,
    verify,
)
from tensorwright.loop.traversal import map_children, substitute_statement
from tensorwright.schedule import Scope
from tensorwright_lab.cards.kernels import SMALL_TILES, product


@dataclass(frozen=True, slots=True)
class Fault:
    """A way to make a product by small tiles wrong.

    steps   more steps of its schedule
    """

    name: str
    steps: str
    change: Callable[[LoopProgram], LoopProgram]

    @property
    def program(self) -> LoopProgram:
        """The wrong program."""
        return self.change(product(*SIZES, SMALL_TILES, self.steps).program)


def changed(program: LoopProgram, change: Callable[[Stmt], Stmt]) -> LoopProgram:
    """A program with its statements changed, the inner ones first."""

    def apply(statement: Stmt) -> Stmt:
        return change(map_children(apply, statement))

    return replace(program, body=apply(program.body))


def without_barrier(program: LoopProgram, number: int) -> LoopProgram:
    """A program without one of its barriers, by its place among them."""
    barriers = iter(range(1_000_000))
    return changed(
        program,
        lambda each: block() if isinstance(each, Barrier) and next(barriers) == number else each,
    )


def with_own_memory(program: LoopProgram) -> LoopProgram:
    """A program of one launch whose threads each have what they should share."""
    (nest,) = launches_of(program).nests
    own = {each: replace(each, scope=Scope.LOCAL) for each in nest.shared}
    body = substitute_statement(nest.body, {}, own)
    for each in own.values():
        body = Allocate(each, body)
    for head in reversed((*nest.blocks, *nest.threads)):
        body = replace(head, body=body)
    return verify(replace(program, body=body))


def with_late_copies(program: LoopProgram) -> LoopProgram:
    """A pipelined program whose threads wait for two batches of copies less than they should."""
    return changed(
        program,
        lambda each: WaitCopies(each.batches + 2) if isinstance(each, WaitCopies) else each,
    )


SIZES = (8, 8, 12)
"""Rows, columns and depth of the product: one block, three steps."""
FAULTS = (
    Fault("a barrier is removed", "", lambda program: without_barrier(program, 1)),
    Fault("threads have what they should share", "", with_own_memory),
    Fault("used before it has arrived", "pipeline(c_cache, k_o, 2, cp_async)", with_late_copies),
)
