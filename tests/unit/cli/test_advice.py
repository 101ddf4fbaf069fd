"""What refusals of commands advise is done, and does not meet the same refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest
from click.testing import Result
from tests.advice import corrected

Invoke = Callable[..., Result]
MOST = 4  # corrections of one command


@pytest.fixture
def window(tmp_path: Path) -> Path:
    """Convolution with a filter of 5 over a signal of any length."""
    shapes = {"x": (1, 1, "length"), "w": (1, 1, 5)}
    inputs = [oh.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    outputs = [oh.make_tensor_value_info("y", 1, None)]
    graph = oh.make_graph([oh.make_node("Conv", ["x", "w"], ["y"])], "g", inputs, outputs)
    path = tmp_path / "window.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.mark.parametrize(
    "command",
    [
        "compile {window} -o {out} --sizes lenght=9",
        "compile {window} -o {out} --target x86-64-avx",
        "compile {model} -o {out} --name mine",
        "compile {model} --emit c -o {out} --name 日本",
        "explain ModleError",
        "run {window} --input random --at lengt=9",
    ],
)
def test_advice_is_no_dead_end(
    invoke: Invoke, window: Path, model: Path, tmp_path: Path, command: str
) -> None:
    places = {"window": window, "model": model, "out": tmp_path / "out.tw"}
    words = command.format(**places).split()
    told: list[str] = []
    while (result := invoke(*words)).exit_code:
        assert result.stderr not in told, f"{words} meets the same refusal"
        told.append(result.stderr)
        better = corrected(words, result.stderr)
        assert better is not None, f"nothing to follow in {result.stderr}"
        assert len(told) < MOST, "each correction leads to another refusal"
        words = better
    assert told, "it was not refused"


def test_sizes_with_which_nothing_fits_are_no_fault_of_the_exporter(
    invoke: Invoke, window: Path, tmp_path: Path
) -> None:
    command = ("compile", window, "-o", tmp_path / "out.tw")
    refused = invoke(*command, "--sizes", "length=1..3")
    assert refused.exit_code == 3
    assert "try: with length=1..3 it does not fit: give other sizes, or none" in refused.stderr
