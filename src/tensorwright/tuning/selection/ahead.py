"""Choose and build from the end of a network in another process, while this one begins.

Nothing is sent back: both processes put choices and kernels into caches, from which the other one
takes them.  So the result is the same with or without the process, and it may end at any moment.
LLVM's binding holds one lock for all compiling of a process.
`compiling.py` starts the process early, so that it gets ready while the network is read.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tensorwright.base import (
    KNOBS,
    CpuTarget,
    Target,
    available_cores,
    is_dumped,
    knobs,
    override,
)
from tensorwright.build import backend_of, build_cached
from tensorwright.graph import Workload
from tensorwright.tuning.selection.predictor import open_predictor
from tensorwright.tuning.selection.scheduling import choose_untuned

_LEAST_WORKLOADS = 12  # a process starts in the time that three or four of them take
_LEAST_FOR_SPARE = 3  # if it has started already
_LIMIT_S = 3600.0


@contextlib.contextmanager
def working_ahead(workloads: Sequence[Workload], target: Target, threads: int) -> Iterator[None]:
    """Let another process work inside the block, if there is enough to do and a core for it."""
    todo = _unknown(workloads, target, threads)
    if len(todo) < _LEAST_FOR_SPARE:
        yield
        return
    end = _start(todo, target, threads)
    try:
        yield
    finally:
        end()


def suppose(workloads: Callable[[], Iterable[Workload]], target: Target, threads: int) -> None:
    """Let a started process begin with workloads that a network probably has."""
    processes = importlib.import_module("tensorwright.processes")
    if processes.has_spare() and isinstance(target, CpuTarget):
        todo = [each for each in workloads() if not each.sizes]
        job = processes.Job(work_backwards, _arguments(todo, target, threads))
        processes.occupy_spare(job, _LIMIT_S)


def get_ready(target: CpuTarget, threads: int, values: Mapping[str, Any]) -> None:
    """Load the modules of `work_backwards`; `values` are those of knobs."""
    with override(**values):
        open_predictor(target, threads, is_cold=True)
        backend_of(target)


def _start(todo: Sequence[Workload], target: Target, threads: int) -> Callable[[], None]:
    """Start a process; the result ends it.  For small networks it does not load the modules."""
    processes = importlib.import_module("tensorwright.processes")
    child = processes.take_spare()
    if child is None and len(todo) < _LEAST_WORKLOADS:
        return _nothing
    child = child or processes.Child()
    child.send(processes.Job(work_backwards, _arguments(todo, target, threads)), _LIMIT_S)
    end: Callable[[], None] = child.kill
    return end


def _arguments(todo: Sequence[Workload], target: Target, threads: int) -> tuple[Any, ...]:
    return todo, target, threads, {knob.name: knob.get() for knob in KNOBS}


def _nothing() -> None:
    """Ends nothing, if no process was started."""


def work_backwards(
    workloads: Sequence[Workload], target: CpuTarget, threads: int, values: Mapping[str, Any]
) -> None:
    """Choose and build untuned workloads, the last one first; `values` are those of knobs."""
    with override(**values):
        for workload in reversed(workloads):
            chosen = choose_untuned(workload, target, threads, is_cold=True)
            build_cached(workload, chosen.schedule, target)


def _unknown(workloads: Sequence[Workload], target: Target, threads: int) -> list[Workload]:
    """The workloads without a chosen schedule; none if caches or cores are missing."""
    if not (isinstance(target, CpuTarget) and knobs.KERNEL_CACHE.get() and available_cores() > 1):
        return []
    predictor = open_predictor(target, threads, is_cold=True)
    if predictor is None or is_dumped(*knobs.DUMP_STAGES):
        return []
    return [each for each in workloads if not (each.sizes or predictor.has_chosen(each))]
