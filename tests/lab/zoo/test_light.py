"""The onnx package's networks: import, simplification and values against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.graph.onnx.onnx_models import by_onnxruntime, random_inputs

from tensorwright.base import UsageError
from tensorwright.graph import interpret, simplify, verify
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import to_onnx
from tensorwright_lab.zoo.light import LIGHT_MODELS, load_light


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_values_are_those_of_onnxruntime(name: str) -> None:
    model = load_light(name)
    graph = verify(load_onnx(model))
    inputs = random_inputs(graph)
    (expected,) = by_onnxruntime(model, inputs)
    largest = np.abs(expected).max()
    assert expected.std() > 1e-4, "degenerate weights would hide a wrong order"
    simple = verify(simplify(graph))
    for each in (graph, simple, load_onnx(to_onnx(simple))):
        (found,) = interpret(each, inputs).values()
        assert np.abs(found - expected).max() <= 1e-5 * largest


def test_all_structures_import_and_simplify() -> None:
    counts = {}
    for name in ("densenet121", "inception_v2", "resnet50"):
        simple = verify(simplify(load_onnx(load_light(name))))
        counts[name] = len([node for node in simple.nodes if node.operator == "conv"])
        assert not {"batch_norm", "unsqueeze"} & {node.operator for node in simple.nodes}
    assert counts == {"densenet121": 121, "inception_v2": 69, "resnet50": 53}


def test_weights_follow_the_seed() -> None:
    def weights(seed: int) -> bytes:
        return load_light("squeezenet", seed).graph.initializer[-1].raw_data

    assert weights(1) == weights(1) != weights(2)


def test_another_name() -> None:
    assert len(LIGHT_MODELS) == 9
    with pytest.raises(UsageError) as caught:
        load_light("resnet51")
    assert str(caught.value) == (
        "light model 'resnet51': there is no such model\n  try: did you mean resnet50?"
    )
