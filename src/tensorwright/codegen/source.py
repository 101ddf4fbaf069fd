"""The output of a back end: the text of a kernel, and how it is called."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import ON_THREADS, DType, Launch, UnsupportedError
from tensorwright.expr import Fn, Index, NamedSize
from tensorwright.loop import Parameter


@dataclass(frozen=True, slots=True)
class Signature:
    """How a kernel is called.

    `launches` are its calls, in order (`base/targets/launch.py`).  On `Threads`, a call is
    `void symbol(ptr arguments, ptr workspace, i32 threads)`: `arguments` points to the addresses of
    the parameters in order, each aligned to 64 bytes, and so is `workspace`; after the addresses
    come the named `sizes`, as integers of 64 bits.  The workspace holds `workspace_bytes`, shared
    by the call, and then `local_workspace_bytes` for each thread; both are multiples of 64, and
    may depend on the sizes.
    """

    symbol: str
    parameters: tuple[Parameter, ...]
    workspace_bytes: Index = 0
    local_workspace_bytes: Index = 0
    launches: tuple[Launch, ...] = ON_THREADS
    sizes: tuple[NamedSize, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one kernel in the language of its back end."""

    text: str
    signature: Signature

    def __str__(self) -> str:
        return self.text


def without_meaning(fn: Fn, dtype: DType) -> UnsupportedError:
    """The error for a function that has no meaning for elements of a type."""
    return UnsupportedError(
        stage="codegen",
        where=f"{fn.text} of {dtype}",
        reason="the function has no meaning for this type",
        remedy="cast the operand to f32 or f64",
        operator=fn.text,
    )
