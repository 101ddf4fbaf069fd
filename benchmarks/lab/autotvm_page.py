"""Tables and figures of AutoTVM's experiments: `records/logs.py` has the searches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType

from lab.autotvm_experiments import (
    ENDS,
    EXPERIMENTS,
    REFERENCE,
    RESNET,
    WORKLOADS,
    Plan,
    Run,
    compared,
)
from lab.pictures import pyplot
from lab.searches import THREADS, TURNS, Curve

POINTS = (16, 32, 64, 100, 200, 400, 500, 1000, 2000)
_GRID = 400  # points of a curve over seconds


@dataclass(frozen=True, slots=True)
class Library:
    """What a library takes for a workload, in the seconds of the lab.

    trace   our program beside which it was measured, in turns
    """

    time_s: float
    trace: str
    version: str = ""


Again = Mapping[str, Mapping[str, float]]
"""Of each workload, seconds of the programs that searches ended with, measured in turns."""


def page(
    plan: Plan,
    runs: Sequence[Run],
    library: Mapping[str, Library],
    again: Again = MappingProxyType({}),
) -> str:
    """Tables of all experiments, Markdown; of seeds for which all that is compared has ended."""
    lines = [
        "# AutoTVM's experiments",
        "",
        f"Seeds: {plan.seeds}; trials of a search: {plan.trials}.",
        "",
        f"Again: the best of a search's {ENDS} fastest programs, when those of all searches of the",
        f"workload were measured {TURNS} times in turns; median of the seeds, least to most.",
        "",
    ]
    whole = compared(plan, runs)
    for experiment in EXPERIMENTS:
        of_it = [run for run in whole if run.experiment == experiment]
        for subject in dict.fromkeys(run.curve.subject for run in of_it):
            own = [run for run in of_it if run.curve.subject == subject]
            times_s = again.get(subject, {})
            lines += _table(f"{experiment}: {subject}", own, WORKLOADS[subject].gflop, times_s)
    spaces = [run for run in whole if run.experiment == "spaces"]
    lines += _seconds_table(spaces)
    lines += _resnet_table([run for run in whole if run.experiment == "resnet"])
    lines += _library_table(library, spaces)
    return "\n".join(lines)


def write_figures(plan: Plan, runs: Sequence[Run], folder: Path) -> None:
    """A figure of each experiment over trials, and of the spaces over seconds."""
    whole = compared(plan, runs)
    for experiment in EXPERIMENTS:
        own = [run for run in whole if run.experiment == experiment]
        if own and experiment != "resnet":
            _draw(experiment, own, folder / f"{experiment}.png", _over_trials, "measured trials")
    spaces = [run for run in whole if run.experiment == "spaces" and run.curve.at_s]
    if spaces:
        axis = "seconds of searching, building and measuring"
        _draw("spaces", spaces, folder / "seconds.png", _over_seconds, axis)


def _seeds_of(runs: Sequence[Run]) -> str:
    count = len({run.curve.seed for run in runs})
    return f"{count} seed{'s' * (count > 1)}"


def _table(title: str, runs: Sequence[Run], gflop: float, again: Mapping[str, float]) -> list[str]:
    trials = runs[0].trials
    points = [each for each in POINTS if each < trials] + [trials]
    lines = [f"## {title}", ""]
    lines += [f"GFLOP/s after so many trials: the median of {_seeds_of(runs)}.", ""]
    heads = [*map(str, points), "least to most", "again", "failed", "search s"]
    lines.append(f"| search | {' | '.join(heads)} |")
    lines.append("|---|" + "---:|" * len(heads))
    for variant in dict.fromkeys(run.curve.variant for run in runs):
        own = [run for run in runs if run.curve.variant == variant]
        cells = [f"{median(run.speed(gflop, point) for run in own):.0f}" for point in points]
        last = [run.speed(gflop, points[-1]) for run in own]
        failed = sum(run.failed for run in own) / len(own)
        spent = sum(run.curve.search_s for run in own) / len(own)
        lines.append(
            f"| {variant} | {' | '.join(cells)} | {min(last):.0f} to {max(last):.0f} "
            f"| {_again([run.again(again) for run in own], gflop)} | {failed:.0%} | {spent:.1f} |"
        )
    return [*lines, ""]


def _again(times_s: Sequence[float], gflop: float) -> str:
    if not all(map(math.isfinite, times_s)):
        return "-"
    low, middle, high = (gflop / each for each in (max(times_s), median(times_s), min(times_s)))
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def _seconds_table(runs: Sequence[Run]) -> list[str]:
    """How soon the others reach what templates under AutoTVM's settings end with, by seed."""
    if not runs:
        return []
    lines = ["## Until the last speed of templates under AutoTVM's settings", ""]
    lines += ["Seconds of searching, building and measuring, and trials: the median of the seeds;"]
    lines += ["`-` where fewer than half of the seeds reach it.", ""]
    lines += ["| workload | search | seconds | trials | seeds that reach it |"]
    lines += ["|---|---|---:|---:|---:|"]
    for subject in dict.fromkeys(run.curve.subject for run in runs):
        own = [run.curve for run in runs if run.curve.subject == subject]
        goals = {each.seed: each.best_s[-1] for each in own if each.variant == REFERENCE}
        for variant in dict.fromkeys(curve.variant for curve in own):
            same = [curve for curve in own if curve.variant == variant]
            found = [reached(curve, goals[curve.seed]) for curve in same]
            seconds, trials = (median(each) for each in zip(*found, strict=True))
            count = sum(math.isfinite(one) for one, _ in found)
            cells = f"{seconds:.0f} | {trials:.0f}" if math.isfinite(seconds) else "- | -"
            lines.append(f"| {subject} | {variant} | {cells} | {count} of {len(found)} |")
    return [*lines, ""]


def reached(curve: Curve, time_s: float) -> tuple[float, float]:
    """Seconds and trials until a program takes no longer than that; infinite if none does."""
    trials = curve.until(time_s)
    return (math.inf, math.inf) if trials is None else (curve.at_s[trials - 1], float(trials))


def _resnet_table(runs: Sequence[Run]) -> list[str]:
    """The sum over the convolutions of ResNet-18, by seeds that have all of them."""
    sums: dict[str, list[float]] = {}
    for variant in dict.fromkeys(run.curve.variant for run in runs):
        for seed in sorted({run.curve.seed for run in runs}):
            own = [r.curve for r in runs if (r.curve.variant, r.curve.seed) == (variant, seed)]
            if len(own) == len(RESNET):
                sums.setdefault(variant, []).append(sum(curve.best_s[-1] for curve in own))
    if not sums:
        return []
    lines = ["## The twelve convolutions of ResNet-18, one after the other", ""]
    lines += ["| search | ms, median | least to most |", "|---|---:|---:|"]
    for variant, found in sums.items():
        low, middle, high = (1e3 * each for each in (min(found), median(found), max(found)))
        lines.append(f"| {variant} | {middle:.3f} | {low:.3f} to {high:.3f} |")
    return [*lines, ""]


def _library_table(library: Mapping[str, Library], runs: Sequence[Run]) -> list[str]:
    if not library:
        return []
    version = next(iter(library.values())).version
    lines = [f"## oneDNN, through PyTorch {version} on {THREADS} threads", ""]
    lines += ["After how many trials a search is ahead of it, seed by seed.", ""]
    lines += ["| workload | its GFLOP/s | search | our GFLOP/s, median | trials until ahead |"]
    lines += ["|---|---:|---|---:|---|"]
    for subject, peer in library.items():
        gflop = WORKLOADS[subject].gflop
        own = [run.curve for run in runs if run.curve.subject == subject]
        for variant in dict.fromkeys(curve.variant for curve in own):
            same = [curve for curve in own if curve.variant == variant]
            ahead = ", ".join(_trials_until(curve, peer.time_s) for curve in same)
            ours = median(gflop / curve.best_s[-1] for curve in same)
            speed = f"{gflop / peer.time_s:.0f}"
            lines.append(f"| {subject} | {speed} | {variant} | {ours:.0f} | {ahead} |")
    return [*lines, ""]


def _trials_until(curve: Curve, time_s: float) -> str:
    trials = curve.until(time_s)
    return f"over {len(curve.best_s)}" if trials is None else str(trials)


Points = tuple[Sequence[float], list[list[float]]]
"""Places on the axis, and at each the best times of the seeds."""


def _over_trials(curves: Sequence[Curve]) -> Points:
    trials = range(1, max(len(curve.best_s) for curve in curves) + 1)
    return list(trials), [[curve.at(each) for curve in curves] for each in trials]


def _over_seconds(curves: Sequence[Curve]) -> Points:
    """From the first trial of all of them to the last of the longest."""
    first, last = max(each.at_s[0] for each in curves), max(each.at_s[-1] for each in curves)
    steps = [first * (last / first) ** (n / (_GRID - 1)) for n in range(_GRID)]
    return steps, [[curve.after(each) for curve in curves] for each in steps]


def _draw(
    experiment: str,
    runs: Sequence[Run],
    path: Path,
    points_of: Callable[[Sequence[Curve]], Points],
    axis: str,
) -> None:
    """A panel for each workload: curves of the medians, bands over the seeds."""
    plt = pyplot()
    subjects = list(dict.fromkeys(run.curve.subject for run in runs))
    size = (5.5 * len(subjects), 4.2)
    figure, panels = plt.subplots(1, len(subjects), figsize=size, squeeze=False)
    for panel, subject in zip(panels[0], subjects, strict=True):
        own = [run.curve for run in runs if run.curve.subject == subject]
        best_s = min(curve.best_s[-1] for curve in own)
        for variant in dict.fromkeys(curve.variant for curve in own):
            places, times = points_of([curve for curve in own if curve.variant == variant])
            speeds = [[best_s / each for each in seeds] for seeds in times]
            (line,) = panel.step(places, list(map(median, speeds)), where="post", label=variant)
            low, high = [min(each) for each in speeds], [max(each) for each in speeds]
            panel.fill_between(places, low, high, step="post", alpha=0.15, color=line.get_color())
        if points_of is _over_seconds:
            panel.set_xscale("log")
        panel.set_title(f"{experiment}: {subject}")
        panel.set_xlabel(axis)
        panel.set_ylabel("speed relative to the best found by any")
        panel.set_ylim(bottom=0.0, top=1.05)
        panel.grid(visible=True, alpha=0.3)
        panel.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
