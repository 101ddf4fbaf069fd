"""The workloads of `bench zero`: no model was trained on them, each group has its own reason."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tensorwright.base import CpuTarget, UsageError, cpu_target
from tensorwright.cli.arguments.models import read_graph
from tensorwright.graph import Workload
from tensorwright.pipeline import prepare
from tensorwright.tuning.session import check_measures_here
from tensorwright.tuning.time_model import load_time_model
from tensorwright_lab.bench.plausible_workloads import draw_workloads
from tensorwright_lab.pretraining import WITHOUT
from tensorwright_lab.zoo.plausible import FAMILIES

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
