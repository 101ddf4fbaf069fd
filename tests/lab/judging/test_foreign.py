"""A part of the corpus of foreign files that `benchmarks/correctness/foreign.py` goes through."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.draws import some_of

from tensorwright_lab.judging.foreign import judge
from tensorwright_lab.judging.onnxruntime_answers import answers
from tensorwright_lab.zoo.foreign import CASES

pytestmark = pytest.mark.usefixtures("by_rule")

SMALL = (
    "recurrent/lengths and peepholes (written)",
    "recurrent/gru before reset (written)",
    "recurrent/batch first (written)",
    "log mel/melspectrogram (written)",
    "detector/suppression (written)",
    "ragged/rows that hold (written)",
    "tagger/rnn (torchscript)",
    "bag of words/bag (torchscript)",
    "table/layer norm (torchscript+qdq)",
    "bag of words/bag (dynamo)",
    "trees/regressor (written)",
    "linear/classifier (written)",
    "scripts/halves (onnxscript)",
    "scripts/a branch (onnxscript)",
)


@pytest.mark.parametrize("title", some_of(SMALL, 5, "foreign"))
@pytest.mark.drawn
def test_calls_are_answered_as_onnxruntime_answers_them(title: str) -> None:
    (case,) = (each for each in CASES if each.title == title)
    verdict = judge(case, 0)
    assert not verdict.no_file
    assert not verdict.faults, verdict.faults
    assert verdict.counts["program"] + verdict.counts["instance"] >= 3


def test_points_hold_the_least_sizes_and_a_size_of_zero() -> None:
    for case in CASES:
        first, second, *_ = case.points(3)
        assert all(first[name] >= size.least for name, size in case.sizes.items())
        if any(size.least == 0 for size in case.sizes.values()):
            assert 0 in second.values()


def test_a_call_that_onnxruntime_refuses_leaves_the_others() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (name,)) for name in "xy")
    z = helper.make_empty_tensor_value_info("z")
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "sum", [x, y], [z])
    model = helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    ).SerializeToString()
    row = np.ones(3, np.float32)
    refused, right = answers(model, ({"x": row, "y": row[:2]}, {"x": row, "y": row}))
    assert refused is None
    assert right is not None
    np.testing.assert_array_equal(right[0], 2 * row)
