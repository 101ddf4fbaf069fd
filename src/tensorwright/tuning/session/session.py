"""A tuning session: rounds of proposing, building and measuring, for one or many workloads.

First the default schedule of every workload that may matter is measured.  Then the scheduler gives
rounds to workloads until the budget is spent.  The first round of a workload is a race of the
schedules that the time model expects to be the fastest.  At the end the best few schedules of each
workload and the default are measured again, in turns.  `rounds.py` does this.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

from tensorwright.artifacts import build_kernel, load_kernel
from tensorwright.base import CpuTarget, Target, UsageError, knobs
from tensorwright.expr import compute, placeholder
from tensorwright.farm import Farm
from tensorwright.graph import program
from tensorwright.records import RecordStore, Setting
from tensorwright.runtime import check_device
from tensorwright.runtime.measuring import this_machine
from tensorwright.schedule import state_of
from tensorwright.tuning.learning import Past, SessionLearning, model_file_of, open_learning
from tensorwright.tuning.measuring.runner import Builder, ChildRunner, PoolBuilder, Runner
from tensorwright.tuning.measuring.timing import MeasureOptions
from tensorwright.tuning.on_farm import FarmBuilder, FarmRunner, kind_for
from tensorwright.tuning.population.population import Candidate, default_candidate
from tensorwright.tuning.selection import open_predictor
from tensorwright.tuning.session.arguments import Options, SessionParts
from tensorwright.tuning.session.ranking import Tools
from tensorwright.tuning.session.result import TuneResult
from tensorwright.tuning.session.rounds import Session
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.space.space import SpaceKind, sketches_of, space_of
from tensorwright.tuning.strategies.named import check_strategy, choose_strategy
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import GradientScheduler, TotalLatency

_ByNetwork = tuple[tuple[str, float], ...]


def make_space(task: Task, target: Target, kind: SpaceKind = SpaceKind.SKETCHES) -> Space:
    """The default space of a task; without other algorithms if the knob `winograd` says so."""
    return space_of(state_of(task.workload), target, algorithms=knobs.WINOGRAD.get(), kind=kind)


def make_default(task: Task, target: Target) -> Candidate:
    """The first sketch of the default space, made without the others."""
    by_rule = next(sketches_of(state_of(task.workload), target))
    return default_candidate(Space((by_rule,)))


def tune(
    tasks: Sequence[Task],
    setting: Setting,
    store: RecordStore,
    options: Options,
    *,
    name: str = "",
    measuring: MeasureOptions | None = None,
    parts: SessionParts | None = None,
) -> TuneResult:
    """Search for fast schedules of some workloads until the budget is spent.

    setting     target, threads, machine               options   budget, method and callbacks
    name        a name for people
    measuring   how candidates are measured, if no runner is given
    parts       replacements of the default builder, runner, strategy, ...

    Tasks of equal workloads count as one, with the sum of their weights.
    Raises:  UsageError without a budget and for an unknown strategy, MachineError for a target that
             cannot run here, RecordError and OutputError as the store.
    """
    _check(options, setting.target)
    with ExitStack() as owned:
        for callback in options.callbacks:
            owned.callback(callback.close)
        own = parts or SessionParts()
        tools, learned = _tools(tasks, setting, store, options, own, measuring, owned)
        session = Session(merge(tasks), setting, store, options, tools, name)
        owned.enter_context(session.interrupt.on_ctrl_c())
        result = session.run()
        learned.keep()
        return result


def _tools(
    tasks: Sequence[Task],
    setting: Setting,
    store: RecordStore,
    options: Options,
    own: SessionParts,
    measuring: MeasureOptions | None,
    owned: ExitStack,
) -> tuple[Tools, SessionLearning]:
    """The caller's parts and the usual ones, started and closed with `owned`; the cost models."""
    target, threads, seed = setting.target, setting.threads, options.chosen_seed
    is_cold = measuring is not None and measuring.cold_bytes > 0
    builder = own.builder or _builder(options.farm, owned)
    runner = own.runner or _runner(options.farm, target, measuring, seed, owned)
    predictor = None
    if own.make_space is None:
        predictor = open_predictor(target, threads, is_cold=is_cold)
    file = model_file_of(store, setting, options.learning)
    learned = open_learning(
        options.learning,
        setting,
        seed,
        file if options.keeps_model else None,
        predictor.cost_model if predictor is not None else None,
        Past(store, tuple(task.workload for task in tasks)),
    )
    make_proposer = None
    if options.proposing is not None and isinstance(target, CpuTarget):
        make_proposer = options.proposing.proposers(this_machine(target, threads, is_cold=is_cold))
    is_trained = predictor is not None
    make_strategy = own.make_strategy or choose_strategy(
        options.strategy, learned.make_guide, is_trained=is_trained, make_proposer=make_proposer
    )
    objective = options.objective or TotalLatency()
    tools = Tools(
        builder,
        runner,
        own.scheduler or GradientScheduler(objective, patience=options.task_patience, seed=seed),
        make_strategy,
        own.make_space or partial(make_space, kind=SpaceKind(options.space)),
        predictor,
        make_default if own.make_space is None else None,
        keeps_kernels=own.builder is None and options.farm is None,
        has_races=options.space is not SpaceKind.TEMPLATES,
    )
    return tools, learned


def _check(options: Options, target: Target) -> None:
    """Refuse a search that cannot begin; raises as `tune`."""
    if options.is_open:
        raise UsageError(
            stage="tune",
            where="budget",
            reason="neither trials nor minutes are given",
            remedy="give at least one of them",
        )
    check_strategy(options.strategy)
    if options.farm is None:
        check_measures_here(target)


def _builder(farm: Farm | None, owned: ExitStack) -> Builder:
    """The usual builder, started; closed with `owned`."""
    if farm is not None:
        on_farm = FarmBuilder(farm)
        owned.callback(on_farm.close)
        return on_farm
    builder = owned.enter_context(PoolBuilder())
    builder.start()
    return builder


def _runner(
    farm: Farm | None,
    target: Target,
    measuring: MeasureOptions | None,
    seed: int,
    owned: ExitStack,
) -> Runner:
    """The usual runner, started; closed with `owned`."""
    if farm is not None:
        return FarmRunner(farm, kind_for(farm, target).kind, target, measuring, seed)
    is_bounded = isinstance(target, CpuTarget)
    runner = owned.enter_context(ChildRunner(measuring, seed, bounds_addresses=is_bounded))
    runner.start()
    return runner


def check_measures_here(target: Target) -> None:
    """Refuse a target whose programs cannot be measured on this machine, with a MachineError.

    A device takes code by a compiler and a driver that may not fit each other: a small kernel is
    built and loaded, once for each process.
    """
    check_device(target, "tune", remedy="tune on a machine that can run it, and import its records")
    if not isinstance(target, CpuTarget):
        _check_kernel(target)


@cache
def _check_kernel(target: Target) -> None:
    x = placeholder("x", (1,))
    y = compute("y", (1,), lambda i: x[i])
    load_kernel(build_kernel(program([y]), (), target))


def merge(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """One task for each workload key, in the order of the first; weights add up."""
    merged: dict[str, Task] = {}
    for task in tasks:
        earlier = merged.get(task.workload.key)
        merged[task.workload.key] = task if earlier is None else _joined(earlier, task)
    return tuple(merged.values())


def _joined(one: Task, other: Task) -> Task:
    shares = _added(one.uses, other.uses)
    calls = _added(one.calls_by_network, other.calls_by_network) if one.calls or other.calls else ()
    return replace(
        one,
        weight=one.weight + other.weight,
        shares=shares if len(shares) > 1 else (),
        alike=tuple(dict.fromkeys((*one.alike, *other.alike))),
        calls=calls,
    )


def _added(one: _ByNetwork, other: _ByNetwork) -> _ByNetwork:
    """The sums of two lists of numbers by network."""
    numbers = dict(one)
    for network, number in other:
        numbers[network] = numbers.get(network, 0.0) + number
    return tuple(sorted(numbers.items()))
