"""`tensorwright pretrain train`: the time model from what was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from tensorwright import base
from tensorwright.cli.arguments.options import seed_option
from tensorwright.cli.arguments.output import ProgressLines, check_writable
from tensorwright.graph import Workload
from tensorwright.records import Record
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.datasets import dataset
from tensorwright.tuning.features import Featurizer
from tensorwright.tuning.space import space_of
from tensorwright.tuning.time_model import save_time_model
from tensorwright_lab import pretraining
from tensorwright_lab.pretrain.proposer import Records, records_by_network, stores_in, workloads_of

_FEATURES = "features"


@click.command("train")
@click.argument(
    "folders",
    metavar="FOLDER...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@click.option("-o", "--output", required=True, metavar="MODEL", help="The file to write.")
@seed_option
@click.option("--rounds", type=click.IntRange(min=1), default=500, show_default=True, help="Trees.")
@click.option("--threads", type=click.IntRange(min=1), default=1, help="For fitting.")
@click.option(
    "--without",
    multiple=True,
    metavar="FAMILY|TARGET|MACHINE",
    help="Leave it out, and judge the model on it; may be repeated.",
)
@click.option("--json", "json_path", metavar="FILE", help="Write the accuracies to a file, too.")
def command(
    folders: tuple[Path, ...],
    output: str,
    seed: int,
    rounds: int,
    threads: int,
    without: tuple[str, ...],
    json_path: str | None,
) -> None:
    """Fit the model that chooses schedules without measurement to what FOLDERs hold.

    One network in five judges and is not learned from. Beside that, the accuracy on families and on
    targets that were left out is printed. The features of the programs are kept in FOLDER/features.
    Each folder was measured on one machine.

    Example: tensorwright pretrain train measured -o time_model.npz --json accuracy.json
    """
    for path in filter(None, (output, json_path)):
        check_writable(path)
    measured = tuple(one for folder in folders for one in _measured(folder))
    _check_names(without, measured)
    hidden = frozenset(without)
    kept = {one.is_held_out for one in measured if not one.is_of(hidden)}
    if kept != {True, False}:
        raise base.RecordError(
            stage="pretrain",
            where=f"folder {folders[-1]}",
            reason="it holds too little to train and to judge",
            remedy=f"tensorwright pretrain collect {folders[-1]}",
        )
    settings = pretraining.TimeTreeSettings(rounds=rounds, seed=seed, threads=threads)
    trained = pretraining.train(
        measured, settings, lambda text: click.echo(text, err=True), without
    )
    save_time_model(trained.model, output)
    _show(trained)
    click.echo(f"{output}: {Path(output).stat().st_size / 1e3:.0f} KB")
    if json_path is not None:
        base.write_atomically(json_path, json.dumps(dict(trained.model.statistics), indent=1))


def _check_names(names: tuple[str, ...], measured: tuple[pretraining.Measured, ...]) -> None:
    """Refuse a family, a target or a machine of which nothing was measured."""
    measured_names = {one.workload.family for one in measured}
    measured_names |= {one.conditions.target_name for one in measured}
    measured_names |= {one.measuring.fingerprint for one in measured}
    for name in names:
        if name not in measured_names:
            reason = "nothing of such a family or target, or on such a machine, was measured"
            where = f"--without {name}"
            raise base.unknown_name("pretrain", where, reason, name, sorted(measured_names))


def _measured(folder: Path) -> Iterator[pretraining.Measured]:
    """All measurements in a folder; features that are not kept yet are computed."""
    base.make_folder(folder / _FEATURES)
    progress = ProgressLines("networks")
    measuring = pretraining.MeasuringMachine.of(folder)
    for path in stores_in(folder):
        conditions = pretraining.Conditions.parse(path.stem)
        by_seed = records_by_network(path)
        for number, (seed, records) in enumerate(by_seed.items()):
            for workload in _of_network(folder, conditions, seed, records):
                yield pretraining.Measured(seed, conditions, measuring, workload)
            progress.show(number + 1, len(by_seed), remark=f" of {conditions}")


def _of_network(
    folder: Path, conditions: pretraining.Conditions, seed: int, records: Records
) -> tuple[pretraining.MeasuredWorkload, ...]:
    path = folder / _FEATURES / f"{conditions}-{seed}.npz"
    if path.exists():
        return pretraining.read_features(path)
    try:
        family, workloads = workloads_of(seed, conditions, records)
        parts = [_featured(each, records[each.key], conditions, family) for each in workloads]
    except base.TensorwrightError as error:  # this version compiles it no more
        click.echo(f"network {seed}: {error}", err=True)
        return ()
    featured = tuple(part for part in parts if part is not None)
    pretraining.write_features(path, featured)
    return featured


def _featured(
    workload: Workload, records: list[Record], conditions: pretraining.Conditions, family: str
) -> pretraining.MeasuredWorkload | None:
    target = conditions.target
    state = state_of(workload)
    space = space_of(state, target)
    data = dataset(records, space, Featurizer(state, target))
    if not data.samples:
        return None
    by_rule = format_trace(space.default_trace)
    return pretraining.MeasuredWorkload.of(data, workload.key, workload.name, family, by_rule)


def _show(trained: pretraining.Trained) -> None:
    statistics = trained.model.statistics
    click.echo(f"{statistics['programs']} programs of {statistics['workloads']} workloads")
    for kind in ("conditions", "families"):
        parts = ", ".join(f"{name} {count}" for name, count in statistics[kind].items())
        click.echo(f"{kind}: {parts}")
    for name, accuracy in trained.accuracies:
        click.echo(f"{name}: {accuracy}")
    click.echo(f"chosen by: {asdict(trained.model.policy)}")
    if trained.model.trained is not None:
        click.echo(f"{len(trained.model.trained)} keys of workloads that judge no more are kept")
