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
from tensorwright.graph import (
    Constants,
    Graph,
    Partition,
    Program,
    Workload,
    as_program,
    check_constants,
    choose_layouts,
    load_onnx,
    partition,
    simplify,
)
from tensorwright.records import RecordStore, detect_hardware, open_store
from tensorwright.runtime import Executable, usable_threads
from tensorwright.schedule import Trace, format_trace, initial_state
from tensorwright.tune import (
    Built,
    Callback,
    Interrupt,
    MeasureOptions,
    NetworkChoice,
    Objective,
    Task,
    TuneOptions,
    TuneResult,
    assemble,
    assemble_workload,
    best_trace,
    build_cached,
    choose_in_network,
    default_trace,
    load_choice,
    options_of,
    save_choice,
    tune,
)

Model: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto | Graph
Shapes: TypeAlias = Mapping[str, Sequence[int]]
Records: TypeAlias = RecordStore | str | os.PathLike[str]

DEFAULT_MINUTES = 10.0
_SHARE = 0.03  # of the time of the search, for each comparison inside the network
_PATIENCE = 20  # rounds without a gain, where no budget is given


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A workload and the schedule chosen for it: from a record, or by rule."""

    workload: Workload
    trace: str
    is_tuned: bool


def compile(
    model: Model | Program,
    *,
    target: str | Target | None = None,
    threads: int | None = None,
    records: Records | None = None,
    input_shapes: Shapes | None = None,
    trace: Trace | None = None,
    constants: Constants | None = None,
    on_kernel: Callable[[Scheduled, int, int], None] | None = None,
) -> Executable:
    """Compile a model, or a tensor expression of one's own.

    model         an ONNX file, its bytes or its ModelProto, a Graph, tensor expressions, or what
                  `program` makes of them
    target        "native", "x86-64-avx2", ...; the knob `target` where None
    threads       how many the kernels use; the knob `threads` where None
    records       where measured schedules are looked up; the default store where None
    input_shapes  shapes of the inputs that the model leaves open
    trace         the schedule of a tensor expression; by record or rule where None
    constants     values of inputs of a tensor expression that stay the same from call to call
    on_kernel     told (schedule, number, count) before each kernel is built

    Workloads without a record get a schedule by rule.
    Raises:  ModelError, UnsupportedError, ScheduleError, MachineError, UsageError.
    """
    machine = parse_target(target)
    workload = as_program(model, constants)
    with opened(records) as store:
        if workload is not None:
            return _compile_program(workload, machine, threads, store, constants, trace)
        _refuse_for_models(trace, constants)
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


def tune_program(
    expression: Program,
    *,
    constants: Constants | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    target: str | Target | None = None,
    threads: int | None = None,
    records: Records | None = None,
    seed: int | None = None,
    callbacks: Sequence[Callback] = (),
    options: TuneOptions | None = None,
    measuring: MeasureOptions | None = None,
) -> Executable:
    """Tune a tensor expression on this machine, and return what computes it.

    This is what `tensorwright.tune(expression, ...)` calls.
    expression  a tensor, several, or what `program` makes of them
    constants   values of inputs that stay the same from call to call; the executable has them
    minutes, trials   where both are None: 10 minutes, or 20 rounds without a gain
    options     patience and the like                measuring   how candidates are measured
    The other arguments are those of `optimize`.
    Raises:  UsageError for anything else than an expression, and as `optimize`.
    """
    machine = parse_target(target)
    workload = as_program(expression, constants)
    if workload is None:
        raise UsageError(
            stage="tune",
            where=f"argument of type {type(expression).__name__}",
            reason="it is no tensor expression",
            remedy="tensorwright.optimize tunes models",
        )
    check_constants(workload, constants)
    if options is None and minutes is None and trials is None:
        options = TuneOptions(patience=_PATIENCE)
    with opened(records, create=True) as store:
        search_tasks(
            [Task(workload)],
            machine,
            threads,
            store,
            minutes=minutes,
            trials=trials,
            seed=seed,
            name=workload.name,
            callbacks=callbacks,
            options=options,
            measuring=measuring,
        )
        return _compile_program(workload, machine, threads, store, constants)


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
    """Measure schedules of every workload; what has been measured is in the store.

    At last the best of each are compared inside the network, and the choice is kept there too.
    """
    result = search_tasks(
        tasks_of(parts),
        target,
        threads,
        store,
        minutes=minutes,
        trials=trials,
        seed=seed,
        name=parts.graph.name,
        callbacks=callbacks,
        interrupt=interrupt,
        measuring=as_in_network(parts),
    )
    if not result.is_interrupted:
        choose_together(parts, target, threads, store, _SHARE * result.elapsed_s)
    return result


def choose_together(
    parts: Partition, target: Target, threads: int | None, store: RecordStore, limit_s: float
) -> NetworkChoice | None:
    """Compare the best schedules of all workloads inside the network, and keep what is chosen.

    limit_s   about so long each of two comparisons may take
    None where there is nothing to choose.
    """
    count = _threads(threads)
    hardware = detect_hardware().fingerprint
    options: dict[str, tuple[str, ...]] = {}
    for workload in parts.workloads:
        by_rule = default_trace(initial_state(workload.outputs, workload.constants), target)
        options[workload.key] = options_of(
            store, workload, target, hardware, count, format_trace(by_rule)
        )
    if all(len(traces) == 1 for traces in options.values()):
        return None
    choice = choose_in_network(parts, options, target, count, limit_s)
    if choice is not None:
        save_choice(store, parts, target, hardware, count, choice)
    return choice


def search_tasks(
    tasks: Sequence[Task],
    target: Target,
    threads: int | None,
    store: RecordStore,
    *,
    minutes: float | None = None,
    trials: int | None = None,
    seed: int | None = None,
    name: str = "",
    callbacks: Sequence[Callback] = (),
    interrupt: Interrupt | None = None,
    options: TuneOptions | None = None,
    objective: Objective | None = None,
    measuring: MeasureOptions | None = None,
) -> TuneResult:
    """As `search`, for workloads of several networks and programs."""
    if minutes is None and trials is None:
        minutes = DEFAULT_MINUTES
    return tune(
        tasks,
        target=target,
        threads=_threads(threads),
        store=store,
        trials=trials,
        minutes=minutes,
        seed=knobs.SEED.get() if seed is None else seed,
        model=name,
        callbacks=callbacks,
        interrupt=interrupt,
        options=options,
        objective=objective,
        measuring=measuring,
        keeps_model=True,
    )


def tasks_of(parts: Partition, network: str = "") -> tuple[Task, ...]:
    """The workloads of a network, each weighted by how often it runs."""
    return tuple(
        Task(workload, parts.count(workload), network or parts.graph.name)
        for workload in parts.workloads
    )


def as_in_network(*networks: Partition) -> MeasureOptions:
    """Measure with constants that come from as far away as in the largest of some networks."""
    sizes = [sum(each.nbytes for each in n.graph.constants.values()) for n in networks]
    return MeasureOptions(cold_bytes=max(sizes, default=0))


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
    together = load_choice(store, parts, target, detect_hardware().fingerprint, count)
    chosen = [
        choose(workload, target, count, store, together.get(workload.key, ""))
        for workload in parts.workloads
    ]
    for number, scheduled in enumerate(chosen):
        if on_kernel is not None:
            on_kernel(scheduled, number, len(chosen))
        kernels[scheduled.workload.key] = build_cached(scheduled.workload, scheduled.trace, target)
    sources = (("schedules", _schedules_text(chosen)),)
    return assemble(parts, kernels, target, threads, sources)


def choose(
    workload: Workload, target: Target, threads: int, store: RecordStore, together: str = ""
) -> Scheduled:
    """The best recorded schedule of a workload, or the one by rule.

    together   the schedule that was best in the network, "" if they were not compared there
    """
    if together:
        return Scheduled(workload, together, is_tuned=True)
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


def _refuse_for_models(trace: Trace | None, constants: Constants | None) -> None:
    if trace is not None:
        raise UsageError(
            stage="compile",
            where="argument trace",
            reason="a model has many workloads, a trace schedules one",
            remedy="give a tensor expression, or keep traces in a record store",
        )
    if constants is not None:
        raise UsageError(
            stage="compile",
            where="argument constants",
            reason="a model has its own constants",
            remedy="give a tensor expression",
        )


def _compile_program(
    workload: Workload,
    target: Target,
    threads: int | None,
    store: RecordStore,
    constants: Constants | None,
    trace: Trace | None = None,
) -> Executable:
    values = check_constants(workload, constants)
    if trace is None:
        text = choose(workload, target, _threads(threads), store).trace
    else:
        text = format_trace(trace)
    built = build_cached(workload, text, target)
    return assemble_workload(workload, built, target, threads, values)


def _threads(threads: int | None) -> int:
    return usable_threads(threads or knobs.THREADS.get(), is_demanded=threads is not None)
