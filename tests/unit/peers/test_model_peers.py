"""What runtimes that read ONNX files refuse; what they answer is in tests/conformance."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest
from tests.unit.peers.models import draw, make_model, small_network

from tensorwright.base import cpu_target, detect_target
from tensorwright.peers.process import PeerFailed, PeerProcess, find_kind
from tensorwright.peers.process.process import is_held, is_narrower


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(small_network(), path)
    return path


class Compiled:
    """A compiled model of OpenVINO, as far as it says what it does."""

    def __init__(self, precision: str, threads: int) -> None:
        self.properties = {
            "INFERENCE_PRECISION_HINT": SimpleNamespace(get_type_name=lambda: precision),
            "INFERENCE_NUM_THREADS": threads,
        }

    def get_property(self, name: str) -> object:
        return self.properties[str(name)]


def test_what_openvino_computes_in_another_precision_is_refused(path: Path) -> None:
    """Which precisions it has depends on the processor, what is refused does not."""
    module = pytest.importorskip("tensorwright.peers.competitors.openvino_peer")
    module.check_compiled(Compiled("f32", 2), 2)
    with pytest.raises(ValueError, match="it computes in bf16, not in f32"):
        module.check_compiled(Compiled("bf16", 2), 2)
    with pytest.raises(ValueError, match="it uses 4 threads, not 2"):
        module.check_compiled(Compiled("f32", 4), 2)
    with PeerProcess("ov", "openvino") as peer:
        assert peer.load(str(path), 1).detail.startswith("f32, 1 threads")


@pytest.mark.parametrize("kind", ["openvino", "pytorch"])
def test_a_peer_is_held_to_the_vectors_of_a_target(kind: str, tmp_path: Path) -> None:
    require(kind)
    path = tmp_path / "convolution.onnx"
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"])
    onnx.save(make_model([node], {"x": (1, 16, 9, 9)}, {"w": draw((32, 16, 3, 3))}), path)
    narrow = cpu_target("x86-64-avx2")
    if not is_narrower(narrow):
        pytest.skip("this machine has no wider vectors")
    with PeerProcess(kind, kind) as peer:
        assert peer.load(str(path), 1).vector_bytes == detect_target().vector_bytes
    with PeerProcess(kind, kind, target=narrow) as peer:
        assert is_held(peer.load(str(path), 1), narrow)


def test_an_operator_without_a_counterpart_is_refused(tmp_path: Path) -> None:
    require("pytorch")
    node = onnx.helper.make_node("Softsign", ["x"], ["y"])
    onnx.save(make_model([node], {"x": (2,)}, {}), tmp_path / "softsign.onnx")
    failure = pytest.raises(PeerFailed, match="operator Softsign has no counterpart")
    with PeerProcess("torch", "pytorch") as peer, failure:
        peer.load(str(tmp_path / "softsign.onnx"), 1)


def require(name: str) -> None:
    packages = {"pytorch": "torch"}
    if importlib.util.find_spec(packages.get(name, name)) is None:
        pytest.skip(f"{packages.get(name, name)} is not installed")
    find_kind(name)
