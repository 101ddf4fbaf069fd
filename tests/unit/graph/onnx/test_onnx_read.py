"""What is no ONNX model is refused with a message that names the place."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.draws import random_source
from tests.unit.graph.onnx.onnx_models import model_of
from tests.unit.graph.onnx.test_onnx_import import CASES

from tensorwright import base
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.refusals import INVALID

REMEDY = "\n  try: export or download the model again"


def relu(**more: object) -> onnx.ModelProto:
    shape = more.pop("shape", (2, 3))
    return model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": shape}, ["y"], **more)


def message_of(kind: type[base.TensorwrightError], *arguments: object, **more: object) -> str:
    with pytest.raises(kind) as caught:
        load_onnx(*arguments, **more)
    return str(caught.value)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    missing = tmp_path / "no.onnx"
    assert message_of(base.ModelError, missing) == (
        f"file {missing}: there is no such file\n  try: check the path"
    )
    assert message_of(base.ModelError, tmp_path) == (
        f"file {tmp_path}: it is a folder\n  try: give the .onnx file inside it"
    )
    path = tmp_path / "x.onnx"
    path.write_bytes(b"")
    assert message_of(base.ModelError, path) == f"file {path}: it is empty" + REMEDY
    path.write_text("This is not a model, it is a text.\n" * 9)
    assert message_of(base.ModelError, str(path)) == (
        f"file {path}: it is not an ONNX model, or it is truncated" + REMEDY
    )


@pytest.mark.drawn
def test_random_bytes() -> None:
    generator = random_source(0)
    for _ in range(200):
        data = generator.randbytes(generator.randrange(1, 200))
        with pytest.raises((base.ModelError, base.UnsupportedError)):
            load_onnx(data)


def test_a_model_cut_off_anywhere() -> None:
    data = relu().SerializeToString()
    whole = str(load_onnx(data))
    for end in range(1, len(data)):
        with pytest.raises(base.ModelError) as caught:
            load_onnx(data[:end])
        assert "it is not an ONNX model, or it is truncated" in str(caught.value)
    assert whole == str(load_onnx(relu()))


@pytest.mark.drawn
def test_damaged_models_are_refused_or_read() -> None:
    """Bytes changed, flipped or lost: no other error than one for the user comes out."""
    generator = random_source(0)
    models = [model.SerializeToString() for model in CASES.values()]
    for _ in range(400):
        data = bytearray(generator.choice(models))
        for _ in range(generator.randrange(1, 4)):
            place = generator.randrange(len(data))
            if generator.random() < 0.3:
                del data[place : place + generator.randrange(1, 4)]
            else:
                data[place] ^= 1 << generator.randrange(8)
        with contextlib.suppress(base.UserError):
            load_onnx(bytes(data))


def test_a_cut_in_the_weights() -> None:
    weights = np.ones((100,), np.float32)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = model_of([node], {"x": (100,)}, ["y"], constants={"w": weights})
    model.graph.initializer[0].raw_data = b"1234"
    assert message_of(base.ModelError, model).startswith(
        "initializer w: its data does not fit its shape (100,)"
    )


def test_operator_sets() -> None:
    assert message_of(base.UnsupportedError, relu(opset=6)) == (
        "operator opset: model test: operator set 6 is older than 7"
        "\n  try: convert it with onnx.version_converter.convert_version"
    )
    newest = onnx.defs.onnx_opset_version()
    assert message_of(base.UnsupportedError, relu(opset=newest + 1)) == (
        f"operator opset: model test: operator set {newest + 1} is newer than {newest},"
        " the newest that the onnx package here knows"
        "\n  try: update the onnx package, or export the model with an older operator set"
    )


def test_unknown_operators_and_domains() -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"], name="f1")
    assert message_of(base.UnsupportedError, model_of([node], {"x": (1,)}, ["y"])) == (
        "operator Frobnicate: node f1 (Frobnicate): there is no such operator in ONNX"
        "\n  try: write it with other operators or arguments; docs/onnx.md and docs/pytorch.md say"
        " what is read"
    )
    node = helper.make_node("Det", ["x"], ["y"], name="d")
    assert message_of(base.UnsupportedError, model_of([node], {"x": (2, 2)}, ["y"])) == (
        "operator Det: node d (Det): we have no operator for it, and the standard no function"
        "\n  try: write it with other operators or arguments; docs/onnx.md and docs/pytorch.md say"
        " what is read"
    )
    node = helper.make_node("FusedConv", ["x"], ["y"], domain="org.example")
    assert message_of(base.UnsupportedError, model_of([node], {"x": (1,)}, ["y"])) == (
        "operator FusedConv: node y (FusedConv): the domain org.example is not supported,"
        " and the model holds no function for it"
        "\n  try: export the model with the standard's operators alone"
    )


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        ("SequenceMap", "sequences are not tensors of a static shape"),
        ("Optional", "optional values are not tensors of a static shape"),
        ("StringConcat", "text tensors are not supported"),
        ("RandomNormalLike", "its result is random, and a graph is a function of its inputs"),
    ],
)
def test_operators_that_no_graph_can_hold(operator: str, reason: str) -> None:
    node = helper.make_node(operator, ["x"], ["y"], name="n")
    assert message_of(base.UnsupportedError, model_of([node], {"x": (1,)}, ["y"])) == (
        f"operator {operator}: node n ({operator}): {reason}"
        "\n  try: cut that part out of the model, and compute it outside"
    )


def test_element_types() -> None:
    known = "f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool"
    assert message_of(base.UnsupportedError, relu(dtype=TensorProto.STRING)) == (
        "operator Relu: input x: elements of type STRING are not supported"
        f"\n  try: use one of {known}"
    )
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E5M2)
    assert message_of(base.UnsupportedError, model_of([node], {"x": (1,)}, ["y"])) == (
        "operator Cast: node y (Cast): elements of type FLOAT8E5M2 are not supported"
        f"\n  try: use one of {known}"
    )


def test_open_shapes_are_named_sizes() -> None:
    assert str(load_onnx(relu(shape=("batch", 3, None))).types["y"]) == "f32(batch, 3, x_2)"
    assert str(load_onnx(relu(shape=("batch", 3))).types["y"]) == "f32(batch, 3)"
    assert message_of(base.UndecidedError, relu(shape=None)) == (
        "input x: the model leaves its shape open"
        '\n  try: input_shapes={"x": (1, 3, 224, 224)} (with your own extents)'
    )


def test_open_shapes_are_given() -> None:
    node = helper.make_node("Add", ["x", "z"], ["y"])
    model = model_of([node], {"x": ("batch", 3), "z": ("batch", 3)}, ["y"])
    assert load_onnx(model, {"x": (5, 3)}).types["y"].shape == (5, 3)
    assert load_onnx(model, {"batch": 7}).types["y"].shape == (7, 3)
    assert load_onnx(relu(), {"x": (4, 9)}).types["y"].shape == (4, 9)
    assert message_of(base.InputError, model, {"x": (5, 3, 1)}) == (
        "input shape x: (5, 3, 1) has 3 dimensions, the model declares 2\n  try: give 2 extents"
    )
    assert message_of(base.InputError, model, {"x": (5, 3), "z": (6, 3)}) == (
        "input shape z: dimension batch is 6 here and 5 elsewhere"
        "\n  try: give one number for the dimension, wherever it occurs"
    )
    assert message_of(base.InputError, model, {"w": (5, 3)}) == (
        "input shape w: the model has no such input"
        "\n  try: the inputs are x, z, the open dimensions batch"
    )
    for wrong in ((5, 2.5), "ab", None):
        message = message_of(base.InputError, model, {"x": wrong})
        assert message.startswith(f"input shape x: {wrong!r} are not whole numbers")
    assert message_of(base.InputError, model, {"x": (-1, 3)}) == (
        "input shape x: (-1, 3) has a negative extent\n  try: give extents by the name of an input"
        ' or of a dimension: {"x": (1, 3, 224, 224)}, {"N": 1}'
    )


@pytest.mark.parametrize(
    "name", ["?", "-1", "*", "", "None", "unk__0", "unk__17", "unknown", "Dynamic", "224"]
)
def test_a_word_for_unknown_is_no_identity(name: str) -> None:
    model = relu(shape=(name, 3, name))
    assert load_onnx(model, {"x": (4, 3, 9)}).types["y"].shape == (4, 3, 9)
    if name:  # who gives it an extent means all of that name
        assert load_onnx(model, {name: 5}).types["y"].shape == (5, 3, 5)
    assert str(load_onnx(model).types["y"]) == "f32(x_0, 3, x_2)"


@pytest.mark.parametrize("name", ["N", "batch", "batch_size", "s0", "dim_0", "opened", "unk_batch"])
def test_another_name_is_an_identity(name: str) -> None:
    assert message_of(base.InputError, relu(shape=(name, 3, name)), {"x": (4, 3, 9)}) == (
        f"input shape x: dimension {name} is 9 here and 4 elsewhere"
        "\n  try: give one number for the dimension, wherever it occurs"
    )


def test_a_negative_extent_is_an_open_dimension() -> None:
    model = relu(shape=(1, 3, 4))
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_value = -1
    assert load_onnx(model, {"x": (1, 5, 2)}).types["y"].shape == (1, 5, 2)
    assert str(load_onnx(model).types["y"]) == "f32(x_0, x_1, x_2)"


def test_a_size_that_a_fixed_model_does_not_take() -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="flat")
    model = model_of([node], {"x": (1, 3, 4)}, ["y"], constants={"shape": np.array([1, 12])})
    assert message_of(base.ModelError, model, {"x": (2, 3, 4)}) == (
        "node flat (Reshape): shape (2, 3, 4) has 24 elements, (1, 12) 12; the model was exported"
        " with x of (1, 3, 4) and is read with (2, 3, 4)"
        "\n  try: give it the size that it was exported with, or export it again with that"
        " dimension open (dynamic_shapes of torch.onnx.export)"
    )
    fixed = message_of(
        base.ModelError,
        model_of([node], {"x": (5,)}, ["y"], constants={"shape": np.array([1, 12])}),
    )
    assert "exported" not in fixed


def test_a_zero_sized_dimension_is_an_extent_like_any_other() -> None:
    graph = load_onnx(relu(shape=(0, 3)))
    assert graph.types["y"].shape == (0, 3)


def test_what_the_graph_does_not_define() -> None:
    node = helper.make_node("Relu", ["z"], ["y"], name="r")
    assert message_of(base.ModelError, model_of([node], {"x": (1,)}, ["y"])) == (
        f"node r (Relu): reads z, which nothing before it defines\n  try: {INVALID}"
    )
    node = helper.make_node("Relu", ["x"], ["z"])
    assert message_of(base.ModelError, model_of([node], {"x": (1,)}, ["y"])) == (
        f"output y: nothing defines y\n  try: {INVALID}"
    )


def test_shapes_that_do_not_fit() -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="m")
    model = model_of([node], {"x": (2, 3), "w": (4, 5)}, ["y"])
    assert message_of(base.ModelError, model).startswith("node m (MatMul): ")
