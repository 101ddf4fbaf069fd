"""Short ways to write loop nests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from tensorwright.base import DType, Role, TensorType
from tensorwright.expr import Index, Load, Var
from tensorwright.loop.ir import Allocate, Buffer, For, LoopProgram, Parameter, Stmt
from tensorwright.loop.passes import verify
from tensorwright.schedule import ForKind, Scope


def loop(
    name: str, extent: Index, body: Callable[[Index], Stmt], kind: ForKind = ForKind.SERIAL
) -> Stmt:
    """The body for 0 .. extent - 1; names of loops that are nested differ."""
    var = Var(name)
    return For(var, extent, kind, body(var))


def vector(name: str, extent: Index, body: Callable[[Index], Stmt]) -> Stmt:
    """A loop in lock step."""
    return loop(name, extent, body, ForKind.VECTOR)


def parallel(name: str, extent: Index, body: Callable[[Index], Stmt]) -> Stmt:
    """A loop whose iterations may run at the same time."""
    return loop(name, extent, body, ForKind.PARALLEL)


def local(name: str, dtype: DType, *shape: int) -> Buffer:
    """A buffer of one iteration of the loops around it."""
    return Buffer(name, shape, dtype, Scope.LOCAL)


def allocate(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    """The body with buffers of its own."""
    for buffer in reversed(buffers):
        body = Allocate(buffer, body)
    return body


def at(buffer: Buffer, *indices: Index) -> Load:
    """An element of a buffer."""
    return Load(buffer, indices)


def program(
    name: str, inputs: Sequence[Buffer], outputs: Sequence[Buffer], body: Stmt
) -> LoopProgram:
    """A whole program, checked."""
    parameters = [Parameter(buffer, Role.INPUT) for buffer in inputs]
    parameters += [Parameter(buffer, Role.OUTPUT) for buffer in outputs]
    return verify(LoopProgram(name, tuple(parameters), body))


def shape_of(kind: TensorType) -> tuple[Index, ...]:
    """The shape of a tensor as indices of its loops."""
    return cast(tuple[Index, ...], kind.shape)
