"""Turn a program argument into a graph, workloads or an executable, for all commands.

A program is a model or a tensor expression; `run`, `profile` and `inspect` take executables, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tensorwright import pipeline
from tensorwright.base import TensorwrightError, UsageError, did_you_mean
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.arrays import read_arrays
from tensorwright.cli.arguments.models import read_graph
from tensorwright.cli.arguments.options import Compilation
from tensorwright.compiling import compile
from tensorwright.expr import Compute
from tensorwright.graph import Graph, Partition, Workload, program
from tensorwright.ops import Array
from tensorwright.records import RecordStore, opened
from tensorwright.runtime import Executable, TensorSpec, random_array


def read_program(reference: str) -> Workload:
    """The tensor expression that MODULE:EXPR names.

    EXPR is a tensor, a tuple of tensors, the result of `tensorwright.program`, or a function
    without arguments that returns one of these.
    Raises:  UsageError if there is none.
    """
    value = read_object(reference)
    if callable(value) and not isinstance(value, Compute | Workload):
        value = _call(reference, value)
    if isinstance(value, Workload):
        return value
    tensors = value if isinstance(value, tuple | list) else (value,)
    if not tensors or not all(isinstance(each, Compute) for each in tensors):
        raise _error(
            reason=f"it is of type {type(value).__name__}, not a tensor expression",
            where=reference,
            remedy="name a tensor, a tuple of tensors, or a function that returns one of these",
        )
    return program(tuple(tensors), name=reference.rpartition(":")[2])


def read_function(reference: str) -> Callable[..., Any]:
    """The function that MODULE:NAME names."""
    value = read_object(reference)
    if not callable(value):
        reason = f"it is of type {type(value).__name__}, not a function"
        raise _error(reference, reason, "name a function")
    function: Callable[..., Any] = value
    return function


def read_object(reference: str) -> object:
    """The object that MODULE:NAME names.

    MODULE is a Python file or a dotted name. Python also looks for a dotted name in the current
    folder. NAME may be dotted.
    Raises:  UsageError if the module cannot be imported or has no such name.
    """
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise _error(reference, "it is not of the form MODULE:NAME", "for example own.py:layer")
    value: object = _import(reference, module_name)
    for part in attribute.split("."):
        if not hasattr(value, part):
            names = [name for name in vars(value) if not name.startswith("_")]
            remedy = did_you_mean(part, names, f"it defines {', '.join(names) or 'nothing'}")
            raise _error(reference, f"{module_name} has no {attribute}", remedy)
        value = getattr(value, part)
    return value


def _import(reference: str, name: str) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _import_file(Path(name))
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        return importlib.import_module(name)
    except TensorwrightError:
        raise
    except Exception as error:
        reason = f"{name} cannot be imported: {type(error).__name__}: {error}"
        remedy = f"correct {name}: Python stops in it"
        if isinstance(error, FileNotFoundError | ModuleNotFoundError):
            remedy = "give a module that Python finds from this folder, or a file: own.py:NAME"
        raise _error(reference, reason, remedy) from error


def _import_file(path: Path) -> ModuleType:
    name = f"_tensorwright_program_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _call(reference: str, function: Callable[[], object]) -> object:
    try:
        return function()
    except TensorwrightError:
        raise
    except Exception as error:
        reason = f"calling it failed: {type(error).__name__}: {error}"
        needs = isinstance(error, TypeError)
        remedy = "give a function that needs no arguments" if needs else "mend the function"
        raise _error(reference, reason, remedy) from error


def _error(where: str, reason: str, remedy: str) -> UsageError:
    return UsageError(stage="tune", where=where, reason=reason, remedy=remedy)


def read_network(model: str, how: Compilation) -> Graph:
    """Import a MODEL argument and simplify it."""
    source = read_graph(model, how.input_shapes, how.seed, how.bounds, is_open=True)
    return pipeline.import_graph(source, how)


def prepare(model: str, how: Compilation, store: RecordStore | None = None) -> Partition:
    """Import a MODEL argument, simplify it and cut it into workloads.

    store   may hold a faster graph for the model; None leaves the graph as it is
    """
    graph = read_network(model, how)
    if store is not None:
        graph = pipeline.recorded_graph(store, graph, how.machine, how.threads) or graph
    return pipeline.cut(graph, how.machine, how.threads)


def read_expression(text: str) -> Workload:
    """The workload of a MODULE:EXPR argument."""
    reason = f"{text} is {options.ProgramKind.EXPRESSION}, which has its shapes and types"
    options.refuse_given(("input_shapes", "sizes", "precision", "keep"), because=reason)
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
    text: str, how: Compilation, constants: Path | None = None, *, draws: bool = False
) -> Executable:
    """Compile a model or a tensor expression with the schedules on record.

    constants, draws   as in `open_program`
    """
    if not options.is_reference(text):
        refuse_constants(text)
        kind, path = options.split(text)
        if not kind and how.on_kernel is None:
            options.refuse_other_than_model(text)
            return compile(path, how)
        with opened(how.records) as store:
            parts = prepare(text, how, store)
            return pipeline.finish(parts, how.machine, how.threads, store, how.on_kernel)
    workload = read_expression(text)
    values = read_constants(workload, text, constants, how.seed if draws else None)
    return compile(workload, replace(how, constants=values))


def refuse_constants(model: str) -> None:
    """Refuse --constants for a model, which has its own constants."""
    options.refuse_given(("constants",), because=f"{model} is a model, which has its own constants")
