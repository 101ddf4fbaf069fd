"""Workloads of random plausible networks, in an order that a seed decides.

They judge, so none is among them that the time model in force was trained on.

What `bench random` keeps: a file with a line of JSON for its setting, then one a workload.

Lines are appended as soon as a workload is done; one that was cut off is left out when the command
goes on.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import click

from tensorwright import base
from tensorwright.base import CpuTarget, TensorwrightError
from tensorwright.graph import Workload
from tensorwright.pipeline import prepare
from tensorwright.tuning.time_model import TrainedKeys, pretrained_model
from tensorwright_lab.comparison import this_build
from tensorwright_lab.judging import RandomComparison
from tensorwright_lab.zoo.plausible import draw_network

FIRST_SEED = 20_000_000
"""Of the networks that judge. The time model learns from others, which are drawn from 0 and from
1,000,000 on; 5,000,000 on judged until defaults were mended by what they showed.
"""

_PER_NETWORK = 2


@dataclass(frozen=True, slots=True)
class DrawnWorkload:
    """A workload, the seed of its network, and what sort of network that is.

    passed   keys of workloads that were drawn since the one before, and passed over because the
             time model was trained on them
    """

    seed: int
    family: str
    workload: Workload
    passed: tuple[str, ...] = ()


def draw_workloads(
    seed: int,
    target: CpuTarget,
    threads: int,
    seen: Collection[str] = (),
    families: Collection[str] = (),
) -> Iterator[DrawnWorkload]:
    """Two workloads of each network from a seed on, none twice, without end; fewer where the time
    model in force was trained on one.

    seen       keys of workloads that are passed over
    families   from which networks are drawn; all where empty
    A network that cannot be compiled is told and passed over.
    """
    drawn_keys, trained = set(seen), trained_keys()
    passed: list[str] = []
    for number in itertools.count(seed):
        graph = draw_network(number, families)
        try:
            workloads = list(prepare(graph, target, threads=threads).workloads)
        except TensorwrightError as error:
            click.echo(f"network {number}: {error}", err=True)
            continue
        random.Random(f"workloads {number}").shuffle(workloads)
        family = graph.name.removesuffix(f"_{number}")
        for workload in workloads[:_PER_NETWORK]:
            if workload.key in trained:
                passed.append(workload.key)
            elif workload.key not in drawn_keys:
                drawn_keys.add(workload.key)
                yield DrawnWorkload(number, family, workload, tuple(passed))
                passed.clear()


def trained_keys() -> TrainedKeys:
    """The workloads that the time model in force was trained on; none, after a word, where that is
    not known.
    """
    model = pretrained_model()
    if model is None:
        return TrainedKeys.of(())
    if model.trained is None:
        click.echo("the time model does not say what it was trained on", err=True)
        return TrainedKeys.of(())
    return model.trained


@dataclass(frozen=True, slots=True)
class RandomRow:
    """A workload's default schedule against random ones; None for what did not run.

    seed, family     of its network              name, key       of the workload
    source           what chose the default      chosen_s, rule_s, best_s   see `RandomComparison`
    measured         how many random ones ran    best            trace of the fastest
    wrong            pairs (trace, what is wrong), the default included
    failure          why the default did not run; "" otherwise
    passed           keys of workloads drawn before it that the time model was trained on
    build            digest of the sources that measured it; "" where that is not known
    """

    seed: int
    family: str
    name: str
    key: str
    source: str
    chosen_s: float | None
    rule_s: float | None
    best_s: float | None
    measured: int
    chosen: str = ""
    best: str = ""
    wrong: tuple[tuple[str, str], ...] = ()
    failure: str = ""
    passed: tuple[str, ...] = ()
    build: str = ""

    @classmethod
    def of(
        cls, drawn: DrawnWorkload, source: str, chosen: str, comparison: RandomComparison
    ) -> Self:
        """The row of a comparison."""
        return cls(
            drawn.seed,
            drawn.family,
            drawn.workload.name,
            drawn.workload.key,
            source,
            comparison.chosen_s,
            comparison.rule_s,
            comparison.best_s,
            comparison.measured,
            chosen,
            comparison.best,
            comparison.wrong,
            comparison.failure,
            drawn.passed,
            this_build(),
        )

    @property
    def ratio(self) -> float | None:
        """The default's time over that of the best random schedule; None without both."""
        if self.chosen_s is None or self.best_s is None:
            return None
        return self.chosen_s / self.best_s

    @property
    def is_sound(self) -> bool:
        """Whether the default ran and every answer was right."""
        return not self.failure and not self.wrong


def read_rows(path: Path, setting: Mapping[str, object]) -> list[RandomRow]:
    """The rows of earlier runs; the file is made where there is none, and mended.

    Raises:  UsageError for rows of another setting, RecordError for what is none of ours,
             OutputError.
    """
    base.make_folder(path.parent)
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as error:
        raise base.output_error(path, error) from error
    head = _parsed(path, lines[0]) if lines else dict(setting)
    for name, value in setting.items():
        if head.get(name) != value:
            raise base.UsageError(
                stage="bench",
                where=f"file {path}",
                reason=f"its rows have {name} {head.get(name)}, this run has {value}",
                remedy="name another file, or remove it",
            )
    rows = [_row(path, line, is_last=line is lines[-1]) for line in lines[1:]]
    whole = [row for row in rows if row is not None]
    texts = [json.dumps(setting), *(json.dumps(asdict(row)) for row in whole)]
    base.write_atomically(path, "".join(f"{text}\n" for text in texts))
    return whole


def append_row(path: Path, row: RandomRow) -> None:
    """Add a row.  Raises: OutputError."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")
    except OSError as error:
        raise base.output_error(path, error) from error


def _row(path: Path, line: bytes, *, is_last: bool) -> RandomRow | None:
    """None for a last line that was cut off."""
    try:
        fields = json.loads(line)
        wrong = tuple((str(trace), str(what)) for trace, what in fields.pop("wrong"))
        passed = tuple(map(str, fields.pop("passed", ())))
        return RandomRow(wrong=wrong, passed=passed, **fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        if is_last:
            return None
        raise _foreign(path) from None


def _parsed(path: Path, line: bytes) -> dict[str, Any]:
    try:
        head = json.loads(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or "candidates" not in head:
        raise _foreign(path)
    return head


def _foreign(path: Path) -> base.RecordError:
    return base.RecordError(
        stage="bench",
        where=f"file {path}",
        reason="its lines are not those of `tensorwright bench random`",
        remedy="name another file, or remove it",
    )
