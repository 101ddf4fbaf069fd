"""Choose and build from the end of a network in another process, while this one begins.

Nothing is sent back: both processes put choices and kernels into caches, from which the other one
takes them.  So the result is the same with or without the process, and it may end at any moment.
LLVM's binding holds one lock for all compiling of a process.
`compiling.py` starts the process early, so that it gets ready while the network is read. While the
network is cut, it chooses for the workloads that are compared; then it builds those that are left.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tensorwright import base
from tensorwright.artifacts import backend_of, build_cached
from tensorwright.graph import Workload, bind_workload
from tensorwright.records import Setting
from tensorwright.tuning.selection.predictor import open_predictor
from tensorwright.tuning.selection.scheduling import Chooser, workload_to_build

_LEAST_WORKLOADS = 12  # a process starts in the time that three or four of them take
_LIMIT_S = 3600.0


@contextlib.contextmanager
def working_ahead(workloads: Sequence[Workload], setting: Setting) -> Iterator[None]:
    """Let another process work inside the block, if there is enough to do and a core for it."""
    end = _nothing
    is_seen = base.is_dumped(*base.knobs.DUMP_STAGES)  # results come through caches
    can_help = (
        isinstance(setting.target, base.CpuTarget) and base.knobs.KERNEL_CACHE.get() and not is_seen
    )
    if can_help and base.available_cores() > 1:
        end = _start(workloads, setting)
    try:
        yield
    finally:
        end()


def suppose(workloads: Callable[[], Iterable[Workload]], setting: Setting) -> None:
    """Let a started process choose for workloads that a network probably has."""
    processes = importlib.import_module("tensorwright.processes")
    if processes.has_spare() and isinstance(setting.target, base.CpuTarget):
        job = processes.Job(choose_backwards, _arguments(workloads(), setting))
        processes.occupy_spare(job, _LIMIT_S)


def get_ready(setting: Setting, values: Mapping[str, Any]) -> None:
    """Load the modules of `work_backwards`; `values` are those of knobs."""
    with base.override(**values):
        open_predictor(setting.target, setting.threads, is_cold=True)
        backend_of(setting.target)


def _start(workloads: Sequence[Workload], setting: Setting) -> Callable[[], None]:
    """Start a process; the result ends it.  For small networks it does not load the modules."""
    processes = importlib.import_module("tensorwright.processes")
    child = processes.take_spare()
    if child is None:
        if len(_unknown(workloads, setting)) < _LEAST_WORKLOADS:
            return _nothing
        child = processes.Child()
    child.send(processes.Job(work_backwards, _arguments(workloads, setting)), _LIMIT_S)
    end: Callable[[], None] = child.kill
    return end


def _arguments(workloads: Iterable[Workload], setting: Setting) -> tuple[Any, ...]:
    values = {knob.name: knob.get() for knob in base.KNOBS}
    return _to_build(workloads, setting.target), setting, values


def _to_build(workloads: Iterable[Workload], target: base.Target) -> list[Workload]:
    """The different workloads for which kernels are built, in the order of first use."""
    different: dict[str, Workload] = {}
    for each in workloads:
        built = workload_to_build(each, target)
        different.setdefault(built.key, built)
    return list(different.values())


def _nothing() -> None:
    """Ends nothing, if no process was started."""


def choose_backwards(
    workloads: Sequence[Workload], setting: Setting, values: Mapping[str, Any]
) -> None:
    """Choose for untuned workloads, the last one first; `values` are those of knobs."""
    with base.override(**values):
        predictor = open_predictor(setting.target, setting.threads, is_cold=True)
        assert predictor is not None, "the caller has prices"
        for workload in reversed(workloads):
            predictor.price(_typical(workload))


def work_backwards(
    workloads: Sequence[Workload], setting: Setting, values: Mapping[str, Any]
) -> None:
    """Choose and build untuned workloads, the last one first; `values` are those of knobs."""
    with base.override(**values):
        for workload in reversed(workloads):
            chosen = Chooser(setting, is_cold=True).unmeasured(workload)
            build_cached(workload, chosen.schedule, setting.target)


def _unknown(workloads: Sequence[Workload], setting: Setting) -> list[Workload]:
    """The workloads without a chosen schedule; none if all have the schedule by rule."""
    predictor = open_predictor(setting.target, setting.threads, is_cold=True)
    if predictor is None:
        return []
    different = _to_build(workloads, setting.target)
    return [each for each in different if not predictor.has_chosen(_typical(each))]


def _typical(workload: Workload) -> Workload:
    """The instance that decides the schedule of a workload."""
    return bind_workload(workload, workload.typical_sizes)
