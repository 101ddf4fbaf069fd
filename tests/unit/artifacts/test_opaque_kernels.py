"""Loop algorithms in networks are kernels of the plan, built once each; NumPy has the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.targets import native_target
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

import tensorwright
from tensorwright.artifacts import read_step_names
from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder, interpret, simplify
from tensorwright.runtime import Executable, KernelStep

pytestmark = pytest.mark.usefixtures("by_rule")

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


def scattering(
    operator: str, reduction: str, dtype: DType, asked: list[object], **more: object
) -> ModelProto:
    """One node; the extents of x are a, b and 19."""
    kind = helper.np_dtype_to_tensor_dtype(dtype.numpy)
    x = ["a", "b", 19]
    updates = ["e", "b", 19] if operator == "ScatterND" else asked
    shapes = {"x": (kind, x), "i": (TensorProto.INT64, asked), "u": (kind, updates)}
    node = helper.make_node(operator, [*shapes], ["y"], reduction=reduction, **more)
    inputs = [helper.make_tensor_value_info(name, *each) for name, each in shapes.items()]
    y = helper.make_tensor_value_info("y", kind, x)
    graph = helper.make_graph([node], "scattering", inputs, [y])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize(
    ("operator", "reduction", "dtype", "asked", "more"),
    [
        ("ScatterND", "add", DType.F32, ["e", 1], {}),
        ("ScatterND", "max", DType.F32, ["e", 1], {}),
        ("ScatterElements", "add", DType.F32, ["e", "b", 19], {"axis": 0}),
        ("ScatterElements", "min", DType.F64, ["a", "e", 19], {"axis": 1}),
        ("ScatterElements", "mul", DType.I64, ["a", "b", "e"], {"axis": -1}),
        ("ScatterElements", "none", DType.BOOL, ["a", "b", 1], {"axis": 2}),
    ],
)
def test_sizes_and_positions_are_known_when_called(
    operator: str,
    reduction: str,
    dtype: DType,
    asked: list[object],
    more: dict[str, object],
    tmp_path: Path,
) -> None:
    model = scattering(operator, reduction, dtype, asked, **more)
    bounds = {"e": "0..200"} if "e" in asked else {}
    executable = tensorwright.compile(model, target=native_target(), sizes=bounds, threads=2)
    executable.save(tmp_path / "open.tw")
    executable = tensorwright.load(tmp_path / "open.tw", threads=2)
    assert executable.host_operators == ()
    for a, b, e in [
        (1, 1, 1),
        (4, 3, 0),
        (7, 70, 200),
        (500, 9, 17),
        *RANDOM.integers(1, 60, (9, 3)),
    ]:
        sizes = {"a": a, "b": b, "e": e}
        x = (a, b, 19)
        shape = tuple(sizes.get(each, each) for each in asked)  # type: ignore[call-overload]
        extent = x[int(str(more.get("axis", 0)))]
        places = RANDOM.integers(-extent, extent, shape)
        if reduction == "none":  # ONNX leaves open which of equal positions stays
            places %= 1
        given = (x, (e, b, 19) if operator == "ScatterND" else shape)
        arrays = [RANDOM.integers(-3, 4, each).astype(dtype.numpy) for each in given]
        inputs = {"x": arrays[0], "i": places, "u": arrays[1]}
        (expected,) = by_onnxruntime(model, inputs)
        np.testing.assert_array_equal(executable.run(inputs)["y"], expected)


@pytest.mark.parametrize("name", ["a", "e"])
def test_nothing_is_stored_where_there_are_no_rows(name: str) -> None:
    """Nor is the kernel of such a size the one that is kept for a size of at least 1."""
    model = scattering("ScatterND", "add", DType.F32, ["e", 1])
    for least in (1, 0):
        sizes = {name: f"{least}..9"}
        executable = tensorwright.compile(model, target=native_target(), sizes=sizes, threads=1)
    a, e = (0, 3) if name == "a" else (4, 0)
    rows, updates = np.ones((a, 2, 19), np.float32), np.ones((e, 2, 19), np.float32)
    given = {"x": rows, "i": np.zeros((e, 1), np.int64), "u": updates}
    np.testing.assert_array_equal(executable.run(given)["y"], rows)


def test_a_long_list_is_sorted_by_the_host() -> None:
    b = GraphBuilder("long")
    b.input("rows", (2, 400))
    graph = b.finish(b.apply("topk", ("rows",), k=300))
    executable = tensorwright.compile(graph, target=native_target(), threads=1)
    assert executable.host_operators == ("topk",)
    rows = RANDOM.standard_normal((2, 400)).astype(np.float32)
    values = executable.run({"rows": rows})[graph.outputs[0]]
    np.testing.assert_array_equal(values, np.sort(rows)[:, ::-1][:, :300])
