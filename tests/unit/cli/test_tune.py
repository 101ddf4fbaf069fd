"""`tensorwright tune`: models, expressions of one's own, objectives; only records are left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tensorwright.cli.arguments.programs import read_program
from tensorwright.cli.tune import choose_objective
from tensorwright.records import open_store
from tensorwright.tuning.task_scheduling import LatencyRequirement, MeanSpeedUp, NetworkTimes

Invoke = Callable[..., Result]

MODULE = """
import tensorwright
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over

x, w, k = placeholder("x", (8, 24)), placeholder("w", (24, 24)), reduce_axis("k", 24)
y = compute("y", (8, 24), lambda i, j: sum_over(x[i, k] * w[k, j], k))
both = (y, compute("z", (8, 24), lambda i, j: y[i, j] * 2.0))
layer = tensorwright.program(y, constants=("w",), name="layer")
number = 3

def make():
    return compute("made", (8, 24), lambda i, j: x[i, j] + 1.0)

def fails():
    raise ValueError("no such thing")

def worst(networks):
    return max(network.latency_s for network in networks)

def raises(networks):
    raise ValueError("boom")

def shrugs(networks):
    return None
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "own_op.py"
    path.write_text(MODULE)
    return path


def test_a_search_starts_from_records_of_other_workloads(
    invoke: Invoke, module: Path, home: Path, tmp_path: Path
) -> None:
    how = ("--trials", 12, "--threads", 1, "--quiet")
    done = invoke("tune", f"{module}:layer", *how)
    assert done.exit_code == 0, done.output
    for start in ("records", home / "records.sqlite"):
        done = invoke("tune", f"{module}:both", *how, "--start", start)
        assert done.exit_code == 0, done.output
    done = invoke("tune", f"{module}:both", *how, "--start", tmp_path / "none.sqlite")
    assert done.exit_code == 2
    assert "there is no file" in done.output
    done = invoke("tune", f"{module}:both", *how, "--start", "records", "--features", "knob")
    assert done.exit_code == 2
    assert "say nothing about others" in done.output


def test_an_expression_of_ones_own(invoke: Invoke, module: Path, home: Path) -> None:
    done = invoke("tune", f"{module}:layer", "--trials", 3, "--threads", 1, "--quiet")
    assert done.exit_code == 0, done.output
    assert "3 trials in" in done.output
    with open_store(home / "records.sqlite") as store:
        assert store.count() >= 3
        assert len(store.workloads()) == 1


@pytest.mark.parametrize(
    ("name", "outputs", "constants"),
    [("y", ["y"], ()), ("both", ["y", "z"], ()), ("layer", ["y"], ("w",)), ("make", ["made"], ())],
)
def test_what_an_expression_may_be(
    module: Path, name: str, outputs: list[str], constants: tuple[str, ...]
) -> None:
    found = read_program(f"{module}:{name}")
    assert [each.name for each in found.outputs] == outputs
    assert found.constants == frozenset(constants)


def test_a_module_by_its_dotted_name(
    invoke: Invoke, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(module.parent)
    monkeypatch.syspath_prepend(str(module.parent))
    done = invoke("tune", "own_op:make", "--trials", 1, "--threads", 1)
    assert done.exit_code == 0, done.output
    assert "untuned" in done.output
    assert "100.0% of the time" in done.output


def test_models_and_expressions_share_a_budget(
    invoke: Invoke, model: Path, wide_model: Path, module: Path, tmp_path: Path
) -> None:
    path = tmp_path / "own.sqlite"
    done = invoke(
        *("tune", model, wide_model, f"{module}:y", "--records", path),
        *("--trials", 8, "--threads", 1, "--objective", f"{module}:worst"),
    )
    assert done.exit_code == 0, done.output
    assert "8 trials in" in done.output
    assert str(path) in done.output
    with open_store(path) as store:
        assert len(store.workloads()) >= 3


def test_objectives_of_the_paper(module: Path) -> None:
    assert choose_objective(None, (), ()) is None
    pairs = (("a", 0.0005), ("b", 0.02))
    assert choose_objective(None, ("b=20", "a=0.5"), ()) == LatencyRequirement(pairs)
    assert choose_objective(None, (), ("b=20", "a=0.5")) == MeanSpeedUp(pairs)
    own = choose_objective(f"{module}:worst", (), ())
    assert own is not None
    assert own([NetworkTimes("a", (2.0,), (0.5,)), NetworkTimes("b", (1.0,), (0.75,))]) == 1.0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("{module}:number",), "it is of type int, not a tensor expression"),
        (("{module}:nothing",), "has no nothing"),
        (("{module}:fails",), "calling it failed: ValueError: no such thing"),
        (("no_such_module:y",), "no_such_module cannot be imported: ModuleNotFoundError"),
        (("{module}x.py:y",), "FileNotFoundError"),
        (("{module}:y", "--limit", "y"), "not of the form NAME=MS"),
        (("{module}:y", "--limit", "y=-1"), "with a time above zero"),
        (("{module}:y", "--limit", "y=1", "--reference", "y=1"), "several objectives"),
        (("{module}:y", "--objective", "{module}:number"), "it is of type int, not a function"),
        (("{module}:y", "--objective", "worst"), "it is not of the form MODULE:NAME"),
        (("{module}:y", "--objective", "{module}:raises"), "calling it failed: ValueError: boom"),
        (("{module}:y", "--objective", "{module}:shrugs"), "it returned None, not a number"),
        (("{module}:y", "--limit", "z=1"), "no network or expression of this name is tuned"),
        (("{module}:y", "--reference", "z=1"), "no network or expression of this name is tuned"),
    ],
)
def test_what_cannot_be_tuned(
    invoke: Invoke, module: Path, arguments: tuple[str, ...], reason: str
) -> None:
    done = invoke("tune", *(each.format(module=module) for each in arguments), "--trials", 1)
    assert done.exit_code == 2
    assert reason in done.output
    assert "try: " in done.output
    assert "Traceback" not in done.output


def test_a_file_that_is_missing_is_a_model(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("tune", tmp_path / "missing.onnx", "--trials", 1)
    assert done.exit_code == 3


def test_what_was_not_measured_has_no_share(invoke: Invoke, module: Path) -> None:
    done = invoke("tune", f"{module}:layer", "--minutes", 1e-9, "--threads", 1, "--quiet")
    assert done.exit_code == 0, done.output
    assert "0 trials in" in done.output
    assert "layer: not measured" in done.output
    assert "0.0%" not in done.output
