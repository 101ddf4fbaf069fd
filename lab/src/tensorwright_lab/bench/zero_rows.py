"""The workloads of `bench zero`, its rows, their summaries, and the file that keeps them.

No model was trained on the workloads; each group of them has its own reason.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click

from tensorwright.base import CpuTarget, UsageError, cpu_target, write_atomically
from tensorwright.cli.arguments.models import read_graph
from tensorwright.cli.printing import print_table
from tensorwright.graph import Workload
from tensorwright.pipeline import prepare
from tensorwright.tuning.session import check_measures_here
from tensorwright.tuning.time_model import load_time_model
from tensorwright_lab.bench.options import check_same_run
from tensorwright_lab.bench.plausible_workloads import draw_workloads
from tensorwright_lab.comparison import AGAIN, print_builds
from tensorwright_lab.comparison.row_files import read_file_of
from tensorwright_lab.judging import LIMIT, distribution_of
from tensorwright_lab.pretraining import WITHOUT
from tensorwright_lab.zoo.plausible import FAMILIES

TRIALS = (0, 1, 4, 16, 64, 256)
"""The numbers of trials after which the search is judged."""


@dataclass(frozen=True, slots=True)
class ZeroRow:
    """A workload: seconds of its schedules, all measured in turns.

    group, network   why it is here, and where it comes from      name, key   of the workload
    default_s        chosen by the time model, nothing measured
    random_s         the fastest of the random ones; None where the space has no other
    trials           after so many trials ...
    with_model_s     ... the best of a search that starts from the time model
    without_model_s  ... and of one that starts from the rule; the first is the rule's own schedule
    failure          why there are no times; "" otherwise
    build            digest of the sources that measured it; "" where that is not known
    """

    group: str
    network: str
    name: str
    key: str
    target: str
    default_s: float | None = None
    random_s: float | None = None
    trials: tuple[int, ...] = ()
    with_model_s: tuple[float, ...] = ()
    without_model_s: tuple[float, ...] = ()
    failure: str = ""
    build: str = ""

    @property
    def tuned_s(self) -> float:
        """The best after all trials, with the model."""
        return self.with_model_s[-1]

    @property
    def best_s(self) -> float:
        """The fastest of all that were measured."""
        times_s = (self.default_s, self.random_s, *self.with_model_s, *self.without_model_s)
        return min(time_s for time_s in times_s if time_s is not None)


@dataclass(frozen=True, slots=True)
class Curve:
    """Speed after numbers of trials over the best speed; geometric means, 1 is best."""

    trials: tuple[int, ...]
    with_model: tuple[float, ...]
    without_model: tuple[float, ...]


def curve_of(rows: Sequence[ZeroRow]) -> Curve | None:
    """The mean curve of the rows that have one; None where there is none."""
    good = [row for row in rows if not row.failure]
    if not good:
        return None
    trials = good[0].trials
    return Curve(
        trials,
        tuple(
            _mean([row.best_s / row.with_model_s[n] for row in good]) for n in range(len(trials))
        ),
        tuple(
            _mean([row.best_s / row.without_model_s[n] for row in good]) for n in range(len(trials))
        ),
    )


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def by_group(rows: Sequence[ZeroRow]) -> dict[str, list[ZeroRow]]:
    """The rows of each group, in order, and of all where there are several."""
    names = dict.fromkeys(row.group for row in rows)
    grouped = {name: [row for row in rows if row.group == name] for name in names}
    return grouped | {"all": list(rows)} if len(grouped) > 1 else grouped


def show_rows(rows: Sequence[ZeroRow]) -> None:
    """Two tables: the default against others, and the curves; then what failed."""
    groups = by_group(rows)
    columns = (
        *("times the best random", "workloads", "mean", "90 %", "most", f"> {LIMIT:g}"),
        *("default/tuned speed", "least"),
    )
    print_table(columns, [_cells(name, each) for name, each in groups.items()])
    curves = {name: curve for name, each in groups.items() if (curve := curve_of(each))}
    if curves:
        trials = next(iter(curves.values())).trials
        cells = []
        for name, curve in curves.items():
            cells.append((f"{name}: with the model", *map(_share, curve.with_model)))
            cells.append((f"{name}: without", *map(_share, curve.without_model)))
        print_table(("share of the best speed after trials", *map(str, trials)), cells)
    for row in rows:
        if row.failure:
            click.echo(f"{row.group}, {row.network}, {row.name}: {row.failure}")
    print_builds([row.build for row in rows], (), AGAIN)


def _cells(name: str, rows: Sequence[ZeroRow]) -> tuple[str, ...]:
    random = distribution_of(_random_ratios(rows))
    shares = _tuned_shares(rows)
    numbers = (f"{number:.2f}" for number in (random.mean, random.p90, random.most))
    tuned = (_share(_mean(shares)), _share(min(shares))) if shares else ("-", "-")
    return (name, str(len(rows)), *numbers, str(random.above), *tuned)


def _share(share: float) -> str:
    return f"{share:.2f}"


def _random_ratios(rows: Sequence[ZeroRow]) -> list[float]:
    return [row.default_s / row.random_s for row in rows if row.default_s and row.random_s]


def _tuned_shares(rows: Sequence[ZeroRow]) -> list[float]:
    """The share of the tuned speed that the default has, per row."""
    return [row.tuned_s / row.default_s for row in rows if row.default_s]


def write_zero(path: str, head: Mapping[str, object], rows: Sequence[ZeroRow]) -> None:
    """Write everything, whole or not at all.  Raises: OutputError."""
    groups: dict[str, Any] = {}
    for name, each in by_group(rows).items():
        shares, curve = _tuned_shares(each), curve_of(each)
        groups[name] = {
            "default_over_random": distribution_of(_random_ratios(each)).to_data(),
            "share_of_tuned": _mean(shares) if shares else None,
            "least_share_of_tuned": min(shares, default=None),
            "curve": None if curve is None else asdict(curve),
        }
    content = {**head, "groups": groups, "rows": [asdict(row) for row in rows]}
    write_atomically(path, json.dumps(content, indent=1))


def read_zero(path: str, head: Mapping[str, object]) -> list[ZeroRow]:
    """The rows of an earlier run without a failure; none where there is no file.

    Raises:  UsageError if that was another setting, InputError for another file.
    """
    before, rows = read_file_of("bench zero", path, _row)
    check_same_run(path, before, json.loads(json.dumps(head)), head)
    return [row for row in rows if not row.failure]


def _row(fields: dict[str, Any]) -> ZeroRow:
    lists = ("trials", "with_model_s", "without_model_s")
    return ZeroRow(**(fields | {name: tuple(fields[name]) for name in lists}))


NETWORKS = (
    *("zoo:resnet50", "zoo:mobilenet_v2", "zoo:bert_base"),
    *("wild:swin_t", "wild:unet_gn", "wild:whisper_tiny"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A workload and where it comes from."""

    network: str
    workload: Workload


@dataclass(frozen=True, slots=True)
class Group:
    """Workloads that are judged together.

    name       for people, and in the file
    target     what they are compiled for
    model      file of the time model; the one in force where None
    families   of the random networks that they are from; all where ()
    networks   MODEL arguments that they are from; random networks where ()
    """

    name: str
    target: CpuTarget
    model: Path | None = None
    families: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()

    def cases(self, count: int, threads: int, seed: int) -> Iterator[Case]:
        """`count` workloads; of networks of suites the same number each, if they have as many."""
        if not self.networks:
            drawn = draw_workloads(seed, self.target, threads, families=self.families)
            for each in islice(drawn, count):
                yield Case(f"{each.family} {each.seed}", each.workload)
            return
        share, more = divmod(count, len(self.networks))
        for number, network in enumerate(self.networks):
            parts = prepare(read_graph(network), self.target, threads=threads)
            workloads = list(parts.workloads)
            random.Random(f"workloads {seed}").shuffle(workloads)
            for workload in workloads[: share + (number < more)]:
                yield Case(network, workload)


def groups_of(
    target: CpuTarget, models: Sequence[Path], networks: Sequence[str]
) -> tuple[Group, ...]:
    """Random networks, networks of suites, and a group for each model that something was left out
    of: its families, or its target.

    Raises:  UsageError for a model of which nothing was left out, RecordError for a damaged one,
             MachineError for a target that cannot run here.
    """
    groups = [Group("random networks", target)]
    if networks:
        groups.append(Group("networks of suites", target, networks=tuple(networks)))
    groups += [_left_out(path, target) for path in models]
    for group in groups:
        check_measures_here(group.target)
    return tuple(groups)


def _left_out(path: Path, target: CpuTarget) -> Group:
    names = load_time_model(path).statistics.get(WITHOUT) or ()
    if not names:
        raise UsageError(
            stage="bench",
            where=f"model {path}",
            reason="nothing was left out of its training",
            remedy="tensorwright pretrain train FOLDER -o MODEL --without FAMILY",
        )
    families = tuple(name for name in names if name in FAMILIES)
    targets = [cpu_target(name) for name in names if name not in FAMILIES]
    text = f"without {', '.join(names)}"
    return Group(text, targets[0] if targets else target, path.absolute(), families)
