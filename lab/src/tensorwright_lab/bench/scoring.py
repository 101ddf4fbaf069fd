"""`tensorwright bench scoring`: how many candidates a second a search can tell apart, on one core.

Timed is what a search does for candidates that it has drawn: lower each structure with its
decisions open, write its formulas, run them on the candidates' columns, and ask a trained model.
Beside it stands how long a fixed piece of work in Python and NumPy takes, so that figures of
several machines compare: candidates per second, times these seconds, are about the same on all.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

import click
import numpy as np

from tensorwright.base import CpuTarget, UsageError, atomic_writer, without_collection
from tensorwright.cli.arguments.options import seed_option, target_option
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing import print_table
from tensorwright.schedule import state_of
from tensorwright.tuning.features import ColumnGraph, Plan, lower_sketch
from tensorwright.tuning.models import Features, LearnedModel, Sample, make_model
from tensorwright.tuning.population import Population, make_space_tables, sample
from tensorwright.tuning.space import space_of
from tensorwright_lab.bench.costmodel import Case, cases

DEFAULT_WORKLOAD = "conv 3x3 256 14x14"
_SAMPLES = 512  # candidates with made-up times that train the model
_WARM_UP = 64
_REFERENCE_RUNS = 5


@dataclass(slots=True)
class Durations:
    """Seconds of each part of scoring; grows while it runs."""

    lowering: float = 0.0
    formulas: float = 0.0
    columns: float = 0.0
    model: float = 0.0

    @property
    def total(self) -> float:
        """All parts together."""
        return self.lowering + self.formulas + self.columns + self.model


@click.command("scoring")
@click.option("--workload", default=DEFAULT_WORKLOAD, metavar="NAME", help="Of `bench costmodel`.")
@click.option("--candidates", type=click.IntRange(min=1), default=8192, help="How many.")
@click.option("--json", "json_path", metavar="FILE", help="Write the numbers to a file, too.")
@target_option
@seed_option
def command(
    workload: str, candidates: int, json_path: str | None, target: CpuTarget, seed: int
) -> None:
    """Score candidates drawn from all structures of a workload; one core.

    Example: tensorwright bench scoring --json scoring.json
    """
    check_writable(json_path)
    case = _find_case(workload, target)
    document = bench_scoring(case, target, candidates, seed)
    _show(document)
    if json_path is not None:
        with atomic_writer(json_path) as file:
            file.write((json.dumps(document, indent=1) + "\n").encode())


def bench_scoring(case: Case, target: CpuTarget, count: int, seed: int) -> dict[str, Any]:
    """Draw candidates, train a model on made-up times, and score the candidates."""
    state = state_of(case.workload)
    space = space_of(state, target)
    tables = make_space_tables(space)
    random = np.random.default_rng(seed)
    drawn = sample(tables, count, random)
    model = make_model(target, 1, seed)

    def features_of(population: Population, parts: Durations) -> list[Features]:
        parts_of_sketches: list[Features] = []
        graph = ColumnGraph()
        for number in np.unique(population.sketch).tolist():
            sketch = space.sketches[number]
            genes = population.genes[population.sketch == number, : len(sketch.choices)]
            start = time.perf_counter()
            with without_collection():
                program = lower_sketch(state, sketch)
                lowered = time.perf_counter()
                plan = Plan(program, graph)
            written = time.perf_counter()
            parts_of_sketches.append(plan.run(sketch.columns(genes), len(genes)))
            parts.lowering += lowered - start
            parts.formulas += written - lowered
            parts.columns += time.perf_counter() - written
        return parts_of_sketches

    parts = Durations()
    features = features_of(drawn, parts)
    _train(model, features, random)
    for part in features:
        model.predict(part[:_WARM_UP])
    start = time.perf_counter()
    scores = [model.predict(part) for part in features]
    parts.model = time.perf_counter() - start
    reference_s = min(_reference_s() for _ in range(_REFERENCE_RUNS))
    return {
        "workload": case.name,
        "candidates": len(drawn),
        "distinct": len(drawn.first_of_each()),
        "structures": len(features),
        "structures_of_the_space": len(space.sketches),
        "space_size": space.size,
        "scored": sum(map(len, scores)),
        "trained": model.is_trained,
        "seconds": asdict(parts) | {"total": parts.total},
        "candidates_per_s": len(drawn) / parts.total,
        "reference_s": reference_s,
        "candidates_per_reference": len(drawn) / parts.total * reference_s,
    }


def _reference_s() -> float:
    """How long a fixed piece of work takes: what scoring does, but no part of it.

    Half of it are small calls from Python, half logarithms and sums over a table.
    """
    start = time.perf_counter()
    seen: dict[tuple[int, int], int] = {}
    for n in range(200_000):
        seen.setdefault((n % 977, n % 13), n)
    table = np.linspace(1, 2, 1 << 20, dtype=np.float32).reshape(1024, 1024)
    for _ in range(20):
        table = np.log2(table + 1)
        table = np.minimum(table, table.T) + table.mean(axis=0)
    return time.perf_counter() - start


def _find_case(name: str, target: CpuTarget) -> Case:
    listed_cases = cases(target)
    for case in listed_cases:
        if case.name == name:
            return case
    listed = "; ".join(case.name for case in listed_cases)
    raise UsageError(
        stage="bench",
        where=f"workload {name!r}",
        reason="no such workload",
        remedy=f"one of: {listed}",
    )


def _train(model: LearnedModel, features: list[Features], random: np.random.Generator) -> None:
    """Fit the model to made-up times of some of the candidates.

    A time is a random, but smooth, function of a program's features, so that trees have to grow.
    """
    share = _SAMPLES / sum(map(len, features))
    weights = random.normal(size=features[0].shape[-1])
    samples: list[Sample] = []
    for part in features:
        chosen = part[: max(1, round(len(part) * share))]
        for one in chosen:
            time_s = 1e-3 * float(np.exp(np.tanh(one @ weights / 100).sum()))
            samples.append(Sample("scoring", one, time_s))
    model.observe(samples)
    model.refit()


def _show(document: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    counts = ("candidates", "distinct", "structures", "space_size")
    cells = [(name.replace("_", " "), f"{document[name]:,}") for name in counts]
    cells += [(f"{name} [s]", f"{value:.4f}") for name, value in document["seconds"].items()]
    cells.append(("candidates per second", f"{document['candidates_per_s']:,.0f}"))
    cells.append(("fixed NumPy workload [s]", f"{document['reference_s']:.4f}"))
    cells.append(("candidates per fixed workload", f"{document['candidates_per_reference']:,.0f}"))
    print_table((f"scoring {document['workload']}", "number"), cells)
