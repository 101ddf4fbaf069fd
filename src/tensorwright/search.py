"""The search for fast schedules of models and programs: sessions of `tuning/`, as all callers wish.

`tuning/` searches for schedules of given workloads; here is what a search over a network adds: how
often each workload runs, constants that come from memory, and a last comparison inside the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorwright.base import Target, knobs
from tensorwright.graph import Partition
from tensorwright.records import NetworkChoice, RecordStore, detect_hardware, save_choice
from tensorwright.runtime import usable_threads
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning import Task
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.session import (
    Callback,
    TuneOptions,
    TuneResult,
    choose_in_network,
    options_of,
    tune,
)
from tensorwright.tuning.space import default_trace
from tensorwright.tuning.task_scheduling import Objective

DEFAULT_MINUTES = 10.0
_SHARE = 0.03  # of the time of the search, for each comparison inside the network


@dataclass(frozen=True, slots=True)
class Search:
    """How to search, and who is told.

    minutes, trials   the budget: whichever is spent first; 10 minutes where both are None
    seed              of every random choice; the knob `seed` where None
    The others are those of `tune.tune`.
    """

    minutes: float | None = None
    trials: int | None = None
    seed: int | None = None
    callbacks: tuple[Callback, ...] = ()
    options: TuneOptions | None = None
    objective: Objective | None = None


def search(
    parts: Partition, target: Target, threads: int | None, store: RecordStore, how: Search
) -> TuneResult:
    """Measure schedules of every workload; what has been measured is in the store.

    At last the best of each are compared inside the network, and the choice is kept there too.
    """
    result = search_tasks(
        tasks_of(parts),
        target,
        threads,
        store,
        how,
        name=parts.graph.name,
        measuring=as_in_network(parts),
    )
    if not result.is_interrupted:
        choose_together(parts, target, threads, store, _SHARE * result.elapsed_s)
    return result


def search_tasks(
    tasks: Sequence[Task],
    target: Target,
    threads: int | None,
    store: RecordStore,
    how: Search,
    *,
    name: str = "",
    measuring: MeasureOptions | None = None,
) -> TuneResult:
    """As `search`, for workloads of several networks and programs.

    name        what is tuned, for people
    measuring   how candidates are measured
    """
    minutes = how.minutes
    if minutes is None and how.trials is None:
        minutes = DEFAULT_MINUTES
    return tune(
        tasks,
        target=target,
        threads=thread_count(threads),
        store=store,
        trials=how.trials,
        minutes=minutes,
        seed=knobs.SEED.get() if how.seed is None else how.seed,
        model=name,
        callbacks=how.callbacks,
        options=how.options,
        objective=how.objective,
        measuring=measuring,
        keeps_model=True,
    )


def choose_together(
    parts: Partition, target: Target, threads: int | None, store: RecordStore, limit_s: float
) -> NetworkChoice | None:
    """Compare the best schedules of all workloads inside the network, and keep what is chosen.

    limit_s   about so long each of two comparisons may take
    None where there is nothing to choose.
    """
    count = thread_count(threads)
    hardware = detect_hardware().fingerprint
    options: dict[str, tuple[str, ...]] = {}
    for workload in parts.workloads:
        by_rule = default_trace(state_of(workload), target)
        options[workload.key] = options_of(
            store, workload, target, hardware, count, format_trace(by_rule)
        )
    if all(len(traces) == 1 for traces in options.values()):
        return None
    choice = choose_in_network(parts, options, target, count, limit_s)
    if choice is not None:
        save_choice(store, parts, target, hardware, count, choice)
    return choice


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


def thread_count(threads: int | None) -> int:
    """How many threads kernels use: those asked for, else those of the knob `threads`.

    Raises:  MachineError where more are asked for than there are.
    """
    return usable_threads(threads or knobs.THREADS.get(), is_demanded=threads is not None)
