"""AutoTVM's experiments on this machine: features, annealing, transfer, templates, a library.

    features    what describes a program to the model (the report's tables 2 and 3, figures 3, 4)
    annealing   as published, and mended: what the runs end with, and how far apart (figure 5)
    transfer    the model starts from what it learned of another convolution, and without
    spaces      templates beside sketches, each under its best search
    library     after how many trials the fastest kernel is ahead of oneDNN, through PyTorch

All searches of a run share what is measured (`search_lab.py`), so that they see one landscape; a
program counts as a trial of each search that asks for it.  Curves are of the speed of the best
program so far, relative to the best that any search has found; bands span the seeds.

Run: python benchmarks/autotvm.py [--quick] [--out FOLDER] [--seeds N] [--trials N]
Run again with the same folder to go on.

Source:  Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018; and the report Learning
         "Learning to Optimize Tensor Programs", 2018, whose workloads C7 and C12 these are.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from search_lab import ROUND, THREADS, Curve, Lab, Search

from tensorwright.base import TensorwrightError, detect_target, write_atomically
from tensorwright.peers import OpPlan, compare_case
from tensorwright.records import detect_hardware, now_utc
from tensorwright.tuning.learning import Learning, open_learning
from tensorwright.tuning.space import SpaceKind
from tensorwright.tuning.strategies.named import choose_strategy
from tensorwright.tuning.task import Task
from tensorwright.zoo import OperatorCase, operator_program

POINTS = (16, 32, 64, 100, 200, 400, 1000, 2000)
PEER = "pytorch"


def _convolution(size: int, inputs: int, outputs: int, stride: int) -> OperatorCase:
    fields = {"batch": 1, "height": size, "width": size, "in_channels": inputs}
    fields |= {"out_channels": outputs, "kernel": 3, "stride": stride, "padding": 1}
    gflop = 2e-9 * (size // stride) ** 2 * inputs * outputs * 9
    return OperatorCase("C2D", 0, tuple(fields.items()), gflop)


WORKLOADS: Mapping[str, OperatorCase] = {
    "C12": _convolution(7, 512, 512, 1),
    "C7": _convolution(28, 256, 128, 2),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to search.

    before   the workload whose search, in the same way, gives the model to start from
    """

    features: str = "itervar"
    strategy: str = "annealing-vanilla"
    model: str = "trees-pairs"
    space: SpaceKind = SpaceKind.TEMPLATES
    before: str = ""


EXPERIMENTS: Mapping[str, Mapping[str, Variant]] = {
    "features": {
        name: Variant(features=name)
        for name in ("knob", "itervar", "curve", "curve-fix", "curve-paired", "statement")
    },
    "annealing": {
        "vanilla": Variant(),
        "vanilla, regression": Variant(model="trees-squares"),
        "mended": Variant(strategy="annealing"),
        "genetic": Variant(strategy="genetic"),
        "random": Variant(strategy="random"),
    },
    "transfer": {
        "context": Variant(features="context", strategy="annealing"),
        "context, from C12": Variant(features="context", strategy="annealing", before="C12"),
        "statement": Variant(features="statement", strategy="annealing"),
        "statement, from C12": Variant(features="statement", strategy="annealing", before="C12"),
    },
    "spaces": {
        "templates": Variant(features="statement", strategy="evolution"),
        "sketches": Variant(features="statement", strategy="evolution", space=SpaceKind.SKETCHES),
        "both": Variant(features="statement", strategy="evolution", space=SpaceKind.BOTH),
    },
}


QUICK_EXPERIMENTS: Mapping[str, Sequence[str]] = {
    "features": ("knob", "itervar", "curve", "curve-fix", "curve-paired"),
    "annealing": ("vanilla", "mended"),
    "transfer": ("context", "context, from C12"),
    "spaces": ("templates", "sketches"),
}
"""The variants of a quick run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run."""

    seeds: int
    trials: int
    is_quick: bool = False

    def variants(self, experiment: str) -> Sequence[str]:
        """What is run of an experiment."""
        return QUICK_EXPERIMENTS[experiment] if self.is_quick else tuple(EXPERIMENTS[experiment])


QUICK = Plan(2, 96, is_quick=True)
FULL = Plan(5, 1000)


@dataclass(frozen=True, slots=True)
class Run:
    """A search that ended: its curve, what share of its trials failed, and the fastest program."""

    experiment: str
    curve: Curve
    failed: float
    trace: str

    def speed(self, gflop: float, trials: int) -> float:
        """GFLOP/s of the best program after so many trials."""
        return gflop / self.curve.at(trials)


def search(lab: Lab, experiment: str, subject: str, variant: str, seed: int, plan: Plan) -> Run:
    """One search from its first trial to its last."""
    how = EXPERIMENTS[experiment][variant]
    start = None
    if how.before:
        start = _model_file(lab, how, seed)
        if not start.exists():
            _search(lab, how.before, how, seed, plan, None, start)
    found, failed, trace = _search(lab, subject, how, seed, plan, start, None)
    curve = Curve(subject, variant, seed, tuple(found.best_s), found.search_s)
    return Run(experiment, curve, failed, trace)


def _search(
    lab: Lab,
    subject: str,
    how: Variant,
    seed: int,
    plan: Plan,
    start: Path | None,
    keep: Path | None,
) -> tuple[Search, float, str]:
    task = Task(operator_program(WORKLOADS[subject]).workload)
    learning = Learning(how.features, how.model, start=start)
    learned = open_learning(learning, lab.target, THREADS, seed)
    make = choose_strategy(how.strategy, learned.make_guide)
    found = Search(lab, task, make, seed, how.space)
    while len(found.best_s) < plan.trials and not found.state.is_exhausted:
        found.round(min(ROUND, plan.trials - len(found.best_s)))
    if keep is not None and learned.shared is not None:
        learned.shared.save(keep, "here")
    known = [found.lab.known[task.workload.key, each] for each in found.tried]
    failed = sum(not each.status.is_timed for each in known) / len(known)
    best = min(found.tried, key=lambda each: lab.known[task.workload.key, each].time_s)
    return found, failed, best


def _model_file(lab: Lab, how: Variant, seed: int) -> Path:
    assert lab.path is not None, "the lab keeps what it measures"
    return lab.path.parent / f"model_{how.features}_{how.strategy}_{how.before}_{seed}.npz"


# What comes out


def page(plan: Plan, runs: Sequence[Run], library: Mapping[str, float]) -> str:
    """Tables of all experiments, Markdown."""
    done = len({run.curve.seed for run in runs})
    seeds = f"{done} of {plan.seeds} seeds, {plan.trials} trials."
    lines = ["# AutoTVM's experiments", "", seeds, ""]
    for experiment in EXPERIMENTS:
        for subject in WORKLOADS:
            own = [r for r in runs if r.experiment == experiment and r.curve.subject == subject]
            if own:
                lines += _table(f"{experiment}: {subject}", own, WORKLOADS[subject].gflop, plan)
    if library:
        lines += [f"## oneDNN, through PyTorch on {THREADS} threads", ""]
        lines += [
            "| workload | GFLOP/s | trials until ahead, by search and seed |",
            "|---|---:|---|",
        ]
        for subject, peer_s in library.items():
            ahead = ", ".join(
                f"{run.curve.variant} {run.curve.seed}: {_trials_until(run.curve, peer_s)}"
                for run in runs
                if run.experiment == "spaces" and run.curve.subject == subject
            )
            speed = WORKLOADS[subject].gflop / peer_s
            lines.append(f"| {subject} | {speed:.0f} | {ahead} |")
        lines.append("")
    return "\n".join(lines)


def _table(title: str, runs: Sequence[Run], gflop: float, plan: Plan) -> list[str]:
    points = [each for each in POINTS if each < plan.trials] + [plan.trials]
    lines = [f"## {title}", "", "GFLOP/s after so many trials: the median of the seeds.", ""]
    lines.append(f"| search | {' | '.join(map(str, points))} | least to most | failed | search s |")
    lines.append("|---|" + "---:|" * (len(points) + 3))
    for variant in dict.fromkeys(run.curve.variant for run in runs):
        own = [run for run in runs if run.curve.variant == variant]
        cells = [f"{median(run.speed(gflop, point) for run in own):.0f}" for point in points]
        last = [run.speed(gflop, points[-1]) for run in own]
        failed = sum(run.failed for run in own) / len(own)
        spent = sum(run.curve.search_s for run in own) / len(own)
        lines.append(
            f"| {variant} | {' | '.join(cells)} | {min(last):.0f} to {max(last):.0f} "
            f"| {failed:.0%} | {spent:.1f} |"
        )
    return [*lines, ""]


def _trials_until(curve: Curve, time_s: float) -> str:
    ahead = [place for place, best_s in enumerate(curve.best_s, 1) if best_s <= time_s]
    return str(ahead[0]) if ahead else f"over {len(curve.best_s)}"


def draw(experiment: str, runs: Sequence[Run], path: Path) -> None:
    """A panel for each workload: curves of the medians, bands over the seeds."""
    importlib.import_module("matplotlib").use("Agg")  # into a file, without a display
    plt: Any = importlib.import_module("matplotlib.pyplot")
    subjects = list(dict.fromkeys(run.curve.subject for run in runs))
    size = (5.5 * len(subjects), 4.2)
    figure, panels = plt.subplots(1, len(subjects), figsize=size, squeeze=False)
    for panel, subject in zip(panels[0], subjects, strict=True):
        own = [run.curve for run in runs if run.curve.subject == subject]
        best_s = min(curve.best_s[-1] for curve in own)
        for variant in dict.fromkeys(curve.variant for curve in own):
            same = [curve for curve in own if curve.variant == variant]
            trials = list(range(1, max(len(curve.best_s) for curve in same) + 1))
            speeds = [[best_s / curve.at(each) for curve in same] for each in trials]
            (line,) = panel.step(trials, list(map(median, speeds)), where="post", label=variant)
            low, high = [min(each) for each in speeds], [max(each) for each in speeds]
            panel.fill_between(trials, low, high, step="post", alpha=0.15, color=line.get_color())
        panel.set_title(f"{experiment}: {subject}")
        panel.set_xlabel("measured trials")
        panel.set_ylabel("speed relative to the best found by any")
        panel.set_ylim(bottom=0.0, top=1.05)
        panel.grid(visible=True, alpha=0.3)
        panel.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def library_times(runs: Sequence[Run], seed: int) -> dict[str, float]:
    """What the library takes, in the seconds of the lab: measured beside our fastest, in turns."""
    found: dict[str, float] = {}
    for subject, case in WORKLOADS.items():
        own = [run for run in runs if run.curve.subject == subject]
        if not own:
            continue
        best = min(own, key=lambda run: run.curve.best_s[-1])
        plan = OpPlan(detect_target(), THREADS, (PEER,), seed=seed)
        ours, *others = compare_case(operator_program(case), best.trace, 4, plan)
        times = [each.time_s for each in others if each.time_s]
        if times and ours.time_s:
            found[subject] = best.curve.best_s[-1] * min(times) / ours.time_s
    return found


class Kept:
    """What was run so far, in a file: a run that was cut off goes on."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self._plan = plan
        self._out = out
        self._path = out / "autotvm.json"
        self.runs: list[Run] = []
        self.library: dict[str, float] = {}
        if self._path.exists():
            content = json.loads(self._path.read_text())
            if content["plan"] == asdict(plan):
                self.runs = [
                    Run(each["experiment"], _curve(each["curve"]), each["failed"], each["trace"])
                    for each in content["runs"]
                ]
                self.library = content["library"]

    def has(self, experiment: str, subject: str, variant: str, seed: int) -> bool:
        """Whether a search is among them."""
        key = (experiment, subject, variant, seed)
        return any(
            (run.experiment, run.curve.subject, run.curve.variant, run.curve.seed) == key
            for run in self.runs
        )

    def keep(self) -> None:
        """Write the numbers."""
        content = {
            "plan": asdict(self._plan),
            "hardware": detect_hardware().fingerprint,
            "threads": THREADS,
            "when": now_utc(),
            "library": self.library,
            "runs": [asdict(run) for run in self.runs],
        }
        write_atomically(self._path, json.dumps(content).encode())

    def write(self) -> None:
        """Numbers, the page, and a figure of each experiment."""
        self.keep()
        text = page(self._plan, self.runs, self.library)
        write_atomically(self._out / "autotvm.md", text.encode())
        for experiment in EXPERIMENTS:
            own = [run for run in self.runs if run.experiment == experiment]
            if own:
                draw(experiment, own, self._out / f"{experiment}.png")


def _curve(fields: dict[str, Any]) -> Curve:
    return Curve(**{**fields, "best_s": tuple(fields["best_s"])})


def run(plan: Plan, out: Path, experiments: Sequence[str]) -> None:
    """All searches, those of one seed after those of another; what is kept is not run again."""
    out.mkdir(parents=True, exist_ok=True)
    kept = Kept(plan, out)
    started = time.monotonic()
    with Lab(THREADS, out / "trials.jsonl") as lab:
        for seed in range(plan.seeds):
            for experiment in experiments:
                subjects = ("C7",) if experiment == "transfer" else tuple(WORKLOADS)
                for subject in subjects:
                    for variant in plan.variants(experiment):
                        if kept.has(experiment, subject, variant, seed):
                            continue
                        found = search(lab, experiment, subject, variant, seed, plan)
                        kept.runs.append(found)
                        kept.keep()
                        _tell(found, lab, started)
            kept.write()
    try:
        kept.library = library_times(kept.runs, 0)
    except TensorwrightError as error:  # it is not installed, or failed
        print(error.message(), file=sys.stderr)
    kept.write()
    print(page(plan, kept.runs, kept.library))


def _tell(found: Run, lab: Lab, started: float) -> None:
    curve = found.curve
    speed = found.speed(WORKLOADS[curve.subject].gflop, len(curve.best_s))
    print(
        f"{time.monotonic() - started:6.0f} s  {found.experiment:10} {curve.subject:4} "
        f"{curve.variant:20} seed {curve.seed}: {speed:.0f} GFLOP/s, "
        f"search {curve.search_s:.1f} s, {lab.measured} programs measured",
        file=sys.stderr,
        flush=True,
    )


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two seeds, 96 trials: 15 minutes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "autotvm")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--experiment", action="append", choices=list(EXPERIMENTS))
    asked = parser.parse_args()
    usual = QUICK if asked.quick else FULL
    plan = Plan(asked.seeds or usual.seeds, asked.trials or usual.trials, asked.quick)
    out = asked.out / "quick" if asked.quick else asked.out
    run(plan, out, asked.experiment or list(EXPERIMENTS))


if __name__ == "__main__":
    main()
