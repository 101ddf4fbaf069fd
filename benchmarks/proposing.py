"""What a proposing model is worth where nothing was measured: its first sixteen proposals for each
workload of a network against sixteen that are drawn evenly, and against a search.

The share is the time of the best schedule found by any of them over that of the best of the
sixteen.  The network is none that the model was trained on.  With --predicted the time model takes
the place of the machine, and the best is that of its own search: seconds, for trying things out.

Run: python benchmarks/proposing.py --model FILE [--network NAME] [--trials N] [--every N]
                                    [--json FILE] [--predicted]
Run again with the same FILE of JSON to go on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from tensorwright.artifacts import Kernel
from tensorwright.base import CpuTarget, detect_target, now_utc
from tensorwright.machine import detect_hardware
from tensorwright.pipeline import prepare
from tensorwright.runtime.measuring import this_machine
from tensorwright.schedule import Workload
from tensorwright.tuning.features import STATEMENT
from tensorwright.tuning.measuring import ChildRunner, MeasureOptions, PoolBuilder
from tensorwright.tuning.population import Population, make_space_tables, sample
from tensorwright.tuning.session.session import make_space
from tensorwright.tuning.strategies import ModelGuides
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedSearch
from tensorwright.tuning.task import Task
from tensorwright.tuning.time_model import PredictedTime, pretrained_model
from tensorwright_lab import judging
from tensorwright_lab.proposing import ModelProposer, ProposingModel, load_proposing_model
from tensorwright_lab.zoo import build

COUNT = 16
THREADS = 2
COLD_BYTES = 64 << 20
WAYS = ("model", "evenly", "rule")
MEASURING = MeasureOptions(cold_bytes=COLD_BYTES)


class Subject:
    """One workload: its space, and sixteen programs by each way."""

    def __init__(self, workload: Workload, target: CpuTarget, model: ProposingModel) -> None:
        self.task = Task(workload)
        self.target = target
        self.machine = this_machine(target, THREADS, is_cold=True)
        self.space = make_space(self.task, target)
        self.tables = make_space_tables(self.space)
        proposer = ModelProposer(model, self.task, self.tables, self.machine)
        self.programs: Mapping[str, Population] = {
            "model": proposer.first(COUNT, np.random.default_rng(0)),
            "evenly": sample(self.tables, COUNT, np.random.default_rng(0)),
            "rule": self.tables.starts().take(np.zeros(1, np.int64)),
        }

    def predicted_s(self) -> dict[str, float]:
        """The best of each way, by the time model; "best" of all, a search's among them."""
        model = pretrained_model()
        assert model is not None, "the package comes with one"
        judge = PredictedTime(model, self.machine)
        guides = ModelGuides(lambda: judge, STATEMENT.open, self.target)
        guide = guides(self.task, self.space, 0)
        options = EvolutionOptions(start_share=1.0)
        search = GuidedSearch(self.task, self.space, 0, guide, options)
        ways = dict(self.programs) | {"search": search.promising(np.random.default_rng(0), 8)}
        ways["search"] = Population.joined([ways["search"], self.tables.starts()])
        found = {way: float(2.0 ** -guide.scores(own).max()) for way, own in ways.items()}
        return found | {"best": min(found.values())}

    def measured_s(self, bench: judging.Bench, trials: int) -> dict[str, float]:
        """The best of each way, measured in turns; "best" of all, a search's among them."""
        workload = self.task.workload
        traces = {
            way: [one.trace for one in own.candidates(self.space)]
            for way, own in self.programs.items()
        }
        built = judging.build_all(workload, [one for own in traces.values() for one in own], bench)
        measured = judging.race(workload, built, bench)
        best = {way: _fastest(own, measured) for way, own in traces.items()}
        records = judging.search_trials(workload, bench, trials, 0, MEASURING)
        (best["search"],) = judging.best_after(records, [trials], traces["rule"][0])
        missing = [trace for trace in best.values() if trace and trace not in built]
        built |= judging.build_all(workload, missing, bench)
        kernels = {trace: built[trace] for trace in dict.fromkeys(best.values()) if trace}
        good = {trace: one for trace, one in kernels.items() if isinstance(one, Kernel)}
        times_s = judging.fastest_s(judging.measure_in_turns(workload, good, bench, rounds=3))
        found = {way: times_s[trace] for way, trace in best.items() if trace in times_s}
        return found | {"best": min(found.values())}


def _fastest(traces: Sequence[str], measured: Mapping[str, Any]) -> str:
    """The fastest that ran, dropped from the race or not; "" where none did."""
    good = [trace for trace in traces if measured[trace].times_s]
    return min(good, key=lambda trace: min(measured[trace].times_s), default="")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: shares of the best known speed, and their geometric means."""
    lines = ["| workload | model | evenly | by rule | best, ms |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        shares = " | ".join(f"{share(row, way):.3f}" for way in WAYS)
        lines.append(f"| {row['name']} | {shares} | {1e3 * row['best']:.3f} |")
    means = [geometric_mean([share(row, way) for row in rows]) for way in WAYS]
    lines.append(f"| geometric mean of {len(rows)} | {' | '.join(f'{m:.3f}' for m in means)} | |")
    return "\n".join(lines)


def share(row: Mapping[str, Any], way: str) -> float:
    """0.001 where none of them ran."""
    return float(row["best"] / row[way]) if way in row else 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--network", default="resnet50", help="of the zoo")
    parser.add_argument("--trials", type=int, default=64, help="of the search")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth workload")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--predicted", action="store_true")
    asked = parser.parse_args()
    model = load_proposing_model(asked.model)
    target = detect_target()
    workloads = prepare(build(asked.network), target).workloads[:: asked.every]
    rows: list[dict[str, Any]] = []
    if asked.json and asked.json.exists():
        rows = json.loads(asked.json.read_text())["rows"]
    known = {row["key"] for row in rows}
    with PoolBuilder() as builder, ChildRunner(MEASURING) as runner:
        bench = judging.Bench(builder, runner, target, THREADS)
        for workload in workloads:
            if workload.key in known:
                continue
            subject = Subject(workload, target, model)
            found = (
                subject.predicted_s()
                if asked.predicted
                else subject.measured_s(bench, asked.trials)
            )
            rows.append({"key": workload.key, "name": workload.name, **found})
            print(json.dumps(rows[-1]), flush=True)
            if asked.json:
                asked.json.write_text(json.dumps(_content(asked, rows), indent=1) + "\n")
    print(table(rows))


def _content(asked: argparse.Namespace, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "network": asked.network,
        "trials": asked.trials,
        "is_predicted": asked.predicted,
        "hardware": detect_hardware().fingerprint,
        "when": now_utc(),
        "rows": rows,
    }


if __name__ == "__main__":
    main()
