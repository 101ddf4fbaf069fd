"""What the parts of the search are worth: each left out in turn, beside all and beside chance.

    full           evolution under a learned model, measured neighbours of the best, all sketches
    no model       evolution under random scores
    no evolution   random programs, of which the model's best are measured
    no refinement  evolution alone
    no crossover   children of one parent only
    limited space  tile sizes of the first sketch only
    beam search    programs grow choice by choice, the model judges incomplete ones
    random         random programs

and for a network the task scheduler beside round-robin.  All searches of a run share what is
measured: each program is measured once (`lab/searches.py`).  The curves are of the best time so
far, over trials; the table has its geometric mean over seeds, in milliseconds.

Run: python benchmarks/ablation.py [--quick] [--out FOLDER] [--seeds N] [--trials N] [CASE ...]
CASE is one of the operator suite, such as C2D.3. Run again with the same folder to go on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lab.pictures import pyplot
from lab.searches import ROUND, THREADS, Curve, Lab, MakeStrategy, Search, mean_at

from tensorwright.base import UsageError, detect_target, now_utc
from tensorwright.machine import detect_hardware
from tensorwright.pipeline import prepare
from tensorwright.tuning.features import STATEMENT
from tensorwright.tuning.models import make_model
from tensorwright.tuning.session.session import merge
from tensorwright.tuning.space import Space
from tensorwright.tuning.strategies import ModelGuides, RandomSearch, Strategy
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedFactory
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import GradientScheduler, Scheduler, TaskState
from tensorwright_lab import strategies
from tensorwright_lab.zoo import build, find_cases, operator_program

POINTS = (1, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run."""

    cases: tuple[str, ...]
    seeds: int
    trials: int
    network: str
    rounds: int


QUICK = Plan(("C2D.3", "GMM.3"), 1, 96, "squeezenet", 40)
FULL = Plan(("C2D.3", "GMM.3", "DEP.3"), 3, 1024, "mobilenet_v2", 200)


# The searches


def _guides(seed: int) -> ModelGuides:
    target = detect_target()
    model = make_model(target, THREADS, seed)
    return ModelGuides(lambda: model, STATEMENT.open, target)


def guided(options: EvolutionOptions | None = None) -> MakeStrategy:
    def make(task: Task, space: Space, seed: int) -> Strategy:
        return GuidedFactory(_guides(seed), options or EvolutionOptions())(task, space, seed)

    return make


def unguided(task: Task, space: Space, seed: int) -> Strategy:
    make = GuidedFactory(lambda task, space, seed: strategies.RandomGuide(seed), EvolutionOptions())
    return make(task, space, seed)


def limited(task: Task, space: Space, seed: int) -> Strategy:
    return guided()(task, strategies.limited_space(space), seed)


def beam(task: Task, space: Space, seed: int) -> Strategy:
    return strategies.BeamFactory(_guides(seed))(task, space, seed)


VARIANTS: Mapping[str, MakeStrategy] = {
    "full": guided(),
    "no model": unguided,
    "no evolution": guided(strategies.without_evolution()),
    "no refinement": guided(strategies.without_refinement()),
    "no crossover": guided(replace(EvolutionOptions(), cross_share=0.0)),
    "limited space": limited,
    "beam search": beam,
    "random": RandomSearch,
}


def search_case(lab: Lab, case: str, variant: str, seed: int, trials: int) -> Curve:
    task = Task(operator_program(find_cases([case], 1)[0]).workload)
    search = Search(lab, task, VARIANTS[variant], seed)
    while len(search.best_s) < trials and not search.state.is_exhausted:
        search.round(min(ROUND, trials - len(search.best_s)))
    return Curve(case, variant, seed, tuple(search.best_s), search.search_s)


def search_network(lab: Lab, network: str, scheduler: Scheduler, name: str, rounds: int) -> Curve:
    """The weighted sum of the best times of a network's workloads, for each trial.

    Each workload has a model of its own, so that both schedulers see the same searches.
    """
    parts = prepare(build(network), lab.target)
    tasks = merge([Task(each, parts.count(each)) for each in parts.workloads])
    searches = [Search(lab, task, guided(), 0) for task in tasks]
    for search in searches:
        search.round(1)
    states = [search.state for search in searches]
    curve = [total_s(states)]
    for _ in range(rounds):
        chosen = scheduler.choose(states)
        if chosen is None:
            break
        searches[chosen].round()
        curve += [total_s(states)] * ROUND
    return Curve(network, name, 0, tuple(curve), sum(each.search_s for each in searches))


def total_s(states: Sequence[TaskState]) -> float:
    return sum(state.cost_s for state in states if math.isfinite(state.cost_s))


# What comes out


def table(curves: Sequence[Curve]) -> str:
    """Best time in milliseconds at some numbers of trials, Markdown."""
    lines: list[str] = []
    for subject in dict.fromkeys(curve.subject for curve in curves):
        own = [curve for curve in curves if curve.subject == subject]
        most = max(len(curve.best_s) for curve in own)
        points = [point for point in POINTS if point < most] + [most]
        lines += [f"## {subject}, best time in ms after so many trials", ""]
        lines.append("| search | " + " | ".join(str(point) for point in points) + " | search s |")
        lines.append("|---|" + "---:|" * (len(points) + 1))
        for variant in dict.fromkeys(curve.variant for curve in own):
            same = [curve for curve in own if curve.variant == variant]
            cells = [f"{1e3 * mean_at(same, point):.4g}" for point in points]
            spent = sum(curve.search_s for curve in same) / len(same)
            lines.append(f"| {variant} | {' | '.join(cells)} | {spent:.1f} |")
        lines.append("")
    return "\n".join(lines)


def draw(curves: Sequence[Curve], path: Path) -> None:
    """One panel for each subject: relative to the best time of all, over trials."""
    plt = pyplot()
    subjects = list(dict.fromkeys(curve.subject for curve in curves))
    figure, panels = plt.subplots(
        1, len(subjects), figsize=(5.5 * len(subjects), 4.2), squeeze=False
    )
    for panel, subject in zip(panels[0], subjects, strict=True):
        own = [curve for curve in curves if curve.subject == subject]
        best_s = min(curve.best_s[-1] for curve in own)
        for variant in dict.fromkeys(curve.variant for curve in own):
            same = [curve for curve in own if curve.variant == variant]
            trials = range(1, max(len(curve.best_s) for curve in same) + 1)
            speeds = [best_s / mean_at(same, point) for point in trials]
            width = 2.4 if variant in ("full", "gradient scheduler") else 1.3
            panel.step(list(trials), speeds, where="post", label=variant, linewidth=width)
        panel.set_xlabel("measured trials")
        panel.set_ylabel("speed relative to the best found by any")
        panel.set_title(subject)
        panel.set_ylim(bottom=0.0, top=1.05)
        panel.grid(visible=True, alpha=0.3)
        panel.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def run(plan: Plan, out: Path) -> None:
    pyplot()
    out.mkdir(parents=True, exist_ok=True)
    curves: list[Curve] = []
    started = time.monotonic()
    with Lab(THREADS, out / "ablation_trials.jsonl") as lab:
        for case in plan.cases:
            for seed in range(plan.seeds):
                for variant in VARIANTS:
                    curves.append(search_case(lab, case, variant, seed, plan.trials))
                    tell(curves[-1], lab, started)
                    keep(plan, curves, out)
        schedulers: dict[str, Scheduler] = {
            "gradient scheduler": GradientScheduler(),
            "round-robin": strategies.RoundRobinScheduler(),
        }
        for name, scheduler in schedulers.items():
            curves.append(search_network(lab, plan.network, scheduler, name, plan.rounds))
            tell(curves[-1], lab, started)
            keep(plan, curves, out)
    draw(curves, out / "ablation.png")
    print(table(curves))


def keep(plan: Plan, curves: Sequence[Curve], out: Path) -> None:
    """Table and numbers of what has been run so far."""
    content = {
        "plan": asdict(plan),
        "hardware": detect_hardware().fingerprint,
        "threads": THREADS,
        "when": now_utc(),
        "curves": [asdict(curve) for curve in curves],
    }
    (out / "ablation.json").write_text(json.dumps(content) + "\n")
    (out / "ablation.md").write_text(table(curves))


def tell(curve: Curve, lab: Lab, started: float) -> None:
    print(
        f"{time.monotonic() - started:6.0f} s  {curve.subject:12} {curve.variant:18} "
        f"seed {curve.seed}: {1e3 * curve.best_s[-1]:.4g} ms, search {curve.search_s:.1f} s, "
        f"{lab.measured} programs measured",
        file=sys.stderr,
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", help="of the operator suite, such as C2D.3")
    parser.add_argument("--quick", action="store_true", help="about ten minutes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ablation")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--rounds", type=int, help="of the network")
    asked = parser.parse_args()
    plan = QUICK if asked.quick else FULL
    plan = replace(
        plan,
        cases=tuple(asked.cases) or plan.cases,
        seeds=asked.seeds or plan.seeds,
        trials=asked.trials or plan.trials,
        rounds=asked.rounds or plan.rounds,
    )
    try:
        run(plan, asked.out)
    except UsageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
