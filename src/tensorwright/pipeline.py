"""The whole pipeline on one screen: from a model to an executable.

    stage        what does it                                  from                to
    import       graph.load_onnx                               model               Graph
    simplify     graph.simplify, then graph.run_target_passes  Graph               Graph
    rewrite      kept_graph, where one was found               Graph               Graph
    lay out      graph.choose_layouts                          Graph               Graph
    partition    graph.partition, by PredictedPrices           Graph               Partition
    schedule     records.best_trace, Predictor.best            Workload            Trace
    replay       schedule.replay                               Trace               ScheduleState
    lower        loop.lower                                    ScheduleState       LoopProgram
    passes       loop.run_passes                               LoopProgram         LoopProgram
    emit         Backend.emit                                  LoopProgram         Source
    compile      Backend.compile                               Source              Kernel
    assemble     build.assemble                                Partition, Kernels  Executable

`prepare` is what comes before schedules but for rewriting, `choose` finds these; the four after it
are `build`, through its cache.  `drivers/tune.py` puts a search for better schedules in between.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, cast

import onnx

from tensorwright.base import (
    CpuTarget,
    Target,
    UsageError,
    check_fits,
    cpu_target,
    dump,
    knobs,
    without_collection,
)
from tensorwright.build import (
    Kernel,
    assemble,
    assemble_workload,
    build_cached,
)
from tensorwright.graph import (
    Constants,
    Graph,
    Partition,
    Pricing,
    Program,
    Workload,
    as_program,
    check_constants,
    check_memory,
    choose_layouts,
    compute_halves_in_floats,
    partition,
    run_target_passes,
    simplify,
)
from tensorwright.graph.onnx_import import load_onnx
from tensorwright.records import (
    RecordStore,
    best_trace,
    detect_hardware,
    load_choice,
    load_rewriting,
    load_thread_limits,
    open_store,
    save_rewriting,
)
from tensorwright.runtime import Executable, usable_threads
from tensorwright.schedule import (
    Primitive,
    Trace,
    format_trace,
    parse_trace,
    state_of,
    uses_algorithm,
)
from tensorwright.tuning.selection import PredictedPrices, open_predictor
from tensorwright.tuning.space import default_trace

Model: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto | Graph
Shapes: TypeAlias = Mapping[str, Sequence[int]]
Records: TypeAlias = RecordStore | str | os.PathLike[str]


_ITSELF = "null"
_FOLLOWING = "tensorwright.drivers.kept_graphs"


class Source(StrEnum):
    """Where a schedule comes from, and what a report calls it."""

    GIVEN = "by the caller"
    NETWORK = "measured in the network"
    RECORD = "on record"
    MODEL = "by model"
    RULE = "by heuristic"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A workload, the schedule chosen for it, and where that comes from."""

    workload: Workload
    trace: Trace
    source: Source

    @property
    def is_tuned(self) -> bool:
        """Whether it was measured on this machine."""
        return self.source in (Source.NETWORK, Source.RECORD)


OnKernel: TypeAlias = Callable[[Scheduled, int, int], None]


def compile(
    model: Model | Program,
    *,
    target: str | Target | None = None,
    threads: int | None = None,
    records: Records | None = None,
    input_shapes: Shapes | None = None,
    trace: Trace | str | None = None,
    constants: Constants | None = None,
    on_kernel: OnKernel | None = None,
) -> Executable:
    """Compile a model, or a tensor expression of one's own.

    model         an ONNX file, its bytes or its ModelProto, a Graph, tensor expressions, or what
                  `program` makes of them
    target        "native", "x86-64-avx2", ...; the knob `target` where None
    threads       how many the kernels use; the knob `threads` where None
    records       where measured schedules are looked up; the default store where None
    input_shapes  shapes of the inputs that the model leaves open
    trace         the schedule of a tensor expression, parsed or as text; `choose` where None
    constants     values of inputs of a tensor expression that stay the same from call to call
    on_kernel     told (schedule, number, count) before each kernel is built

    Workloads without a record get the schedule that the time model expects to be the fastest, or
    the heuristic one (knob `default_schedule`).  A network for which `optimize` found a faster
    graph is compiled as that, from the same records.
    Raises:  ModelError, UnsupportedError, ScheduleError, MachineError, UsageError.
    """
    machine = chosen_target(target)
    workload = as_program(model, constants)
    if workload is None:
        _refuse_for_models(trace, constants)
    else:
        _refuse_for_programs(input_shapes)
    with opened(records) as store:
        if workload is not None:
            steps = None if trace is None else _checked_trace(trace)
            return compile_program(workload, machine, threads, store, constants, steps, on_kernel)
        graph = import_graph(cast(Model, model), input_shapes)
        graph = kept_graph(store, graph, machine, threads) or graph
        return finish(cut(graph, machine, threads), machine, threads, store, on_kernel)


def prepare(
    model: Model,
    target: CpuTarget,
    input_shapes: Shapes | None = None,
    threads: int | None = None,
) -> Partition:
    """Import, simplify, choose layouts and cut into workloads.

    threads   for how many the time model says which layouts tensors have and which nodes share a
              kernel; without a model, or with the knob `default_schedule` at "rule", rules do

    Raises:  MachineError if its tensors cannot fit into memory, and what importing raises.
    """
    return cut(import_graph(model, input_shapes), target, threads)


def cut(graph: Graph, target: CpuTarget, threads: int | None = None) -> Partition:
    """As `prepare`, for a network that is imported and simplified."""
    pricing = open_pricing(target, threads)
    laid_out = choose_layouts(run_target_passes(graph, target), target, pricing)
    return check_memory(partition(laid_out, pricing=pricing))


def import_graph(model: Model, input_shapes: Shapes | None = None) -> Graph:
    """Import and simplify.  Raises: what importing raises."""
    graph = model if isinstance(model, Graph) else load_onnx(model, input_shapes)
    dump("graph", "imported", graph.__str__)
    return simplify(compute_halves_in_floats(graph) if knobs.HALVES_IN_FLOATS.get() else graph)


def keep_graph(
    store: RecordStore, source: Graph, target: CpuTarget, threads: int | None, certificate: str
) -> None:
    """Keep why a faster graph computes what a simplified network does; "" where there is none.

    certificate   as JSON
    """
    hardware, count = detect_hardware().fingerprint, usable_threads(threads)
    save_rewriting(store, source, target, hardware, count, certificate or _ITSELF)


def kept_graph(
    store: RecordStore, source: Graph, target: CpuTarget, threads: int | None
) -> Graph | None:
    """What was kept for a simplified network: a faster graph, or itself; None where nothing was, or
    this version cannot follow it.
    """
    hardware, count = detect_hardware().fingerprint, usable_threads(threads)
    text = load_rewriting(store, source, target, hardware, count)
    if text is None or text == _ITSELF:
        return None if text is None else source
    followed: Graph | None = importlib.import_module(_FOLLOWING).follow(text, source)
    return followed


def open_pricing(target: CpuTarget, threads: int | None) -> Pricing | None:
    """What the time model says that workloads of a network take; None where there is no model."""
    predictor = open_predictor(target, usable_threads(threads), is_cold=True)
    return None if predictor is None else PredictedPrices(predictor)


def finish(
    parts: Partition,
    target: CpuTarget,
    threads: int | None,
    store: RecordStore,
    on_kernel: OnKernel | None = None,
) -> Executable:
    """Choose a schedule for each workload, build the kernels and put them together."""
    kernels: dict[str, Kernel] = {}
    chosen = choose_all(parts, target, threads, store)
    for number, scheduled in enumerate(chosen):
        if on_kernel is not None:
            on_kernel(scheduled, number, len(chosen))
        kernels[scheduled.workload.key] = build_cached(scheduled.workload, scheduled.trace, target)
    sources = (("schedules", _schedules_text(chosen)),)
    hardware, count = detect_hardware().fingerprint, usable_threads(threads)
    limits = load_thread_limits(store, parts, target, hardware, count)
    return assemble(parts, kernels, target, threads, sources, thread_limits=limits)


def compile_program(
    workload: Workload,
    target: CpuTarget,
    threads: int | None,
    store: RecordStore,
    constants: Constants | None,
    trace: Trace | None = None,
    on_kernel: OnKernel | None = None,
) -> Executable:
    """As `finish`, for a tensor expression.

    constants   values of inputs that stay the same     trace   its schedule; `choose` where None
    """
    values = check_constants(workload, constants)
    check_fits(workload.size_bytes)
    if trace is None:
        chosen = choose(workload, target, usable_threads(threads), store)
    else:
        chosen = Scheduled(workload, trace, Source.GIVEN)
    if on_kernel is not None:
        on_kernel(chosen, 0, 1)
    kernel = build_cached(workload, chosen.trace, target)
    sources = (("schedules", _schedules_text((chosen,))),)
    return assemble_workload(workload, kernel, target, threads, values, sources)


def choose_all(
    parts: Partition, target: CpuTarget, threads: int | None, store: RecordStore
) -> list[Scheduled]:
    """A schedule for each workload of a network: from the network's own choice, or by `choose`."""
    count = usable_threads(threads)
    together = load_choice(store, parts, target, detect_hardware().fingerprint, count)
    with without_collection():
        return [
            choose(workload, target, count, store, together.get(workload.key), is_cold=True)
            for workload in parts.workloads
        ]


def choose(
    workload: Workload,
    target: CpuTarget,
    threads: int,
    store: RecordStore,
    together: Trace | None = None,
    *,
    is_cold: bool = False,
) -> Scheduled:
    """The best recorded schedule of a workload, or `choose_untuned`.

    together   the schedule that was best in the network, None if they were not compared there
    is_cold    it runs in a network: constants come from memory
    """
    algorithms = knobs.WINOGRAD.get()
    if together is not None and (algorithms or not uses_algorithm(together)):
        return Scheduled(workload, together, Source.NETWORK)
    hardware = detect_hardware().fingerprint
    best = best_trace(store, workload, target, hardware, threads, algorithms=algorithms)
    if best is not None:
        return Scheduled(workload, best, Source.RECORD)
    return choose_untuned(workload, target, threads, is_cold=is_cold)


def choose_untuned(
    workload: Workload, target: CpuTarget, threads: int, *, is_cold: bool = False
) -> Scheduled:
    """The schedule of a workload of which nothing was measured: by time model, or heuristic."""
    predictor = open_predictor(target, threads, is_cold=is_cold)
    if predictor is None:
        return Scheduled(workload, default_trace(state_of(workload), target), Source.RULE)
    chosen = predictor.best(workload)
    return Scheduled(workload, chosen.trace, Source.RULE if chosen.is_by_rule else Source.MODEL)


def _schedules_text(chosen: Sequence[Scheduled]) -> str:
    rows = [
        {
            "workload": each.workload.name,
            "key": each.workload.key,
            "tuned": each.is_tuned,
            "source": each.source.value,
            "trace": format_trace(each.trace),
        }
        for each in chosen
    ]
    return json.dumps(rows, indent=1)


def chosen_target(target: str | Target | None) -> CpuTarget:
    """A target from its name; that of the knob `target` where None.

    Raises:  what `cpu_target` raises: there is code for processors only.
    """
    return cpu_target(target or knobs.TARGET.get())


@contextlib.contextmanager
def opened(records: Records | None, *, create: bool = False) -> Iterator[RecordStore]:
    """The store itself, or the one at a path for as long as it is needed."""
    if records is None or isinstance(records, (str, os.PathLike)):
        with open_store(records, create=create) as store:
            yield store
    else:
        yield records


def _checked_trace(trace: object) -> Trace:
    """The steps of a schedule.  Raises: UsageError for what is neither text nor a trace."""
    if isinstance(trace, str):
        return parse_trace(trace)
    if isinstance(trace, tuple | list) and all(isinstance(step, Primitive) for step in trace):
        return tuple(trace)
    raise UsageError(
        stage="compile",
        where="argument trace",
        reason=f"it is of type {type(trace).__name__}, and no schedule",
        remedy="give the text of a trace, or a tuple of its steps, as parse_trace makes it",
    )


def _refuse_for_programs(input_shapes: Shapes | None) -> None:
    if input_shapes is not None:
        raise UsageError(
            stage="compile",
            where="argument input_shapes",
            reason="the shapes of a tensor expression are all known",
            remedy="leave it out",
        )


def _refuse_for_models(trace: Trace | str | None, constants: Constants | None) -> None:
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
