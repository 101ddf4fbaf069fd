"""AutoTVM's experiments on this machine: features, annealing, transfer, templates, a library.

    features    what describes a program to the model (the report's tables 2 and 3, figures 3, 4)
    relations   which relations of the loops' quantities help (`docs/features.md`)
    annealing   as published, and mended: what the runs end with, and how far apart (figure 5)
    transfer    the model starts from what it learned of another convolution, and without
    spaces      templates under AutoTVM's settings and ours, and sketches: over trials, and how many
                seconds until the speed that templates under AutoTVM's settings end with
    resnet      the twelve convolutions of ResNet-18, half as many trials each; not in a quick run
    library     after how many trials the fastest kernel is ahead of oneDNN, through PyTorch

All searches of a run share what is measured (`lab/searches.py`), so that they see one landscape; a
program counts as a trial, and its seconds count, of each search that asks for it.  Searches that
are the same in two experiments run once.  Curves are of the speed of the best program so far,
relative to the best that any search has found; bands span the seeds.  What a search ends with was
measured once, and is the luckier the more the machine's speed changes: the fastest programs of all
searches of a workload are measured again in turns, in a column of its own.

Run: python benchmarks/autotvm.py [--quick] [--out FOLDER] [--seeds N] [--trials N]
         [--experiment NAME ...] [--workload NAME ...] [--search NAME ...]
Run again with the same folder to go on: what a search found is written when it ends, and what was
measured at once.  The tables hold what is complete for a seed.

Source:  Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018; and the report Learning
         "Learning to Optimize Tensor Programs", 2018, whose workloads C7 and C12 these are.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.autotvm_experiments import (
    ENDS,
    EXPERIMENTS,
    WORKLOADS,
    Job,
    Plan,
    Run,
    Variant,
    seconds_left,
)
from lab.autotvm_page import Library, page, write_figures
from lab.pictures import pyplot
from lab.searches import ROUND, THREADS, Curve, Lab, Search

from tensorwright import base
from tensorwright.machine import detect_hardware
from tensorwright.records import Setting
from tensorwright.tuning.learning import Learning, open_learning
from tensorwright.tuning.strategies.named import choose_strategy
from tensorwright.tuning.task import Task
from tensorwright_lab.comparison import OpPlan, compare_case
from tensorwright_lab.zoo import operator_program

PEER = "pytorch"
QUICK = Plan(2, 128, is_quick=True)
FULL = Plan(5, 1000)


def search(lab: Lab, job: Job) -> Run:
    """One search from its first trial to its last."""
    started = time.monotonic()
    how, start = job.how, None
    if how.before:
        start = _model_file(lab, how, job.seed)
        if not start.exists():
            _search(lab, replace(job, subject=how.before), None, start)
    found, failed, fastest = _search(lab, job, start, None)
    curve = Curve(
        job.subject,
        job.variant,
        job.seed,
        tuple(found.best_s),
        found.search_s,
        tuple(found.at_s),
    )
    took_s = time.monotonic() - started
    return Run(job.experiment, curve, failed, fastest, job.trials, took_s)


def _search(
    lab: Lab, job: Job, start: Path | None, keep: Path | None
) -> tuple[Search, float, tuple[str, ...]]:
    how = job.how
    task = Task(operator_program(WORKLOADS[job.subject]).workload)
    learning = Learning(how.features, how.model, start=start)
    learned = open_learning(learning, Setting(lab.target, THREADS), job.seed)
    make = choose_strategy(how.strategy, learned.make_guide)
    found = Search(lab, task, make, job.seed, how.space)
    while len(found.best_s) < job.trials and not found.state.is_exhausted:
        found.round(min(ROUND, job.trials - len(found.best_s)))
    if keep is not None and learned.shared is not None:
        learned.shared.save(keep, "here")
    known = {each: found.lab.known[task.workload.key, each] for each in found.tried}
    failed = sum(not each.status.is_timed for each in known.values()) / len(known)
    fastest = sorted(known, key=lambda each: known[each].time_s)[:ENDS]
    return found, failed, tuple(fastest)


def _model_file(lab: Lab, how: Variant, seed: int) -> Path:
    assert lab.path is not None, "the lab keeps what it measures"
    return lab.path.parent / f"model_{how.features}_{how.strategy}_{how.before}_{seed}.npz"


def measure_library(subject: str, runs: Sequence[Run]) -> Library | None:
    """What the library takes, in the seconds of the lab: measured beside our fastest, in turns.

    None where it has no time.
    """
    best = min(runs, key=lambda run: run.curve.best_s[-1])
    plan = OpPlan(base.detect_target(), THREADS, (PEER,))
    trace = best.fastest[0]
    ours, *others = compare_case(operator_program(WORKLOADS[subject]), trace, 4, plan)
    timed = [each for each in others if each.time_s]
    for each in others:
        if each.failure:
            print(f"{subject}, {each.peer} {each.form}: {each.failure}", file=sys.stderr)
    if not timed or not ours.time_s:
        return None
    fastest = min(timed, key=lambda each: each.time_s or math.inf)
    assert fastest.time_s, "it is timed"
    time_s = best.curve.best_s[-1] * fastest.time_s / ours.time_s
    return Library(time_s, trace, fastest.version)


@dataclass(slots=True)
class Kept:
    """What was run so far, in a folder: a run that was cut off goes on.  Mutable.

    again   of each workload, seconds of the programs that searches ended with, measured in turns

    Raises:  UsageError where the folder holds a run of other trials.
    """

    plan: Plan
    out: Path
    runs: list[Run]
    library: dict[str, Library]
    again: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def open(cls, plan: Plan, out: Path) -> Kept:
        """What the folder holds, for at least as many seeds as the plan has."""
        out.mkdir(parents=True, exist_ok=True)
        kept = cls(plan, out, [], {})
        if kept._path.exists():
            content = json.loads(kept._path.read_text())
            before = Plan(**content["plan"])
            if replace(before, seeds=plan.seeds, only=plan.only) != plan:
                raise base.UsageError(
                    stage="benchmark",
                    where=str(out),
                    reason=f"it holds a run of {before.trials} trials, not {plan.trials}",
                    remedy="name another folder with --out, or remove this one",
                )
            kept.runs = [_run(fields) for fields in content["runs"]]
            kept.library = {name: Library(**each) for name, each in content["library"].items()}
            kept.again = content["again"]
        return kept

    @property
    def _path(self) -> Path:
        return self.out / "autotvm.json"

    def has(self, job: Job) -> bool:
        """Whether a search has ended; one that did the same counts, and is noted for this one."""
        if any(run.job == job for run in self.runs):
            return True
        same = next((run for run in self.runs if run.job.work == job.work), None)
        if same is None:
            return False
        curve = replace(same.curve, variant=job.variant)
        self.runs.append(replace(same, experiment=job.experiment, curve=curve, took_s=0.0))
        return True

    def add_library(self) -> None:
        """Measure the library where it has not been, or where our fastest program is a new one."""
        spaces = [run for run in self.runs if run.experiment == "spaces"]
        for subject in dict.fromkeys(run.curve.subject for run in spaces):
            own = [run for run in self.runs if run.curve.subject == subject]
            trace = min(own, key=lambda run: run.curve.best_s[-1]).fastest[0]
            if subject in self.library and self.library[subject].trace == trace:
                continue
            measured = measure_library(subject, own)
            if measured is not None:
                self.library[subject] = measured
                self.keep()

    def measure_again(self, lab: Lab) -> None:
        """Measure what searches of a workload ended with, all in turns, where some are new."""
        for subject in dict.fromkeys(run.curve.subject for run in self.runs):
            own = [run.fastest for run in self.runs if run.curve.subject == subject]
            traces = list(dict.fromkeys(trace for fastest in own for trace in fastest))
            if not self.again.get(subject, {}).keys() >= set(traces):
                task = Task(operator_program(WORKLOADS[subject]).workload)
                self.again[subject] = lab.times_in_turns(task, traces)
                self.keep()

    def keep(self) -> None:
        """Write the numbers and the tables."""
        content = {
            "plan": asdict(self.plan),
            "hardware": detect_hardware().fingerprint,
            "threads": THREADS,
            "when": base.now_utc(),
            "library": {name: asdict(each) for name, each in self.library.items()},
            "again": self.again,
            "runs": [asdict(run) for run in self.runs],
        }
        base.write_atomically(self._path, json.dumps(content).encode())
        text = page(self.plan, self.runs, self.library, self.again)
        base.write_atomically(self.out / "autotvm.md", text.encode())

    def draw(self) -> None:
        """The numbers, the tables and the figures."""
        self.keep()
        write_figures(self.plan, self.runs, self.out)


def _run(fields: dict[str, Any]) -> Run:
    numbers = fields["curve"]
    lists = {name: tuple(numbers[name]) for name in ("best_s", "at_s")}
    curve = Curve(**{**numbers, **lists})
    return Run(**{**fields, "curve": curve, "fastest": tuple(fields["fastest"])})


def run(kept: Kept, experiments: Sequence[str], subjects: Sequence[str]) -> None:
    """All searches of some workloads, those of one seed after those of another; what is kept is not
    run again.
    """
    plan = kept.plan
    jobs = [job for seed in range(plan.seeds) for job in plan.jobs(experiments, seed)]
    jobs = [job for job in jobs if job.subject in subjects]
    started = time.monotonic()
    with Lab(THREADS, kept.out / "trials.jsonl") as lab:
        for place, job in enumerate(jobs):
            if not kept.has(job):
                found = search(lab, job)
                kept.runs.append(found)
                kept.keep()
                left = [each for each in jobs[place + 1 :] if not kept.has(each)]
                _tell(found, lab, time.monotonic() - started, seconds_left(left, kept.runs))
            if place + 1 == len(jobs) or jobs[place + 1].seed != job.seed:
                _add_library(kept)
                kept.measure_again(lab)
                kept.draw()


def _add_library(kept: Kept) -> None:
    try:
        kept.add_library()
    except base.TensorwrightError as error:  # it is not installed, or failed
        print(error.message(), file=sys.stderr)


def _tell(found: Run, lab: Lab, spent_s: float, left_s: float | None) -> None:
    curve = found.curve
    speed = found.speed(WORKLOADS[curve.subject].gflop, len(curve.best_s))
    left = "" if left_s is None else f", about {_minutes(left_s)} left"
    print(
        f"{_minutes(spent_s)}  seed {curve.seed}  {found.experiment:10} {curve.subject:7} "
        f"{curve.variant:22} {speed:5.0f} GFLOP/s, search {curve.search_s:.1f} s of "
        f"{found.took_s:.0f}, {lab.measured} programs measured{left}",
        file=sys.stderr,
        flush=True,
    )


def _minutes(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two seeds, 128 trials: 15 minutes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "autotvm")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--experiment", action="append", choices=list(EXPERIMENTS))
    ways = list(dict.fromkeys(way for each in EXPERIMENTS.values() for way in each.variants))
    parser.add_argument("--search", action="append", default=[], choices=ways, metavar="NAME")
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS))
    asked = parser.parse_args()
    usual = QUICK if asked.quick else FULL
    seeds, trials = asked.seeds or usual.seeds, asked.trials or usual.trials
    plan = Plan(seeds, trials, asked.quick, tuple(asked.search))
    out = asked.out / "quick" if asked.quick else asked.out
    try:
        pyplot()
        kept = Kept.open(plan, out)
    except base.UsageError as error:
        sys.exit(error.message())
    try:
        run(kept, asked.experiment or list(EXPERIMENTS), asked.workload or list(WORKLOADS))
    except KeyboardInterrupt:
        kept.draw()
        print(
            f"\nWhat ended is kept in {out} (searches: {len(kept.runs)}); to go on:",
            file=sys.stderr,
        )
        sys.exit(f"    python {' '.join(sys.argv)}")
    print(page(plan, kept.runs, kept.library, kept.again))


if __name__ == "__main__":
    main()
