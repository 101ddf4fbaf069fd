"""Every runtime that reads ONNX files gives the answers of the evaluator, in f32."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import onnx
import pytest
from tests.unit.peers.models import draw, make_model, small_network

from tensorwright.graph import interpret, load_onnx
from tensorwright.peers import PeerFailed, PeerProcess, find_kind, max_rel_error

# The compiler of PyTorch is not here: it takes half a minute; test_torch_network.py has its parts.
EXPECTED = {
    "onnxruntime": "CPUExecutionProvider, 2 threads",
    "openvino": "f32, 2 threads, 1 stream",
    "pytorch": "eager, 2 threads",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(small_network(), path)
    return path


@pytest.mark.parametrize("name", EXPECTED)
def test_it_answers_as_the_evaluator_does(name: str, path: Path) -> None:
    require(name)
    inputs = {"x": draw((1, 3, 9, 9), 7)}
    expected = interpret(load_onnx(path), inputs)
    with PeerProcess(name, name) as peer:
        info = peer.load(str(path), 2)
        assert info.detail == EXPECTED[name]
        assert info.version[0].isdigit()
        assert max_rel_error(peer.check(inputs), expected) < 1e-5
        assert len(peer.time(2, 3)) == 3
        again = {"x": draw((1, 3, 9, 9), 8)}
        assert max_rel_error(peer.check(again), interpret(load_onnx(path), again)) < 1e-5


def test_what_openvino_computes_in_another_precision_is_refused(path: Path) -> None:
    require("openvino")
    with PeerProcess("ov", "openvino") as peer:
        with pytest.raises(PeerFailed, match="it computes in bf16, not in f32"):
            peer.load(str(path), 2, {"INFERENCE_PRECISION_HINT": "bf16"})
        peer.load(str(path), 1)


def test_an_operator_without_a_counterpart_is_refused(tmp_path: Path) -> None:
    require("pytorch")
    node = onnx.helper.make_node("Erf", ["x"], ["y"])
    onnx.save(make_model([node], {"x": (2,)}, {}), tmp_path / "erf.onnx")
    failure = pytest.raises(PeerFailed, match="operator Erf has no counterpart")
    with PeerProcess("torch", "pytorch") as peer, failure:
        peer.load(str(tmp_path / "erf.onnx"), 1)


def require(name: str) -> None:
    packages = {"pytorch": "torch"}
    if importlib.util.find_spec(packages.get(name, name)) is None:
        pytest.skip(f"{packages.get(name, name)} is not installed")
    find_kind(name)
