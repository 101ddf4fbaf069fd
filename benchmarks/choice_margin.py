"""How much better than the rule a choice must be expected to be: gains predicted and measured.

    python benchmarks/choice_margin.py [--count N] [--seed N] [--target TARGET] [--families A,B]
        [--json FILE]

A default schedule is the best predicted of some hundred candidates.  Of these, more are overrated
than of programs that were drawn and measured, so the margin of the time model's policy cannot be
found among its training data.  Here the time model chooses for workloads of fresh random networks
with no margin, and its choice and the schedule by rule are measured in turns.  The first table says
what the gains are that were predicted so high; the second, how the times of all workloads change
when the rule is left for gains above a margin.  Choices that compute by another algorithm, which
have a margin of their own, have their own tables.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median

from tensorwright.artifacts import Kernel
from tensorwright.base import CpuTarget, available_cores, override
from tensorwright.cli.arguments.output import ProgressLines
from tensorwright.cli.printing import print_table
from tensorwright.compile_options import CompileOptions
from tensorwright.records import Setting
from tensorwright.runtime.measuring import this_machine
from tensorwright.schedule import format_trace, uses_algorithm
from tensorwright.tuning.measuring import ChildRunner, MeasureOptions, PoolBuilder
from tensorwright.tuning.selection import Chooser, Estimate, Predictor
from tensorwright.tuning.time_model import Policy, TimeModel, pretrained_model
from tensorwright_lab.bench.plausible_workloads import DrawnWorkload, draw_workloads
from tensorwright_lab.judging import Bench, build_all, fastest_s, measure_in_turns

FIRST_SEED = 8_000_000
"""Of the networks: neither those that train, nor those of `bench random` and `bench zero`; and of
their workloads none that the time model was trained on."""

BANDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, math.inf)
MARGINS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
_MEASURE = MeasureOptions(
    repeats=5, min_sample_s=0.002, most_s=0.15, limit_s=4.0, cold_bytes=64 << 20
)
_BUILD_LIMIT_S = 30.0
_SLOWER = math.log2(0.9)


@dataclass(frozen=True, slots=True)
class Choice:
    """A workload for which another schedule than that by rule was expected to be faster.

    by_algorithm   whether it computes by another algorithm
    predicted   log2 of the gain by score, caution included        gain   log2 of the measured one
    """

    seed: int
    family: str
    name: str
    by_algorithm: bool
    predicted: float
    gain: float
    rule_s: float


def choices(
    target: CpuTarget,
    threads: int,
    seed: int,
    families: Sequence[str],
    caution: float,
    bench: Bench,
) -> Iterator[Choice | None]:
    """One for each workload of the networks from a seed on; None where the rule is chosen."""
    predictor = Predictor(
        replace(_model(), policy=Policy(caution, 0.0, 0.0)),
        this_machine(target, threads, is_cold=True),
    )
    for drawn in draw_workloads(seed, target, threads, families=families):
        yield _choice(drawn, predictor, caution, bench)


def _model() -> TimeModel:
    model = pretrained_model()
    if model is None:
        sys.exit("there is no time model: name one in TENSORWRIGHT_TIME_MODEL")
    return model


def _choice(
    drawn: DrawnWorkload, predictor: Predictor, caution: float, bench: Bench
) -> Choice | None:
    chosen = predictor.best(drawn.workload)
    if chosen.is_by_rule or chosen.estimate is None or chosen.by_rule is None:
        return None
    with override(default_schedule="rule"):
        by_rule = Chooser(Setting(bench.target, bench.threads), is_cold=True).unmeasured(
            drawn.workload
        )
    pair = format_trace(by_rule.trace), format_trace(chosen.trace)
    built = build_all(drawn.workload, pair, bench)
    kernels = {trace: one for trace, one in built.items() if isinstance(one, Kernel)}
    turns = measure_in_turns(drawn.workload, kernels, bench, 2) if len(kernels) > 1 else {}
    times_s = fastest_s(turns)
    if len(times_s) < 2:
        return None
    rule_s, own_s = (times_s[trace] for trace in pair)
    predicted = _score(chosen.by_rule, caution) - _score(chosen.estimate, caution)
    gain = math.log2(rule_s / own_s)
    other, name = uses_algorithm(chosen.trace), drawn.workload.name
    return Choice(drawn.seed, drawn.family, name, other, predicted, gain, rule_s)


def _score(estimate: Estimate, caution: float) -> float:
    likely = math.log2(estimate.seconds)
    return likely + caution * (math.log2(estimate.upper_seconds) - likely)


def measure(
    target: CpuTarget,
    threads: int,
    seed: int,
    count: int,
    families: Sequence[str],
    caution: float,
) -> list[Choice]:
    """So many choices that differ from the rule's; the number of workloads looked at is shown."""
    found: list[Choice] = []
    progress = ProgressLines("choices")
    with PoolBuilder(limit_s=_BUILD_LIMIT_S) as builder, ChildRunner(_MEASURE) as runner:
        bench = Bench(builder, runner, target, threads)
        asked = choices(target, threads, seed, families, caution, bench)
        for seen, choice in enumerate(asked, 1):
            if choice is not None:
                found.append(choice)
                progress.show(len(found), count, len(found))
            if len(found) == count:
                print(f"{target.key}: {count} choices other than the rule's in {seen} workloads")
                break
    return found


def show(found: Sequence[Choice]) -> None:
    """Print both tables of each kind of choice."""
    for title, is_other in (("other decisions", False), ("another algorithm", True)):
        kind = [choice for choice in found if choice.by_algorithm is is_other]
        if kind:
            print(f"\n{title}: {len(kind)} workloads")
            _show_kind(kind)


def _show_kind(found: Sequence[Choice]) -> None:
    bands = [
        (f"{_times(low)} to {_times(high)}", [c.gain for c in found if low < c.predicted <= high])
        for low, high in itertools.pairwise(BANDS)
    ]
    print_table(
        ("predicted gain", "workloads", "measured, mean", "median", "below 0.9"),
        [
            (
                name,
                str(len(gains)),
                _times(fmean(gains)),
                _times(median(gains)),
                str(sum(gain < _SLOWER for gain in gains)),
            )
            for name, gains in bands
            if gains
        ],
    )
    print()
    rows = []
    for margin in MARGINS:
        gains = [c.gain if c.predicted > margin else 0.0 for c in found]
        left = sum(c.predicted > margin for c in found)
        rows.append((f"{margin}", str(left), f"{2 ** fmean(gains):.3f}", _times(min(gains))))
    print_table(("margin (log2)", "leave the rule", "gain, all", "least"), rows)


def _times(log2_gain: float) -> str:
    return f"{2.0**log2_gain:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--target")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--families", help="of networks, with commas; else all")
    parser.add_argument("--caution", type=float, default=Policy().caution)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    target = CompileOptions(target=asked.target).machine
    families = asked.families.split(",") if asked.families else ()
    found = measure(target, asked.threads, asked.seed, asked.count, families, asked.caution)
    show(found)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(choice) for choice in found], indent=1))


if __name__ == "__main__":
    main()
