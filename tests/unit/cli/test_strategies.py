"""`--strategy` of `tune` and `optimize`, `--space` of the latter; `--proposing`, and `pretrain
proposer`, which fits what that takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from tensorwright.base import override
from tensorwright.pipeline import prepare
from tensorwright.records import Record, Status, open_store
from tensorwright.schedule import state_of
from tensorwright.tuning.population import make_space_tables, sample
from tensorwright.tuning.space import space_of
from tensorwright.tuning.strategies import STRATEGIES
from tensorwright_lab.pretrain.proposer import records_by_network, workloads_of
from tensorwright_lab.pretraining import Conditions
from tensorwright_lab.proposing import load_proposing_model
from tensorwright_lab.zoo.plausible import draw_network

Invoke = Callable[..., Result]
CONDITIONS = Conditions("x86-64-avx2", 1, is_cold=False)
SEEDS = (10, 11, 12)

MODULE = """
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over

x, w, k = placeholder("x", (8, 24)), placeholder("w", (24, 24)), reduce_axis("k", 24)
y = compute("y", (8, 24), lambda i, j: sum_over(x[i, k] * w[k, j], k))
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "own_op.py"
    path.write_text(MODULE)
    return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of some random networks, with times that were made up."""
    folder = tmp_path_factory.mktemp("measured")
    with open_store(folder / f"{CONDITIONS}.sqlite", create=True) as store:
        for seed in SEEDS:
            with override(default_schedule="rule"):
                workloads = prepare(draw_network(seed), CONDITIONS.target).workloads
            for workload in workloads[:2]:
                space = space_of(state_of(workload), CONDITIONS.target)
                drawn = sample(make_space_tables(space), 12, np.random.default_rng(seed))
                store.append(
                    [
                        Record(
                            workload.key, "t", "h", 1, one.trace, (1e-3 * (n + 1),), Status.OK,
                            decisions=one.decisions, seed=seed,
                        )
                        for n, one in enumerate(drawn.take(drawn.first_of_each()).candidates(space))
                    ]
                )  # fmt: skip
    return folder


def test_what_was_measured_is_found_again(measured: Path) -> None:
    found = records_by_network(measured / f"{CONDITIONS}.sqlite")
    assert tuple(found) == SEEDS
    for seed, records in found.items():
        family, workloads = workloads_of(seed, CONDITIONS, records)
        assert draw_network(seed).name == f"{family}_{seed}"
        assert {each.key for each in workloads} == set(records)


def test_a_strategy_is_named(invoke: Invoke, module: Path, home: Path) -> None:
    how = ("--strategy", "grid", "--trials", 4, "--threads", 1, "--quiet")
    done = invoke("tune", f"{module}:y", *how)
    assert done.exit_code == 0, done.output
    assert "4 trials in" in done.output


def test_optimize_searches_by_a_strategy_in_a_space(
    invoke: Invoke, model: Path, home: Path, tmp_path: Path
) -> None:
    how = ("--strategy", "random", "--space", "both", "--trials", 3, "--threads", 1, "--quiet")
    done = invoke("optimize", model, "-o", tmp_path / "tiny.tw", "--no-rewrite", *how)
    assert done.exit_code == 0, done.output
    with open_store(home / "records.sqlite") as store:
        kept = [json.loads(each.arguments) for each in store.sessions()]
    (session,) = [each for each in kept if "seed" in each]
    assert (session["strategy"], session["space"]) == ("random", "both")


@pytest.mark.parametrize(("option", "value"), [("--strategy", "gird"), ("--space", "template")])
def test_optimize_refuses_unknown_names(
    invoke: Invoke, model: Path, tmp_path: Path, option: str, value: str
) -> None:
    done = invoke("optimize", model, "-o", tmp_path / "tiny.tw", "--trials", 3, option, value)
    assert done.exit_code == 2
    assert not (tmp_path / "tiny.tw").exists()


def test_an_unknown_strategy_is_refused_with_a_list(invoke: Invoke, module: Path) -> None:
    done = invoke("tune", f"{module}:y", "--strategy", "gird", "--trials", 4)
    assert done.exit_code == 2
    assert "there is no 'gird'" in done.stderr
    assert all(name in done.stderr for name in STRATEGIES)


def test_a_proposing_model_is_fitted_and_searches_start_by_it(
    invoke: Invoke, measured: Path, module: Path, tmp_path: Path, home: Path
) -> None:
    model = tmp_path / "proposing.npz"
    done = invoke("pretrain", "proposer", str(measured), "-o", str(model), "--rounds", 5)
    assert done.exit_code == 0, done.output
    workloads = load_proposing_model(model).statistics["workloads"]
    assert workloads > 2
    assert f"good schedules of {workloads} workloads" in done.output
    how = ("--proposing", model, "--trials", 3, "--threads", 1, "--quiet")
    done = invoke("tune", f"{module}:y", *how)
    assert done.exit_code == 0, done.output


def test_a_damaged_model_is_refused_before_anything_is_measured(
    invoke: Invoke, module: Path, tmp_path: Path
) -> None:
    model = tmp_path / "proposing.npz"
    model.write_bytes(b"PK nothing")
    done = invoke("tune", f"{module}:y", "--proposing", model, "--trials", 3)
    assert done.exit_code != 0
    assert "train it again" in done.stderr


def test_a_folder_with_too_little_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("pretrain", "proposer", str(tmp_path), "-o", str(tmp_path / "model.npz"))
    assert done.exit_code != 0
    assert "too little" in done.stderr
