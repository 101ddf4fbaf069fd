"""Which features and which model rank programs best, within operators and across them.

For each pair: the share of pairs of programs in the right order, and the best of the first five, on
a fifth of the programs of ten workloads after training on the others; and the share of pairs on
each family of operators after training on all others (features that mean the same for every
operator only).  Seconds are processor time of one thread: to train on 2,400 programs, and, of a
program, to describe it in a population of 512 and to score it among 60.

Run: python benchmarks/cost_models.py [--records FILE] [--features NAME ...] [--models NAME ...]
         [--families NAME ...] [--json FILE]
A run goes on where the file has no row.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from lab.cost_models import MEASURED, Described, describe, read_measured, times_of
from tensorwright.base import UsageError, detect_target
from tensorwright.machine import detect_hardware, machine_of
from tensorwright.tuning.features import STATEMENT, feature_set
from tensorwright.tuning.learning import Learning
from tensorwright.tuning.models import CostModel, LearnedModel, RooflineModel, Sample
from tensorwright_lab.cost_models import judge, overall, scores_of, split

FEATURES = (
    "statement",
    "knob",
    "itervar",
    "curve",
    "curve-fix",
    "curve-paired",
    "context",
    "loop-tree",
)
MODELS = ("trees-pairs", "trees-lambdarank", "trees-squares", "embedding-pairs")


@dataclass(frozen=True, slots=True)
class Row:
    """How a model did with some features; `across` by the family that it had not seen."""

    features: str
    model: str
    pair_accuracy: float
    top1: float
    top5: float
    train_s: float
    describe_us: float
    score_us: float
    across: dict[str, float] = field(default_factory=dict)

    @property
    def across_mean(self) -> float | None:
        """Over the families left out; None where there are none."""
        return float(np.mean(list(self.across.values()))) if self.across else None


def main() -> None:
    """Judge every pair, and print the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, default=MEASURED)
    parser.add_argument("--features", nargs="+", default=list(FEATURES))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--families", nargs="*", default=None)
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    measured = read_measured(wanted.records)
    families = tuple(dict.fromkeys(each.case.family for each in measured))
    chosen = families if wanted.families is None else tuple(wanted.families)
    rows = _read(wanted.json)
    for features in wanted.features:
        described: tuple[Described, ...] | None = None
        for model in wanted.models:
            if (features, model) in {(row.features, row.model) for row in rows}:
                continue
            try:
                learning = Learning(features, model)
            except UsageError:
                continue  # a model that reads other features
            described = described or describe(measured, features)
            rows.append(_judge(described, learning, chosen))
            _show(rows)
            _write(wanted.json, rows, wanted.records)
    if not any(row.model == "roofline" for row in rows):
        rows.append(_judge_roofline(describe(measured, STATEMENT.name), chosen))
        _write(wanted.json, rows, wanted.records)
    _show(rows)


def _judge(described: tuple[Described, ...], learning: Learning, families: tuple[str, ...]) -> Row:
    is_shared = feature_set(learning.features).is_shared
    groups = [described] if is_shared else [(each,) for each in described]
    judged = []
    train_s = score_us = 0.0
    for group in groups:
        parts = [(each, *split(len(each.samples), 0)) for each in group]
        train = [each.samples[n] for each, first, _ in parts for n in first]
        model, seconds = _trained(learning, train)
        train_s += seconds
        for each, _, second in parts:
            tested = [each.samples[n] for n in second]
            scores_of(model, tested)  # makes native code of a model, once
            start = time.process_time()
            scores = scores_of(model, tested)
            score_us += 1e6 * (time.process_time() - start) / len(tested) / len(described)
            judged.append(judge(scores, times_of(tested)))
    across = {}
    for family in families if is_shared else ():
        train = [s for each in described if each.case.family != family for s in each.samples]
        model, _ = _trained(learning, train)
        across[family] = _accuracy(model, described, family)
    mean = overall(judged)
    return Row(
        learning.features,
        learning.model,
        mean.pair_accuracy,
        mean.top1,
        mean.top5,
        train_s,
        float(np.mean([each.describe_us for each in described])),
        score_us,
        across,
    )


def _judge_roofline(described: tuple[Described, ...], families: tuple[str, ...]) -> Row:
    """What needs no measurement, on the same programs."""
    model = RooflineModel(machine_of(detect_target(), 2))
    judged = []
    for each in described:
        tested = [each.samples[n] for n in split(len(each.samples), 0)[1]]
        judged.append(judge(scores_of(model, tested), times_of(tested)))
    mean = overall(judged)
    across = {family: _accuracy(model, described, family) for family in families}
    figures = (mean.pair_accuracy, mean.top1, mean.top5, 0.0, 0.0, 0.0)
    return Row(STATEMENT.name, "roofline", *figures, across)


def _accuracy(model: CostModel, described: tuple[Described, ...], family: str) -> float:
    tests = [each.samples for each in described if each.case.family == family]
    return float(
        np.mean([judge(scores_of(model, each), times_of(each)).pair_accuracy for each in tests])
    )


def _trained(learning: Learning, train: list[Sample]) -> tuple[LearnedModel, float]:
    model = LearnedModel(learning.settings(0), features=learning.feature_set)
    model.observe(train)
    start = time.process_time()
    if not model.refit():
        raise SystemExit(model.notice)
    return model, time.process_time() - start


def _show(rows: list[Row]) -> None:
    print(
        "\n| features | model | pairs | best of 1, 5 | unseen operators | train s "
        "| describe us | score us |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        across = "" if row.across_mean is None else f"{row.across_mean:.3f}"
        print(
            f"| {row.features} | {row.model} | {row.pair_accuracy:.3f} | {row.top1:.2f}, "
            f"{row.top5:.3f} | {across} | {row.train_s:.1f} | {row.describe_us:.1f} "
            f"| {row.score_us:.1f} |"
        )


def _read(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    return [Row(**fields) for fields in json.loads(path.read_text())["rows"]]


def _write(path: Path | None, rows: list[Row], records: Path) -> None:
    if path is not None:
        facts = {"hardware": detect_hardware().fingerprint, "records": records.name}
        path.write_text(json.dumps(facts | {"rows": [asdict(row) for row in rows]}, indent=1))


if __name__ == "__main__":
    main()
