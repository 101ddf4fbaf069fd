"""Groups of threads that wait for each other at barriers, as the interpreter runs them.

What one thread does is an iterator that stops at each barrier and gives it.  A group lets each of
its threads go to its next barrier, one after the other, until all are done.

Theorem: what runs between two barriers is the iterations of a concurrent loop of its own, so the
order stays series-parallel and depth first, and the race check (memory.py) finds what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from tensorwright.loop.ir import Barrier, LaneFold, Stmt
from tensorwright_lab.loop_interpreter.closures import Environment, IndexFunction
from tensorwright_lab.loop_interpreter.memory import Cell, Iterations


@dataclass(slots=True)
class Stop:
    """A point where a thread waits for others; in a fold over lanes, with its operand and its
    result.
    """

    at: Barrier | LaneFold
    own: Any = None
    result: Any = None


Thread: TypeAlias = Callable[[Environment], Iterator[Stop]]


def in_one_part(action: Callable[[Environment], None]) -> Thread:
    """The thread of an action that has no barrier inside."""

    def run(env: Environment) -> Iterator[Stop]:
        action(env)
        yield from ()

    return run


def one_after_another(threads: tuple[Thread, ...]) -> Thread:
    """A block."""

    def run(env: Environment) -> Iterator[Stop]:
        for thread in threads:
            yield from thread(env)

    return run


def repeated(extent: IndexFunction, slot: int, body: Thread) -> Thread:
    """A serial loop, whose variable has a slot in the environment."""

    def run(env: Environment) -> Iterator[Stop]:
        for i in range(extent(env)):
            env[slot] = i
            yield from body(env)

    return run


def private(cell: Cell, body: Thread) -> Thread:
    """A buffer of each thread: while one waits, others have its place."""

    def run(env: Environment) -> Iterator[Stop]:
        cell.start()
        for stop in body(env):
            saved = cell.save()
            yield stop
            cell.restore(saved)

    return run


def group(
    extent: IndexFunction,
    slot: int,
    body: Thread,
    iterations: Iterations,
    fail: Callable[[Stmt | None, Environment], NoReturn],
    fold: Callable[[list[Stop]], None] | None,
) -> Thread:
    """A loop over threads; to a loop over threads around it, it is one thread.

    fold   what gives the results of a fold over lanes, where these are the threads of the loop
    """

    def run(env: Environment) -> Iterator[Stop]:
        threads: list[tuple[int, Iterator[Stop]]] = []
        for i in range(extent(env)):
            own = list(env)
            own[slot] = i
            threads.append((i, one_after_another((body,))(own)))
        while threads:
            outer, execution = iterations.now, iterations.enter()
            reached: list[Stop | None] = []
            for i, thread in threads:
                iterations.now = iterations.around = (*outer, (execution, i))
                reached.append(next(thread, None))
            iterations.now = iterations.around = outer
            stops = [stop for stop in reached if stop is not None]
            if not stops:
                return
            if len(stops) < len(reached) or any(stop.at is not stops[0].at for stop in stops):
                fail(stops[0].at, env)
            if fold is not None and isinstance(stops[0].at, LaneFold):
                fold(stops)
            else:
                yield stops[0]

    return run


def to_the_end(thread: Thread) -> Callable[[Environment], None]:
    """Run a whole group: where all have come to a barrier, they go on."""

    def run(env: Environment) -> None:
        for _ in thread(env):
            pass

    return run
