"""The measurements of `collect`, network by network: the workloads again, and their records."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tensorwright.base import override
from tensorwright.graph import Workload
from tensorwright.pipeline import prepare
from tensorwright.records import Record, open_store
from tensorwright_lab.pretraining import Conditions
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
