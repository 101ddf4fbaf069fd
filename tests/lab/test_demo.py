"""The demo's last line says in words which of two runtimes is faster."""

from __future__ import annotations

import pytest

from tensorwright.peers.process import Failure, FailureKind, Timing
from tensorwright_lab.demo import against_rival


def timing(name: str, seconds: float) -> Timing:
    return Timing(name, seconds, (seconds, seconds), 0.0)


@pytest.mark.parametrize(
    ("ours", "text"),
    [
        (0.001, "tensorwright is 2.6 times as fast as ONNX Runtime"),
        (0.0052, "ONNX Runtime is 2.0 times as fast as tensorwright"),
    ],
)
def test_the_faster_one_is_the_subject(ours: float, text: str) -> None:
    assert against_rival(timing("tuned", ours), timing("ONNX Runtime", 0.0026)) == text


def test_a_failure_is_said() -> None:
    failed = Failure("ONNX Runtime", next(iter(FailureKind)), "no model")
    assert "failed" in against_rival(timing("tuned", 0.001), failed)
