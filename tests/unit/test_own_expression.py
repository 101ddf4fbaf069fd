"""Operators of one's own: a tensor expression, a schedule written by hand, an executable."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import tensorwright
from tensorwright import expr
from tensorwright.base import InputError, ScheduleError, UsageError
from tensorwright.schedule import Split, Trace, Vectorize, parse_trace

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SAID = {"streaming_vad.py": "1.05 s: speech\n1.92 s: silence\n"}
N = 61


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(
    example: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What one registers is forgotten after it."""
    assert len(example.read_text().splitlines()) < 40
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "rule")
    monkeypatch.setenv("PYTHONPATH", os.fspath(EXAMPLES[0].parents[1] / "src"))
    for registry in ("templates.template", "derived.derivation"):
        module = importlib.import_module(f"tensorwright.tuning.space.{registry}")
        monkeypatch.setattr(module._OWN, "_own", {})
    run_path(os.fspath(example), run_name="__main__")
    said = capfd.readouterr().out
    assert said
    assert said == SAID.get(example.name, said)


def roughness() -> expr.Compute:
    """The greatest step from a point of a picture to one of its four neighbours."""
    x = expr.placeholder("x", (N + 2, N + 2))

    def body(i, j):
        here = x[i + 1, j + 1]
        sides = (x[i, j + 1], x[i + 2, j + 1], x[i + 1, j], x[i + 1, j + 2])
        steps = [expr.abs_(here - side) for side in sides]
        return expr.max_of(expr.max_of(steps[0], steps[1]), expr.max_of(steps[2], steps[3]))

    return expr.compute("rough", (N, N), body)


def roughness_in_numpy(x: np.ndarray) -> np.ndarray:
    here = x[1:-1, 1:-1]
    sides = (x[:-2, 1:-1], x[2:, 1:-1], x[1:-1, :-2], x[1:-1, 2:])
    return np.max([np.abs(here - side) for side in sides], axis=0)


BY_HAND = """
split(rough, i, [4])
split(rough, j, [16], shift)
reorder(rough, [i_o, j_o, i_i, j_i])
parallel(rough, i_o)
unroll(rough, i_i)
vectorize(rough, j_i)
"""


@pytest.mark.parametrize("trace", [None, (), parse_trace(BY_HAND)], ids=["rule", "none", "hand"])
@pytest.mark.parametrize("target", [None, "x86-64-avx2"])
def test_a_stencil_of_ones_own(trace: Trace | None, target: str | None) -> None:
    executable = tensorwright.compile(roughness(), trace=trace, target=target, threads=2)
    x = np.random.default_rng(0).normal(size=(N + 2, N + 2)).astype(np.float32)
    np.testing.assert_array_equal(executable.run({"x": x})["rough"], roughness_in_numpy(x))


def test_several_results_of_one_expression() -> None:
    x, j, k = expr.placeholder("x", (40, 50)), expr.reduce_axis("j", 50), expr.reduce_axis("k", 50)
    top = expr.compute("top", (40,), lambda i: expr.max_over(x[i, j], j))
    spread = expr.compute("spread", (40,), lambda i: expr.sum_over(expr.abs_(x[i, k] - top[i]), k))
    trace = (Split("spread", "i", (8,)), Vectorize("spread", "i_i"))
    executable = tensorwright.compile([top, spread], trace=trace)
    rows = np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32)
    found = executable.run({"x": rows})
    np.testing.assert_array_equal(found["top"], rows.max(1))
    expected = np.abs(rows - rows.max(1, keepdims=True)).sum(1)
    np.testing.assert_allclose(found["spread"], expected, rtol=1e-5)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    tensorwright.compile(roughness(), trace=parse_trace(BY_HAND)).save(tmp_path / "own.tw")
    x = np.random.default_rng(1).normal(size=(N + 2, N + 2)).astype(np.float32)
    found = tensorwright.load(tmp_path / "own.tw").run({"x": x})["rough"]
    np.testing.assert_array_equal(found, roughness_in_numpy(x))


def test_an_illegal_schedule_is_refused_with_its_loops() -> None:
    with pytest.raises(ScheduleError) as caught:
        tensorwright.compile(roughness(), trace=(Split("rough", "k", (4,)),))
    assert caught.value.step == "split(rough, k, [4])"
    assert caught.value.reason == "rough has no loop k"
    assert "for i:" in caught.value.program


def test_a_trace_belongs_to_an_expression_and_inputs_to_their_shapes() -> None:
    with pytest.raises(UsageError, match="a trace schedules only one"):
        tensorwright.compile("model.onnx", trace=())
    executable = tensorwright.compile(roughness(), trace=())
    with pytest.raises(InputError):
        executable.run({"x": np.zeros((N, N), np.float32)})


def test_a_schedule_is_given_parsed_or_as_text() -> None:
    x = expr.placeholder("x", (64,))
    y = expr.compute("y", (64,), lambda i: x[i] + 1.0)
    text = "split(y, i, [8])\nvectorize(y, i_i)"
    given = np.arange(64, dtype=np.float32)
    for trace in (text, parse_trace(text)):
        executable = tensorwright.compile(y, threads=1, trace=trace)
        assert text in executable.sources["schedules"].replace("\\n", "\n")
        np.testing.assert_array_equal(executable(given), given + 1)
    with pytest.raises(UsageError, match="splitt"):
        tensorwright.compile(y, trace="splitt(y, i, [8])")
    with pytest.raises(UsageError, match="argument input_shapes"):
        tensorwright.compile(y, input_shapes={"x": (3,)})


def test_the_caller_is_told_of_the_one_kernel_of_an_expression() -> None:
    x = expr.placeholder("x", (4,))
    told: list[tuple[str, int, int]] = []
    tensorwright.compile(
        expr.compute("y", (4,), lambda i: x[i]),
        threads=1,
        on_kernel=lambda each, number, count: told.append((each.workload.name, number, count)),
    )
    assert told == [("y", 0, 1)]
