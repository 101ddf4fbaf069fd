"""The search for fast schedules of models and programs, by sessions of `tuning/`.

`tuning/` searches for schedules of given workloads.  This file adds what a network needs: how often
each workload runs, constants that come from memory, and a last comparison inside the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorwright.base import CpuTarget, Target, UsageError, cpu_target, did_you_mean, override
from tensorwright.graph import (
    Constants,
    Partition,
    Program,
    as_program,
    bind_partition,
    check_constants,
    representative,
    require_numbers,
)
from tensorwright.machine import detect_hardware
from tensorwright.pipeline import chosen_target, compile_program
from tensorwright.records import Records, RecordStore, load_last_choice, opened, save_choice
from tensorwright.runtime import Executable, usable_threads
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning import Task
from tensorwright.tuning.learning import USUAL, Learning
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.selection import choose_untuned
from tensorwright.tuning.session import (
    Budget,
    Callback,
    NetworkResult,
    SearchArguments,
    SessionSetting,
    TuneOptions,
    TuneResult,
    choose_in_network,
    is_replayable,
    options_of,
)
from tensorwright.tuning.session import (
    tune as tune_tasks,
)
from tensorwright.tuning.space import SpaceKind

DEFAULT_MINUTES = 10.0
_PATIENCE = 20  # rounds without a gain, where no budget is given
_NETWORK_SHARE = 0.14  # the largest share of the minutes for the comparison inside the network
_NETWORK_S = 4.0
_NETWORK_PER_WORKLOAD_S = 0.4
_LEAST_NETWORK_S = 12.0  # for that comparison, if no minutes are given
_NOTHING_ELSE = "no schedule but the untuned ones was measured: it needs more time or trials"
_LEAST_SHARE = 0.02  # of the minutes for that comparison, even if they are spent


def tune(
    expression: Program,
    *,
    constants: Constants | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    target: str | Target | None = None,
    threads: int | None = None,
    records: Records | None = None,
    seed: int | None = None,
    space: SpaceKind | str = SpaceKind.SKETCHES,
    callbacks: Sequence[Callback] = (),
    options: TuneOptions | None = None,
    measuring: MeasureOptions | None = None,
    learning: Learning = USUAL,
) -> Executable:
    """Tune a tensor expression on this machine, and return its executable.

    expression  a tensor, several tensors, or the result of `program`
    constants   values of inputs that stay the same from call to call; the executable has them
    minutes, trials   the budget; if both are None, 10 minutes or 20 rounds without a gain
    space       the schedules to try: "sketches", "templates" or "both"
    options     patience and the like                measuring   how candidates are measured
    learning    features and cost model, by name
    The other arguments are those of `optimize`.
    Raises:  UsageError if it is not an expression, and as `optimize`.
    """
    machine = cpu_target(chosen_target(target))
    workload = as_program(expression, constants)
    if workload is None:
        raise UsageError(
            stage="tune",
            where=f"argument of type {type(expression).__name__}",
            reason="it is not a tensor expression",
            remedy="tensorwright.optimize tunes models",
        )
    check_constants(workload, constants)
    budget = Budget(minutes, trials)
    usual = TuneOptions(patience=_PATIENCE if budget.is_open else 0)
    kind, chosen = parse_space(space), options or usual
    how = SearchArguments(budget, seed, tuple(callbacks), chosen, space=kind, learning=learning)
    with opened(records, create=True) as store:
        search_tasks(
            [Task(workload)],
            setting_of(machine, threads),
            store,
            how,
            name=workload.name,
            measuring=measuring,
        )
        return compile_program(workload, machine, threads, store, constants)


def parse_space(text: SpaceKind | str) -> SpaceKind:
    """The kind of space of this name.  Raises: UsageError if there is none."""
    kinds = {kind.value: kind for kind in SpaceKind}
    if text not in kinds:
        raise UsageError(
            stage="tune",
            where=f"space {text}",
            reason="there is no space of this name",
            remedy=did_you_mean(text, kinds, "one of " + ", ".join(kinds)),
        )
    return kinds[text]


def setting_of(target: CpuTarget, threads: int | None) -> SessionSetting:
    """This machine with the threads of its kernels; the knob `threads` where None."""
    return SessionSetting(target, usable_threads(threads), detect_hardware().fingerprint)


def search(
    parts: Partition, setting: SessionSetting, store: RecordStore, how: SearchArguments
) -> TuneResult:
    """As `search_networks`, for all workloads of one network."""
    measuring = as_in_network(parts)
    name = parts.graph.name
    return search_networks(
        tasks_of(parts), (parts,), setting, store, how, name=name, measuring=measuring
    )


def search_networks(
    tasks: Sequence[Task],
    networks: Sequence[Partition],
    setting: SessionSetting,
    store: RecordStore,
    how: SearchArguments,
    *,
    name: str = "",
    measuring: MeasureOptions | None = None,
) -> TuneResult:
    """Measure schedules of every workload, and keep the measurements in the store.

    At the end the best schedules are compared inside each of the networks, and the store keeps the
    choices.  Then the chosen and the untuned networks are measured in turns.  All of this is done
    within the minutes of the budget.
    The other arguments are those of `search_tasks`.
    """
    seconds = _budget_of(how).seconds
    counts = [len(parts.workloads) for parts in networks]
    kept_s = 0.0 if seconds is None else _network_s(seconds, counts)
    later = frozenset(workload.key for parts in networks for workload in parts.workloads)
    how = replace(how, options=replace(how.options, after_s=kept_s, compared_later=later))
    result = search_tasks(tasks, setting, store, how, name=name, measuring=measuring)
    if not networks:
        return result
    if result.is_interrupted:
        stopped = [NetworkResult(parts.graph.name, reason="interrupted") for parts in networks]
        return result.with_networks(stopped)
    limit_s = max(_NETWORK_SHARE * result.elapsed_s, _LEAST_NETWORK_S * len(networks))
    if seconds is not None:
        limit_s = min(max(seconds - result.elapsed_s, _LEAST_SHARE * seconds), 2 * kept_s)
    each_s = limit_s / len(networks)
    return result.with_networks(
        [choose_together(parts, setting, store, each_s) for parts in networks]
    )


def _network_s(seconds: float, workloads: Sequence[int]) -> float:
    """The seconds of a budget that are kept for the comparisons inside networks, by their numbers
    of workloads.
    """
    wanted_s = sum(_NETWORK_S + _NETWORK_PER_WORKLOAD_S * count for count in workloads)
    return min(_NETWORK_SHARE * seconds, wanted_s)


def _budget_of(how: SearchArguments) -> Budget:
    return Budget(DEFAULT_MINUTES) if how.budget.is_open else how.budget


def search_tasks(
    tasks: Sequence[Task],
    setting: SessionSetting,
    store: RecordStore,
    how: SearchArguments,
    *,
    name: str = "",
    measuring: MeasureOptions | None = None,
) -> TuneResult:
    """As `search`, for workloads of several networks and programs; 10 minutes without a budget.

    name        a name for people
    measuring   how candidates are measured
    """
    how = replace(how, budget=_budget_of(how), keeps_model=True)
    return tune_tasks(tasks, setting, store, how, name=name, measuring=measuring)


def choose_together(
    parts: Partition, setting: SessionSetting, store: RecordStore, limit_s: float
) -> NetworkResult:
    """Compare the best schedules of all workloads inside the network, and keep the choice.

    limit_s   about how long it may take
    The untuned schedules and the earlier choice stay until another choice is faster as a whole.
    """
    target, threads, hardware = setting.target, setting.threads, setting.hardware
    last = load_last_choice(store, parts, target, hardware, threads)
    options: dict[str, tuple[str, ...]] = {}
    untuned: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for workload in parts.workloads:
        key = workload.key
        default = choose_untuned(workload, target, threads, is_cold=True).trace
        untuned[key] = format_trace(default)
        options[key] = options_of(store, workload, setting, untuned[key])
        before = format_trace(last.get(key, default))
        chosen[key] = before if is_replayable(state_of(workload), before) else untuned[key]
    if all(len(traces) == 1 for traces in options.values()):
        return NetworkResult(parts.graph.name, reason=_NOTHING_ELSE)
    standing = (untuned,) if chosen == untuned else (chosen, untuned)
    with override(dump=""):  # these are candidates still
        comparison = choose_in_network(parts, options, target, threads, limit_s, standing=standing)
    if comparison is None:
        return NetworkResult(parts.graph.name, reason="stopped")
    save_choice(store, parts, target, hardware, threads, comparison.choice)
    return comparison.result


def tasks_of(parts: Partition, network: str = "") -> tuple[Task, ...]:
    """The workloads of a network, each weighted by how often it runs.

    Raises:  UnsupportedError for named sizes.
    """
    require_numbers(parts.graph, "tune")
    return tuple(
        Task(workload, parts.count(workload), network or parts.graph.name)
        for workload in parts.workloads
    )


def typical_instance(parts: Partition) -> Partition:
    """The same steps for typical values of the named sizes.

    What is measured for them decides how the open network is compiled.
    """
    return bind_partition(parts, representative(parts.graph.sizes))


def as_in_network(*networks: Partition) -> MeasureOptions:
    """Measure with constants as cold as in the largest of some networks."""
    sizes = [sum(each.nbytes for each in n.graph.constants.values()) for n in networks]
    return MeasureOptions(cold_bytes=max(sizes, default=0))
