"""Strategies on made-up landscapes: nothing is built or measured, so that many seeds cost little.

A landscape gives every schedule of a real space a time: structures differ; each decision has a best
value, from which it gets slower; some pairs of decisions matter together; there are cliffs, as
where a tile leaves a cache; and a roughness that no model can learn.  All of it is drawn from a
seed.  Strategies that ask a model get trees that learn from the decisions of what was tried, as in
AutoTVM with its features `knob`; nothing is known before.

The table has, for each strategy, the quality of what it found after so many trials: the time of the
best schedule known of a landscape over that of the schedule found.  Range: the largest minus the
smallest over seeds, the mean over landscapes.

Run again with the same file to go on where a run was stopped.

With --chains: seconds of 128 chains of 500 steps over one structure under such a model.

Run: python benchmarks/landscapes.py [--seeds N] [--trials N] [--landscapes N] [--space NAME]
                                     [--json FILE] [STRATEGY ...]
     python benchmarks/landscapes.py --chains
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean, mean

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.base import cpu_target, now_utc
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.graph import as_program
from tensorwright.records import Record, Status
from tensorwright.schedule import state_of
from tensorwright.tuning.models import BoostedSettings, LearnedModel
from tensorwright.tuning.population import (
    Candidate,
    Population,
    make_space_tables,
    neighbourhood,
    sample,
)
from tensorwright.tuning.space import Sketch, Space, space_of
from tensorwright.tuning.strategies import STRATEGIES, ModelGuides, StrategyChoice, choose_strategy
from tensorwright.tuning.strategies.annealing import (
    VANILLA,
    AnnealingOptions,
    Archive,
    Cooling,
    Pick,
    Scale,
    Temperatures,
    Walk,
    anneal,
)
from tensorwright.tuning.task import Task

ROUND = 16
TARGET = cpu_target("x86-64-avx512")
Column = NDArray[np.float64]

MENDED = AnnealingOptions()
VARIATIONS: Mapping[str, StrategyChoice] = {
    **{name: name for name in STRATEGIES},
    "vanilla, scaled": replace(VANILLA, scale=Scale.SPREAD, first=MENDED.first, last=MENDED.last),
    "vanilla, neighbours": replace(VANILLA, leap=MENDED.leap),
    "annealing, linear": replace(MENDED, cooling=Cooling.LINEAR),
    "annealing, adaptive": replace(MENDED, cooling=Cooling.ADAPTIVE),
    "annealing, tempering": replace(MENDED, cooling=Cooling.CONSTANT, rungs=8),
    "annealing, no reheating": replace(MENDED, reheats=0),
    "annealing, no restarts": replace(MENDED, patience=0),
    "annealing, best": replace(MENDED, pick=Pick.BEST, spare=1),
    "annealing, refined": replace(MENDED, refine_share=0.3),
    "annealing, a quarter random": replace(MENDED, epsilon=0.25),
    "annealing, nothing random first": replace(MENDED, random_first=0),
}


# The landscapes


@dataclass(frozen=True, slots=True)
class Terms:
    """The landscape of one sketch, over log2 of its decisions (columns in order of name).

    cliffs   (columns, threshold, height): how much slower where the sum of columns exceeds it
    pairs    (one, other, weight)
    """

    names: tuple[str, ...]
    offset: float
    best: Column
    slopes: Column
    pairs: tuple[tuple[int, int, float], ...]
    cliffs: tuple[tuple[tuple[int, ...], float, float], ...]


class Landscape:
    """Times of all schedules of a space, in seconds."""

    def __init__(self, space: Space, seed: int, roughness: float = 0.08) -> None:
        self.space = space
        self.seed = seed
        self.roughness = roughness
        self.tables = make_space_tables(space)
        random = np.random.default_rng((seed, 77))
        families = dict.fromkeys(sketch.family for sketch in space.sketches)
        own = {family: _draw_terms(_sketch_of(space, family), random) for family in families}
        self.terms = [_of_sibling(sketch, own[sketch.family], random) for sketch in space.sketches]

    def log2_of(self, population: Population) -> Column:
        """log2 of the times, but for a constant."""
        found = np.empty(len(population))
        for number in np.unique(population.sketch):
            rows = np.flatnonzero(population.sketch == number)
            sketch, terms = self.space.sketches[number], self.terms[number]
            columns = sketch.columns(population.genes[rows, : len(sketch.choices)])
            logs = np.array([np.log2(columns[name]) for name in terms.names])
            found[rows] = _evaluate(terms, logs.reshape(len(terms.names), len(rows)))
        mixed = (population.keys ^ np.uint64(self.seed * 2 + 1)) * np.uint64(0xD1342543DE82EF95)
        uniform = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
        return found + self.roughness * math.sqrt(12.0) * (uniform - 0.5)

    def time_s(self, candidate: Candidate) -> float:
        names = [sketch.name for sketch in self.space.sketches]
        number = names.index(candidate.sketch)
        genes = self.space.sketches[number].genes_of(dict(candidate.decisions))
        assert genes is not None, "strategies propose what is of the space"
        padded = np.zeros((1, self.tables.width), np.int64)
        padded[0, : len(genes)] = genes
        return float(
            1e-3 * 2.0 ** self.log2_of(Population(np.array([number], np.int32), padded))[0]
        )

    def best_known_s(self, draws: int = 60_000, descents: int = 12) -> float:
        """The best of many draws, and of descents from the best of them."""
        drawn = sample(self.tables, draws, np.random.default_rng(self.seed))
        logs = self.log2_of(drawn)
        lowest = math.inf
        for start in np.argsort(logs)[:descents].tolist():
            sketch, genes, here = int(drawn.sketch[start]), drawn.genes[start], float(logs[start])
            while True:
                around = neighbourhood(self.tables, sketch, genes)
                near = self.log2_of(around)
                if not len(near) or near.min() >= here:
                    break
                at = int(near.argmin())
                sketch, genes, here = int(around.sketch[at]), around.genes[at], float(near[at])
            lowest = min(lowest, here)
        return float(1e-3 * 2.0**lowest)


def _sketch_of(space: Space, family: str) -> Sketch:
    """That of a family with the most decisions."""
    return _largest([sketch for sketch in space.sketches if sketch.family == family])


def _largest(sketches: Sequence[Sketch]) -> Sketch:
    return max(sketches, key=lambda sketch: len(sketch.choices))


def _draw_terms(sketch: Sketch, random: Generator) -> Terms:
    names = tuple(sorted(name for choice in sketch.choices for name in choice.names))
    values = {
        name: [row[choice.names.index(name)] for row in choice.values]
        for choice in sketch.choices
        for name in choice.names
    }
    top = np.array([np.log2(max(values[name])) for name in names])
    best = random.uniform(0.0, 1.0, len(names)) * top
    count = len(names)
    pairs = tuple(
        (int(one), int(other), float(random.normal(0.0, 0.4)))
        for one, other in random.integers(0, max(count, 1), (count, 2))
        if one != other
    )
    cliffs = []
    for _ in range(2 if count > 1 else 0):
        chosen = tuple(int(n) for n in random.permutation(count)[: max(2, count // 3)])
        at = float(top[list(chosen)].sum() * random.uniform(0.3, 0.7))
        cliffs.append((chosen, at, float(random.uniform(0.4, 1.2))))
    slopes = random.uniform(0.02, 0.3, count)
    return Terms(names, float(random.uniform(0.0, 0.7)), best, slopes, pairs, tuple(cliffs))


def _of_sibling(sketch: Sketch, terms: Terms, random: Generator) -> Terms:
    """The family's landscape, a little apart, over the decisions that the sibling has."""
    own = {name for choice in sketch.choices for name in choice.names}
    kept = [n for n, name in enumerate(terms.names) if name in own]
    at = {old: new for new, old in enumerate(kept)}
    pairs = tuple((at[a], at[b], w) for a, b, w in terms.pairs if a in at and b in at)
    cliffs = tuple(
        (tuple(at[n] for n in chosen), limit, height)
        for chosen, limit, height in terms.cliffs
        if all(n in at for n in chosen)
    )
    offset = terms.offset + float(random.uniform(0.0, 0.3))
    names = tuple(terms.names[n] for n in kept)
    return Terms(names, offset, terms.best[kept], terms.slopes[kept], pairs, cliffs)


def _evaluate(terms: Terms, logs: Column) -> Column:
    """(decisions, n) -> (n,)"""
    away = logs - terms.best[:, None]
    found = np.full(logs.shape[1], terms.offset)
    found += (terms.slopes[:, None] * np.abs(away) ** 1.5).sum(axis=0)
    for one, other, weight in terms.pairs:
        found += weight * np.tanh(0.5 * away[one] * away[other])
    for chosen, limit, height in terms.cliffs:
        found += height / (1.0 + np.exp(-4.0 * (logs[list(chosen)].sum(axis=0) - limit)))
    return found


def subjects() -> dict[str, tuple[Task, Space]]:
    """Two workloads of AutoTVM's report, C7 and C12, and a product: all structures, or one."""
    tasks = {
        "C7": _convolution(28, 256, 128, 2),
        "GMM": _product(1024),
        "C12": _convolution(7, 512, 512, 1),
    }
    found: dict[str, tuple[Task, Space]] = {}
    for name, task in tasks.items():
        space = space_of(state_of(task.workload), TARGET)
        found[name] = task, space
        found[f"{name}, one structure"] = task, Space((_largest(space.sketches),))
    return found


def _convolution(size: int, channels: int, filters: int, stride: int) -> Task:
    x = placeholder("x", (1, size + 2, size + 2, channels))
    w = placeholder("w", (3, 3, channels, filters))
    p, q, c = reduce_axis("p", 3), reduce_axis("q", 3), reduce_axis("c", channels)
    out = (size - 1) // stride + 1
    y = compute(
        "y",
        (1, out, out, filters),
        lambda n, i, j, o: sum_over(
            x[n, i * stride + p, j * stride + q, c] * w[p, q, c, o], p, q, c
        ),
    )
    return _task(y)


def _product(size: int) -> Task:
    a, b, k = placeholder("a", (size, size)), placeholder("b", (size, size)), reduce_axis("k", size)
    return _task(compute("y", (size, size), lambda i, j: sum_over(a[i, k] * b[k, j], k)))


def _task(y: object) -> Task:
    workload = as_program(y, None)
    assert workload is not None, "it is a tensor expression"
    return Task(workload)


# The model that guides


class Knobs:
    """A `FeatureSource`: the number of the sketch and log2 of its decisions, one row a program."""

    def __init__(self, space: Space) -> None:
        names = {n for sketch in space.sketches for c in sketch.choices for n in c.names}
        self.places = {name: 1 + n for n, name in enumerate(sorted(names))}
        self.numbers = {sketch.name: n for n, sketch in enumerate(space.sketches)}

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> NDArray[np.float32]:
        found = np.full((len(genes), 1, 1 + len(self.places)), -1.0, np.float32)
        found[:, 0, 0] = self.numbers[sketch.name]
        for name, column in sketch.columns(genes).items():
            found[:, 0, self.places[name]] = np.log2(column)
        return found


def guides_of(space: Space, seed: int) -> ModelGuides:
    """Trees that start from nothing."""
    model = LearnedModel(BoostedSettings(seed=seed))
    return ModelGuides(lambda: model, lambda state, target, space: Knobs(space), TARGET)


# The searches


@dataclass(frozen=True, slots=True)
class Run:
    """What one search found: its best time after each trial, in seconds."""

    subject: str
    landscape: int
    strategy: str
    seed: int
    best_s: tuple[float, ...]
    search_s: float


def search(
    name: str, subject: str, task: Task, landscape: Landscape, seed: int, trials: int
) -> Run:
    guides = guides_of(landscape.space, seed)
    strategy = choose_strategy(VARIATIONS[name], guides)(task, landscape.space, seed)
    best, best_s = math.inf, []
    started = time.process_time()
    while len(best_s) < trials:
        found = strategy.propose(min(ROUND, trials - len(best_s)))
        if not found:
            break
        records = []
        for one in found:
            time_s = landscape.time_s(one)
            best = min(best, time_s)
            best_s.append(best)
            records.append(
                Record(
                    task.workload.key, "t", "h", 1, one.trace, (time_s,), Status.OK,
                    decisions=one.decisions,
                )
            )  # fmt: skip
        strategy.observe(records)
    spent = time.process_time() - started
    return Run(subject, landscape.seed, name, seed, tuple(best_s), spent)


def table(runs: Sequence[Run], best_s: Mapping[tuple[str, int], float], trials: int) -> str:
    """Markdown: quality after a quarter and all of the trials, the worst, the range over seeds."""
    lines = [
        f"| strategy | after {trials // 4} | after {trials} | worst | range | search s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(run.strategy for run in runs):
        own = [run for run in runs if run.strategy == name]
        quarter = [best_s[run.subject, run.landscape] / run.best_s[trials // 4 - 1] for run in own]
        final = [best_s[run.subject, run.landscape] / run.best_s[-1] for run in own]
        ranges = []
        for place in dict.fromkeys((run.subject, run.landscape) for run in own):
            same = [best_s[place] / r.best_s[-1] for r in own if (r.subject, r.landscape) == place]
            ranges.append(max(same) - min(same))
        lines.append(
            f"| {name} | {geometric_mean(quarter):.3f} | {geometric_mean(final):.3f} "
            f"| {min(final):.3f} | {mean(ranges):.3f} | {mean(r.search_s for r in own):.1f} |"
        )
    return "\n".join(lines)


def compare(
    names: Sequence[str],
    spaces: Sequence[str],
    landscapes: int,
    seeds: int,
    trials: int,
    kept: Kept,
) -> None:
    """Run what is not kept yet, and print the table after each landscape."""
    for number in range(landscapes):
        for subject in spaces:
            task, space = subjects()[subject]
            landscape = Landscape(space, number)
            for name in names:
                for seed in range(seeds):
                    if not kept.has(subject, number, name, seed):
                        kept.runs.append(search(name, subject, task, landscape, seed, trials))
            if f"{subject} {number}" not in kept.best_s:
                kept.best_s[f"{subject} {number}"] = landscape.best_known_s()
            kept.write(trials)
            print(
                f"\nup to {subject}, landscape {number}\n\n{kept.table(names, trials)}", flush=True
            )


class Kept:
    """What was run, in a file if one is named: the same command goes on where it stopped."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.runs: list[Run] = []
        self.best_s: dict[str, float] = {}
        if path is not None and path.exists():
            content = json.loads(path.read_text())
            self.best_s = content["best_known_s"]
            self.runs = [Run(**{**one, "best_s": tuple(one["best_s"])}) for one in content["runs"]]

    def has(self, subject: str, number: int, name: str, seed: int) -> bool:
        wanted = (subject, number, name, seed)
        return wanted in {(r.subject, r.landscape, r.strategy, r.seed) for r in self.runs}

    def write(self, trials: int) -> None:
        if self.path is None:
            return
        runs = [asdict(run) for run in self.runs]
        content = {"when": now_utc(), "trials": trials, "best_known_s": self.best_s, "runs": runs}
        self.path.write_text(json.dumps(content) + "\n")

    def table(self, names: Sequence[str], trials: int) -> str:
        runs = [run for name in names for run in self.runs if run.strategy == name]
        best = {(run.subject, run.landscape): math.inf for run in runs}
        for run in runs:
            place = (run.subject, run.landscape)
            best[place] = min(best[place], run.best_s[-1])
        for place in best:
            best[place] = min(best[place], self.best_s[f"{place[0]} {place[1]}"])
        return table(runs, best, trials)


def chain_seconds() -> None:
    """Print what chains take on one core."""
    task, whole = subjects()["C7"]
    chosen = _largest(whole.sketches)
    space = Space((chosen,))
    landscape = Landscape(space, 0)
    tables = landscape.tables
    guide = guides_of(space, 0)(task, space, 0)
    drawn = sample(tables, 512, np.random.default_rng(0))
    candidates = drawn.candidates(space)
    strategy = choose_strategy(VANILLA, lambda task, space, seed: guide)(task, space, 0)
    strategy.observe(
        [
            Record(
                task.workload.key, "t", "h", 1, one.trace, (landscape.time_s(one),), Status.OK,
                decisions=one.decisions,
            )
            for one in candidates
        ]
    )  # fmt: skip
    guide.refresh()
    options = replace(VANILLA, idle_steps=0)
    start = sample(tables, options.chains, np.random.default_rng(1))
    allowed = np.ones(1, np.bool_)
    walk = Walk(tables, allowed, guide.scores, lambda n, source: sample(tables, n, source))
    print(f"{chosen.name}: {len(chosen.choices)} choices, {chosen.size:.3g} schedules")
    for _ in range(3):
        archive = Archive(tables.width, options.plan, np.empty(0, np.uint64))
        temperatures = Temperatures(options, 1.0, options.chains)
        began = time.process_time()
        anneal(walk, start, options, temperatures, archive, np.random.default_rng(2))
        spent = time.process_time() - began
        count = options.chains * options.steps
        print(
            f"{options.chains} chains of {options.steps} steps: {spent:.2f} s of one core, "
            f"{1e6 * spent / count:.1f} us a step; best score {archive.scores[0]:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("strategies", nargs="*", help="one of " + "; ".join(VARIATIONS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--landscapes", type=int, default=2, help="of each space")
    parser.add_argument("--space", action="append", help="one of " + "; ".join(subjects()))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--chains", action="store_true", help="time chains only")
    asked = parser.parse_args()
    if asked.chains:
        chain_seconds()
        return
    unknown = [name for name in asked.strategies if name not in VARIATIONS]
    if unknown:
        parser.error(f"no strategy {unknown[0]!r}; one of " + "; ".join(VARIATIONS))
    names = asked.strategies or list(STRATEGIES)
    spaces = asked.space or list(subjects())
    kept = Kept(asked.json)
    compare(names, spaces, asked.landscapes, asked.seeds, asked.trials, kept)


if __name__ == "__main__":
    main()
