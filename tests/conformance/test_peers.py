"""One suite for every kind of competitor that is installed, each in its process.

A new kind is one more subclass. Two are not here: `inductor` is `pytorch` with a compiler that
takes half a minute, and `tvm` tunes single operators (`test_tuning_curve.py` beside the units).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.unit.peers.models import draw, small_network

import tensorwright
from tensorwright.base import MachineError
from tensorwright.graph import interpret
from tensorwright.graph.imports import load_onnx
from tensorwright.peers import process

Source = tuple[str, dict[str, object]]
ELSEWHERE = {"inductor", "tvm"}
INPUTS = tuple({"x": draw((1, 3, 9, 9), seed)} for seed in (7, 8))
FUNCTIONS = Path(__file__).parents[1] / "unit" / "peers" / "competitors.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(small_network(), path)
    return path


class PeerSuite:
    """What `Peer` promises, asked through `PeerProcess`."""

    kind: str
    detail = "2 threads"

    @classmethod
    def source(cls, model: Path) -> Source:
        """What the kind loads for an ONNX file: a path and options."""
        return str(model), {}

    @pytest.fixture(scope="class")
    @classmethod
    def loaded(cls, model: Path) -> Iterator[process.PeerProcess]:
        try:
            process.find_kind(cls.kind)
        except MachineError as error:
            pytest.skip(error.reason)
        with process.PeerProcess(cls.kind, cls.kind) as peer:
            cls.load(peer, model)
            yield peer

    @classmethod
    def load(cls, peer: process.PeerProcess, model: Path) -> Any:
        path, options = cls.source(model)
        return peer.load(path, 2, options)

    def test_it_says_how_it_runs(self, loaded: process.PeerProcess, model: Path) -> None:
        info = self.load(loaded, model)
        assert self.detail in info.detail
        assert info.version == "" or info.version[0].isdigit()

    def test_it_answers_as_the_evaluator_does(
        self, loaded: process.PeerProcess, model: Path
    ) -> None:
        for inputs in INPUTS:
            before = inputs["x"].copy()
            outputs = loaded.check(inputs)
            expected = interpret(load_onnx(model), inputs)
            assert list(outputs) == list(expected)
            assert process.max_rel_error(outputs, expected) < 1e-5
            np.testing.assert_array_equal(inputs["x"], before)

    def test_timing_and_turns_change_no_answer(self, loaded: process.PeerProcess) -> None:
        first = loaded.check(INPUTS[0])
        with loaded.turn():
            samples_s = loaded.time(2, 3)
            assert len(samples_s) == 3
            assert min(samples_s) > 0
        again = loaded.check(INPUTS[0])
        assert process.max_rel_error(again, first) < 1e-6  # threads may add up in another order

    def test_a_refusal_is_a_value_and_the_process_goes_on(
        self, loaded: process.PeerProcess, model: Path, tmp_path: Path
    ) -> None:
        path, options = self.source(tmp_path / "nothing.onnx")
        with pytest.raises(process.PeerFailed) as caught:
            load_and_check(loaded, path, options)
        assert caught.value.kind == process.FailureKind.REFUSED
        self.load(loaded, model)
        with pytest.raises(process.PeerFailed) as caught:
            loaded.check({"no_such_input": INPUTS[0]["x"]})
        assert caught.value.kind == process.FailureKind.REFUSED
        assert list(loaded.check(INPUTS[0])) == ["y"]


def load_and_check(peer: process.PeerProcess, path: str, options: dict[str, object]) -> None:
    peer.load(path, 2, options)
    peer.check(INPUTS[0])


class TestOurs(PeerSuite):
    kind = "ours"

    @classmethod
    def source(cls, model: Path) -> Source:
        file = model.with_suffix(".tw")
        if model.exists() and not file.exists():
            tensorwright.compile(str(model)).save(file)
        return str(file), {}


class TestOnnxRuntime(PeerSuite):
    kind = "onnxruntime"
    detail = "CPUExecutionProvider, 2 threads"


class TestOpenVino(PeerSuite):
    kind = "openvino"
    detail = "f32, 2 threads, 1 stream"


class TestPytorch(PeerSuite):
    kind = "pytorch"
    detail = "eager, 2 threads"


class TestFunction(PeerSuite):
    kind = "function"

    @classmethod
    def source(cls, model: Path) -> Source:
        return f"{FUNCTIONS}:network", {"model": str(model)}


def test_every_kind_is_tested() -> None:
    tested = {suite.kind for suite in PeerSuite.__subclasses__()}
    assert tested | ELSEWHERE == {kind.name for kind in process.KINDS}
