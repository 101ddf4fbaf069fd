"""The options of all commands that compile models.

The module `programs.py` compiles programs with them. It imports the compiler, so it is imported
only when a program is compiled: an executable runs without it.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright.base import Target, knobs
from tensorwright.cli.arguments.options import (
    Command,
    ProgramKind,
    Shapes,
    Sizes,
    any_machine_options,
    kind_of,
    records_option,
    refuse_given,
    seed_option,
    shapes_option,
    sizes_option,
)
from tensorwright.runtime import Executable, default_cache, load

_COMPILING = "tensorwright.cli.arguments.programs"


@dataclass(frozen=True, slots=True)
class Compilation:
    """The values of the options by which a command compiles programs."""

    target: Target
    threads: int | None
    records: Path | None
    shapes: Shapes | None
    seed: int
    sizes: Sizes | None = None


def compile_options(function: Command) -> Command:
    """Add the options that `Compilation` holds; the command gets them as one argument, `how`.

    They are --target, --threads, --records, --input-shapes, --sizes and --seed.
    """

    @functools.wraps(function)
    def given(
        *arguments: Any,
        target: Target,
        threads: int | None,
        records: Path | None,
        input_shapes: Shapes | None,
        sizes: Sizes | None,
        seed: int,
        **more: Any,
    ) -> Any:
        if knobs.KERNEL_CACHE.get():
            default_cache().is_usable()  # warns of an unusable folder before the work
        how = Compilation(target, threads, records, input_shapes, seed, sizes)
        return function(*arguments, how=how, **more)

    command: Command = given
    options = (seed_option, sizes_option, shapes_option, records_option, any_machine_options)
    for option in options:
        command = option(command)
    return command


def open_program(text: str, how: Compilation, constants: Path | None, *, draws: bool) -> Executable:
    """Load an executable; compile a model or a tensor expression with the schedules on record.

    constants   the file with the constants of an expression
    draws       whether constants without a value get random values
    Raises:     UsageError for options that do not apply to this kind of program.
    """
    if kind_of(text) is ProgramKind.EXECUTABLE:
        refuse_given(
            ("target", "records", "input_shapes", "sizes", "constants"),
            because=f"{text} is {ProgramKind.EXECUTABLE}, and already compiled",
        )
        return load(text, how.threads)
    compiled: Executable = importlib.import_module(_COMPILING).compile_any(
        text, how, constants, draws=draws
    )
    return compiled
