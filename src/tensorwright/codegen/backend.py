"""The protocol of a back end: how loop programs become code of one kind of machine.

A back end is the object `BACKEND` of `codegen/NAME/backend.py`.  `build/backend.py` lists the names
and loads one when it is needed; docs/howto/back_end.md says how to write one.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from tensorwright.base import Target
from tensorwright.codegen.source import Source
from tensorwright.loop import LoopProgram

Machine = TypeVar("Machine", bound=Target, contravariant=True)
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
