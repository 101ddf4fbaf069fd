"""The options of all commands that compile models.

The module `programs.py` compiles programs with them. It imports the compiler, so it is imported
only when a program is compiled: an executable runs without it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorwright.base import knobs
from tensorwright.cli.arguments.options import (
    Command,
    Compilation,
    ProgramKind,
    Reader,
    kind_of,
    record_options,
    refuse_given,
)
from tensorwright.runtime import Executable, default_cache, load

_COMPILING = "tensorwright.cli.arguments.programs"


def compile_options(
    function: Command,
    record: type[Compilation] = Compilation,
    readers: Mapping[str, Reader] | None = None,
) -> Command:
    """Add the options of a record; the command gets it as the argument `how`."""

    @functools.wraps(function)
    def given(*arguments: Any, **more: Any) -> Any:
        if knobs.KERNEL_CACHE.get():
            default_cache().is_usable()  # warns of an unusable folder before the work
        return function(*arguments, **more)

    return record_options(record, "how", readers)(given)


def open_program(text: str, how: Compilation, constants: Path | None, *, draws: bool) -> Executable:
    """Load an executable; compile a model or a tensor expression with the schedules on record.

    constants   the file with the constants of an expression
    draws       whether constants without a value get random values
    Raises:     UsageError for options that do not apply to this kind of program.
    """
    if kind_of(text) is ProgramKind.EXECUTABLE:
        refuse_given(
            ("target", "records", "input_shapes", "sizes", "precision", "keep", "constants"),
            because=f"{text} is {ProgramKind.EXECUTABLE}, and already compiled",
        )
        return load(text, how.threads)
    compiled: Executable = importlib.import_module(_COMPILING).compile_any(
        text, how, constants, draws=draws
    )
    return compiled
