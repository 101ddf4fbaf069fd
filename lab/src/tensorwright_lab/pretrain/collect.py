"""`tensorwright pretrain collect`: measure programs of random networks, for hours, resumably."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from tensorwright.base import (
    CpuTarget,
    RecordError,
    TensorwrightError,
    make_folder,
    override,
    write_atomically,
)
from tensorwright.cli.arguments.machine import Workers, workers_options
from tensorwright.cli.arguments.options import Minutes
from tensorwright.cli.arguments.output import duration
from tensorwright.graph import Workload
from tensorwright.machine import Machine
from tensorwright.pipeline import prepare
from tensorwright.records import Record
from tensorwright.schedule import state_of
from tensorwright.tuning.models import CostModel, RooflineModel
from tensorwright.tuning.space import algorithm_sketches
from tensorwright.tuning.time_model import PredictedTime, load_time_model
from tensorwright_lab.pretraining import Collector, Shares, draw_conditions
from tensorwright_lab.zoo.plausible import FAMILIES, draw_network

_EVERY_S = 5.0
_PROGRESS = "progress.json"
_OF_MODEL = Shares(by_rule=0.2, around=0.1, believed=0.6)
"""With a trained model: what it believes in wrongly is what it has to see."""


@click.command("collect")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--minutes", type=Minutes(), default=60.0, show_default=True, help="How long.")
@click.option(
    "--seed", type=click.IntRange(min=0), help="First network, where the folder is new; else 0."
)
@click.option(
    "--programs",
    type=click.IntRange(min=2),
    default=24,
    show_default=True,
    help="Of each workload.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A trained model, whose elites are measured; the roofline's if not given.",
)
@click.option(
    "--family",
    "families",
    type=click.Choice(tuple(FAMILIES)),
    multiple=True,
    help="Only networks of this family; may be repeated.",
)
@click.option(
    "--algorithms",
    "only_algorithms",
    is_flag=True,
    help="Only workloads that another algorithm can compute, such as Winograd's.",
)
@workers_options
def command(
    folder: Path,
    minutes: float,
    seed: int | None,
    programs: int,
    model: Path | None,
    families: tuple[str, ...],
    only_algorithms: bool,
    workers: Workers,
) -> None:
    """Measure programs of random plausible networks into FOLDER, and go on where it was left.

    Each network is drawn from its seed, with a target, a number of threads, and constants in
    memory or in the caches. The machine should do nothing else; a folder is of one machine.

    Example: tensorwright pretrain collect measured --minutes 240
    """
    make_folder(folder)
    first = _next_seed(folder, seed)
    counts: Counter[str] = Counter()
    shares = Shares() if model is None else _OF_MODEL
    with (
        workers.opened() as farm,
        Collector(folder, programs, _maker(model), shares, farm) as collector,
        suppress(KeyboardInterrupt),
    ):
        told = time.monotonic()
        ends = told + 60.0 * minutes
        for number in itertools.count(first):
            if time.monotonic() >= ends:
                break
            conditions = draw_conditions(number)
            with override(dump="", default_schedule="rule"):  # cut alike, whatever model is shipped
                workloads = _workloads(number, conditions.target, families, counts)
                if only_algorithms:
                    workloads = _with_algorithms(workloads, conditions.target)
                records = collector.collect(number, workloads, conditions)
            _note(counts, records)
            write_atomically(folder / _PROGRESS, json.dumps({"next_seed": number + 1}))
            if time.monotonic() - told > _EVERY_S:
                told = time.monotonic()
                click.echo(f"{_text(counts)}, {duration(ends - told)} left", err=True)
    click.echo(f"{_text(counts)}; the next network is {_next_seed(folder, None)}")
    click.echo(f"go on:  tensorwright pretrain collect {folder}")
    click.echo(f"train:  tensorwright pretrain train {folder} -o MODEL")


def _workloads(
    seed: int, target: CpuTarget, families: tuple[str, ...], counts: Counter[str]
) -> tuple[Workload, ...]:
    """The workloads of a network; none of one of another family, or that cannot be compiled."""
    graph = draw_network(seed)
    if families and graph.name.removesuffix(f"_{seed}") not in families:
        return ()
    try:
        return prepare(graph, target).workloads
    except TensorwrightError as error:
        counts["networks refused"] += 1
        click.echo(f"network {seed}: {error}", err=True)
        return ()


def _with_algorithms(workloads: tuple[Workload, ...], target: CpuTarget) -> tuple[Workload, ...]:
    return tuple(each for each in workloads if any(algorithm_sketches(state_of(each), target)))


def _maker(path: Path | None) -> Callable[[Machine], CostModel]:
    if path is None:
        return RooflineModel
    model = load_time_model(path)
    return lambda machine: PredictedTime(model, machine)


def _note(counts: Counter[str], records: list[Record]) -> None:
    counts["networks"] += 1
    counts["workloads"] += len({record.workload for record in records})
    counts["programs"] += len(records)
    for record in records:
        counts[record.status.value] += 1


def _text(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())


def _next_seed(folder: Path, seed: int | None) -> int:
    """Where to go on; `seed` is for a new folder."""
    path = folder / _PROGRESS
    if not path.exists():
        return seed or 0
    try:
        next_seed = json.loads(path.read_bytes())["next_seed"]
    except (OSError, ValueError, KeyError, TypeError):
        next_seed = None
    if type(next_seed) is not int or next_seed < 0:
        raise RecordError(
            stage="pretrain",
            where=f"file {path}",
            reason="it does not say where to go on",
            remedy="remove it and give --seed: what is on record is not measured again",
        )
    return next_seed
