"""Groups of threads: barriers, shared buffers and the races between them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backends import LLVM, C
from tests.targets import AVX2

from tensorwright import loop
from tensorwright.base import DType, InternalError, UnsupportedError
from tensorwright.expr import Load, Var, constant
from tensorwright.schedule import ForKind, Scope
from tensorwright_lab.loop_interpreter import interpret

pytestmark = pytest.mark.layer("interpreter")

F32 = DType.F32
b, t, u, k, s = (Var(name) for name in "btuks")
SIZE, GROUP = 12, 4


def program(
    body: loop.Stmt, inputs: tuple[loop.Buffer, ...], *outputs: loop.Buffer
) -> loop.LoopProgram:
    parameters = [loop.Parameter(each, loop.Role.INPUT) for each in inputs]
    parameters += [loop.Parameter(each, loop.Role.OUTPUT) for each in outputs]
    return loop.LoopProgram("groups", tuple(parameters), body)


def cooperative_product(*, first: bool = True, second: bool = True) -> loop.LoopProgram:
    """y = A x; each group loads tiles of x together, which all of its threads read then."""
    a, x = loop.Buffer("a", (8, SIZE), F32), loop.Buffer("x", (SIZE,), F32)
    y, tile = loop.Buffer("y", (8,), F32), loop.Buffer("tile", (GROUP,), F32, Scope.SHARED)
    total = loop.Buffer("total", (), F32, Scope.LOCAL)
    here = Load(total, ())
    row = b * GROUP + t
    steps = loop.block(
        loop.Store(tile, (t,), Load(x, (k * GROUP + t,))),
        *([loop.Barrier()] if first else []),
        loop.For(
            s,
            GROUP,
            ForKind.SERIAL,
            loop.Store(total, (), here + Load(a, (row, k * GROUP + s)) * Load(tile, (s,))),
        ),
        *([loop.Barrier()] if second else []),
    )
    thread = loop.Allocate(
        total,
        loop.block(
            loop.Store(total, (), constant(0, F32)),
            loop.For(k, SIZE // GROUP, ForKind.SERIAL, steps),
            loop.Store(y, (row,), here),
        ),
    )
    body = loop.For(
        b, 2, ForKind.BLOCK_X, loop.Allocate(tile, loop.For(t, GROUP, ForKind.THREAD_X, thread))
    )
    return program(body, (a, x), y)


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "a": random.integers(-3, 3, (8, SIZE)).astype(np.float32),
        "x": random.integers(-3, 3, SIZE).astype(np.float32),
    }


def test_a_tile_that_threads_load_together() -> None:
    source = loop.verify(cooperative_product())
    given = arrays()
    expected = given["a"] @ given["x"]
    np.testing.assert_array_equal(interpret(source, given)["y"], expected)
    np.testing.assert_array_equal(interpret(loop.run_passes(source), given)["y"], expected)
    assert str(source).count("barrier") == 2


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False)])
def test_a_missing_barrier_is_a_race(first: bool, second: bool) -> None:
    """Without the first one a thread reads what no other has loaded yet, or is loading."""
    source = loop.verify(cooperative_product(first=first, second=second))
    with pytest.raises(InternalError, match=r"race: tile\[|tile\[1\] is read and was never"):
        interpret(source, arrays())


def test_two_dimensions_of_threads_are_one_group() -> None:
    x, y = loop.Buffer("x", (3, 5), F32), loop.Buffer("y", (3, 5), F32)
    shared = loop.Buffer("shared", (3, 5), F32, Scope.SHARED)
    body = loop.Allocate(
        shared,
        loop.For(
            t,
            3,
            ForKind.THREAD_Y,
            loop.For(
                u,
                5,
                ForKind.THREAD_X,
                loop.block(
                    loop.Store(shared, (t, u), Load(x, (t, u))),
                    loop.Barrier(),
                    loop.Store(y, (t, u), Load(shared, (2 - t, 4 - u))),
                ),
            ),
        ),
    )
    given = np.arange(15, dtype=np.float32).reshape(3, 5)
    found = interpret(loop.verify(program(body, (x,), y)), {"x": given})["y"]
    np.testing.assert_array_equal(found, given[::-1, ::-1])


def test_private_buffers_survive_a_barrier() -> None:
    y, own = loop.Buffer("y", (4,), F32), loop.Buffer("own", (), F32, Scope.LOCAL)
    thread = loop.Allocate(
        own,
        loop.block(
            loop.Store(own, (), constant(0, F32)),
            loop.For(k, 3, ForKind.SERIAL, loop.Store(own, (), Load(own, ()) + 1)),
            loop.If(t < 2, loop.Store(own, (), Load(own, ()) * 2)),
            loop.Barrier(),
            loop.Store(y, (t,), Load(own, ())),
        ),
    )
    source = loop.verify(program(loop.For(t, 4, ForKind.THREAD_X, thread), (), y))
    np.testing.assert_array_equal(interpret(source, {})["y"], [6, 6, 3, 3])


def group_of(*statements: loop.Stmt, kind: ForKind = ForKind.THREAD_X) -> loop.LoopProgram:
    y = loop.Buffer("y", (4,), F32)
    return program(
        loop.For(t, 4, kind, loop.block(loop.Store(y, (t,), constant(1, F32)), *statements)), (), y
    )


SHARED = loop.Buffer("shared", (4,), F32, Scope.SHARED)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (group_of(loop.If(t < 2, loop.Barrier())), "which threads decide differently"),
        (group_of(loop.Barrier(), kind=ForKind.SERIAL), "outside of a group of threads"),
        (
            group_of(loop.For(k, 4, ForKind.VECTOR, loop.Barrier())),
            "a barrier inside a loop @vectorize",
        ),
        (
            group_of(loop.Allocate(SHARED, loop.Store(SHARED, (t,), constant(0, F32)))),
            "allocated by each thread",
        ),
    ],
)
def test_what_no_group_can_do_is_refused(source: loop.LoopProgram, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        loop.verify(source)


def test_threads_that_do_not_meet_are_found() -> None:
    with pytest.raises(InternalError, match="not all threads come to this barrier"):
        interpret(group_of(loop.If(t < 2, loop.Barrier())), {})


@pytest.mark.parametrize("backend", [LLVM, C], ids=lambda backend: backend.name)
@pytest.mark.parametrize(
    ("source", "what"),
    [
        (cooperative_product(), "@block.x is for graphics processors"),
        (program(loop.Barrier(), ()), "wait for each other are for graphics processors"),
        (
            program(loop.Allocate(SHARED, loop.Store(SHARED, (0,), constant(0, F32))), ()),
            "a group of threads shares is for graphics processors",
        ),
    ],
)
def test_back_ends_of_processors_refuse_groups(
    backend: object, source: loop.LoopProgram, what: str
) -> None:
    with pytest.raises(UnsupportedError, match=what):
        backend.emit(source, AVX2)  # type: ignore[attr-defined]
