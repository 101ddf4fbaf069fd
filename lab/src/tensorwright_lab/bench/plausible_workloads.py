"""Workloads of random plausible networks, in an order that a seed decides.

They judge, so none is among them that the time model in force was trained on.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import click

from tensorwright.base import CpuTarget, TensorwrightError
from tensorwright.graph import Workload
from tensorwright.pipeline import prepare
from tensorwright.tuning.time_model import TrainedKeys, pretrained_model
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
