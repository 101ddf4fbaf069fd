"""The whole pipeline on one screen: from a model to an executable.

    model -> import -> simplify -> choose layouts -> partition -> a schedule for each workload
          -> loop programs -> machine code -> executable

`optimize` is `compile` with a search for better schedules in between.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import onnx

from tensorwright.base import Target, UsageError, knobs
from tensorwright.expr import Compute
from tensorwright.graph import (
    Graph,
    Partition,
    Workload,
    choose_layouts,
    load_onnx,
    partition,
    program_workload,
    simplify,
)
from tensorwright.records import RecordStore, detect_hardware, open_store
from tensorwright.runtime import Executable, usable_threads
from tensorwright.schedule import Trace, format_trace, initial_state
from tensorwright.tune import (
    Built,
    Callback,
    Interrupt,
    Task,
    TuneResult,
    assemble,
    assemble_workload,
    best_trace,
    build_cached,
    default_trace,
    tune,
)

Model: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto | Graph
Shapes: TypeAlias = Mapping[str, Sequence[int]]
Records: TypeAlias = RecordStore | str | os.PathLike[str]

DEFAULT_MINUTES = 10.0


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A workload and the schedule chosen for it: from a record, or by rule."""

    workload: Workload
    trace: str
    is_tuned: bool


def compile(
    model: Model | Compute | Sequence[Compute],
    *,
    target: str | Target | None = None,
    threads: int | None = None,
    records: Records | None = None,
    input_shapes: Shapes | None = None,
    trace: Trace | None = None,
    on_kernel: Callable[[Scheduled, int, int], None] | None = None,
) -> Executable:
    """Compile a model, or a tensor expression of one's own.

    model         an ONNX file, its bytes or its ModelProto, a Graph, or tensor expressions
    target        "native", "x86-64-avx2", ...; the knob `target` where None
    threads       how many the kernels use; the knob `threads` where None
    records       where measured schedules are looked up; the default store where None
    input_shapes  shapes of the inputs that the model leaves open
    trace         the schedule of a tensor expression; by record or rule where None
    on_kernel     told (schedule, number, count) before each kernel is built

    Workloads without a record get a schedule by rule.
    Raises:  ModelError, UnsupportedError, ScheduleError, MachineError, UsageError.
    """
    machine = parse_target(target)
    computes = _computes(model)
    with opened(records) as store:
        if computes:
            workload = program_workload(computes)
            if trace is None:
                text = choose(workload, machine, _threads(threads), store).trace
            else:
                text = format_trace(trace)
            built = build_cached(workload, text, machine)
            return assemble_workload(workload, built, machine, threads)
        if trace is not None:
            raise UsageError(
                stage="compile",
                where="argument trace",
                reason="a model has many workloads, a trace schedules one",
                remedy="give a tensor expression, or keep traces in a record store",
            )
        parts = prepare(cast(Model, model), machine, input_shapes)
        return finish(parts, machine, threads, store, on_kernel)


def optimize(
    model: Model,
    *,
    minutes: float | None = None,
    trials: int | None = None,
    target: str | Target | None = None,
    threads: int | None = None,
    records: Records | None = None,
    input_shapes: Shapes | None = None,
    seed: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> Executable:
    """Tune a model on this machine and compile it with the best schedules found.

    minutes, trials   the budget: whichever is spent first; 10 minutes where both are None
    records           where every measurement is kept; the default store where None
    callbacks         told of the progress; `tune.choose_callbacks` makes the usual ones
    The other arguments are those of `compile`.
    Raises:  as `compile`, and RecordError for a store that cannot be used.
    """
    machine = parse_target(target)
    parts = prepare(model, machine, input_shapes)
    with opened(records, create=True) as store:
        search(
            parts,
            machine,
            threads,
            store,
            minutes=minutes,
            trials=trials,
            seed=seed,
            callbacks=callbacks,
        )
        return finish(parts, machine, threads, store)


def search(
    parts: Partition,
    target: Target,
    threads: int | None,
    store: RecordStore,
    *,
    minutes: float | None = None,
    trials: int | None = None,
    seed: int | None = None,
    callbacks: Sequence[Callback] = (),
    interrupt: Interrupt | None = None,
) -> TuneResult:
    """Measure schedules of every workload; what has been measured is in the store."""
    if minutes is None and trials is None:
        minutes = DEFAULT_MINUTES
    tasks = [Task(workload, parts.count(workload)) for workload in parts.workloads]
    return tune(
        tasks,
        target=target,
        threads=_threads(threads),
        store=store,
        trials=trials,
        minutes=minutes,
        seed=knobs.SEED.get() if seed is None else seed,
        model=parts.graph.name,
        callbacks=callbacks,
        interrupt=interrupt,
    )


def prepare(model: Model, target: Target, input_shapes: Shapes | None = None) -> Partition:
    """Import, simplify, choose layouts and cut into workloads."""
    graph = model if isinstance(model, Graph) else load_onnx(model, input_shapes)
    return partition(choose_layouts(simplify(graph), target))


def finish(
    parts: Partition,
    target: Target,
    threads: int | None,
    store: RecordStore,
    on_kernel: Callable[[Scheduled, int, int], None] | None = None,
) -> Executable:
    """Choose a schedule for each workload, build the kernels and put them together."""
    count = _threads(threads)
    kernels: dict[str, Built] = {}
    chosen = [choose(workload, target, count, store) for workload in parts.workloads]
    for number, scheduled in enumerate(chosen):
        if on_kernel is not None:
            on_kernel(scheduled, number, len(chosen))
        kernels[scheduled.workload.key] = build_cached(scheduled.workload, scheduled.trace, target)
    sources = (("schedules", _schedules_text(chosen)),)
    return assemble(parts, kernels, target, threads, sources)


def choose(workload: Workload, target: Target, threads: int, store: RecordStore) -> Scheduled:
    """The best recorded schedule of a workload, or the one by rule."""
    hardware = detect_hardware().fingerprint
    best = best_trace(store, workload, target, hardware, threads)
    if best is not None:
        return Scheduled(workload, format_trace(best), is_tuned=True)
    trace = default_trace(initial_state(workload.outputs, workload.constants), target)
    return Scheduled(workload, format_trace(trace), is_tuned=False)


def _schedules_text(chosen: Sequence[Scheduled]) -> str:
    rows = [
        {
            "workload": each.workload.name,
            "key": each.workload.key,
            "tuned": each.is_tuned,
            "trace": each.trace,
        }
        for each in chosen
    ]
    return json.dumps(rows, indent=1)


def parse_target(target: str | Target | None) -> Target:
    """A target from its name; that of the knob `target` where None."""
    if isinstance(target, Target):
        return target
    return Target.parse(target or knobs.TARGET.get())


@contextlib.contextmanager
def opened(records: Records | None, *, create: bool = False) -> Iterator[RecordStore]:
    """The store itself, or the one at a path for as long as it is needed."""
    if records is None or isinstance(records, (str, os.PathLike)):
        with open_store(records, create=create) as store:
            yield store
    else:
        yield records


def _computes(model: object) -> tuple[Compute, ...]:
    """The tensor expressions of a model that is such; else nothing."""
    if isinstance(model, Compute):
        return (model,)
    if isinstance(model, (tuple, list)):
        return tuple(each for each in model if isinstance(each, Compute))
    return ()


def _threads(threads: int | None) -> int:
    return usable_threads(threads or knobs.THREADS.get(), is_demanded=threads is not None)
