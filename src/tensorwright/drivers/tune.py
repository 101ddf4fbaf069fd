"""Search for fast schedules of models and tensor expressions, in sessions of `tuning/`.

`tuning/` searches for schedules of given workloads.  This file adds what a network needs: how often
each workload runs, constants that are cold, and a last comparison inside the network.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from onnx import ModelProto

from tensorwright import graph
from tensorwright.base import Target, UsageError, override, unknown_name
from tensorwright.drivers.sized_network import (
    NOTHING_ELSE,
    SizedNetwork,
    SizedProgram,
    choose_for_sizes,
    note_points,
    sized_network,
    sized_program,
    tasks_of_sized_program,
    tasks_of_sizes,
)
from tensorwright.farm import NO_SECURITY, Farm, FarmSecurity, opened_farm
from tensorwright.graph.aten_import import ExportedGraph
from tensorwright.graph.model_import import is_exported_program
from tensorwright.machine import detect_hardware
from tensorwright.pipeline import (
    Model,
    Shapes,
    Sizes,
    chosen_target,
    compile_program,
    cut,
    finish,
    import_graph,
    refuse_for_models,
    refuse_for_programs,
)
from tensorwright.records import Records, RecordStore, load_last_choice, opened, save_choice
from tensorwright.runtime import Executable, usable_threads
from tensorwright.schedule import format_schedule, state_of
from tensorwright.tuning import Task, session
from tensorwright.tuning.learning import USUAL, Learning
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.on_farm import kind_for
from tensorwright.tuning.selection import choose_untuned
from tensorwright.tuning.session import tune as tune_tasks
from tensorwright.tuning.space import SpaceKind

DEFAULT_MINUTES = 10.0
_PATIENCE = 20  # rounds without a gain, if no budget is given
_NETWORK_SHARE = 0.14  # the largest share of the minutes for the comparison inside the network
_SIZES_SHARE = 0.22  # the same, if a network is tuned at several points
_NETWORK_S = 4.0
_NETWORK_PER_WORKLOAD_S = 0.4
_LEAST_NETWORK_S = 12.0  # for that comparison at one point, if no minutes are given
_LEAST_SHARE = 0.02  # of the minutes, for that comparison even if all are spent


def tune(
    model: Model | graph.Program,
    *,
    constants: graph.Constants | None = None,
    input_shapes: Shapes | None = None,
    sizes: Sizes | None = None,
    at: graph.SizesAt | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    target: str | Target | None = None,
    threads: int | None = None,
    records: Records | None = None,
    seed: int | None = None,
    space: SpaceKind | str = SpaceKind.SKETCHES,
    callbacks: Sequence[session.Callback] | None = None,
    options: session.TuneOptions | None = None,
    measuring: MeasureOptions | None = None,
    learning: Learning = USUAL,
    workers: str | Farm | None = None,
    security: FarmSecurity = NO_SECURITY,
) -> Executable:
    """Tune a tensor expression or a model on this machine, and return its executable.

    model       a tensor, several tensors, the result of `program`, or a model as of `compile`
    constants   values of inputs that stay the same from call to call; the executable contains them
    input_shapes, sizes   as of `compile`
    at          values of the open sizes at which to tune: all combinations of
                `{"batch": 1, "sequence": (1, 32, 128)}`, or a list of such mappings; if None, a few
                values that the bounds suggest
    minutes, trials   the budget; if both are None, 10 minutes or 20 rounds without a gain
    target, threads   as of `compile`
    records     the store of the measurements; the default store if None
    seed        of every random choice; the knob `seed` if None
    space       the schedules to try: "sketches", "templates" or "both"
    callbacks   get the progress; if None, it is written to stderr; () for silence
    options     strategy, patience and the like
    measuring   how candidates are measured
    learning    features and cost model, by name
    workers     a farm, or the address of its scheduler; it builds and measures candidates instead
                of this machine
    security    the keys of the farm

    `optimize` also looks for a faster graph.
    Raises:  UsageError for an argument that is neither a model nor an expression, and for sizes
             that the model does not have; the errors and the KeyboardInterrupt of `optimize`.
    """
    with opened_farm(workers, security) as farm:
        how = _arguments(minutes, trials, seed, space, callbacks, options, learning, farm)
        return _tune(
            model, constants, input_shapes, sizes, at, target, threads, records, how, measuring
        )


def _arguments(
    minutes: float | None,
    trials: int | None,
    seed: int | None,
    space: SpaceKind | str,
    callbacks: Sequence[session.Callback] | None,
    options: session.TuneOptions | None,
    learning: Learning,
    farm: Farm | None,
) -> session.SearchArguments:
    budget = session.Budget(minutes, trials)
    usual = session.TuneOptions(patience=_PATIENCE if budget.is_open else 0)
    kind, chosen = parse_space(space), options or usual
    return session.SearchArguments(
        budget,
        seed,
        session.choose_callbacks() if callbacks is None else tuple(callbacks),
        chosen,
        space=kind,
        learning=learning,
        farm=farm,
    )


def _tune(
    model: Model | graph.Program,
    constants: graph.Constants | None,
    input_shapes: Shapes | None,
    sizes: Sizes | None,
    at: graph.SizesAt | None,
    target: str | Target | None,
    threads: int | None,
    records: Records | None,
    how: session.SearchArguments,
    measuring: MeasureOptions | None,
) -> Executable:
    """As `tune`, with the arguments of the search together."""
    machine = chosen_target(target)
    setting = setting_of(machine, threads, how.farm)
    workload = graph.as_program(model, constants)
    if workload is not None:
        refuse_for_programs(input_shapes, sizes)
        graph.check_constants(workload, constants)
        programs, tasks = _program_to_tune(workload, at, setting)
        with opened(records, create=True) as store:
            name = workload.name
            search_networks(
                tasks, programs, setting, store, how, name=name, measuring=measuring
            ).raise_if_interrupted()
            return compile_program(workload, machine, threads, store, constants)
    is_model = isinstance(
        model, str | os.PathLike | bytes | ModelProto | graph.Graph | ExportedGraph
    )
    if not is_model and not is_exported_program(model):
        raise UsageError(
            stage="tune",
            where=f"argument of type {type(model).__name__}",
            reason="it is neither a tensor expression nor a model",
            remedy="give tensors, an ONNX file, its bytes or its ModelProto, or a Graph",
        )
    refuse_for_models(None, constants)
    parts = cut(import_graph(cast(Model, model), input_shapes, sizes), machine, threads)
    networks, tasks = _network_to_tune(parts, at, setting)
    with opened(records, create=True) as store:
        cold = measuring or as_in_network(parts)
        name = parts.graph.name
        search_networks(
            tasks, networks, setting, store, how, name=name, measuring=cold
        ).raise_if_interrupted()
        return finish(parts, machine, threads, store)


def _program_to_tune(
    workload: graph.Workload, at: graph.SizesAt | None, setting: session.SessionSetting
) -> tuple[tuple[SizedProgram, ...], tuple[Task, ...]]:
    """The expression, or nothing if its sizes are numbers; and the tasks."""
    if not workload.sizes:
        _refuse_sizes(at)
        return (), (Task(workload),)
    program = sized_program(workload, at)
    return (program,), tasks_of_sized_program(program, workload.name, setting)


def _network_to_tune(
    parts: graph.Partition, at: graph.SizesAt | None, setting: session.SessionSetting
) -> tuple[tuple[graph.Partition | SizedNetwork], tuple[Task, ...]]:
    """A network and its tasks; a network with open sizes gets points."""
    if not parts.graph.sizes:
        _refuse_sizes(at)
        return (parts,), tasks_of(parts)
    network = sized_network(parts, at)
    return (network,), tasks_of_sizes(network, setting)


def _refuse_sizes(at: graph.SizesAt | None) -> None:
    if at is not None:
        raise UsageError(
            stage="tune",
            where="argument at",
            reason="all shapes are numbers: there are no open sizes",
            remedy="leave it out",
        )


def parse_space(text: SpaceKind | str) -> SpaceKind:
    """The kind of space of this name.  Raises: UsageError if there is none."""
    kinds = {kind.value: kind for kind in SpaceKind}
    if text not in kinds:
        reason = "there is no space of this name"
        raise unknown_name("tune", f"space {text}", reason, text, kinds)
    return kinds[text]


def setting_of(
    target: Target, threads: int | None, farm: Farm | None = None
) -> session.SessionSetting:
    """The setting of a session: the target, the threads, and the machine that measures.

    threads   if None, as many as the knob `threads` says, or as another machine of the farm has
    farm      its device for the target measures; if None, this machine measures
    Raises:   MachineError if no device of the farm runs the target.
    """
    if farm is not None:
        device = kind_for(farm, target)
        is_here = device.hardware == detect_hardware().fingerprint
        usual = usable_threads(None) if is_here else device.threads
        return session.SessionSetting(target, threads or usual, device.hardware)
    return session.SessionSetting(target, usable_threads(threads), detect_hardware().fingerprint)


def search(
    parts: graph.Partition,
    setting: session.SessionSetting,
    store: RecordStore,
    how: session.SearchArguments,
    at: graph.SizesAt | None = None,
) -> session.TuneResult:
    """As `search_networks`, for all workloads of one network; `at` as of `tune`."""
    measuring = as_in_network(parts)
    networks, tasks = _network_to_tune(parts, at, setting)
    name = parts.graph.name
    return search_networks(tasks, networks, setting, store, how, name=name, measuring=measuring)


def search_networks(
    tasks: Sequence[Task],
    programs: Sequence[graph.Partition | SizedNetwork | SizedProgram],
    setting: session.SessionSetting,
    store: RecordStore,
    how: session.SearchArguments,
    *,
    name: str = "",
    measuring: MeasureOptions | None = None,
) -> session.TuneResult:
    """Measure schedules of every workload, and keep the measurements in the store.

    programs   the networks of the tasks, and the expressions with named sizes
    At the end the best schedules are compared inside each network, at all of its points, and the
    store keeps the choices.  Then the chosen and the untuned networks are measured in turns.  All
    of this is done within the minutes of the budget.
    The other arguments are those of `search_tasks`.
    """
    networks = [each for each in programs if not isinstance(each, SizedProgram)]
    seconds = _budget_of(how).seconds
    kept_s = 0.0 if seconds is None else _network_s(seconds, networks)
    later = frozenset(each.key for network in networks for each in _workloads_of(network))
    how = replace(how, options=replace(how.options, after_s=kept_s, compared_later=later))
    for program in programs:
        if not isinstance(program, graph.Partition):
            note_points(program, store)
    result = search_tasks(tasks, setting, store, how, name=name, measuring=measuring)
    if not networks:
        return result
    if result.is_interrupted:
        return result.with_networks([each for network in networks for each in _stopped(network)])
    if how.farm is not None and setting.hardware != detect_hardware().fingerprint:
        return result.with_networks(
            [each for network in networks for each in _stopped(network, "measured elsewhere")]
        )
    wanted_s = [_wanted_s(network) for network in networks]
    limit_s = max(_NETWORK_SHARE * result.elapsed_s, _LEAST_NETWORK_S * _points(networks))
    if seconds is not None:
        limit_s = min(max(seconds - result.elapsed_s, _LEAST_SHARE * seconds), 2 * kept_s)
    shares = [each_s / math.fsum(wanted_s) for each_s in wanted_s]
    chosen: list[session.NetworkResult] = []
    for network, share in zip(networks, shares, strict=True):
        if isinstance(network, SizedNetwork):
            chosen += choose_for_sizes(network, setting, store, share * limit_s)
        else:
            chosen.append(choose_together(network, setting, store, share * limit_s))
    return result.with_networks(chosen)


def _workloads_of(network: graph.Partition | SizedNetwork) -> tuple[graph.Workload, ...]:
    """The workloads of a network that are measured: those of all points, if it has points."""
    if isinstance(network, SizedNetwork):
        return tuple(each for parts in network.instances for each in parts.workloads)
    return network.workloads


def _stopped(
    network: graph.Partition | SizedNetwork, reason: str = "interrupted"
) -> list[session.NetworkResult]:
    """The results of a network that is not compared, one for each point, with the reason."""
    if isinstance(network, SizedNetwork):
        name, points = network.name, [str(point) for point in network.points]
    else:
        name, points = network.graph.name, [""]
    return [session.NetworkResult(name, reason=reason, at=point) for point in points]


def _points(networks: Sequence[graph.Partition | SizedNetwork]) -> int:
    """The number of points of all networks; a network without open sizes counts as one point."""
    return sum(len(n.points) if isinstance(n, SizedNetwork) else 1 for n in networks)


def _wanted_s(network: graph.Partition | SizedNetwork) -> float:
    """The seconds that the comparison inside a network should get."""
    count = len(_workloads_of(network))
    return _NETWORK_S * _points((network,)) + _NETWORK_PER_WORKLOAD_S * count


def _network_s(seconds: float, networks: Sequence[graph.Partition | SizedNetwork]) -> float:
    """The seconds of a budget that are kept for the comparisons inside networks."""
    has_sizes = any(isinstance(network, SizedNetwork) for network in networks)
    share = _SIZES_SHARE if has_sizes else _NETWORK_SHARE
    return min(share * seconds, math.fsum(map(_wanted_s, networks)))


def _budget_of(how: session.SearchArguments) -> session.Budget:
    return session.Budget(DEFAULT_MINUTES) if how.budget.is_open else how.budget


def search_tasks(
    tasks: Sequence[Task],
    setting: session.SessionSetting,
    store: RecordStore,
    how: session.SearchArguments,
    *,
    name: str = "",
    measuring: MeasureOptions | None = None,
) -> session.TuneResult:
    """Measure schedules of given workloads, without comparisons inside networks.

    how         its budget is 10 minutes if none is given
    name        a name for people
    measuring   how candidates are measured
    """
    how = replace(how, budget=_budget_of(how), keeps_model=True)
    return tune_tasks(tasks, setting, store, how, name=name, measuring=measuring)


def choose_together(
    parts: graph.Partition, setting: session.SessionSetting, store: RecordStore, limit_s: float
) -> session.NetworkResult:
    """Compare the best schedules of all workloads inside the network, and keep the choice.

    limit_s   about how long it may take
    Another choice replaces the untuned schedules and the earlier choice only if the whole network
    is faster with it.
    """
    target, threads, hardware = setting.target, setting.threads, setting.hardware
    last = load_last_choice(store, parts, target, hardware, threads)
    options: dict[str, tuple[str, ...]] = {}
    untuned: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for workload in parts.workloads:
        key = workload.key
        default = choose_untuned(workload, target, threads, is_cold=True).trace
        untuned[key] = format_schedule(default)
        options[key] = session.options_of(store, workload, setting, untuned[key])
        before = format_schedule(last.get(key, default))
        chosen[key] = before if session.is_replayable(state_of(workload), before) else untuned[key]
    if all(len(traces) == 1 for traces in options.values()):
        return session.NetworkResult(parts.graph.name, reason=NOTHING_ELSE)
    standing = (untuned,) if chosen == untuned else (chosen, untuned)
    with override(dump=""):  # candidates are not dumped
        comparison = session.choose_in_network(
            parts, options, target, threads, limit_s, standing=standing
        )
    if comparison is None:
        return session.NetworkResult(parts.graph.name, reason="stopped")
    save_choice(store, parts, target, hardware, threads, comparison.choice)
    return comparison.result


def tasks_of(parts: graph.Partition, network: str = "") -> tuple[Task, ...]:
    """The tasks of a network: its workloads, each weighted by how often it runs.

    Raises:  UnsupportedError for named sizes.
    """
    graph.require_numbers(parts.graph, "tune")
    return tuple(
        Task(workload, parts.count(workload), network or parts.graph.name)
        for workload in parts.workloads
    )


def as_in_network(*programs: graph.Partition | SizedNetwork | SizedProgram) -> MeasureOptions:
    """Options for measuring with constants as cold as in the largest of some networks."""
    networks = [each.parts if isinstance(each, SizedNetwork) else each for each in programs]
    sizes = [
        sum(array.nbytes for array in each.graph.constants.values())
        for each in networks
        if isinstance(each, graph.Partition)
    ]
    return MeasureOptions(cold_bytes=max(sizes, default=0))
