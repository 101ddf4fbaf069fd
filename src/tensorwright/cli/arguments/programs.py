"""Turn a program argument into a graph, workloads or an executable, for all commands.

A program is a model or a tensor expression; `run`, `profile` and `inspect` take executables, too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tensorwright.base import UsageError
from tensorwright.cli.arguments.arrays import read_arrays
from tensorwright.cli.arguments.compilation import Compilation
from tensorwright.cli.arguments.kinds import (
    ProgramKind,
    is_reference,
    refuse_other_than_model,
    split,
)
from tensorwright.cli.arguments.models import read_graph
from tensorwright.cli.arguments.options import refuse_given
from tensorwright.cli.arguments.references import read_program
from tensorwright.compiling import compile
from tensorwright.graph import Graph, Partition, Workload
from tensorwright.ops import Array
from tensorwright.pipeline import (
    OnKernel,
    compile_program,
    cut,
    finish,
    import_graph,
    recorded_graph,
)
from tensorwright.records import RecordStore, opened
from tensorwright.runtime import Executable, TensorSpec, random_array


def read_network(model: str, how: Compilation) -> Graph:
    """Import a MODEL argument and simplify it."""
    return import_graph(read_graph(model, how.shapes, how.seed, how.sizes, is_open=True))


def prepare(model: str, how: Compilation, store: RecordStore | None = None) -> Partition:
    """Import a MODEL argument, simplify it and cut it into workloads.

    store   may hold a faster graph for the model; None leaves the graph as it is
    """
    graph = read_network(model, how)
    if store is not None:
        graph = recorded_graph(store, graph, how.target, how.threads) or graph
    return cut(graph, how.target, how.threads)


def read_expression(text: str) -> Workload:
    """The workload of a MODULE:EXPR argument.

    Raises:  UsageError if there is none, and for options that apply only to models.
    """
    reason = f"{text} is {ProgramKind.EXPRESSION}, which has its shapes"
    refuse_given(("input_shapes", "sizes"), because=reason)
    return read_program(text)


def read_constants(
    workload: Workload, text: str, path: Path | None, draw_seed: int | None = None
) -> dict[str, Array]:
    """The values of an expression's constants.

    path        the archive with the values; None if there is none
    draw_seed   the seed of random values for missing constants; None if all must be given
    Raises:     UsageError for a constant without a value, InputError for a file without arrays.
    """
    arrays = {} if path is None else read_arrays(str(path))
    specs = [
        TensorSpec(tensor.name, kind.dtype, kind.extents)
        for tensor, kind in zip(workload.inputs, workload.input_types, strict=True)
        if tensor.name in workload.constants and tensor.name not in arrays
    ]
    if specs and draw_seed is None:
        raise UsageError(
            stage="cli",
            where=text,
            reason="constants have no values: " + ", ".join(map(str, specs)),
            remedy="give a file that numpy.savez wrote: --constants FILE.npz",
        )
    generator = np.random.default_rng(draw_seed)
    return arrays | {spec.name: random_array(spec, generator) for spec in specs}


def compile_any(
    text: str,
    how: Compilation,
    constants: Path | None = None,
    *,
    draws: bool = False,
    on_kernel: OnKernel | None = None,
) -> Executable:
    """Compile a model or a tensor expression with the schedules on record.

    constants, draws   as in `open_program`
    """
    if not is_reference(text):
        refuse_constants(text)
        kind, path = split(text)
        if not kind and on_kernel is None:
            refuse_other_than_model(text)
            return compile(
                path,
                target=how.target,
                threads=how.threads,
                records=how.records,
                input_shapes=how.shapes,
                sizes=how.sizes,
            )
        with opened(how.records) as store:
            parts = prepare(text, how, store)
            return finish(parts, how.target, how.threads, store, on_kernel)
    workload = read_expression(text)
    values = read_constants(workload, text, constants, how.seed if draws else None)
    with opened(how.records) as store:
        return compile_program(
            workload, how.target, how.threads, store, values, on_kernel=on_kernel
        )


def refuse_constants(model: str) -> None:
    """Refuse --constants for a model, which has its own constants."""
    refuse_given(("constants",), because=f"{model} is a model, which has its own constants")
