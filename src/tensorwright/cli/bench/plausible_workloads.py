"""Workloads of random plausible networks, in an order that a seed decides."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import click

from tensorwright.base import Target, TensorwrightError
from tensorwright.graph import Workload
from tensorwright.pipeline import prepare
from tensorwright.zoo.plausible import draw_network

FIRST_SEED = 5_000_000
"""Of the networks that judge: the time model learns from others, which are drawn from 0 on."""

_PER_NETWORK = 2


@dataclass(frozen=True, slots=True)
class DrawnWorkload:
    """A workload, the seed of its network, and what sort of network that is."""

    seed: int
    family: str
    workload: Workload


def draw_workloads(
    seed: int,
    target: Target,
    threads: int,
    seen: Collection[str] = (),
    families: Collection[str] = (),
) -> Iterator[DrawnWorkload]:
    """Two workloads of each network from a seed on, none twice, without end.

    seen       keys of workloads that are passed over
    families   from which networks are drawn; all where empty
    A network that cannot be compiled is told and passed over.
    """
    known = set(seen)
    for number in itertools.count(seed):
        graph = draw_network(number, families)
        try:
            workloads = list(prepare(graph, target, threads=threads).workloads)
        except TensorwrightError as error:
            click.echo(f"network {number}: {error}", err=True)
            continue
        random.Random(f"workloads {number}").shuffle(workloads)
        for workload in workloads[:_PER_NETWORK]:
            if workload.key not in known:
                known.add(workload.key)
                yield DrawnWorkload(number, graph.name.removesuffix(f"_{number}"), workload)
