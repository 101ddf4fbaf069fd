"""Loop algorithms in networks are kernels of the plan, built once each; NumPy has the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.targets import native_target

import tensorwright
from tensorwright.base import DType
from tensorwright.build import read_step_names
from tensorwright.graph import Graph, GraphBuilder, interpret, simplify
from tensorwright.runtime import Executable, KernelStep

RANDOM = np.random.default_rng(3)
ROWS = RANDOM.standard_normal((9, 40)).astype(np.float32)
UPDATES = RANDOM.standard_normal((5, 40)).astype(np.float32)
INPUTS = {"rows": ROWS, "places": RANDOM.integers(-9, 9, (5, 1)), "updates": UPDATES}


def network(kept: int) -> Graph:
    """Two scatterings of one kind, and a selection between kernels."""
    b = GraphBuilder("routing")
    rows, updates = b.input("rows", (9, 40)), b.input("updates", (5, 40))
    places = b.input("places", (5, 1), DType.I64)
    once = b.add("scatter_nd", b.add("relu", rows), places, updates, reduction="add")
    twice = b.add("scatter_nd", once, places, b.add("exp", updates), reduction="add")
    best, indices = b.apply("topk", (twice,), k=kept)
    return b.finish([b.add("neg", best), indices])


def check(executable: Executable, graph: Graph) -> None:
    expected = interpret(graph, INPUTS)
    for name, array in executable.run(INPUTS).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-5)


def test_they_are_kernels_between_kernels(tmp_path: Path) -> None:
    graph = simplify(network(4))
    executable = tensorwright.compile(graph, target=native_target(), threads=2)
    assert executable.host_operators == ()
    labels = [step.label for step in executable.plan.steps if isinstance(step, KernelStep)]
    assert [label for label in labels if label in ("scatter_nd", "topk")] == [
        *("scatter_nd", "scatter_nd", "topk"),
    ]
    scattered = {s.kernel for s in executable.plan.steps if s.label == "scatter_nd"}
    assert len(scattered) == 1
    assert len(executable.plan.kernels) == len(executable.objects)
    names = read_step_names(executable.sources).steps
    assert [len(each.outputs) for each in names] == [1, 1, 1, 1, 2, 1]
    check(executable, graph)
    executable.save(tmp_path / "routing.tw")
    check(tensorwright.load(tmp_path / "routing.tw", threads=1), graph)


def test_a_long_list_is_sorted_by_the_host() -> None:
    b = GraphBuilder("long")
    b.input("rows", (2, 400))
    graph = b.finish(b.apply("topk", ("rows",), k=300))
    executable = tensorwright.compile(graph, target=native_target(), threads=1)
    assert executable.host_operators == ("topk",)
    rows = RANDOM.standard_normal((2, 400)).astype(np.float32)
    values = executable.run({"rows": rows})[graph.outputs[0]]
    np.testing.assert_array_equal(values, np.sort(rows)[:, ::-1][:, :300])
