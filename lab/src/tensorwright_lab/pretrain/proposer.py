"""`tensorwright pretrain proposer`: the model that proposes schedules, from what was measured.

The measurements of `collect`, network by network: the workloads again, and their records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from tensorwright.base import RecordError, TensorwrightError, override
from tensorwright.cli.arguments.options import seed_option
from tensorwright.cli.arguments.output import ProgressLines, check_writable
from tensorwright.graph import Workload
from tensorwright.pipeline import prepare
from tensorwright.records import Record, open_store
from tensorwright.schedule import state_of
from tensorwright.tuning.space import space_of
from tensorwright_lab import proposing
from tensorwright_lab.pretraining import HELD_OUT, Conditions, MeasuringMachine
from tensorwright_lab.zoo.plausible import draw_network

Records = dict[str, list[Record]]
"""By the key of their workload."""


def stores_in(folder: Path) -> tuple[Path, ...]:
    """The record stores of a folder, and files of JSON lines, each named by its conditions."""
    stores = (path for suffix in ("jsonl", "sqlite") for path in folder.glob(f"*.{suffix}"))
    return tuple(sorted(stores))


def records_by_network(path: Path) -> dict[int, Records]:
    """The records of one store, by the seed of their network, ascending."""
    by_seed: defaultdict[int, Records] = defaultdict(dict)
    with open_store(path, create=False) as store:
        for record in store.query():
            by_seed[record.seed].setdefault(record.workload, []).append(record)
    return dict(sorted(by_seed.items()))


def workloads_of(
    seed: int, conditions: Conditions, records: Records
) -> tuple[str, tuple[Workload, ...]]:
    """The family of a network, and those of its workloads that have records.

    Raises:  TensorwrightError where this version compiles it no more.
    """
    graph = draw_network(seed)
    family = graph.name.removesuffix(f"_{seed}")
    with override(default_schedule="rule"):  # cut as where it was measured
        workloads = prepare(graph, conditions.target).workloads
    return family, tuple(each for each in workloads if each.key in records)


@click.command("proposer")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("-o", "--output", required=True, metavar="MODEL", help="The file to write.")
@seed_option
@click.option("--rounds", type=click.IntRange(min=1), default=300, show_default=True, help="Trees.")
@click.option("--threads", type=click.IntRange(min=1), default=1, help="For fitting.")
@click.option("--networks", type=click.IntRange(min=1), help="Of each store; all if not given.")
def command(
    folder: Path, output: str, seed: int, rounds: int, threads: int, networks: int | None
) -> None:
    """Fit the model that proposes schedules to the good ones that FOLDER holds.

    One network in five judges and is not learned from: printed is how likely what its good
    schedules decided is by the model, and by chance. What is written is fitted to all.

    Example: tensorwright pretrain proposer measured -o proposing.npz
    """
    check_writable(output)
    learned: list[proposing.Examples] = []
    judged: list[proposing.Examples] = []
    for network, examples in _examples(folder, networks):
        (judged if network % HELD_OUT == 0 else learned).append(examples)
    if not learned or not judged:
        raise RecordError(
            stage="pretrain",
            where=f"folder {folder}",
            reason="it holds too little to train and to judge",
            remedy=f"tensorwright pretrain collect {folder}",
        )
    settings = proposing.WayTreeSettings(rounds=rounds, seed=seed, threads=threads)
    unseen = proposing.Examples.joined(judged)
    click.echo(f"fitting to {len(learned)} workloads, to judge", err=True)
    model = proposing.fit(proposing.Examples.joined(learned), settings)
    likely = unseen.likelihood(model.scores(unseen.rows))
    evenly = unseen.likelihood(np.zeros(len(unseen.rows)))
    everything = proposing.Examples.joined([*learned, *judged])
    workloads = len(learned) + len(judged)
    click.echo(f"fitting to all {len(everything)} decisions of {workloads} workloads", err=True)
    statistics = {
        "workloads": workloads,
        "decisions": len(everything),
        "held_out": f"1 network of {HELD_OUT}",
        "likelihood": likely,
        "likelihood_evenly": evenly,
    }
    proposing.save_proposing_model(proposing.fit(everything, settings, statistics), output)
    click.echo(f"{len(everything)} decisions of good schedules of {workloads} workloads")
    click.echo(
        f"a decision of {len(judged)} others is taken with {likely:.3f}, evenly {evenly:.3f}"
    )


def _examples(folder: Path, most: int | None) -> Iterator[tuple[int, proposing.Examples]]:
    """The seed of a network, and the examples of each of its workloads."""
    progress = ProgressLines("networks")
    measuring = MeasuringMachine.of(folder)
    for path in stores_in(folder):
        conditions = Conditions.parse(path.stem)
        machine = measuring.under(conditions)
        networks = list(records_by_network(path).items())[:most]
        for number, (seed, records) in enumerate(networks):
            progress.show(number, len(networks), remark=f" of {conditions}")
            try:
                _, workloads = workloads_of(seed, conditions, records)
                for workload in workloads:
                    space = space_of(state_of(workload), conditions.target)
                    decisions = proposing.DecisionTables(workload, space, machine)
                    source = np.random.default_rng((seed, number))
                    examples = proposing.examples_of(decisions, records[workload.key], source)
                    if len(examples):
                        yield seed, examples
            except TensorwrightError as error:  # this version compiles it no more
                click.echo(f"network {seed}: {error}", err=True)
