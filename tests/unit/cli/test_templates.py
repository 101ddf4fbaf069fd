"""`tune --space templates` with a template of one's own; logs of AutoTVM in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from tests.unit.records.test_logs import ANSOR, CUDA
from tests.unit.tuning.space.test_template_logs import DENSE, TILE_I, TILE_J, line

from tensorwright.records import open_store
from tensorwright.records.logs import LogFormat, read_log
from tensorwright.tuning.space.templates import unregister_template

Invoke = Callable[..., Result]

MODULE = """
from tensorwright.expr import compute, placeholder
from tensorwright.schedule import Vectorize
from tensorwright.tuning.space.templates import template

x = placeholder("x", (6, 40))
y = compute("own_y", (6, 40), lambda i, j: x[i, j] * 2.0)

@template(applies=lambda state, target: state.outputs == ("own_y",))
def few_lanes(s, cfg):
    *_, lanes = cfg.define_split("width", 40).apply(s, "own_y", "j")
    s.do(Vectorize("own_y", lanes))
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "own_template.py"
    path.write_text(MODULE)
    yield path
    unregister_template("few_lanes")


def test_ones_own_template_is_tuned_and_exported(
    invoke: Invoke, module: Path, home: Path, tmp_path: Path
) -> None:
    program = f"{module}:y"
    done = invoke("tune", program, "--space", "templates", "--trials", 4, "--threads", 1)
    assert done.exit_code == 0, done.output
    assert "y: 8 schedules of few_lanes" in done.output
    with open_store(home / "records.sqlite") as store:
        found = [record for record in store.query() if "width" in dict(record.decisions)]
    assert len(found) >= 3  # of four trials one is the default schedule
    log = tmp_path / "own.log"
    done = invoke("records", "export", log, "--format", "autotvm", "--of", program)
    assert done.exit_code == 0, done.output
    lines = read_log(log, LogFormat.AUTOTVM)
    assert len(lines) == len(found)
    done = invoke("records", "import", log, "--of", program)
    assert done.exit_code == 0, done.output
    assert f"{len(lines)} lines" in done.output
    assert "seed of" in done.output


def test_an_unknown_space_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("tune", "op.py:y", "--space", "template", "--trials", 1)
    assert done.exit_code == 2
    assert "templates" in done.output


def test_a_log_is_listed(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("\n".join([CUDA, line(*DENSE, TILE_I, TILE_J)]))
    done = invoke("records", "import", log, "--target", "x86-64-avx512")
    assert done.exit_code == 0, done.output
    assert "conv2d_nchw.cuda 1x256x14x14, 512x256x1x1" in done.output
    assert "direct: no knob tile_f" in done.output
    assert "2 lines, 1 of them seeds" in done.output


def test_a_log_of_ansor_is_listed(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "a.json"
    log.write_text(ANSOR)
    done = invoke("records", "import", log)
    assert done.exit_code == 0, done.output
    assert "matmul 128, [64, 32]" in done.output
    assert "1 lines, 0 of them seeds" in done.output


def test_a_bad_line_is_refused_with_its_place(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"{CUDA}\n" + CUDA.replace('"sp"', '"xx"', 1))
    done = invoke("records", "import", log)
    assert done.exit_code != 0
    assert f"{log}, line 2" in done.output
    assert "entity tile_f is of an unknown kind 'xx'" in done.output


def test_an_export_for_autotvm_needs_programs(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    with open_store(home / "records.sqlite"):
        done = invoke("records", "export", tmp_path / "log", "--format", "autotvm")
    assert done.exit_code == 2
    assert "--of MODEL" in done.output
