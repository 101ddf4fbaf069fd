"""The networks that PyTorch exports: small forms of a few, compiled, against PyTorch's answers."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.draws import some_of

from tensorwright import pipeline
from tensorwright.base import MachineError, UsageError
from tensorwright.cli.arguments.models import check_model, read_graph, read_proto
from tensorwright.graph import random_inputs
from tensorwright.graph.imports import load_onnx
from tensorwright_lab.suites import suite
from tensorwright_lab.zoo import WILD, load_wild, make_module
from tensorwright_lab.zoo.wild import suite as wild_suite

pytestmark = pytest.mark.usefixtures("by_rule")
FAMILIES = "tensorwright_lab.zoo.wild"
SMALL: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "encoders",
        "deberta",
        {"length": 8, "words": 9, "width": 16, "depth": 1, "heads": 2, "span": 4},
    ),
    ("image_generation", "stylegan2", {"style": 8, "widths": (8, 8)}),
    ("points_and_tables", "lstm_tagger", {"length": 4, "words": 9, "width": 5, "hidden": 6}),
    ("speech", "wavenet", {"samples": 200, "width": 4, "skip": 6, "cycles": 1, "depth": 3}),
    ("vision_transformers", "swin_t", {"image": 56, "width": 32, "depths": (2,)}),
)


@pytest.mark.parametrize(("family", "name", "sizes"), some_of(SMALL, 2, "wild"))
@pytest.mark.drawn
def test_a_small_form_answers_as_pytorch_does(
    family: str, name: str, sizes: dict[str, Any]
) -> None:
    torch = pytest.importorskip("torch")
    export = importlib.import_module(f"{FAMILIES}.export")
    example = getattr(importlib.import_module(f"{FAMILIES}.{family}"), name)(**sizes)
    importlib.import_module(f"{FAMILIES}.export").draw_weights(example.module, 0)
    model = export.export_onnx(example)
    inputs = random_inputs(load_onnx(model))
    with torch.no_grad():
        expected = example.module(*(torch.from_numpy(array) for array in inputs.values())).numpy()
    (found,) = pipeline.compile(model, threads=1).run(inputs).values()
    largest = np.abs(expected).max()
    assert np.std(expected) > 1e-2 * largest, "degenerate weights would hide a wrong order"
    assert np.abs(found - expected).max() <= 2e-5 * largest


def test_a_model_is_exported_in_a_process_of_its_own() -> None:
    pytest.importorskip("torch")
    model = load_wild("pointnet", 3)
    assert load_wild("pointnet", 3) is model is read_proto("wild:pointnet", seed=3)
    assert {"Conv", "Constant", "BatchNormalization"} <= {node.op_type for node in model.graph.node}
    graph = read_graph("wild:pointnet", seed=3)
    assert graph.types[graph.outputs[0]].shape == (1, 40)


def test_weights_follow_the_seed() -> None:
    torch = pytest.importorskip("torch")
    draw_weights = importlib.import_module(f"{FAMILIES}.export").draw_weights

    def weights(seed: int) -> bytes:
        module = torch.nn.Conv2d(3, 4, 3)
        draw_weights(module, seed)
        return b"".join(each.detach().numpy().tobytes() for each in module.parameters())

    assert weights(1) == weights(1) != weights(2)


def test_inputs_follow_the_seed_and_all_tables_have_their_positions() -> None:
    torch = pytest.importorskip("torch")
    file = importlib.import_module(f"{FAMILIES}.export")
    zeros, ones = torch.zeros(1, 50, dtype=torch.int64), torch.ones(1, 50, dtype=torch.int64)
    tables = torch.nn.ModuleList((torch.nn.Embedding(9, 2), torch.nn.Embedding(5, 2)))
    example = file.Example(tables, {"x": torch.zeros(4), "ids": zeros, "mask": ones})
    first, again, other = (file.draw_inputs(example, seed) for seed in (1, 1, 2))
    assert torch.equal(first["x"], again["x"])
    assert not torch.equal(first["x"], other["x"])
    assert first["ids"].unique().tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(first["mask"], ones)


def test_there_are_24() -> None:
    assert len(set(WILD)) == 24
    assert suite("wild") == tuple(f"wild:{name}" for name in WILD)
    folder = Path(wild_suite.__file__).parent
    for name, family in wild_suite.BUILDERS.items():
        assert f"\ndef {name}(" in (folder / f"{family}.py").read_text()


def test_another_name() -> None:
    with pytest.raises(UsageError, match="wild model 'vit': there is no such model"):
        check_model("wild:vit")


def test_pytorch_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MachineError) as caught:
        load_wild("dlrm")
    assert str(caught.value) == (
        "wild model 'dlrm': PyTorch, which writes it, is not installed\n"
        "  try: pip install 'tensorwright[torch]'"
    )


def test_the_module_of_a_model_is_made_again_with_norms_folded() -> None:
    torch = pytest.importorskip("torch")
    module, inputs = make_module(load_wild("pointnet", 3)) or pytest.fail("it says what made it")
    points = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        before = module(points)
        fold = importlib.import_module("tensorwright_lab.competitors.pytorch_peer").fold_norms
        fold(module, inputs)
        after = module(points)
    norms = [each for each in module.modules() if isinstance(each, torch.nn.BatchNorm1d)]
    assert len(norms) == 6, "those behind linear layers"
    assert torch.allclose(before, after, atol=1e-4)
    assert make_module(onnx.ModelProto()) is None
