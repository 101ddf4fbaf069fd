"""Ctrl-C while tuning: the executable is written, the store is whole, the command continues."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import tensorwright
from tensorwright.graph import GraphBuilder
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.records import open_store

TRIALS = 24


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    """A network with more schedules than are tried here."""
    builder = GraphBuilder("convolution")
    x = builder.input("x", (1, 16, 14, 14))
    weights = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32)
    w = builder.constant(weights, "w")
    y = builder.add("relu", builder.add("conv", x, w))
    path = tmp_path / "convolution.onnx"
    save_onnx(builder.finish([y]), path)
    return path


def test_optimize_stops_and_goes_on(
    child: Callable[..., dict[str, Any]], convolution: Path, tmp_path: Path, home: Path
) -> None:
    out = tmp_path / "out.tw"
    start = child("optimize", convolution, "-o", out, "--trials", TRIALS, "--threads", 1)
    errors = ""
    with subprocess.Popen(
        **start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            errors += line
            if line.startswith("round 1 "):
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does
                break
        errors += process.stderr.read()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert tensorwright.load(out, threads=1).inputs[0].shape == (1, 16, 14, 14)

    store = home / "records.sqlite"
    with sqlite3.connect(store) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    database.close()
    with open_store(store) as records:
        kept = set(records.query())
    assert 0 < len(kept) < TRIALS

    again = shlex.split(errors.splitlines()[-1])
    assert again == start["args"]
    done = subprocess.run(**start | {"args": again}, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert f"{out}: {TRIALS} trials in " in done.stdout
    with open_store(store) as records:
        assert kept <= set(records.query())


SCRIPT = """
import sys, tensorwright
from tensorwright.tuning.session import choose_callbacks
model, trials = sys.argv[1:]
how = {"trials": int(trials), "threads": 1, "callbacks": choose_callbacks(False)}
tensorwright.CALL(model, **how)
print("it went on")
"""


@pytest.mark.parametrize("call", ["optimize", "tune"])
def test_a_call_from_python_is_interrupted_after_it_has_kept_what_it_measured(
    child: Callable[..., dict[str, Any]], convolution: Path, home: Path, call: str
) -> None:
    start = child()
    script = SCRIPT.replace("CALL", call)
    start["args"] = [sys.executable, "-c", script, str(convolution), str(TRIALS)]
    errors = ""
    with subprocess.Popen(
        **start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            errors += line
            if line.startswith("round 1 "):
                os.killpg(process.pid, signal.SIGINT)
                break
        output, rest = process.communicate()
        errors += rest
    assert process.returncode == -signal.SIGINT, errors  # a shell says 130
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert "all of them kept" in errors
    assert "the same call continues" in errors
    assert output == ""
    with open_store(home / "records.sqlite") as records:
        assert 0 < records.count() < TRIALS


@pytest.mark.parametrize(
    ("command", "step"),
    [
        ("optimize", "tensorwright.cli.optimize.check_executable"),
        ("optimize", "tensorwright.cli.arguments.programs.read_network"),
        ("optimize", "tensorwright.cli.arguments.machine.check_before_measuring"),
        ("optimize", "tensorwright.drivers.optimize.rewrite"),
        ("optimize", "tensorwright.drivers.optimize.search"),
        ("optimize", "tensorwright.pipeline.finish"),
        ("tune", "tensorwright.cli.tune.read_programs"),
        ("tune", "tensorwright.cli.tune.search_networks"),
    ],
)
def test_the_command_that_goes_on_is_told_whenever_the_interrupt_comes(
    invoke: Callable[..., Result],
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    step: str,
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "tensorwright.cli.arguments.machine.check_before_measuring", lambda *_: None
    )
    monkeypatch.setattr(step, interrupted)
    out = tmp_path / "out.tw"
    words = [command, str(model), *(("-o", str(out)) if command == "optimize" else ())]
    words += ["--trials", "1", "--threads", "1", "--quiet"]
    result = invoke(*words)
    assert result.exit_code == 130, result.output
    assert result.stderr.splitlines()[-1].endswith(f"tensorwright {shlex.join(words)}")
    assert not out.exists()


def test_what_cannot_be_tuned_is_refused_before_the_machine_is_looked_at(
    invoke: Callable[..., Result], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_at(*arguments: object) -> None:
        raise AssertionError(arguments)

    out = tmp_path / "m.tw"
    assert invoke("compile", model, "-o", out, "--threads", 1).exit_code == 0
    monkeypatch.setattr("tensorwright.cli.arguments.machine.check_before_measuring", looked_at)
    other = tmp_path / "other.tw"
    for words in (("optimize", out, "-o", other), ("optimize", "no.py:x", "-o", other)):
        assert invoke(*words, "--trials", 1).exit_code == 2
    assert invoke("tune", out, "--trials", 1).exit_code == 2
