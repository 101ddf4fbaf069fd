"""The whole pipeline on one screen: from a model to an executable.

    stage        what does it                                  from                to
    import       graph.load_model                              model               Graph
    simplify     compute_float16_as_float32, graph.simplify    Graph               Graph
    rewrite      recorded_graph, if a search kept one          Graph               Graph
    passes       graph.run_target_passes                       Graph               Graph
    join         graph.join_products, by Predictor.price      Graph               Graph
    lay out      graph.choose_layouts, by Predictor.price      Graph               Graph
    partition    graph.partition, by Predictor.price           Graph               Partition
    schedule     choose: best_record, or Predictor.best        Workload            Trace
    replay       schedule.replay                               Trace               ScheduleState
    lower        loop.lower                                    ScheduleState       LoopProgram
    passes       loop.run_passes, run_target_passes            LoopProgram         LoopProgram
    emit         Backend.emit                                  LoopProgram         Source
    compile      Backend.compile                               Source              Kernel
    assemble     build.assemble: the plan, threads of steps    Partition, Kernels  Executable

A network with a state that grows has a second partition, for sessions (`in_place`).

`import_graph` does the first two stages, `recorded_graph` the third one, and `cut` the next four.
`build_cached` does the stages from replay to compile.  `drivers/tune.py` searches for better
schedules after the partition.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from tensorwright import artifacts, base, runtime
from tensorwright.compile_options import USUAL, CompileArguments, CompileOptions, OnKernel
from tensorwright.expr import named_sizes_of
from tensorwright.graph import (
    Constants,
    Graph,
    Partition,
    Price,
    Program,
    State,
    Workload,
    as_program,
    bind_workload,
    check_constants,
    check_memory,
    choose_layouts,
    compute_float16_as_float32,
    join_products,
    least_sizes,
    likely_workloads,
    partition,
    round_operands,
    run_target_passes,
    simplify,
    states_in_place,
    with_own_sizes,
)
from tensorwright.graph.model_import import Source as ModelSource
from tensorwright.graph.model_import import declared_types, load_model
from tensorwright.instances import Signature
from tensorwright.ops import TensorType, sizes_of
from tensorwright.records import (
    RecordStore,
    Setting,
    load_rewriting,
    load_thread_limits,
    opened,
    save_rewriting,
)
from tensorwright.runtime.measuring import this_machine
from tensorwright.schedule import Primitive, Trace, parse_trace
from tensorwright.tuning import selection

Model: TypeAlias = ModelSource | Graph
_GRAPH_RECORD = "tensorwright.drivers.graph_record"


@base.takes_options(CompileArguments)
def compile(model: Model | Program, how: CompileArguments) -> runtime.Executable:
    """Compile a model or a tensor expression, whether or not its executable is kept.

    The arguments and errors are those of `tensorwright.compile`; models are not open handles.
    """
    machine = how.machine
    workload = as_program(model, how.constants)
    if workload is None:
        refuse_for_models(how.trace, how.constants)
    else:
        refuse_for_programs(how)
    with opened(how.records) as store:
        if workload is not None:
            steps = None if how.trace is None else _checked_trace(how.trace)
            return compile_program(
                workload, machine, how.threads, store, how.constants, steps, how.on_kernel
            )
        graph = import_graph(cast(Model, model), how)
        graph = recorded_graph(store, graph, machine, how.threads) or graph
        parts = cut(graph, machine, how.threads)
        return finish(parts, machine, how.threads, store, how.on_kernel)


def prepare(model: Model, target: base.Target, threads: int | None = None) -> Partition:
    """Import, simplify, choose layouts and cut into workloads.

    threads   the number for which the time model decides which layouts tensors have and which
              nodes share a kernel

    Without a time model, and if the knob `default_schedule` is "rule", estimates decide about
    layouts, and grouping criteria about kernels.
    Raises:  MachineError if the tensors cannot fit into memory; the errors of importing.
    """
    return cut(import_graph(model), target, threads)


def declared_signature(model: ModelSource, how: CompileOptions) -> Signature:
    """What a model declares, whether or not it can be compiled for all its sizes.

    Raises:  the errors of importing.
    """
    types = declared_types(model, how.input_shapes, how.bounds)
    inputs, outputs = (tuple(_declared(*each) for each in side.items()) for side in types)
    ranked = [each for each in types[0].values() if isinstance(each, TensorType)]
    atoms = named_sizes_of(*(extent for each in ranked for extent in sizes_of(each)))
    return Signature(inputs, outputs, artifacts.plan_sizes(atoms), how.machine)


def _declared(name: str, kind: TensorType | base.DType) -> runtime.TensorSpec:
    if isinstance(kind, base.DType):
        return runtime.UnrankedSpec(name, kind, ())
    return runtime.TensorSpec(name, kind.dtype, tuple(map(runtime.amount_of, kind.shape)))


def cut(graph: Graph, target: base.Target, threads: int | None = None) -> Partition:
    """As `prepare`, for a network that is imported and simplified."""
    price = open_price(target, threads)
    with (
        base.without_collection(),
        base.timed_stage(f"layouts and kernels of {len(graph.nodes)} nodes"),
    ):
        lowered = run_target_passes(graph, target, price)
        if isinstance(target, base.CpuTarget):
            lowered = join_products(lowered, price)
            lowered = choose_layouts(lowered, target, price)
            if price is not None:
                selection.suppose(lambda: likely_workloads(lowered), setting_of(target, threads))
        return check_memory(partition(lowered, price=price))


def setting_of(target: base.Target, threads: int | None) -> Setting:
    """Programs of a target on this machine; on as many threads as are usual if None."""
    return Setting(target, runtime.usable_threads(threads))


def import_graph(model: Model, how: CompileOptions = USUAL) -> Graph:
    """Import and simplify.  Raises: the errors of importing."""
    if isinstance(model, Graph):
        graph = model
    else:
        with base.timed_stage("import of the model"):
            graph = load_model(model, how.input_shapes, how.bounds)
    base.dump("graph", "imported", graph.__str__)
    if base.knobs.HALVES_IN_FLOATS.get():
        graph = compute_float16_as_float32(graph)
    target = how.machine
    if how.precision != "f32" and isinstance(target, base.CpuTarget):
        target = this_machine(target, 1).target  # it knows how fast it multiplies short numbers
    return round_operands(simplify(graph), target, how.precision, how.keep)


def record_graph(
    store: RecordStore, source: Graph, target: base.Target, threads: int | None, certificate: str
) -> None:
    """Keep the certificate of a faster graph for a simplified network.

    certificate   JSON; "" if no faster graph was found
    """
    save_rewriting(store, source, setting_of(target, threads), certificate)


def recorded_graph(
    store: RecordStore, source: Graph, target: base.Target, threads: int | None
) -> Graph | None:
    """The graph kept for a simplified network: a faster graph, or the network itself.

    None if none was kept, or if this version cannot follow the certificate.
    """
    certificate = load_rewriting(store, source, setting_of(target, threads))
    if not certificate:
        return None if certificate is None else source
    followed: Graph | None = importlib.import_module(_GRAPH_RECORD).follow(certificate, source)
    return followed


def open_price(target: base.Target, threads: int | None) -> Price | None:
    """The time model's prices of a network's workloads; None if the target has no such prices."""
    if not isinstance(target, base.CpuTarget):
        return None
    predictor = selection.open_predictor(target, runtime.usable_threads(threads), is_cold=True)
    return None if predictor is None else predictor.price


def finish(
    parts: Partition,
    target: base.Target,
    threads: int | None,
    store: RecordStore,
    on_kernel: OnKernel | None = None,
) -> runtime.Executable:
    """Choose a schedule for each workload, build the kernels and assemble the executable."""
    kernels: dict[str, artifacts.Kernel] = {}
    built: dict[str, artifacts.Kernel] = {}
    setting = setting_of(target, threads)
    session = in_place(parts.graph, target, threads)
    of_session = () if session is None else session[0].workloads
    keys = {each.key for each in parts.workloads}
    also = tuple(each for each in of_session if each.key not in keys)
    workloads = (*parts.workloads, *also)
    with selection.working_ahead(workloads, setting):
        with base.timed_stage(f"schedules of {len(workloads)} kernels"):
            chooser = selection.Chooser(setting, store, is_cold=True)
            chosen = chooser.of_network(parts, also, has_own_sizes=True)
        with base.timed_stage(f"code of {len(chosen)} kernels"):
            for number, (workload, scheduled) in enumerate(zip(workloads, chosen, strict=True)):
                if on_kernel is not None:
                    on_kernel(replace(scheduled, workload=workload), number, len(chosen))
                own = scheduled.workload
                with base.timed_stage(f"code of kernel {workload.key}, {workload.name}"):
                    if own.key not in built:
                        built[own.key] = artifacts.build_cached(own, scheduled.schedule, target)
                is_own = own.key != workload.key
                values = with_own_sizes(workload).values if is_own else {}
                kernels[workload.key] = built[own.key].with_sizes(values)
    pairs = zip(chosen, workloads, strict=True)
    rows = tuple(replace(scheduled, workload=workload) for scheduled, workload in pairs)
    sources = (("schedules", selection.schedules_text(rows)),)
    limits = load_thread_limits(store, parts, setting)
    return artifacts.assemble(
        parts, kernels, target, threads, sources, thread_limits=limits, in_place=session
    )


def in_place(
    graph: Graph, target: base.Target, threads: int | None
) -> tuple[Partition, Sequence[State]] | None:
    """The form of a network in which calls change its state in place, and the states.

    None if it has no such state.
    """
    changed = states_in_place(graph) if isinstance(target, base.CpuTarget) else None
    if changed is None:
        return None
    with base.timed_stage(f"kernels of {len(changed.states)} states in place"):
        return partition(changed.graph, price=open_price(target, threads)), changed.states


def compile_program(
    workload: Workload,
    target: base.Target,
    threads: int | None,
    store: RecordStore,
    constants: Constants | None,
    trace: Trace | None = None,
    on_kernel: OnKernel | None = None,
) -> runtime.Executable:
    """As `finish`, for a tensor expression.

    constants   values of inputs that stay the same from call to call
    trace       its schedule; if None, `choose` gives it
    """
    values = check_constants(workload, constants)
    base.check_fits(bind_workload(workload, least_sizes(workload.sizes)).size_bytes)
    if trace is None:
        chosen = selection.Chooser(setting_of(target, threads), store).choose(workload)
    else:
        chosen = selection.Scheduled(workload, trace, selection.Source.GIVEN)
    if on_kernel is not None:
        on_kernel(chosen, 0, 1)
    kernel = artifacts.build_cached(workload, chosen.schedule, target)
    sources = (("schedules", selection.schedules_text((chosen,))),)
    return artifacts.assemble_workload(workload, kernel, target, threads, values, sources)


def _checked_trace(trace: object) -> Trace:
    """The trace, parsed if it is text.  Raises: UsageError if it is neither text nor a trace."""
    if isinstance(trace, str):
        return parse_trace(trace)
    if isinstance(trace, tuple | list) and all(isinstance(step, Primitive) for step in trace):
        return tuple(trace)
    raise _wrong(
        "trace",
        f"it is of type {type(trace).__name__}, not a schedule",
        "give the text of a trace, or a tuple of its steps, as parse_trace returns it",
    )


def refuse_for_programs(how: CompileOptions) -> None:
    """Raise a UsageError for arguments that only models take."""
    asked = how.input_shapes, how.bounds, None if how.precision == "f32" else how.precision
    for argument, given in zip(("input_shapes", "sizes", "precision"), asked, strict=True):
        if given is not None:
            reason = "a tensor expression says the types of its inputs, and the bounds of sizes"
            raise _wrong(argument, reason, "leave it out")


def refuse_for_models(trace: Trace | str | None, constants: Constants | None) -> None:
    """Raise a UsageError for arguments that only tensor expressions take."""
    if trace is not None:
        reason = "a model has many workloads, and a trace schedules only one"
        raise _wrong("trace", reason, "give a tensor expression, or keep traces in a record store")
    if constants is not None:
        reason = "a model has its own constants"
        raise _wrong("constants", reason, "give a tensor expression")


def _wrong(argument: str, reason: str, remedy: str) -> base.UsageError:
    return base.UsageError(
        stage="compile", where=f"argument {argument}", reason=reason, remedy=remedy
    )
