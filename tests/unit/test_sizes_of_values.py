"""Sizes that values decide, from the model to results of their true shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import ModelProto
from tests.unit.branching_models import BOOL, FLOAT, INT, graph, model, node, weights
from tests.unit.graph.onnx.onnx_models import by_onnxruntime
from tests.unit.graph.onnx.torch_networks import Network, exported
from torch import Tensor, nn

import tensorwright
from tensorwright.base import InputError, UnsupportedError, UsageError, override
from tensorwright.compile_options import USUAL
from tensorwright.drivers.c_library import export_c
from tensorwright.graph import (
    bind_partition,
    bind_sizes,
    interpret,
    representative,
    simplify,
    verify,
)
from tensorwright.graph.imports import load_onnx
from tensorwright.pipeline import prepare
from tensorwright.records import opened
from tensorwright_lab.graph_text import parse

pytestmark = pytest.mark.usefixtures("by_rule")

RANDOM = np.random.default_rng(3)
Call = Mapping[str, Any]


def numbers(*values: int) -> Any:
    """A 1-D tensor of integers."""
    return np.array(values, np.int64)


def rows_of_nonzero(rows: int | str = 10) -> ModelProto:
    """y = x[mask] @ w, and where the mask holds."""
    nodes = [
        node("NonZero", "mask", "where"),
        node("Squeeze", "where first", "rows"),
        node("Gather", "x rows", "chosen"),
        node("MatMul", "chosen w", "y"),
    ]
    inputs = [("mask", BOOL, (rows,)), ("x", FLOAT, (rows, 16))]
    outputs = [("y", FLOAT, ("k", 8)), ("where", INT, (1, "k"))]
    whole = graph("rows", nodes, inputs, *outputs)
    return model(whole, {"w": weights(1, 16, 8), "first": numbers(0)})


def masks(*counts: int) -> list[Call]:
    """Calls of `rows_of_nonzero` whose masks hold nowhere, in part and everywhere."""
    shares = (0.0, 0.3, 1.0)
    return [
        {"mask": RANDOM.random(n) < share, "x": weights(n, n, 16)}
        for n in counts
        for share in shares
    ]


def detection(batch: int | str, boxes: int | str) -> ModelProto:
    """The best boxes of three classes, and what is computed of them."""
    nodes = [
        node("NonMaxSuppression", "boxes scores most iou least", "selected", "best"),
        node("Gather", "selected class", "label", axis=1),
        node("Gather", "selected columns", "places", axis=1),
        node("GatherND", "boxes places", "kept"),
        node("MatMul", "kept w", "features"),
        node("GatherND", "scores selected", "score"),
        node("Shape", "score", "n"),
        node("Min", "n five", "k"),
        node("TopK", "score k", "top order"),
    ]
    inputs = [
        ("boxes", FLOAT, (batch, boxes, 4)),
        ("scores", FLOAT, (batch, 3, boxes)),
        ("least", FLOAT, (1,)),
    ]
    outputs = [
        ("selected", INT, ("n", 3)),
        ("label", INT, ("n", 1)),
        ("features", FLOAT, ("n", 7)),
        ("top", FLOAT, ("k",)),
    ]
    whole = graph("detection", nodes, inputs, *outputs)
    constants = {
        "most": numbers(6),
        "iou": np.array([0.4], np.float32),
        "class": numbers(1),
        "columns": numbers(0, 2),
        "w": weights(2, 4, 7),
        "five": numbers(5),
    }
    return model(whole, constants)


def scenes(count: int, batch: int = 0, boxes: int = 0) -> list[Call]:
    """Calls of `detection`, of random sizes where none are given: all boxes, some, or none pass."""
    calls = []
    for number in range(count):
        n, k = batch or int(RANDOM.integers(1, 4)), boxes or int(RANDOM.integers(1, 40))
        corner = RANDOM.random((n, k, 2)) * 3
        given = np.concatenate([corner, corner + RANDOM.random((n, k, 2))], axis=2)
        least = np.array([(-1.0, 0.3, 0.9, 2.0)[number % 4]], np.float32)
        scores = RANDOM.random((n, 3, k)).astype(np.float32)
        calls.append({"boxes": given.astype(np.float32), "scores": scores, "least": least})
    return calls


def one_node(operator: str, inputs: str, given: Sequence[Any], outputs: Any, **more: Any) -> Any:
    """A model of one operator, whose first result is doubled."""
    constants = more.pop("constants", {})
    names = " ".join(name for name, *_ in outputs)
    first = outputs[0]
    nodes = [
        node(operator, inputs, names, "here", **more),
        node("Add", f"{first[0]} {first[0]}", "z"),
    ]
    whole = graph(operator, nodes, given, ("z", *first[1:]), *outputs[1:])
    return model(whole, constants)


ENDS = [("x", FLOAT, ("n", 5)), ("start", INT, (1,)), ("end", INT, (1,))]
CUTS = [
    {"x": weights(n, n, 5), "start": numbers(start), "end": numbers(end)}
    for n in (1, 4, 9)
    for start, end in ((0, 3), (-3, 99), (2, -1), (5, 2), (-99, -1), (8, -99))
]


def sliced(step: int) -> ModelProto:
    """A slice from one input to another."""
    constants = {"axis": numbers(0), "step": numbers(step)}
    outputs = [("y", FLOAT, ("k", 5))]
    return one_node("Slice", "x start end axis step", ENDS, outputs, constants=constants)


def ranged(kind: int) -> ModelProto:
    """A range whose ends are inputs."""
    given = [(name, kind, ()) for name in ("start", "limit", "delta")]
    return one_node("Range", "start limit delta", given, [("y", kind, ("k",))])


def ends(kind: Any, *triples: tuple[float, float, float]) -> list[Call]:
    """Calls of `ranged`."""
    names = ("start", "limit", "delta")
    return [dict(zip(names, (np.array(v, kind) for v in each), strict=True)) for each in triples]


def expanded() -> ModelProto:
    """A row as often as an input says, with zeros and repetitions of the same number."""
    nodes = [
        node("Concat", "count width", "shape", axis=0),
        node("Expand", "x shape", "y", "here"),
        node("ConstantOfShape", "shape", "zeros"),
        node("Tile", "x shape", "tiles"),
        node("Add", "y zeros", "z"),
    ]
    inputs = [("x", FLOAT, (1, 4)), ("count", INT, (1,))]
    outputs = [("z", FLOAT, ("k", 4)), ("tiles", FLOAT, ("k", 16))]
    return model(graph("expanded", nodes, inputs, *outputs), {"width": numbers(4)})


def read_by_many() -> ModelProto:
    """Folds over the chosen rows, along them, and products of them."""
    nodes = [
        node("Compress", "x mask", "rows", axis=0),
        node("Softmax", "rows", "softmax", axis=0),
        node("ReduceSum", "rows first", "sum", keepdims=0),
        node("Concat", "rows x", "joined", axis=0),
        node("Transpose", "rows", "turned", perm=[1, 0]),
        node("MatMul", "turned rows", "gram"),
        node("CumSum", "rows axis", "running"),
        node("Reshape", "rows flat", "line"),
        node("ArgMax", "rows", "best", axis=1, keepdims=0),
    ]
    outputs = [
        ("softmax", FLOAT, ("k", 4)),
        ("sum", FLOAT, (4,)),
        ("joined", FLOAT, ("j", 4)),
        ("gram", FLOAT, (4, 4)),
        ("running", FLOAT, ("k", 4)),
        ("line", FLOAT, ("l",)),
        ("best", INT, ("k",)),
    ]
    inputs = [("x", FLOAT, ("n", 4)), ("mask", BOOL, ("n",))]
    constants = {"first": numbers(0), "axis": np.array(0), "flat": numbers(-1)}
    return model(graph("many", nodes, inputs, *outputs), constants)


def best_of_two() -> ModelProto:
    """The best ten, or fewer, of two choices of rows."""
    nodes = [
        node("Compress", "x one", "a", axis=0),
        node("Compress", "x other", "b", axis=0),
        node("Concat", "a b", "both", axis=0),
        node("Gather", "both zero", "score", axis=1),
        node("Shape", "score", "count"),
        node("Min", "count ten", "k"),
        node("TopK", "score k", "top order"),
        node("Gather", "both order", "best", axis=0),
        node("MatMul", "best w", "y"),
    ]
    inputs = [("x", FLOAT, ("n", 4)), ("one", BOOL, ("n",)), ("other", BOOL, ("n",))]
    constants = {"zero": np.array(0), "ten": numbers(10), "w": weights(3, 4, 3)}
    return model(graph("best", nodes, inputs, ("y", FLOAT, ("k", 3))), constants)


def pooled_by_size() -> ModelProto:
    """Large regions are pooled from one image, small ones from another, and put in order again."""
    nodes = [
        node("Gather", "regions three", "end", axis=1),
        node("Greater", "end half", "large"),
        node("Not", "large", "small"),
    ]
    for which, image in (("large", "coarse"), ("small", "fine")):
        nodes += [
            node("NonZero", which, f"{which}_at"),
            node("Squeeze", f"{which}_at first", f"{which}_rows"),
            node("Gather", f"regions {which}_rows", f"{which}_regions"),
            node("Shape", f"{which}_rows", f"{which}_count"),
            node("ConstantOfShape", f"{which}_count", f"{which}_zeros"),
            node("Cast", f"{which}_zeros", f"{which}_image", to=INT),
            node(
                "RoiAlign",
                f"{image} {which}_regions {which}_image",
                f"{which}_pooled",
                output_height=2,
                output_width=2,
                sampling_ratio=2,
            ),
        ]
    nodes += [
        node("Concat", "large_pooled small_pooled", "pooled", axis=0),
        node("Concat", "large_rows small_rows", "rows", axis=0),
        node("Shape", "rows", "count"),
        node("TopK", "rows count", "sorted back", largest=0),
        node("Gather", "pooled back", "y"),
    ]
    inputs = [("regions", FLOAT, ("n", 4)), ("coarse", FLOAT, (1, 3, 8, 8))]
    inputs.append(("fine", FLOAT, (1, 3, 16, 16)))
    constants = {"three": np.array(3), "half": np.array([5], np.float32), "first": numbers(0)}
    return model(graph("pooled", nodes, inputs, ("y", FLOAT, ("m", 3, 2, 2))), constants)


def regions_of(*counts: int) -> list[Call]:
    """Calls of `pooled_by_size`."""
    images = {"coarse": weights(1, 1, 3, 8, 8), "fine": weights(2, 1, 3, 16, 16)}
    corners = [RANDOM.random((count, 2)) * 3 for count in counts]
    boxes = [np.concatenate([at, at + 1 + RANDOM.random(at.shape) * 4], 1) for at in corners]
    return [{"regions": each.astype(np.float32), **images} for each in boxes]


UNIQUE = [("u", FLOAT, ("k",)), ("f", INT, ("k",)), ("i", INT, ("m",)), ("c", INT, ("k",))]
COLUMNS = [{"x": weights(n, 4, n), "c": RANDOM.random(n) < 0.5} for n in (1, 6, 17)]
TOP = [{"x": weights(5, 3, 9), "k": numbers(k)} for k in (0, 1, 6, 9)]
CASES: list[Any] = [
    ("rows", rows_of_nonzero(), {}, masks(10)),
    ("any rows", rows_of_nonzero("n"), {}, masks(1, 7, 40)),
    ("detection", detection(2, 20), {}, scenes(12, 2, 20)),
    ("any detection", detection("batch", "boxes"), {}, scenes(40)),
    (
        "compress",
        one_node(
            "Compress",
            "x c",
            [("x", FLOAT, (4, "n")), ("c", BOOL, ("n",))],
            [("y", FLOAT, (4, "k"))],
            axis=1,
        ),
        {},
        COLUMNS,
    ),
    (
        "unique",
        one_node("Unique", "x", [("x", FLOAT, ("n", 3))], UNIQUE),
        {},
        [{"x": RANDOM.integers(0, 4, (n, 3)).astype(np.float32)} for n in (1, 2, 9)],
    ),
    (
        "read by many",
        read_by_many(),
        {},
        [{"x": call["x"][:, :4], "mask": call["mask"]} for call in masks(1, 12, 90)],
    ),
    (
        "best of two",
        best_of_two(),
        {},
        [
            {"x": call["x"][:, :4], "one": call["mask"], "other": call["mask"][::-1].copy()}
            for call in masks(1, 5, 30)
        ],
    ),
    ("pooled by size", pooled_by_size(), {}, regions_of(1, 2, 30)),
    ("slice", sliced(1), {}, CUTS),
    ("slice backwards", sliced(-2), {}, CUTS),
    (
        "range",
        ranged(INT),
        {"here_count": "0..40"},
        ends(np.int64, (0, 5, 1), (3, 3, 1), (3, -9, -2), (-4, 20, 3), (5, 0, 1)),
    ),
    (
        "range of floats",
        ranged(FLOAT),
        {"here_count": "..90"},
        ends(np.float32, (0, 5, 1), (3, -9, -0.5), (-4, 20, 0.3), (5, 0, 1)),
    ),
    (
        "topk",
        one_node(
            "TopK",
            "x k",
            [("x", FLOAT, ("n", 9)), ("k", INT, (1,))],
            [("v", FLOAT, ("n", "k")), ("i", INT, ("n", "k"))],
        ),
        {},
        TOP,
    ),
    (
        "expand",
        expanded(),
        {"here_0": "..20"},
        [{"x": weights(4, 1, 4), "count": numbers(n)} for n in (0, 1, 7, 20)],
    ),
]


def close(results: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Equal shapes, and values but for rounding."""
    for one, other in zip(results, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("given", "sizes", "calls"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_results_are_those_of_another_runtime(
    given: ModelProto, sizes: dict[str, str], calls: Sequence[Call], tmp_path: Path
) -> None:
    with override(verify=True):
        executable = tensorwright.compile(given, sizes=sizes)
        imported = load_onnx(given, sizes=sizes)
    executable.save(tmp_path / "saved")
    loaded = tensorwright.load(tmp_path / "saved")
    for call in (*calls, *calls[::-1]):
        wanted = by_onnxruntime(given, call)
        close(list(executable.run(call).values()), wanted)
        close(list(loaded.run(call).values()), wanted)
        close(list(interpret(imported, call).values()), wanted)
    assert str(parse(str(imported), imported.constants)) == str(imported)
    assert len(executable.profile(calls[-1], repeat=2)) == len(executable.steps)


def test_calls_of_other_counts_share_one_prepared_call_and_one_executable() -> None:
    given, calls = rows_of_nonzero(), masks(10) * 2
    executable = tensorwright.compile(given, threads=2)
    bound = executable.bind(calls[0])
    for call in calls:
        for name, array in call.items():
            np.copyto(bound.inputs[name], array)
        close(list(bound.run().values()), by_onnxruntime(given, call))

    def check(number: int) -> None:
        call = calls[number % len(calls)]
        chosen = np.flatnonzero(call["mask"])
        results = executable.run(call)
        assert results["where"].tolist() == [chosen.tolist()]
        assert results["y"].shape == (len(chosen), 8)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, range(100)))


def test_results_are_written_where_the_array_of_the_caller_begins() -> None:
    executable = tensorwright.compile(rows_of_nonzero())
    call = masks(10)[1]
    wanted = executable.run(call)
    places = {"y": np.zeros((10, 8), np.float32), "where": np.zeros((1, 10), np.int64)}
    executable.run_into(call, places)
    count = len(wanted["y"])
    assert 0 < count < 10
    assert np.array_equal(places["y"][:count], wanted["y"])
    assert np.array_equal(places["where"][:, :count], wanted["where"])


def test_an_executable_for_one_size_has_room_for_what_values_decide() -> None:
    executable = tensorwright.compile(rows_of_nonzero("n"))
    call = masks(300)[2]
    one = executable.at(n=300)
    assert [str(size) for size in one.sizes] == ["where_count in 0.."]
    close(list(one.run(call).values()), by_onnxruntime(rows_of_nonzero("n"), call))


def test_the_rest_of_a_split_has_room() -> None:
    """It is longer where the size that is decided is smaller."""
    nodes = [node("Split", "x parts", "a b", "cut", axis=0), node("Relu", "b", "z")]
    inputs = [("x", FLOAT, (9, 3)), ("parts", INT, (2,))]
    outputs = [("a", FLOAT, ("k", 3)), ("z", FLOAT, ("m", 3))]
    given = model(graph("split", nodes, inputs, *outputs), {})
    executable = tensorwright.compile(given)
    for first in (0, 4, 9, 1):
        call = {"x": weights(first, 9, 3), "parts": numbers(first, 9 - first)}
        close(list(executable.run(call).values()), by_onnxruntime(given, call))
    places = {"a": np.zeros((9, 3), np.float32), "z": np.zeros((9, 3), np.float32)}
    executable.run_into(call, places)
    assert np.array_equal(places["z"][:8], executable.run(call)["z"])


def test_the_host_finds_and_the_rest_is_compiled() -> None:
    executable = tensorwright.compile(detection("batch", "boxes"))
    assert executable.host_operators == ("non_max_suppression", "topk")
    assert [str(size) for size in executable.sizes] == [
        "batch in 1..",
        "best_count in 0..",
        "boxes in 1..",
    ]
    assert [str(spec) for spec in executable.outputs][::2] == [
        "selected: i64(best_count, 3)",
        "features: f32(best_count, 7)",
    ]
    bounded = tensorwright.compile(detection(2, 20))
    assert [str(size) for size in bounded.sizes] == ["best_count in 0..36"]


def test_a_size_without_a_bound_is_refused_with_its_name_and_the_option() -> None:
    with pytest.raises(UnsupportedError) as caught:
        tensorwright.compile(ranged(INT))
    assert str(caught.value) == (
        "operator Range: node here (Range): values decide the size here_count, and nothing says"
        ' how large it may be\n  try: say it: sizes={"here_count": "..64"}, or '
        "give the input that it depends on a value"
    )
    with pytest.raises(UsageError) as unknown:
        tensorwright.compile(rows_of_nonzero(), sizes={"where_cout": "..4"})
    assert str(unknown.value) == (
        "size where_cout: the model has no size of that name\n  try: did you mean where_count?"
    )


def test_a_size_beyond_its_bounds_is_refused_when_it_is_decided() -> None:
    executable = tensorwright.compile(ranged(INT), sizes={"here_count": "2..4"})
    (fits, large, small) = ends(np.int64, (0, 4, 1), (0, 1 << 40, 1), (0, 1, 1))
    with pytest.raises(InputError) as caught:
        executable.run(large)
    assert str(caught.value) == (
        "size here_count: values make it more than 4, and there is no room for more\n  try: compile"
        ' with a greater number: sizes={"here_count": "..8"}'
    )
    with pytest.raises(InputError) as caught:
        executable.run(small)
    assert str(caught.value) == (
        "size here_count: values make it 1, but it must be at least 2\n"
        '  try: compile with a smaller number: sizes={"here_count": "1..4"}'
    )
    assert executable.run(fits)["z"].tolist() == [0, 2, 4, 6]
    wide = tensorwright.compile(expanded(), sizes={"here_0": "..9"})
    with pytest.raises(InputError, match="size here_0: the network computes -1 for it"):
        wide.run({"x": weights(1, 1, 4), "count": numbers(-1)})


def test_a_bound_that_stands_for_no_end_is_no_size_of_memory() -> None:
    nodes = [
        node("ReduceSum", "x", "total", keepdims=0),
        node("Cast", "total", "end", to=INT),
        node("Min", "end most", "last"),
        node("Range", "zero last one", "r"),
        node("Cast", "r", "y", to=FLOAT),
    ]
    whole = graph("counts", nodes, [("x", FLOAT, ("n",))], ("y", FLOAT, ("k",)))
    scalars = {"most": 10**9, "zero": 0, "one": 1}
    counts = {name: np.array(value, np.int64) for name, value in scalars.items()}
    executable = tensorwright.compile(model(whole, counts))
    assert executable.plan.arena_bytes < 1 << 24
    for count in (3, (1 << 20) + 5, 2):
        x = np.array([count], np.float32)
        for result in (executable(x), executable.run_async({"x": x}).result()["y"]):
            assert result.shape == (count,)
            assert result[-1] == count - 1


def test_a_number_that_must_have_one_value_is_checked() -> None:
    given = one_node(
        "Expand",
        "x shape",
        [("x", FLOAT, (1, 4)), ("shape", INT, (2,))],
        [("y", FLOAT, ("k", 4))],
    )
    executable = tensorwright.compile(given, sizes={"here_0": "..9", "here_1": "4"})
    call = {"x": weights(1, 1, 4), "shape": numbers(3, 4)}
    close(list(executable.run(call).values()), by_onnxruntime(given, call))
    with pytest.raises(InputError, match="size here_1: values make it"):
        executable.run({**call, "shape": numbers(3, 5)})


def test_a_number_that_is_computed_of_sizes_and_rounded_may_end_a_slice() -> None:
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "rows"),
        node("Cast", "rows", "float", to=FLOAT),
        node("Mul", "float share", "part"),
        node("Cast", "part", "end", to=INT),
    ]
    constants = {"zero": numbers(0), "share": np.array(0.3, np.float32)}
    inputs = [("x", FLOAT, ("n", 5))]
    cut = [*nodes, node("Slice", "x zero end", "y"), node("Neg", "y", "z")]
    given = model(graph("cut", cut, inputs, ("z", FLOAT, ("k", 5))), constants)
    executable = tensorwright.compile(given)
    for rows in (1, 10, 33):
        call = {"x": weights(1, rows, 5)}
        close(list(executable.run(call).values()), by_onnxruntime(given, call))
    zeros = [*nodes, node("ConstantOfShape", "end", "z")]
    given = model(graph("zeros", zeros, inputs, ("z", FLOAT, ("k",))), constants)
    with pytest.raises(UnsupportedError) as caught:
        tensorwright.compile(given)
    assert str(caught.value) == (
        "operator ConstantOfShape: node z (ConstantOfShape): nodes compute of n the size z_0, and"
        ' nothing says how large it may be\n  try: say it: sizes={"z_0": "..64"}, or '
        "give a number for n"
    )
    executable = tensorwright.compile(given, sizes={"z_0": "..9"})
    assert executable(weights(1, 10, 5)).shape == (3,)


def test_a_node_is_kept_for_the_size_that_it_decides() -> None:
    """Nothing reads the positions themselves."""
    nodes = [
        node("NonZero", "x", "where"),
        node("Shape", "where", "shape"),
        node("ConstantOfShape", "shape", "y"),
        node("Gather", "shape last", "count"),
    ]
    outputs = [("y", FLOAT, (1, "k")), ("count", INT, (1,))]
    given = model(graph("counts", nodes, [("x", FLOAT, (8,))], *outputs), {"last": numbers(1)})
    kept = verify(simplify(load_onnx(given)))
    assert [each.operator for each in kept.nodes] == ["nonzero", "full", "full"]
    executable = tensorwright.compile(given)
    for count in (0, 3, 8):
        call = {"x": (np.arange(8) < count).astype(np.float32)}
        close(list(executable.run(call).values()), by_onnxruntime(given, call))


def test_the_same_positions_are_one_size() -> None:
    nodes = [
        node("NonZero", "mask", "one"),
        node("NonZero", "mask", "other"),
        node("Add", "one other", "y"),
    ]
    whole = graph("twice", nodes, [("mask", BOOL, (4, 5))], ("y", INT, (2, "k")))
    imported = load_onnx(model(whole, {}))
    assert [each.operator for each in imported.nodes] == ["nonzero", "add"]


def test_a_loop_over_any_number_of_rows_may_end_early() -> None:
    """The sizes of the inputs say how many rows it collects at most."""
    steps = [
        node("Gather", "x i", "row"),
        node("ReduceSum", "row", "sum", keepdims=0),
        node("Less", "sum limit", "again"),
    ]
    given = [("i", INT, ()), ("c", BOOL, ())]
    body = graph("body", steps, given, ("again", BOOL, ()), ("row", FLOAT, (4,)))
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "count"),
        node("Loop", "count yes", "rows", "walk", body=body),
    ]
    inputs = [("x", FLOAT, ("n", 4)), ("limit", FLOAT, ())]
    constants = {"zero": np.array(0), "yes": np.array(True)}
    walk = model(graph("early", nodes, inputs, ("rows", FLOAT, ("k", 4))), constants)
    executable = tensorwright.compile(walk)
    assert [str(size) for size in executable.sizes] == ["n in 1..", "walk_trips in 0.."]
    for rows, limit in ((30, 20.0), (3, 99.0), (300, 1e9)):
        call = {"x": np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)}
        call["limit"] = np.array(limit, np.float32)
        close(list(executable.run(call).values()), by_onnxruntime(walk, call))


def test_sizes_inside_of_branches_and_loops() -> None:
    """A branch and each iteration find other rows, whose sum goes on."""
    steps = [
        node("Greater", "x turn", "mask"),
        node("Compress", "x mask", "chosen", "pick"),
        node("ReduceSum", "chosen", "sum", keepdims=0),
    ]
    body = graph(
        "body",
        [node("Cast", "i", "turn", to=FLOAT), *steps, node("Identity", "c", "again")],
        [("i", INT, ()), ("c", BOOL, ())],
        ("again", BOOL, ()),
        ("sum", FLOAT, ()),
    )
    then = graph(
        "then",
        [node("Compress", "x late", "few", "in_branch"), node("ReduceMax", "few", "a", keepdims=0)],
        (),
        ("a", FLOAT, ()),
    )
    otherwise = graph("else", [node("ReduceMin", "x", "b", keepdims=0)], (), ("b", FLOAT, ()))
    nodes = [
        node("Loop", "trips yes", "sums", "walk", body=body),
        node("If", "yes", "end", then_branch=then, else_branch=otherwise),
    ]
    inputs = [
        ("x", FLOAT, (9,)),
        ("trips", INT, ()),
        ("yes", BOOL, ()),
        ("late", BOOL, (9,)),
    ]
    outputs = [("sums", FLOAT, ("t",)), ("end", FLOAT, ())]
    given = model(graph("nested", nodes, inputs, *outputs), {})
    executable = tensorwright.compile(given, sizes={"walk_trips": "..9"})
    x = np.arange(9, dtype=np.float32)
    late = x > 5
    for trips, yes in ((4, True), (0, False), (9, True)):
        call = {"x": x, "trips": np.array(trips), "yes": np.array(yes), "late": late}
        close(list(executable.run(call).values()), by_onnxruntime(given, call))


def test_a_branch_is_taken_by_the_number_of_results() -> None:
    sides = [
        graph(name, [node(operator, tensor, name, keepdims=0)], (), (name, FLOAT, ()))
        for name, operator, tensor in (("a", "ReduceMax", "kept"), ("b", "ReduceMin", "x"))
    ]
    nodes = [
        node("Compress", "x mask", "kept"),
        node("Size", "kept", "count"),
        node("Greater", "count zero", "any"),
        node("If", "any", "y", then_branch=sides[0], else_branch=sides[1]),
    ]
    inputs = [("x", FLOAT, ("n",)), ("mask", BOOL, ("n",))]
    given = model(graph("best", nodes, inputs, ("y", FLOAT, ())), {"zero": np.array(0)})
    executable = tensorwright.compile(given)
    for share in (0.0, 0.5, 1.0):
        call = {"x": weights(6, 9), "mask": RANDOM.random(9) < share}
        close(list(executable.run(call).values()), by_onnxruntime(given, call))


def test_a_c_library_has_no_results_of_a_size_that_values_decide(tmp_path: Path) -> None:
    target = USUAL.machine
    parts = prepare(rows_of_nonzero(), target)
    with opened(None) as store, pytest.raises(UnsupportedError) as caught:
        export_c(parts, target, 1, store, tmp_path, "net")
    assert str(caught.value) == (
        "node where (nonzero): the size where_count is the number of its results, which is known"
        " when it has run and not before\n  try: compile to an executable"
    )


def test_a_typical_number_of_results_is_measured() -> None:
    parts = prepare(rows_of_nonzero(), USUAL.machine)
    assert bind_partition(parts, representative(parts.graph.sizes)).graph.sizes == ()
    bound = bind_sizes(load_onnx(rows_of_nonzero()), {"where_count": 4})
    results = interpret(bound, {"mask": np.arange(10) < 2, "x": weights(1, 10, 16)})
    assert results["where"].tolist() == [[0, 1, 0, 0]]


class Masked(nn.Module):
    """The rows whose scores are good, and what a layer makes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Tensor, scores: Tensor) -> Tensor:
        return self.layer(x[scores > 0])


class Positions(nn.Module):
    """Where elements are positive, and these elements."""

    def forward(self, x: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
        places = torch.nonzero(x > 0)
        return places, x[places[:, 0], places[:, 1]] * 2, scores[scores < 0]


@pytest.mark.parametrize("dynamo", [False, True], ids=["traced", "dynamo"])
@pytest.mark.parametrize("make", [Masked, Positions])
def test_networks_of_pytorch(make: Callable[[], nn.Module], dynamo: bool) -> None:
    axes = {"x": {0: "n"}, "scores": {0: "n"}}
    network = Network(make, lambda: (torch.randn(8, 6), torch.randn(8)), axes, ())
    executable = tensorwright.compile(exported(network, dynamo=dynamo))
    torch.manual_seed(0)
    module = network.make().eval()
    for count, shift in ((8, 0.0), (3, -9.0), (41, 9.0)):
        x, scores = torch.randn(count, 6) + shift, torch.randn(count) + shift
        with torch.no_grad():
            answer = module(x, scores)
        wanted = answer if isinstance(answer, tuple) else (answer,)
        results = executable.run({"x": x.numpy(), "scores": scores.numpy()})
        close(list(results.values()), [each.numpy() for each in wanted])
