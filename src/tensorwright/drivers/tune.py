"""Search for fast schedules of models and tensor expressions, in sessions of `tuning/`.

`tuning/` searches for schedules of given workloads.  This file adds what a network needs: how often
each workload runs, constants that are cold, and a last comparison inside the network.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self, cast

from onnx import ModelProto

from tensorwright import graph, pipeline
from tensorwright.base import Target, UsageError, takes_options
from tensorwright.compile_options import CompileOptions
from tensorwright.drivers import sized_network
from tensorwright.farm import NO_SECURITY, Farm, FarmSecurity, opened_farm
from tensorwright.graph.imports.aten import ExportedGraph
from tensorwright.graph.model_import import is_exported_program
from tensorwright.machine import detect_hardware
from tensorwright.records import RecordStore, Setting, opened
from tensorwright.runtime import Executable, usable_threads
from tensorwright.tuning import Task, session
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.on_farm import kind_for
from tensorwright.tuning.session import tune as tune_tasks

DEFAULT_MINUTES = 10.0
_PATIENCE = 20  # rounds without a gain, if no budget is given
_NETWORK_SHARE = 0.14  # the largest share of the minutes for the comparison inside the network
_SIZES_SHARE = 0.22  # the same, if a network is tuned at several points
_NETWORK_S = 4.0
_NETWORK_PER_WORKLOAD_S = 0.4
_LEAST_NETWORK_S = 12.0  # for that comparison at one point, if no minutes are given
_LEAST_SHARE = 0.02  # of the minutes, for that comparison even if all are spent


@dataclass(frozen=True, kw_only=True)
class SearchOptions(session.Options, CompileOptions):
    """The options of searches for schedules from Python: a program, a session, who measures.

    Without a limit a search ends after 10 minutes. `callbacks` get the progress; if None, it is
    written to stderr; () for silence.

    workers     a farm, or the address of its scheduler; it builds and measures candidates instead
                of this machine
    security    the keys of the farm
    """

    callbacks: Sequence[session.Callback] | None = None  # type: ignore[assignment]
    workers: str | Farm | None = None
    security: FarmSecurity = NO_SECURITY

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """These options with the farm, open while the block runs, and with what shows progress."""
        shown = session.choose_callbacks() if self.callbacks is None else tuple(self.callbacks)
        with opened_farm(self.workers, self.security) as farm:
            yield replace(self, farm=farm, callbacks=shown)


@dataclass(frozen=True, kw_only=True)
class TuneOptions(SearchOptions):
    """The options of `tune`; without a limit it also ends after 20 rounds without a gain.

    constants   values of inputs that stay the same from call to call; the executable contains them
    at          values of the open sizes at which to tune: all combinations of
                `{"batch": 1, "sequence": (1, 32, 128)}`, or a list of such mappings; if None, a few
                values that the bounds suggest
    measuring   how candidates are measured
    """

    constants: graph.Constants | None = None
    at: graph.SizesAt | None = None
    measuring: MeasureOptions | None = None


@takes_options(TuneOptions, "farm")
def tune(model: pipeline.Model | graph.Program, given: TuneOptions) -> Executable:
    """Tune a tensor expression or a model on this machine, and return its executable.

    model       a tensor, several tensors, the result of `program`, or a model as of `compile`

    `optimize` also looks for a faster graph.
    Raises:  UsageError for an argument that is neither a model nor an expression, and for sizes
             that the model does not have; the errors and the KeyboardInterrupt of `optimize`.
    """
    with given.opened() as how:
        if how.is_open and not how.patience:
            how = replace(how, patience=_PATIENCE)
        return _tune(model, how)


def _tune(model: pipeline.Model | graph.Program, how: TuneOptions) -> Executable:
    machine = how.machine
    setting = setting_of(machine, how.threads, how.farm)
    workload = graph.as_program(model, how.constants)
    if workload is not None:
        pipeline.refuse_for_programs(how)
        graph.check_constants(workload, how.constants)
        program = sized_network.sized_program(workload, how.at)
        with opened(how.records, create=True) as store:
            search_networks([program], setting, store, how, how.measuring).raise_if_interrupted()
            return pipeline.compile_program(workload, machine, how.threads, store, how.constants)
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
    pipeline.refuse_for_models(None, how.constants)
    imported = pipeline.import_graph(cast(pipeline.Model, model), how)
    parts = pipeline.cut(imported, machine, how.threads)
    network = sized_network.sized_program(parts, how.at)
    cold = how.measuring or as_in_network(network)
    with opened(how.records, create=True) as store:
        search_networks([network], setting, store, how, cold).raise_if_interrupted()
        return pipeline.finish(parts, machine, how.threads, store)


def setting_of(target: Target, threads: int | None, farm: Farm | None = None) -> Setting:
    """The setting of a session: the target, the threads, and the machine that measures.

    threads   if None, as many as the knob `threads` says, or as another machine of the farm has
    farm      its device for the target measures; if None, this machine measures
    Raises:   MachineError if no device of the farm runs the target.
    """
    if farm is not None:
        device = kind_for(farm, target)
        is_here = device.hardware == detect_hardware().fingerprint
        usual = usable_threads(None) if is_here else device.threads
        return Setting(target, threads or usual, device.hardware)
    return pipeline.setting_of(target, threads)


def search(
    parts: graph.Partition,
    setting: Setting,
    store: RecordStore,
    how: session.Options,
    at: graph.SizesAt | None = None,
) -> session.TuneResult:
    """As `search_networks`, for all workloads of one network; `at` as of `tune`."""
    network = sized_network.sized_program(parts, at)
    return search_networks([network], setting, store, how, as_in_network(network))


def search_networks(
    programs: Sequence[sized_network.AnyProgram],
    setting: Setting,
    store: RecordStore,
    how: session.Options,
    measuring: MeasureOptions | None = None,
    *,
    name: str = "",
    tasks: Sequence[Task] | None = None,
) -> session.TuneResult:
    """Measure schedules of every workload, and keep the measurements in the store.

    programs    networks and expressions, with the points for which they are tuned
    how         its budget is 10 minutes if none is given
    measuring   how candidates are measured
    name        for people; that of the only program if ""
    tasks       those of the programs if None

    At the end the best schedules are compared inside each network, at all of its points, and the
    store keeps the choices.  Then the chosen and the untuned networks are measured in turns.  All
    of this is done within the minutes of the budget.
    """
    networks = [each for each in programs if sized_network.is_network(each)]
    how = replace(how, minutes=DEFAULT_MINUTES) if how.is_open else how
    seconds = how.seconds
    kept_s = 0.0 if seconds is None else _network_s(seconds, networks)
    later = frozenset(workload.key for network in networks for workload in _workloads(network))
    how = replace(how, after_s=kept_s, compared_later=later, keeps_model=True)
    for program in programs:
        sized_network.note_points(program, store)
    if tasks is None:
        tasks = [task for program in programs for task in sized_network.tasks_of(program, setting)]
    name = name or programs[0].name
    result = tune_tasks(tasks, setting, store, how, name=name, measuring=measuring)
    if not networks:
        return result
    is_elsewhere = how.farm is not None and setting.hardware != detect_hardware().fingerprint
    if result.is_interrupted or is_elsewhere:
        reason = "interrupted" if result.is_interrupted else "measured elsewhere"
        return result.with_networks(
            [e for n in networks for e in sized_network.not_compared(n, reason)]
        )
    wanted_s = [_wanted_s(network) for network in networks]
    points = sum(len(network.points) for network in networks)
    limit_s = max(_NETWORK_SHARE * result.elapsed_s, _LEAST_NETWORK_S * points)
    if seconds is not None:
        limit_s = min(max(seconds - result.elapsed_s, _LEAST_SHARE * seconds), 2 * kept_s)
    shares = [each_s / math.fsum(wanted_s) for each_s in wanted_s]
    chosen: list[session.NetworkResult] = []
    for network, share in zip(networks, shares, strict=True):
        chosen += sized_network.choose_together(network, setting, store, share * limit_s)
    return result.with_networks(chosen)


def _workloads(network: sized_network.SizedNetwork) -> list[graph.Workload]:
    """The workloads of a network that are measured, at all points."""
    return [workload for own in sized_network.workloads_of(network) for workload, _ in own]


def _wanted_s(network: sized_network.SizedNetwork) -> float:
    """The seconds that the comparison inside a network should get."""
    return _NETWORK_S * len(network.points) + _NETWORK_PER_WORKLOAD_S * len(_workloads(network))


def _network_s(seconds: float, networks: Sequence[sized_network.SizedNetwork]) -> float:
    """The seconds of a budget that are kept for the comparisons inside networks."""
    share = _SIZES_SHARE if any(each.is_open for each in networks) else _NETWORK_SHARE
    return min(share * seconds, math.fsum(map(_wanted_s, networks)))


def as_in_network(*programs: sized_network.AnyProgram) -> MeasureOptions:
    """Options for measuring with constants as cold as in the largest of some networks."""
    sizes = [
        sum(array.nbytes for array in each.parts.graph.constants.values())
        for each in programs
        if sized_network.is_network(each)
    ]
    return MeasureOptions(cold_bytes=max(sizes, default=0))
