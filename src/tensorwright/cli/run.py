"""`tensorwright run`: run an executable, a model or a tensor expression on arrays from files."""

from __future__ import annotations

import importlib
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from tensorwright.base import Array, UsageError, sizes_text
from tensorwright.cli.arguments import arrays, options
from tensorwright.cli.arguments.options import Compilation, compile_options, open_program
from tensorwright.cli.arguments.output import check_writable
from tensorwright.runtime import HOST, Executable

_MODELS = "tensorwright.cli.arguments.models"  # imported only where models are read
_LEAST_FOR_TENTHS = 10
_PEERS = ("onnxruntime", "openvino", "pytorch")


@click.command()
@click.argument("program", metavar="EXECUTABLE|MODEL|MODULE:EXPR")
@click.option(
    "--input",
    "given",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="An array for an input: NAME=FILE.npy, NAME=FILE.npz or NAME=random; FILE.npz for all "
    "inputs that it holds; random for all other inputs.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT.npy|OUT.npz",
    help="The file for the output (.npy), or for all outputs by name (.npz).",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run N times after the first run, and say how long a run takes.",
)
@click.option(
    "--check-against",
    "peer",
    type=click.Choice(_PEERS),
    help="Also run the model there, and compare; exits with 1 if the answers differ.",
)
@click.option("--model", metavar="MODEL", help="The model of the EXECUTABLE, for --check-against.")
@options.at_option
@options.constants_option
@compile_options
def command(
    program: str,
    given: tuple[str, ...],
    output: str | None,
    repeat: int | None,
    peer: str | None,
    model: str | None,
    at: dict[str, int],
    constants: Path | None,
    how: Compilation,
) -> None:
    """Run an executable; a model or a tensor expression is compiled first.

    Example: tensorwright run model.tw --input x=x.npy -o out.npz
    """
    check_writable(output, program, *given, constants, model, how.records_path)
    source = _model_to_check(program, model) if peer is not None else None
    if peer is None:
        options.refuse_given(("model",), because="it names the model that --check-against runs")
    executable = open_program(program, how, constants, draws=False)
    if output is not None:
        arrays.check_arrays_path(output, [spec.name for spec in executable.outputs])
    chosen = executable.chosen_sizes(**at)
    is_drawn = any(text.endswith(arrays.RANDOM) for text in given)
    if given and not is_drawn:
        options.refuse_given(("at",), because="no input is random, and the arrays have their sizes")
    specs = executable.at(**chosen).inputs if chosen and is_drawn else executable.inputs
    inputs = arrays.read_inputs(given, specs, how.seed, executable.inputs)
    if is_drawn and chosen.keys() - at.keys():
        click.echo(f"sizes of random inputs: {sizes_text(chosen)}; --at names others", err=True)
    results = executable.run(inputs)
    for name, array in results.items():
        click.echo(f"{name}: {arrays.describe(array)}")
    if output is not None:
        arrays.write_arrays(output, results)
    if repeat is not None:
        click.echo(describe_times(executable, time_runs(executable, inputs, repeat)))
    if peer is not None and not importlib.import_module(_MODELS).agrees(
        peer, source, how, executable.threads, inputs, results
    ):
        sys.exit(1)


def _model_to_check(program: str, model: str | None) -> str:
    """The model that another runtime runs; it is checked before the work."""
    kind = options.kind_of(program)
    if kind is options.ProgramKind.EXECUTABLE:
        if model is None:
            raise UsageError(
                stage="cli",
                where="option --check-against",
                reason=f"{program} is {kind}: another runtime cannot run it",
                remedy="name the model from which it was compiled: --model MODEL",
            )
    elif model is not None:
        options.refuse_given(("model",), because=f"{program} is {kind}, not an executable")
    elif kind is options.ProgramKind.EXPRESSION:
        options.refuse_given(
            ("peer",), because=f"{program} is {kind}: another runtime cannot run it"
        )
    source = model or program
    importlib.import_module(_MODELS).check_model(source)
    return source


def time_runs(
    executable: Executable, inputs: Mapping[str, Array], repeat: int
) -> tuple[float, ...]:
    """The seconds that a caller waits for each call; checks of inputs are included."""
    return tuple(HOST.time(partial(executable.run, inputs)) for _ in range(repeat))


def describe_times(executable: Executable, times_s: Sequence[float]) -> str:
    """A line with the median and the spread of times."""
    ordered = sorted(times_s)
    threads = f"{executable.threads} thread{'s' * (executable.threads != 1)}"
    median = f"{_ms(statistics.median(ordered))} ms a run on {threads}"
    if len(ordered) == 1:
        return f"{median}, one sample"
    low, high, spread = ordered[0], ordered[-1], "fastest to slowest"
    if len(ordered) >= _LEAST_FOR_TENTHS:
        tenths = statistics.quantiles(ordered, n=10)
        low, high, spread = tenths[0], tenths[-1], "10 % to 90 %"
    return f"{median}, median of {len(ordered)}; {_ms(low)} to {_ms(high)} ({spread})"


def _ms(time_s: float) -> str:
    return f"{time_s * 1e3:.4g}"
