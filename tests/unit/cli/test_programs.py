"""What commands take: models, executables and tensor expressions, each where it makes sense."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import Result

import tensorwright
from tensorwright.base import ModelError

Invoke = Callable[..., Result]


@pytest.fixture
def executable(invoke: Invoke, model: Path, tmp_path: Path) -> Path:
    """The model compiled, in a file whose name does not say so."""
    path = tmp_path / "compiled.bin"
    assert invoke("compile", model, "-o", path, "--threads", 1).exit_code == 0
    return path


def refused(result: Result, code: int, *texts: object) -> None:
    assert result.exit_code == code, result.output
    for text in texts:
        assert str(text) in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_is_told_by_what_it_holds(invoke: Invoke, own: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.tw"
    assert invoke("compile", f"{own}:both", "-o", out, "--threads", 1).exit_code == 0
    with pytest.raises(ModelError, match=r"but an executable of tensorwright[\s\S]*\.load\("):
        tensorwright.compile(out)
    with pytest.raises(ModelError, match=r"if it is a model[\s\S]*    tensorwright compile "):
        tensorwright.load(own)


# Expressions


def test_an_expression_is_run_timed_and_written(invoke: Invoke, own: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape, np.float32) for shape in ((8, 24), (24, 24)))
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "w.npz", w=w)
    words = ("run", f"{own}:layer", "--threads", 1, "--input", f"x={tmp_path / 'x.npy'}")
    words = (*words, "--constants", tmp_path / "w.npz")
    result = invoke(*words, "-o", tmp_path / "y.npy", "--repeat", 3)
    assert result.exit_code == 0, result.output
    assert "ms a run on 1 thread, median of 3; " in result.stdout
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), x @ w, rtol=1e-5, atol=1e-5)
    refused(invoke(*words, "-o", tmp_path / "y.txt"), 8, "neither .npy")


def test_several_outputs_go_into_an_archive(invoke: Invoke, own: Path, tmp_path: Path) -> None:
    words = ("run", f"{own}:both", "--threads", 1, "--input", "random")
    assert invoke(*words, "-o", tmp_path / "o.npz").exit_code == 0
    with np.load(tmp_path / "o.npz") as arrays:
        np.testing.assert_allclose(arrays["z"], arrays["y"] * 2)


def test_an_expression_is_inspected(invoke: Invoke, own: Path) -> None:
    shown = invoke("inspect", f"{own}:both").stdout
    assert shown.startswith("workload both ")
    assert "sum over k in 0..24 of x[i, k] * w[k, j]" in shown
    assert "--- loop: both " in invoke("inspect", f"{own}:both", "--what", "loop").stdout


def test_an_expression_is_profiled_compiled_and_optimized(
    invoke: Invoke, own: Path, tmp_path: Path
) -> None:
    out, weights = tmp_path / "o.tw", np.eye(24, dtype=np.float32)
    np.savez(tmp_path / "w.npz", w=weights)
    profiled = invoke("profile", f"{own}:layer", "--threads", 1, "--repeats", 3)
    assert profiled.exit_code == 0, profiled.output
    assert "all 1 step" in profiled.stdout
    constants = ("--constants", tmp_path / "w.npz", "--threads", 1)
    compiled = invoke("compile", f"{own}:layer", "-o", out, *constants)
    assert compiled.stdout.endswith(f"{out}: 1 workloads, 1 of them untuned: 1 by heuristic\n")
    x = np.random.default_rng(0).standard_normal((8, 24), np.float32)
    np.testing.assert_allclose(tensorwright.load(out, threads=1)(x), x)
    out.unlink()
    words = ("optimize", f"{own}:layer", "-o", out, *constants, "--quiet")
    assert invoke(*words, "--trials", 2).exit_code == 0
    np.testing.assert_allclose(tensorwright.load(out, threads=1)(x), x)


def test_threads_apply_to_an_executable(invoke: Invoke, executable: Path) -> None:
    result = invoke("profile", executable, "--threads", 1, "--repeats", 2)
    assert result.exit_code == 0, result.output
    assert "1 thread: " in result.stdout
    assert invoke("inspect", executable).stdout.startswith("tiny ")


def _with_weights_beside(model: Path) -> tuple[Path, Path]:
    """The model saved once more, its weights in a file of their own."""
    copy = model.with_name("beside.onnx")
    onnx.save(
        onnx.load(model), copy, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    return copy, model.with_name("w.bin")


def test_a_file_that_is_not_read_is_written_over(
    invoke: Invoke, own: Path, tmp_path: Path, model: Path
) -> None:
    beside, _ = _with_weights_beside(model)
    out = tmp_path / "other.tw"
    for program in (f"{own}:both", beside):
        out.write_text("old")
        result = invoke("compile", program, "-o", out)
        assert result.exit_code == 0, result.output
        assert out.read_bytes() != b"old"


# Running


def test_answers_are_checked_against_another_runtime(
    invoke: Invoke, executable: Path, model: Path, wide_model: Path
) -> None:
    pytest.importorskip("onnxruntime")
    words = ("run", executable, "--input", "random", "--check-against", "onnxruntime")
    refused(invoke(*words), 2, "another runtime cannot run it", "--model MODEL")
    result = invoke(*words, "--model", model)
    assert result.exit_code == 0, result.output
    assert ", passes (at most 0.0001 of the largest number)" in result.stdout
    content = model.read_bytes()
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32).tobytes()
    assert weights in content
    model.write_bytes(content.replace(weights, bytes(reversed(weights))))
    result = invoke(*words, "--model", model)
    assert result.exit_code == 1, result.output
    assert ", FAILS (at most" in result.stdout


def test_an_executable_runs_without_the_compiler(
    child: Callable[..., Any], executable: Path
) -> None:
    script = (
        "import sys\n"
        "from tensorwright.cli.group import program\n"
        f"try:\n    program(['run', {str(executable)!r}, '--input', 'random'])\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'onnx', 'scipy', 'lightgbm', 'rich'} & set(sys.modules)\n"
        "ours = ('graph', 'ops', 'expr', 'schedule', 'loop', 'codegen', 'tuning', 'peers')\n"
        "heavy |= {each for each in ours if f'tensorwright.{each}' in sys.modules}\n"
        "assert not heavy, heavy\n"
    )
    start = child()
    start["args"] = [sys.executable, "-c", script]
    done = subprocess.run(**start, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("softmax")
