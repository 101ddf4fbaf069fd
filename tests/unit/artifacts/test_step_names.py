"""What an executable keeps of the network's names."""

from __future__ import annotations

import numpy as np
from tests.targets import native_target

from tensorwright.artifacts import StepName, StepNames, read_step_names, step_names
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.pipeline import compile, prepare


def network() -> Graph:
    """A product under another shape, times another matrix."""
    builder = GraphBuilder("named")
    x = builder.input("x", (4, 16))
    weights = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    y = builder.add("matmul", x, builder.constant(weights, "w"))
    flat = builder.add("reshape", y, shape=(8, 8))
    return builder.finish([builder.add("matmul", flat, builder.constant(weights[:8, :8], "v"))])


def test_steps_and_views_are_named() -> None:
    parts = prepare(network(), native_target())
    names = step_names(parts)
    assert [each.workload for each in names.steps] == [w.key for w in parts.workloads]
    (view,) = names.views
    assert view.operator == "reshape"
    assert view.inputs == names.steps[0].outputs
    assert view.before == 1
    program = compile(network(), threads=1)
    assert read_step_names(program.sources) == names


def test_an_executable_without_names_has_none() -> None:
    assert read_step_names({}) == StepNames()
    assert StepNames() != StepNames((StepName(("x",), ""),))
