"""What a model that was trained on other workloads is worth at the start of a search.

A search is played from measured programs: in each round of 16 a session's cost model chooses among
the programs of a workload that were measured before and not yet tried, and learns their times; one
in sixteen is drawn at random.  Its quality after so many trials is the time of the fastest program
of all over that of the fastest tried.  Nothing is built or timed, so that every way to start has
the same choices, and a table takes minutes.

    none       from nothing: the roofline where features are those of statements, else at random
    halving    from a model trained on the source's programs, which counts 1/2^(n/64)
    held-out   the same, its weight judged by programs that a fit has not seen
    records    as halving, the model fitted to the source's records as `tune --start records` does

Pairs are within an operator (other sizes) and across operators.  In a session a workload's first
round is a race of what the time model expects to be fast; so here every other program of the first
round is one that the roofline alone believes in.  A model of other operators may be mistaken, and
what it believes in is all alike.

Run: python benchmarks/transfer.py [--records FILE] [--features NAME ...] [--model NAME]
         [--seeds N] [--json FILE]
A run goes on where the file has no row.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from lab.cost_models import (
    MEASURED,
    THREADS,
    Described,
    Measured,
    describe,
    read_measured,
    times_of,
)
from tensorwright.base import CpuTarget, detect_target
from tensorwright.machine import detect_hardware
from tensorwright.records import MemoryStore, Setting, WorkloadText
from tensorwright.tuning.features import STATEMENT
from tensorwright.tuning.learning import Learning, Past, learn_from_records
from tensorwright.tuning.models import (
    CostModel,
    Fading,
    LearnedModel,
    Sample,
    SavedModel,
    make_model,
)
from tensorwright.tuning.models.protocol import Scores
from tensorwright_lab.cost_models import scores_of

ROUND = 16
RANDOM = 1  # of a round
MARKS = (16, 32, 64, 100)
RECORDS = "records"
WAYS = ("none", *(each.value for each in Fading), RECORDS)

CONVOLUTIONS = ("conv 3x3 64", "conv 3x3 256", "conv 1x1", "conv 7x7")


@dataclass(frozen=True, slots=True)
class Pair:
    """Which workloads teach, by how their names begin, and which one is searched for."""

    sources: tuple[str, ...]
    target: str
    is_within: bool

    @property
    def name(self) -> str:
        """For a table."""
        kind = "other sizes" if self.is_within else ", ".join(self.sources)
        return f"{kind} -> {self.target}"


PAIRS = (
    *(
        Pair(tuple(other for other in CONVOLUTIONS if other != each), each, is_within=True)
        for each in CONVOLUTIONS
    ),
    Pair(("matmul",), "conv 3x3 64", is_within=False),
    Pair(("matmul",), "conv 1x1", is_within=False),
    Pair(("conv",), "depthwise", is_within=False),
    Pair(("conv",), "transposed", is_within=False),
    Pair(("conv",), "grouped", is_within=False),
    Pair(("conv",), "batched", is_within=False),
)


@dataclass(frozen=True, slots=True)
class Row:
    """Quality after each of `MARKS` trials, of every seed."""

    features: str
    model: str
    pair: str
    is_within: bool
    way: str
    quality: tuple[tuple[float, ...], ...]

    @property
    def means(self) -> tuple[float, ...]:
        """Geometric means over the seeds, one for each mark."""
        return tuple(np.exp(np.log(np.array(self.quality)).mean(axis=0)).tolist())


def main() -> None:
    """Play every search that the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, default=MEASURED)
    parser.add_argument("--features", nargs="+", default=["statement", "context", "curve-paired"])
    parser.add_argument("--model", default="trees-pairs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    target = detect_target()
    measured = read_measured(wanted.records)
    rows = _read(wanted.json)
    for features in wanted.features:
        described = describe(measured, features)
        learning = Learning(features, wanted.model)
        for row in _rows(measured, described, learning, target, wanted.seeds, rows):
            rows.append(row)
            _write(wanted.json, rows, wanted.records, wanted.seeds)
    _show(rows)


def _rows(
    measured: tuple[Measured, ...],
    described: tuple[Described, ...],
    learning: Learning,
    target: CpuTarget,
    seeds: int,
    known: list[Row],
) -> Iterator[Row]:
    done = {(row.features, row.model, row.pair, row.way) for row in known}
    for pair in PAIRS:
        ways = [
            way for way in WAYS if (learning.features, learning.model, pair.name, way) not in done
        ]
        if not ways:
            continue
        models = {way: _taught(described, pair, learning) for way in ways if way != RECORDS}
        if RECORDS in ways:
            models[RECORDS] = _taught_by_records(measured, pair, learning, target)
        (pool,) = (each.samples for each in described if each.case.name.startswith(pair.target))
        for way in ways:
            quality = tuple(
                _played(pool, *_makers(learning, target, way, models[way], seed), seed)
                for seed in range(seeds)
            )
            yield Row(learning.features, learning.model, pair.name, pair.is_within, way, quality)


def _taught(described: tuple[Described, ...], pair: Pair, learning: Learning) -> SavedModel:
    """A model of the source's programs."""
    model = LearnedModel(learning.settings(0), features=learning.feature_set)
    for each in described:
        if each.case.name.startswith(pair.sources) and not each.case.name.startswith(pair.target):
            model.observe(each.samples)
    found = model.learned()
    if found is None:
        raise SystemExit(model.notice or f"nothing was measured of {pair.sources}")
    return found


def _taught_by_records(
    measured: tuple[Measured, ...], pair: Pair, learning: Learning, target: CpuTarget
) -> SavedModel:
    """The same from a record store."""
    (own,) = (each.case.workload for each in measured if each.case.name.startswith(pair.target))
    with MemoryStore() as store:
        for each in measured:
            if each.case.name.startswith(pair.sources):
                workload = each.case.workload
                records = [replace(record, target=target.key) for record in each.records]
                store.append(records, [WorkloadText.of(workload)])
        hardware = next(store.query()).hardware
        found = learn_from_records(
            Past(store, (own,)), learning, Setting(target, THREADS, hardware)
        )
    if found is None:
        raise SystemExit(f"nothing was measured of {pair.sources}")
    return found


def _makers(
    learning: Learning, target: CpuTarget, way: str, taught: SavedModel, seed: int
) -> tuple[CostModel, CostModel | None]:
    """The model as a session would make it, and what it races against in the first round."""

    def make(saved: SavedModel | None, fading: Fading) -> CostModel:
        return make_model(
            target,
            THREADS,
            seed,
            saved,
            settings=learning.settings(seed),
            features=learning.feature_set,
            fading=fading,
        )

    if way == "none":
        return make(None, Fading.HALVING), None
    fading = Fading.HELD_OUT if way == Fading.HELD_OUT.value else Fading.HALVING
    has_roofline = learning.feature_set is STATEMENT
    return make(taught, fading), make(None, Fading.HALVING) if has_roofline else None


def elites(opinions: Sequence[Scores], count: int) -> list[int]:
    """The numbers of so many programs: in turns the best of each opinion that nobody took."""
    orders = [iter(np.argsort(-scores, kind="stable").tolist()) for scores in opinions]
    found: dict[int, None] = {}
    while len(found) < min(count, len(opinions[0])):
        order = orders[len(found) % len(orders)]
        found[next(number for number in order if number not in found)] = None
    return list(found)


def _played(
    pool: tuple[Sample, ...], model: CostModel, rival: CostModel | None, seed: int
) -> tuple[float, ...]:
    """The quality after each of `MARKS` trials.

    rival   chooses every other program of the first round
    """
    random = np.random.default_rng(seed)
    times = times_of(pool)
    left = random.permutation(len(pool)).tolist()
    tried: list[int] = []
    while len(tried) < max(MARKS):
        model.update()
        opinions = [scores_of(model, [pool[n] for n in left])]
        if rival is not None and not tried:
            opinions.append(scores_of(rival, [pool[n] for n in left]))
        chosen = [left[n] for n in elites(opinions, ROUND - RANDOM)]
        rest = [n for n in left if n not in set(chosen)]
        chosen += [rest[int(random.integers(len(rest)))] for _ in range(RANDOM)]
        model.observe([pool[n] for n in chosen])
        tried += chosen
        left = [n for n in left if n not in set(chosen)]
    return tuple(float(times.min() / times[tried[:mark]].min()) for mark in MARKS)


def _show(rows: list[Row]) -> None:
    print("| features | model | pair | way | " + " | ".join(f"@{mark}" for mark in MARKS) + " |")
    print("|---|---|---|---|" + "---:|" * len(MARKS))
    for row in rows:
        cells = " | ".join(f"{each:.3f}" for each in row.means)
        print(f"| {row.features} | {row.model} | {row.pair} | {row.way} | {cells} |")
    print("\ngeometric means over pairs")
    print("| features | model | pairs | way | " + " | ".join(f"@{mark}" for mark in MARKS) + " |")
    print("|---|---|---|---|" + "---:|" * len(MARKS))
    kinds = dict.fromkeys((row.features, row.model, row.is_within, row.way) for row in rows)
    for kind in kinds:
        features, model, is_within, way = kind
        own = [r for r in rows if (r.features, r.model, r.is_within, r.way) == kind]
        means = np.exp(np.log(np.array([row.means for row in own])).mean(axis=0))
        cells = " | ".join(f"{each:.3f}" for each in means)
        text = "within an operator" if is_within else "across operators"
        print(f"| {features} | {model} | {text} | {way} | {cells} |")


def _read(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    rows = json.loads(path.read_text())["rows"]
    return [Row(**(row | {"quality": tuple(map(tuple, row["quality"]))})) for row in rows]


def _write(path: Path | None, rows: list[Row], records: Path, seeds: int) -> None:
    if path is not None:
        facts = {
            "hardware": detect_hardware().fingerprint,
            "records": records.name,
            "seeds": seeds,
            "marks": MARKS,
        }
        path.write_text(json.dumps(facts | {"rows": [asdict(row) for row in rows]}, indent=1))


if __name__ == "__main__":
    main()
