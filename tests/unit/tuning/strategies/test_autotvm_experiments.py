"""The order, the sharing, the tables and the resuming of AutoTVM's experiments; nothing is run."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tensorwright.base import UsageError

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


def load(name: str) -> ModuleType:
    """A module of benchmarks/, which import each other as they do when they are run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module(name)


LAB = load("lab.searches")
EXPERIMENTS = load("lab.autotvm_experiments")
PAGE = load("lab.autotvm_page")
MAIN = load("autotvm")
PLAN = EXPERIMENTS.Plan(2, 3, is_quick=True)


def ended(job: Any, best_s: tuple[float, ...] = (3e-3, 2e-3, 1e-3), took_s: float = 6.0) -> Any:
    """A run of a job, a trial each second."""
    at_s = tuple(float(n + 1) for n in range(len(best_s)))
    curve = LAB.Curve(job.subject, job.variant, job.seed, best_s, 0.5, at_s)
    fastest = (f"trace {job.variant}", "another trace")
    return EXPERIMENTS.Run(job.experiment, curve, 0.0, fastest, job.trials, took_s)


def all_jobs(plan: Any) -> list[Any]:
    names = list(EXPERIMENTS.EXPERIMENTS)
    return [job for seed in range(plan.seeds) for job in plan.jobs(names, seed)]


def test_searches_are_ordered_seed_by_seed() -> None:
    for plan in (PLAN, MAIN.FULL):
        jobs = all_jobs(plan)
        assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
        assert len(set(jobs)) == len(jobs)
        for job in jobs:
            assert job.how.features
            assert job.subject in EXPERIMENTS.WORKLOADS
        half = {job.trials for job in jobs if job.experiment == "resnet"}
        assert half <= {plan.trials // 2}


def test_some_ways_to_search_are_run_alone() -> None:
    plan = EXPERIMENTS.Plan(1, 3, only=("mended", "vanilla"))
    assert plan.variants("annealing") == ("vanilla", "mended")
    assert len(plan.variants("features")) == 6  # it has neither
    assert {job.variant for job in plan.jobs(["annealing"], 0)} == {"vanilla", "mended"}


def test_the_twelfth_convolution_is_that_of_the_report() -> None:
    workloads = EXPERIMENTS.WORKLOADS
    assert workloads["R12"] == workloads["C12"]
    assert workloads["C7"].gflop == pytest.approx(0.1156, abs=1e-4)
    assert workloads["C12"].gflop == pytest.approx(0.2312, abs=1e-4)
    assert len(EXPERIMENTS.RESNET) == 12


def test_what_stops_in_the_middle_compares_equal_seeds() -> None:
    jobs = [job for job in all_jobs(PLAN) if job.experiment == "spaces" and job.subject == "C7"]
    runs = [ended(job) for job in jobs[:-1]]
    assert {run.curve.seed for run in EXPERIMENTS.compared(PLAN, runs)} == {0}
    assert len(EXPERIMENTS.compared(PLAN, [*runs, ended(jobs[-1])])) == len(jobs)
    assert "1 seed." in PAGE.page(PLAN, runs, {})


def test_what_is_left_is_told_from_what_others_took() -> None:
    first, second, third = all_jobs(PLAN)[:3]
    assert EXPERIMENTS.seconds_left([first], []) is None
    runs = [ended(first, took_s=6.0), ended(second, took_s=12.0)]
    assert EXPERIMENTS.seconds_left([], runs) == 0
    again = EXPERIMENTS.Job(1, first.experiment, first.subject, first.variant, 6)
    assert EXPERIMENTS.seconds_left([again], runs) == pytest.approx(12.0)
    assert EXPERIMENTS.seconds_left([third], runs) == pytest.approx(9.0)
    assert EXPERIMENTS.seconds_left([third, third], runs) == pytest.approx(9.0)


def test_seconds_until_the_templates_last_speed() -> None:
    jobs = [job for job in all_jobs(PLAN) if job.experiment == "spaces" and job.subject == "C12"]
    times = {"templates, AutoTVM": (4e-3, 2e-3, 2e-3), "sketches": (2e-3, 1e-3, 1e-3)}
    runs = [ended(job, times.get(job.variant, (5e-3, 4e-3, 3e-3))) for job in jobs]
    lines = PAGE.page(PLAN, runs, {}).splitlines()
    assert "| C12 | templates, AutoTVM | 2 | 2 | 2 of 2 |" in lines
    assert "| C12 | sketches | 1 | 1 | 2 of 2 |" in lines
    assert "| C12 | templates | - | - | 0 of 2 |" in lines
    library = {"C12": PAGE.Library(1.5e-3, "trace", "1.0")}
    text = PAGE.page(PLAN, runs, library)
    assert "| C12 | 154 | sketches | 231 | 2, 2 |" in text
    assert "| C12 | 154 | templates | 77 | over 3, over 3 |" in text


def test_ends_of_searches_are_compared_by_what_was_measured_again() -> None:
    jobs = [job for job in all_jobs(PLAN) if job.experiment == "spaces" and job.subject == "C12"]
    runs = list(map(ended, jobs))
    times_s = {f"trace {job.variant}": 1e-3 * (job.seed + 1) for job in jobs}
    again = {"C12": times_s | {"trace sketches": 4e-3, "another trace": 2e-3}}
    text = PAGE.page(PLAN, runs, {}, again)
    assert "| sketches | 231 | 231 to 231 | 116 (116 to 116) | 0% | 0.5 |" in text
    assert "| sketches | 231 | 231 to 231 | - | 0% | 0.5 |" in PAGE.page(PLAN, runs, {})


def test_a_curve_over_seconds() -> None:
    curve = LAB.Curve("C7", "x", 0, (3.0, 2.0), 0.1, (1.0, 4.0))
    assert [curve.after(each) for each in (0.5, 1.0, 3.9, 4.0, 9.0)] == [math.inf, 3, 3, 2, 2]
    assert (curve.until(2.5), curve.until(1.0)) == (2, None)
    assert PAGE.reached(curve, 2.0) == (4.0, 2.0)


def test_the_sum_over_a_network_needs_all_of_it() -> None:
    plan = EXPERIMENTS.Plan(1, 6)
    jobs = list(plan.jobs(["resnet"], 0))
    assert "ResNet-18" not in PAGE.page(plan, [ended(job) for job in jobs[:-5]], {})
    assert "| knob | 12.000 | 12.000 to 12.000 |" in PAGE.page(plan, list(map(ended, jobs)), {})


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    kept = MAIN.Kept.open(PLAN, tmp_path)
    jobs = all_jobs(PLAN)
    kept.runs += [ended(job) for job in jobs[:3]]
    kept.library["C7"] = PAGE.Library(1.0, "trace", "2")
    kept.again["C7"] = {"trace": 1.5}
    kept.draw()
    assert (tmp_path / "autotvm.md").exists()
    again = MAIN.Kept.open(EXPERIMENTS.Plan(5, 3, is_quick=True), tmp_path)
    assert again.runs == kept.runs
    assert again.library == kept.library
    assert again.again == kept.again
    assert all(again.has(job) for job in jobs[:3])
    assert not again.has(jobs[3])
    with pytest.raises(UsageError, match="it holds a run of 3 trials, not 4"):
        MAIN.Kept.open(EXPERIMENTS.Plan(2, 4, is_quick=True), tmp_path)


def test_equal_searches_of_two_experiments_run_once(tmp_path: Path) -> None:
    kept = MAIN.Kept.open(PLAN, tmp_path)
    features = EXPERIMENTS.Job(0, "features", "C7", "itervar", 3)
    vanilla = EXPERIMENTS.Job(0, "annealing", "C7", "vanilla", 3)
    kept.runs.append(ended(features))
    assert kept.has(vanilla)
    assert kept.runs[1].job == vanilla
    assert kept.runs[1].took_s == 0
    assert not kept.has(EXPERIMENTS.Job(1, "annealing", "C7", "vanilla", 3))


def test_figures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    jobs = [job for job in all_jobs(PLAN) if job.experiment == "spaces"]
    PAGE.write_figures(PLAN, list(map(ended, jobs)), tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["seconds.png", "spaces.png"]


def test_what_was_measured_is_read_up_to_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    lines = [["w", "a", "ok", 2.0, 0.25], ["w", "b", "run_error", 0.0, 0.5], ["w", "c", "ok", 1.0]]
    text = "\n".join(map(json.dumps, lines))
    path.write_text(text + '\n["w", "d", "o')
    lab = LAB.Lab(2, path)
    assert set(lab.known) == {("w", "a"), ("w", "b")}
    assert lab.known["w", "a"].cost_s == 0.25
    assert lab.known["w", "b"].time_s == math.inf
