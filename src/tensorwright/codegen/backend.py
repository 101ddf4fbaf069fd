"""The protocol of a back end: how loop programs become code of one kind of machine.

A back end is the object `BACKEND` of `codegen/NAME/backend.py`.  `artifacts/kernel.py` lists the
names and loads one when it is needed; docs/howto/back_end.md says how to write one.

The output of a back end: the text of a kernel, and how it is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from tensorwright import base
from tensorwright.expr import Fn, Index
from tensorwright.loop import LoopProgram, Parameter


@dataclass(frozen=True, slots=True)
class Signature:
    """How a kernel is called.

    `launches` are its calls, in order (`base/gpu_targets.py`).  On `Threads`, a call is
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
    launches: tuple[base.Launch, ...] = base.ON_THREADS
    sizes: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one kernel in the language of its back end."""

    text: str
    signature: Signature

    def __str__(self) -> str:
        return self.text


def without_meaning(fn: Fn, dtype: base.DType) -> base.UnsupportedError:
    """The error for a function that has no meaning for elements of a type."""
    return base.UnsupportedError(
        stage="codegen",
        where=f"{fn.text} of {dtype}",
        reason="the function has no meaning for this type",
        remedy="cast the operand to f32 or f64",
        operator=fn.text,
    )


Machine = TypeVar("Machine", bound=base.Target, contravariant=True)
"""The targets of a back end: all of one kind."""


class Backend(Protocol[Machine]):
    """A code generator and its compiler.  It has no state: any thread may use it."""

    @property
    def name(self) -> str:
        """The name of its folder in `codegen/`."""
        ...

    @property
    def suffix(self) -> str:
        """The suffix of files with its text."""
        ...

    def supports(self, target: Machine) -> str:
        """Why there is no code for a target; "" if there is."""
        ...

    def key(self) -> str:
        """Name the compiler: object code of equal text, target and key is equal."""
        ...

    def emit(self, program: LoopProgram, target: Machine) -> Source:
        """Write the text of a program whose extents are numbers.

        Raises:  UnsupportedError for what the machine or the language cannot do; InternalError for
                 a program that is not well formed.
        """
        ...

    def compile(self, source: Source, target: Machine) -> bytes:
        """Compile that text to what the device of the target loads.

        Raises:  MachineError if the compiler is missing, or does not know the target.
        """
        ...

    def listing(self, source: Source, target: Machine) -> str:
        """The code that the machine runs, for people: assembly."""
        ...
