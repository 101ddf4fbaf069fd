"""`tensorwright profile`: the table, the files, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Invoke = Callable[..., Result]


def test_a_model_is_profiled(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    values_path, trace_path = tmp_path / "values.json", tmp_path / "trace.json"
    files = ("--json", values_path, "--trace", trace_path)
    result = invoke("profile", model, "--repeats", 5, "--threads", 1, *files)
    assert result.exit_code == 0, result.output
    for text in ("matmul_relu", "softmax", "untuned", "all 2 steps", "limited by: ", "GFLOP/s"):
        assert text in result.stdout
    assert "median of 5" in result.stdout

    values = json.loads(values_path.read_text())
    assert [step["label"] for step in values["steps"]] == ["matmul_relu", "softmax"]
    assert values["runs"] == 5
    assert values["steps_us"] == pytest.approx(sum(s["time_us"] for s in values["steps"]))
    parts = values["entering_us"] + values["fluctuation_us"] + values["unexplained_us"]
    assert values["network_us"] - values["steps_us"] == pytest.approx(parts)

    events = json.loads(trace_path.read_text())["traceEvents"]
    steps = [each for each in events if each["ph"] == "X" and each["tid"] == 2]
    assert [each["name"] for each in steps] == ["matmul_relu", "softmax"]
    assert [each["dur"] for each in steps] == pytest.approx([s["time_us"] for s in values["steps"]])


def test_a_saved_executable_is_profiled(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "tiny.tw"
    assert invoke("compile", model, "-o", out, "--threads", 1).exit_code == 0
    result = invoke("profile", out, "--repeats", 2, "--threads", 1)
    assert result.exit_code == 0, result.output
    assert "matmul_relu" in result.stdout
    assert "untuned" in result.stdout


def test_order_top_and_groups(invoke: Invoke, model: Path) -> None:
    how = ("--repeats", 2, "--threads", 1)
    lines = invoke("profile", model, *how, "--order", "run").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["0", "matmul_relu"], ["1", "softmax"]]
    lines = invoke("profile", model, *how, "--top", 1).stdout.splitlines()
    assert lines[2].startswith("1 others")
    assert lines[3].startswith("all 2 steps")
    result = invoke("profile", model, *how, "--by", "workload")
    assert result.exit_code == 0
    assert "softmax" in result.stdout


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--repeats", 0), 2, "repeats"),
        (("--top", 0), 2, "top"),
        (("--order", "size"), 2, "order"),
        (("--target", "vax"), 2, "no such target"),
        (("--json", "no/out.json"), 8, "the folder does not exist"),
        (("--trace", "."), 8, "it is a folder"),
    ],
)
def test_bad_options_are_refused(
    invoke: Invoke, model: Path, options: tuple[str, object], code: int, text: str
) -> None:
    result = invoke("profile", model, *options)
    assert result.exit_code == code
    assert text in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("name", ["none.onnx", "light:none", "zoo:none"])
def test_what_is_no_model_is_refused(invoke: Invoke, name: str) -> None:
    result = invoke("profile", name)
    assert result.exit_code in (2, 3)
    assert "try: " in result.stderr


def test_a_damaged_executable_is_refused(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "tiny.tw"
    assert invoke("compile", model, "-o", out, "--threads", 1).exit_code == 0
    out.write_bytes(out.read_bytes()[:-100])
    result = invoke("profile", out)
    assert result.exit_code == 3
    assert "it is damaged" in result.stderr
