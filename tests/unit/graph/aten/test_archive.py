"""Files of torch.export, read without PyTorch."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.correctness.without_pytorch import damage
from tests.draws import first_seed
from tests.unit.graph.aten.archives import (
    WEIGHT,
    Json,
    archive,
    meta,
    node,
    program,
    tensor,
    weights,
)

import tensorwright
from tensorwright.base import InputError, ModelError, TensorwrightError, UnsupportedError
from tensorwright.graph import interpret
from tensorwright.graph.imports.aten import Ref, read_pt2
from tensorwright.graph.model_import import load_model

pytestmark = pytest.mark.usefixtures("by_rule")


def nodes(given: Json) -> list[Json]:
    found: list[Json] = given["graph_module"]["graph"]["nodes"]
    return found


def values(given: Json) -> Json:
    found: Json = given["graph_module"]["graph"]["tensor_values"]
    return found


def wanted(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = (np.maximum(x, 0) @ WEIGHT.T + WEIGHT[:, 0]).reshape(-1)
    return found


def test_a_file_is_compiled_for_any_batch(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(archive(program(), weights()))
    executable = tensorwright.compile(path)
    assert [str(size) for size in executable.sizes] == ["x_0 in 1..16"]
    for batch in (1, 3):
        x = np.linspace(-1, 1, 4 * batch, dtype=np.float32).reshape(batch, 4)
        np.testing.assert_allclose(executable(x), wanted(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="x_0"):
        executable(np.zeros((17, 4), np.float32))


def test_bytes_and_bounds_and_shapes() -> None:
    data = archive(program(), weights())
    assert load_model(data, sizes={"x_0": "2..8"}).inputs == ("x",)
    graph = load_model(data, {"x": (2, 4)})
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(interpret(graph, {"x": x})[graph.outputs[0]], wanted(x))


def test_parameters_of_one_storage_share_it() -> None:
    w, b, _ = read_pt2(archive(program(), weights())).inputs
    assert isinstance(w.constant, np.ndarray)
    assert isinstance(b.constant, np.ndarray)
    assert np.shares_memory(w.constant, b.constant)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p, w: p["schema_version"].update(major=7), "major version 7"),
        (lambda p, w: w["config"]["b"].update(use_pickle=True), "it is pickled"),
        (lambda p, w: w["config"]["b"]["tensor_meta"].update(dtype=30), "float8_e5m2"),
        (lambda p, w: values(p)["x"].update(dtype=10), "complex64"),
        (lambda p, w: nodes(p)[2].update(target="torch.ops.mylib.f.default"), "of ATen"),
        (lambda p, w: nodes(p)[2].update(target="torch.ops.aten.i0.default"), "have no"),
        (lambda p, w: nodes(p)[2]["inputs"][0].update(arg=tensor("x")), "it writes into x"),
        (lambda p, w: nodes(p)[2]["inputs"][0].update(arg={"as_complex": {}}), "as_complex"),
        (
            lambda p, w: p["graph_module"]["signature"]["output_specs"].append(
                {"buffer_mutation": {"arg": {"name": "y"}, "buffer_name": "count"}}
            ),
            "a call changes buffer count",
        ),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(change: Callable[[Json, Json], Any], reason: str) -> None:
    changed, held = program(), weights()
    change(changed, held)
    with pytest.raises(UnsupportedError, match=reason) as caught:
        load_model(archive(changed, held))
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p, w: w["config"].pop("b"), "the values of b are missing"),
        (lambda p, w: w["config"]["b"].update(tensor_meta=meta(3, strides=(6,))), "reaches beyond"),
        (lambda p, w: w["config"]["b"].update(path_name="weight_9"), "it has no data/weights"),
        (lambda p, w: nodes(p)[2].pop("inputs"), "inputs is missing"),
        (lambda p, w: nodes(p)[2].update(target=3), "target is '3'"),
        (lambda p, w: nodes(p)[2].update(outputs=[{}]), "has 0 values, not one"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(
    change: Callable[[Json, Json], Any], reason: str
) -> None:
    changed, held = program(), weights()
    change(changed, held)
    with pytest.raises(ModelError, match=reason) as caught:
        load_model(archive(changed, held))
    assert caught.value.remedy == "export it again with torch.export.save"


def test_a_part_that_is_not_read_is_named() -> None:
    changed, kept = program(), weights()
    nodes(changed)[2]["inputs"][0].update(arg={"as_complex": {}})
    with pytest.raises(UnsupportedError) as caught:
        load_model(archive(changed, kept))
    assert caught.value.where == "exported program, node relu_ (aten.relu_.default)"
    values(changed)["x"].update(layout=1)
    with pytest.raises(UnsupportedError, match="sparse") as caught:
        load_model(archive(changed, kept))
    assert caught.value.where == "exported program, input x"
    assert caught.value.remedy == "make it dense before the export: tensor.to_dense()"


def test_numbers_that_are_not_finite_are_texts() -> None:
    """JSON has no number for them; files of before PyTorch 2.13 write them as Python does."""
    changed = program()
    change = node(
        "torch.ops.aten.masked_fill.Scalar",
        [tensor("filled")],
        self=tensor("y"),
        mask=tensor("y"),
        value={"as_float": "-Infinity"},
        several={"as_floats": ["NaN", "Infinity", 1, float("-inf")]},
        symbols={"as_sym_floats": [{"as_float": "Infinity"}, {"as_name": "n"}]},
    )
    nodes(changed).insert(2, change)
    constant = {"name": "c", "value": {"as_float": "NaN"}}
    inputs = changed["graph_module"]["signature"]["input_specs"]
    inputs.append({"constant_input": constant})
    inputs.append({"user_input": {"arg": {"as_float": "Infinity"}}})
    read = read_pt2(archive(changed, weights()))
    given = dict(read.nodes[2].arguments)
    assert given["value"] == -np.inf
    assert str(given["several"]) == "(nan, inf, 1.0, -inf)"
    assert given["symbols"] == (np.inf, Ref("n"))
    assert [str(each.constant) for each in read.inputs[-2:]] == ["nan", "inf"]
    for wrong in ("infinity", "1.0", True, None, [1.0]):
        change["inputs"][2]["arg"]["as_float"] = wrong
        with pytest.raises(ModelError, match=r"as_float is|has 0 values"):
            read_pt2(archive(changed, weights()))


def test_a_packed_member_has_no_more_than_its_tensors_use() -> None:
    """2 MB on disk, 4.5 GB in memory: what shapes and types do not promise is not unpacked."""
    name = "data/weights/weight_0"
    enough = {name: WEIGHT.tobytes()}
    (w, *_) = read_pt2(archive(program(), weights(), enough, packed=frozenset(enough))).inputs
    np.testing.assert_array_equal(w.constant, WEIGHT)
    more = {name: WEIGHT.tobytes() + bytes(1 << 24)}
    (w, b, _) = read_pt2(archive(program(), weights(), more)).inputs  # a part of a storage
    np.testing.assert_array_equal(w.constant, WEIGHT)
    assert isinstance(b.constant, np.ndarray)
    assert b.constant.base is not None
    tracemalloc.start()
    packed = archive(program(), weights(), more, packed=frozenset(more))
    tracemalloc.reset_peak()
    with pytest.raises(ModelError, match="weight_0 has 16777264 bytes, but 48 is the most"):
        read_pt2(packed)
    text = json.dumps(program()) + " " * (1 << 24)
    bomb = {"models/model.json": text.encode()}
    packed = archive(program(), weights(), bomb, packed=frozenset(bomb))
    with pytest.raises(ModelError, match=r"model\.json has .* bytes, but"):
        read_pt2(packed)
    assert tracemalloc.get_traced_memory()[1] < 1 << 27
    tracemalloc.stop()
    read_pt2(archive(program(), weights(), bomb))


def test_a_size_of_which_only_a_multiple_is_seen_keeps_its_bounds() -> None:
    changed = program()
    symbol = "Mul(Integer(2), Symbol('s77', positive=True, integer=True))"
    values(changed)["x"] = meta(symbol, 4)
    changed["range_constraints"] = {
        "2*s77": {"min_val": 2, "max_val": 20},
        "s77": {"min_val": 2, "max_val": 10},
    }
    executable = tensorwright.compile(archive(changed, weights()))
    assert [str(size) for size in executable.sizes] == ["s77 in 1..10"]
    for batch in (2, 20):
        x = np.linspace(-1, 1, 4 * batch, dtype=np.float32).reshape(batch, 4)
        np.testing.assert_allclose(executable(x), wanted(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="makes the size s77 11"):
        executable(np.zeros((22, 4), np.float32))
    with pytest.raises(InputError, match=r"dimension 0 is 7, and no s77 makes 2\*s77 that"):
        executable(np.zeros((7, 4), np.float32))
    changed["range_constraints"]["2*s77"]["min_val"] = 4
    graph = load_model(archive(changed, weights()))
    assert "size s77: 2 <= s77 <= 10" in str(graph)


def test_an_operator_that_we_do_not_have_is_refused_with_a_remedy() -> None:
    changed = program()
    nodes(changed)[2].update(target="torch.ops.aten.i0.default")
    with pytest.raises(UnsupportedError) as caught:
        load_model(archive(changed, weights()))
    assert str(caught.value) == (
        "operator aten.i0.default: node relu_ (aten.i0.default): we have no operator for it"
        "\n  try: write it with other operators or arguments; docs/onnx.md and docs/pytorch.md say"
        " what is read"
    )


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("data/aotinductor/model/a.so", "a package of AOTInductor"),
        (
            "serialized_exported_program.json",
            r"PyTorch \? \(schema \?\.\?\) wrote it",
        ),
        ("data.pkl", "a zip archive without an exported program"),
    ],
)
def test_other_archives_are_told_apart(member: str, reason: str) -> None:
    data = archive(program(), weights(), {member: b"{}"}).replace(b"models/model", b"MODELS/model")
    with pytest.raises(TensorwrightError, match=reason):
        read_pt2(data)


def test_a_file_with_several_models_and_another_order_of_bytes() -> None:
    with pytest.raises(UnsupportedError, match="several models: model, other"):
        read_pt2(archive(program(), weights(), {"models/other.json": b"{}"}))
    with pytest.raises(UnsupportedError, match="little-endian"):
        read_pt2(archive(program(), weights(), {"byteorder": b"big"}))


@pytest.mark.drawn
def test_damaged_archives_raise_nothing_foreign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes, members and JSON: 400 archives end in a graph or in an error of ours."""
    (tmp_path / "small.pt2").write_bytes(archive(program(), weights()))
    assert damage(tmp_path, ["small"], range(first_seed(), first_seed() + 200))
    told = capsys.readouterr().out
    assert all(each in told for each in ("'read'", "'ModelError'", "'UnsupportedError'"))


def test_reading_needs_no_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it raises
    assert load_model(archive(program(), weights())).inputs == ("x",)


def test_a_view_that_is_written_into_changes_what_it_is_a_view_of() -> None:
    changed = program()
    aten = "torch.ops.aten."
    part = node(
        f"{aten}select.int",
        [tensor("part")],
        self=tensor("y"),
        dim={"as_int": 1},
        index={"as_int": 2},
    )
    write = node(
        f"{aten}fill_.Scalar", [tensor("fill_")], self=tensor("part"), value={"as_float": 7.0}
    )
    nodes(changed)[2:2] = [part, write]
    graph = load_model(archive(changed, weights()), {"x": (2, 4)})
    x = np.ones((2, 4), np.float32)
    seen = x.copy()
    seen[:, 2] = 7
    np.testing.assert_allclose(interpret(graph, {"x": x})[graph.outputs[0]], wanted(seen))
