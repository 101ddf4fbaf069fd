"""ONNX Runtime in its process: right answers, and the settings that make it fast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tensorwright.peers.process import PeerFailed, PeerProcess

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = x + x, and z = the places of what is not 0 in x: a shape that depends on the data."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("NonZero", ["x"], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [None]),
            helper.make_tensor_value_info("z", TensorProto.INT64, [1, None]),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(made, path)
    return path


@pytest.mark.parametrize("stop_spinning", [False, True])
def test_it_answers_and_times(model: Path, stop_spinning: bool) -> None:
    x = np.array([0, 1, 0, 2], np.float32)
    with PeerProcess("ort", "onnxruntime") as peer:
        info = peer.load(str(model), 2, {"stop_spinning": stop_spinning})
        assert info.detail == "CPUExecutionProvider, 2 threads"
        assert info.version.count(".") == 2
        outputs = peer.check({"x": x})
        np.testing.assert_array_equal(outputs["y"], x + x)
        np.testing.assert_array_equal(outputs["z"], [[1, 3]])
        assert len(peer.time(2, 3)) == 3
        outputs = peer.check({"x": x[:3] + 1})
        np.testing.assert_array_equal(outputs["z"], [[0, 1, 2]])


def test_what_it_cannot_read_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"no model")
    with PeerProcess("ort", "onnxruntime") as peer, pytest.raises(PeerFailed) as caught:
        peer.load(str(bad), 1)
    assert caught.value.kind == "refused"
