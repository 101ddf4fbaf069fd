"""Check compiled programs of named sizes, and graphs that rules lead to, at several values of the
sizes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorwright.artifacts import assemble_workload, build_kernel, loop_program
from tensorwright.base import Array, CpuTarget, TensorwrightError, UnsupportedError
from tensorwright.expr import Index, NamedSize
from tensorwright.graph import (
    Graph,
    Workload,
    bind_sizes,
    bind_workload,
    interpret,
    random_inputs,
    reference,
    representative,
    simplify,
)
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.loop import with_symbols
from tensorwright.pipeline import compile
from tensorwright.schedule import Schedule, Trace, state_of
from tensorwright.tuning.population import make_space_tables, sample
from tensorwright.tuning.space import space_of
from tensorwright_lab.judging.searched_graphs import SEARCHES, cases_of, check_cases, check_searched
from tensorwright_lab.loop_interpreter import interpret as run_loops
from tensorwright_lab.zoo.plausible.opening import near

_TRIALS = 3  # the ends of the bounds, and a number between
_RELATIVE, _ABSOLUTE = 2e-3, 2e-4
_IN_FILES = 1e-6  # numbers in attributes of ONNX are of 32 bits
_MOST_STEPS = 40_000  # elements that the interpreter of loops computes


def check_network(graph: Graph, values: Mapping[str, int], seed: int) -> None:
    """Compile an open graph once, and compare its results with the interpreter's.

    values   a typical number for each size
    Raises:  AssertionError with the sizes for results that differ.
    """
    executable = compile(graph)
    sizes = _chosen_sizes(graph, values, seed)
    for trial, given in enumerate((*sizes, sizes[0])):
        inputs = random_inputs(bind_sizes(graph, given), trial)
        expected = interpret(graph, inputs)
        for name, array in executable.run(inputs).items():
            _compare(array, expected[name], f"{name} with {given}")


def _chosen_sizes(graph: Graph, values: Mapping[str, int], seed: int) -> list[dict[str, int]]:
    """Sizes at the ends of their bounds, and between."""
    chance = random.Random(seed)
    choices = {size.name: near(size, values[size.name], chance) for size in graph.sizes}
    return [{name: each[trial] for name, each in choices.items()} for trial in range(_TRIALS)]


@dataclass(frozen=True, slots=True)
class RewrittenGraphs:
    """How many graphs the searches for one returned, the rules of their certificates, and how many
    ONNX files were read back as the same function.
    """

    count: int
    rules: frozenset[str]
    files: int


def check_rewriting(graph: Graph, values: Mapping[str, int], seed: int) -> RewrittenGraphs:
    """Search from an open graph by all searches and costs that are drawn; compare the resulting
    graphs with it, at several sizes, and replay the certificates.  The graph that was changed by
    the most rules is written as ONNX and read, compiled, and compared again.

    Raises:  AssertionError with the sizes for results that differ.
    """
    source = simplify(graph)
    sizes = _chosen_sizes(graph, values, seed)
    cases = cases_of(source, sizes)
    results = [
        check_searched(source, cases, saturation, outputs)
        for search in SEARCHES
        for saturation, outputs in search(source, random.Random(seed))
    ]
    most = max(results, key=lambda each: len(each.certificate.steps))
    rules = frozenset(name for each in results for name in each.certificate.rules)
    try:
        model = to_onnx(most.graph)
    except UnsupportedError:
        return RewrittenGraphs(len(results), rules, 0)
    back = load_onnx(model)
    assert [(s.name, s.constraints) for s in back.sizes] == [
        (s.name, s.constraints) for s in most.graph.sizes
    ]
    check_cases(back, cases, _IN_FILES)
    if most.certificate.steps:
        check_network(most.graph, values, seed)
    return RewrittenGraphs(len(results), rules, 1)


def random_traces(workload: Workload, target: CpuTarget, count: int, seed: int) -> list[Trace]:
    """Traces of a workload's typical instance, drawn from its space."""
    typical = bind_workload(workload, representative(workload.sizes))
    space = space_of(state_of(typical), target)
    drawn = sample(make_space_tables(space), count, np.random.default_rng(seed))
    traces = []
    for sketch_number, genes in zip(drawn.sketch.tolist(), drawn.genes, strict=True):
        sketch = space.sketches[sketch_number]
        chosen = tuple(genes[: len(sketch.choices)].tolist())
        traces.append(sketch.bound(sketch.decisions_of(chosen)))
    return traces


def check_trace(workload: Workload, trace: Schedule, target: CpuTarget, seed: int) -> bool:
    """Build an open workload by a schedule, and compare with its meaning at several sizes, by the
    machine and by the interpreter of loops.  False where it cannot be built.

    Raises:  AssertionError with the sizes for results that differ.
    """
    chance, typical = random.Random(seed), representative(workload.sizes)
    try:
        kernel = build_kernel(workload, trace, target)
    except TensorwrightError:
        return False
    generator = np.random.default_rng(seed)
    choices = {size.name: near(size, typical[size.name], chance) for size in workload.sizes}
    constants = _constants(workload, generator)
    executable = assemble_workload(workload, kernel, target, 2, constants)
    for trial in range(_TRIALS):
        given = {name: numbers[trial] for name, numbers in choices.items()}
        bound = bind_workload(workload, given)
        arrays = _arrays(bound, constants, generator)
        names = [tensor.name for tensor in bound.inputs]
        named = dict(zip(names, arrays, strict=True))
        expected = reference(bound, arrays)
        inputs = {name: array for name, array in named.items() if name not in constants}
        results = executable.at(**given).run(inputs)
        for tensor, wanted in zip(bound.outputs, expected, strict=True):
            _compare(results[tensor.name], wanted, f"{tensor.name} with {given}")
        if sum(array.size for array in (*arrays, *expected)) > _MOST_STEPS:
            continue
        atoms: dict[NamedSize, Index] = {s: given[s.name] // s.divisor for s in workload.sizes}
        program = with_symbols(loop_program(workload, trace, target), atoms)
        for name, array in run_loops(program, named).items():
            wanted = dict(zip((t.name for t in bound.outputs), expected, strict=True))[name]
            _compare(array, wanted, f"{name} by the interpreter with {given}")
    return True


def _constants(workload: Workload, generator: np.random.Generator) -> dict[str, Array]:
    return {
        tensor.name: _array(type_.extents, type_.dtype.numpy, generator)
        for tensor, type_ in zip(workload.inputs, workload.input_types, strict=True)
        if tensor.name in workload.constants
    }


def _arrays(
    bound: Workload, constants: Mapping[str, Array], generator: np.random.Generator
) -> tuple[Array, ...]:
    return tuple(
        constants.get(tensor.name, _array(type_.extents, type_.dtype.numpy, generator))
        for tensor, type_ in zip(bound.inputs, bound.input_types, strict=True)
    )


def _array(
    shape: Sequence[int], dtype: np.dtype[np.generic], generator: np.random.Generator
) -> Array:
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def _compare(given: Array, wanted: Array, text: str) -> None:
    numbers: tuple[Any, Any] = (given, wanted)
    np.testing.assert_allclose(*numbers, rtol=_RELATIVE, atol=_ABSOLUTE, err_msg=text)
