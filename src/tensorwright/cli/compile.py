"""`tensorwright compile`: compile a program with schedules from records and the time model."""

from __future__ import annotations

import importlib
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from tensorwright.base import UsageError, cpu_target, number_in, sizes_text
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.models import short_name
from tensorwright.cli.arguments.options import Compilation, compile_options
from tensorwright.cli.arguments.output import check_executable
from tensorwright.cli.arguments.programs import (
    compile_any,
    prepare,
    read_network,
    refuse_constants,
)
from tensorwright.cli.printing import print_some
from tensorwright.records import opened
from tensorwright.runtime import Executable, KernelStep
from tensorwright.tuning.selection import Scheduled, Source

_EXPORTING = "tensorwright.drivers.c_library"
_ERRORS = "tensorwright.cli.quantize"


@click.command()
@options.program_argument
@options.output_option
@click.option(
    "--emit",
    type=click.Choice(("executable", "c", "so")),
    default="executable",
    help="What to write: an executable, or a folder with a C library that needs no Python; with "
    "so, a shared library is built in it.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="The name of the C library, of ASCII letters and digits: its files and functions begin "
    "with tw_NAME.  [default: the model's]",
)
@click.option(
    "--check",
    is_flag=True,
    help="Print how far the outputs are from those in f32, for random inputs, and which products "
    "contribute most.",
)
@options.constants_option
@compile_options
def command(
    program: str,
    output: str,
    emit: str,
    name: str | None,
    check: bool,
    constants: Path | None,
    how: Compilation,
) -> None:
    """Compile with the schedules on record; the others are chosen by the time model.

    Example: tensorwright compile model.onnx -o model.tw
             tensorwright compile model.onnx --emit c -o library && make -C library
    """
    if how.precision == "f32":
        options.refuse_given(("check",), because="all is computed in f32 (--precision bf16)")
    if emit != "executable":
        options.refuse_given(("check",), because="a C library is not run here")
        _write_library(program, output, how, name, is_shared=emit == "so")
        return
    options.refuse_given(("name",), because="only a C library has a name (--emit c)")
    check_executable(output, program, constants, how.records_path)
    chosen: list[Scheduled] = []
    noted = replace(how, on_kernel=lambda it, *_: chosen.append(it))
    executable = compile_any(program, noted, constants)
    executable.save(output)
    _report(output, chosen, executable)
    if check:
        plain = read_network(program, replace(how, precision="f32", keep=()))
        told = importlib.import_module(_ERRORS)
        told.print_errors(*told.rounding_errors(plain, how, how.seed))


def _report(output: str, chosen: Sequence[Scheduled], executable: Executable) -> None:
    """Print where the schedules come from, and which workloads were never tuned."""
    untuned = [number for number, each in enumerate(chosen) if not each.is_tuned]
    sources = Counter(each.source for each in chosen)
    counts = [f"{sources[each]} {each.value}" for each in Source if sources[each]]
    origins = f": {', '.join(counts)}" if counts else ""
    flops = [0] * len(chosen)
    for step in executable.plan.at_capacity.steps:
        if isinstance(step, KernelStep) and step.kernel < len(chosen):
            flops[step.kernel] += number_in(step.flops)
    total = sum(flops) or 1
    lines = []
    for number in sorted(untuned, key=lambda number: -flops[number]):
        workload = chosen[number].workload
        share = f"{flops[number] / total:.1%} of the operations"
        lines.append(f"  untuned {workload.key} {workload.name}: {share}")
    print_some(lines)
    if executable.sizes:
        click.echo(f"  any size: {', '.join(map(str, executable.sizes))}")
        click.echo("  the file takes these sizes alone")
        most = {size.name: size.most for size in executable.sizes}
        sizes = {name: most[name] or usual for name, usual in executable.chosen_sizes().items()}
        memory = executable.at(**sizes).peak_memory_bytes / 1e6
        click.echo(f"  memory of a call: {memory:.3g} MB at {sizes_text(sizes)}")
    if executable.host_operators:
        click.echo("  on the host: " + ", ".join(executable.host_operators))
    click.echo(f"{output}: {len(chosen)} workloads, {len(untuned)} of them untuned{origins}")


def _write_library(
    model: str, output: str, how: Compilation, given: str | None, *, is_shared: bool
) -> None:
    """Write the C library of a model, and build the shared library if `is_shared`.

    given    its name; None takes the model's
    """
    exporting = importlib.import_module(_EXPORTING)
    if given is not None and not re.search(r"[a-z0-9]", given, re.ASCII | re.IGNORECASE):
        raise UsageError(
            stage="cli",
            where=f"option --name {given!r}",
            reason="it has no letter and no digit of ASCII",
            remedy=f"--name {exporting.c_library.prefix_of(short_name(model)).removeprefix('tw_')}",
        )
    if options.kind_of(model) is options.ProgramKind.EXPRESSION:
        options.refuse_given(
            ("emit",), because=f"{model} is {options.ProgramKind.EXPRESSION}, not a model"
        )
    refuse_constants(model)
    with opened(how.records) as store:
        parts = prepare(model, how, store)
        name = short_name(model) if given is None else given
        files = exporting.export_c(
            parts, cpu_target(how.machine), how.threads, store, Path(output), name, how.seed
        )
    if is_shared:
        library = exporting.build_shared(Path(output), name)
        size_kb = library.stat().st_size / 1e3
        header = library.with_name(f"{library.stem.removeprefix('lib')}.h")
        click.echo(f"{library}: {size_kb:,.0f} kB; {header} says how to use it")
        return
    click.echo(f"{output}: {len(files)} files; to build them and run the example:")
    click.echo(f"  make -C {shlex.quote(output)} && {shlex.quote(output)}/example")
