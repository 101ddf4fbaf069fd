"""How a program is compiled: what Python, commands and the keys of kept executables read.

Each option is declared here once.  `takes_options` makes the fields keywords of functions, and
`record_options` makes those with a text options of commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tensorwright.base import Target, UsageError, knobs, option
from tensorwright.runtime import named_target

if TYPE_CHECKING:
    from tensorwright.graph import Constants
    from tensorwright.records import Records
    from tensorwright.schedule import Trace

Shapes: TypeAlias = Mapping[str, Sequence[int] | int]
Sizes: TypeAlias = Mapping[str, int | str | tuple[int, int | None]]
OnKernel: TypeAlias = Callable[[Any, int, int], None]


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """The options of all that compiles a program.

    target        "native", "x86-64-avx2", ..., or a Target; the knob `target` if None
    threads       the knob `threads` if None
    records       the store of schedules and measurements: a path, or an open store
    input_shapes  numbers, by the names of inputs or of open dimensions
    sizes         "1..64", "8..512 by 8", (1, 64), 64, by the names of open sizes; "fixed" for one
                  program, which refuses calls of sizes that it does not take
    """

    target: str | Target | None = option(
        None,
        'The machine to compile for; by default this one. "opencl" and "cuda" are '
        "its devices of these kinds.",
    )
    threads: int | None = option(
        None, "Threads of the kernels of a processor; by default all cores.", least=1, most=1024
    )
    records: Records | None = option(None, "The record store; by default the user's.", kind=Path)
    input_shapes: Shapes | None = option(
        None,
        "Shapes of inputs, or extents of dimensions, that the model leaves open.",
        metavar='"x:[1,3,224,224]"',
    )
    sizes: Sizes | Literal["fixed"] | None = option(
        None,
        "The values of sizes that the model leaves open: LEAST..MOST, LEAST..MOST by DIVISOR, "
        "or a number.",
        metavar='"batch=1..64"',
    )
    precision: str = option(
        "f32", "Of operands of products; bf16 halves weights.", words=("f32", "bf16", "f16")
    )
    keep: Sequence[str] = option((), "A product that stays f32: its result.", metavar="NODE")

    @property
    def machine(self) -> Target:
        """The target itself.  Raises: the errors of `named_target`; UsageError for other things."""
        named = self.target or knobs.TARGET.get()
        if isinstance(named, str):
            return named_target(named)
        if not isinstance(named, Target):
            raise UsageError(
                stage="compile",
                where="argument target",
                reason=f"it is of type {type(named).__name__}, not a name or a Target",
                remedy='give a name, as "native", or leave it out',
            )
        return named

    @property
    def bounds(self) -> Sizes | None:
        """What `sizes` says of sizes."""
        return None if self.sizes == "fixed" else self.sizes


@dataclass(frozen=True, kw_only=True)
class CompileArguments(CompileOptions):
    """The options of `compile`, and what only Python gives.

    trace       the schedule of a tensor expression, parsed or as text; if None, it is chosen as
                for a workload of a model
    constants   values of inputs of a tensor expression that stay the same from call to call
    on_kernel   called with (schedule, number, count) before each kernel is built; no kept
                executable is returned then
    """

    trace: Trace | str | None = None
    constants: Constants | None = None
    on_kernel: OnKernel | None = None


USUAL = CompileArguments()
