"""`tensorwright pretrain proposer`: the model that proposes schedules, from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from tensorwright.base import RecordError, TensorwrightError
from tensorwright.cli.arguments.options import seed_option
from tensorwright.cli.arguments.output import ProgressLines, check_writable
from tensorwright.schedule import state_of
from tensorwright.tuning.space import space_of
from tensorwright_lab import proposing
from tensorwright_lab.pretrain.networks import records_by_network, stores_in, workloads_of
from tensorwright_lab.pretraining import HELD_OUT, Conditions, MeasuringMachine


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
