"""A tuning session: rounds of proposing, building and measuring, for one or many workloads.

First every workload gets its default schedule measured; then the scheduler gives rounds to
workloads until the budget is spent; at last the best few of each are measured again, in turn, with
the default among them. `rounds.py` is how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from tensorwright.base import MachineError, Target, UsageError, detect_target
from tensorwright.records import RecordStore, detect_hardware
from tensorwright.schedule import state_of
from tensorwright.tuning.measuring.builder import Builder, PoolBuilder
from tensorwright.tuning.measuring.measure import ChildRunner, Runner
from tensorwright.tuning.measuring.timing import MeasureOptions
from tensorwright.tuning.models.kept_model import model_file_of, open_model
from tensorwright.tuning.session.interrupt import Interrupt
from tensorwright.tuning.session.progress import Callback
from tensorwright.tuning.session.ranking import Tools
from tensorwright.tuning.session.result import Setting, TuneOptions, TuneResult
from tensorwright.tuning.session.rounds import Session
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.space.space import space_of
from tensorwright.tuning.strategies.evolution.standard import evolution_by
from tensorwright.tuning.strategies.strategy import StrategyFactory
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling.gradient_scheduler import GradientScheduler
from tensorwright.tuning.task_scheduling.objective import Objective, TotalLatency
from tensorwright.tuning.task_scheduling.scheduler import Scheduler


def make_space(task: Task, target: Target) -> Space:
    """The usual space of a task."""
    workload = task.workload
    return space_of(state_of(workload), target)


def tune(
    tasks: Sequence[Task],
    *,
    target: Target,
    threads: int,
    store: RecordStore,
    trials: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
    model: str = "",
    hardware: str = "",
    callbacks: Sequence[Callback] = (),
    interrupt: Interrupt | None = None,
    options: TuneOptions | None = None,
    objective: Objective | None = None,
    measuring: MeasureOptions | None = None,
    builder: Builder | None = None,
    runner: Runner | None = None,
    scheduler: Scheduler | None = None,
    make_strategy: StrategyFactory | None = None,
    make_space: Callable[[Task, Target], Space] = make_space,
    keeps_model: bool = False,
) -> TuneResult:
    """Search for fast schedules of some workloads until the budget is spent.

    trials, minutes   the budget over all runs of the session; whichever is spent first
    model             what is tuned, for people            hardware   of this machine where ""
    interrupt         lets another thread stop the session; Ctrl-C does so in the main thread
    objective         what the scheduler makes small; the weighted sum of all times where None
    measuring         how candidates are measured, where no runner is given
    builder, runner   closed by the caller if given; else workers of the session's own
    make_strategy     the search of each task; evolution under one learned cost model where None
    keeps_model       whether that model starts from what earlier sessions learned, and is kept for
                      later ones, in a file beside the store (`kept_model.py`)

    Tasks of equal workloads count as one, with the sum of their weights.
    Raises:  UsageError without a budget, MachineError for a target that cannot run here,
             RecordError and OutputError as the store.
    """
    if trials is None and minutes is None:
        raise UsageError(
            stage="tune",
            where="budget",
            reason="neither trials nor minutes are given",
            remedy="give one of them",
        )
    check_runs_here(target)
    seconds = None if minutes is None else 60.0 * minutes
    machine = hardware or detect_hardware().fingerprint
    setting = Setting(target, threads, machine, seed, model, trials, seconds)
    asked = interrupt or Interrupt()
    with ExitStack() as owned:
        for callback in callbacks:
            owned.callback(callback.close)
        if builder is None:
            builder = owned.enter_context(PoolBuilder())
            builder.start()
        if runner is None:
            runner = owned.enter_context(ChildRunner(measuring, seed))
            runner.start()
        chosen = options or TuneOptions()
        if scheduler is None:
            scheduler = GradientScheduler(
                objective or TotalLatency(), patience=chosen.task_patience, seed=seed
            )
        file = model_file_of(store, target, threads, machine) if keeps_model else None
        model_used = open_model(target, threads, seed, file)
        if make_strategy is None:
            make_strategy = evolution_by(model_used.learned, target)
        tools = Tools(builder, runner, scheduler, make_strategy, make_space)
        owned.enter_context(asked.on_ctrl_c())
        session = Session(merge(tasks), setting, store, tools, tuple(callbacks), asked, chosen)
        result = session.run()
        model_used.keep()
        return result


def check_runs_here(target: Target) -> None:
    """Refuse a target whose programs cannot be measured on this machine, with a MachineError."""
    native = detect_target()
    lacking = sorted(set(target.features) - set(native.features))
    if target.arch != native.arch or lacking:
        reason = f"this machine is {native.arch}"
        raise MachineError(
            stage="tune",
            where=f"target {target.name}",
            reason=f"{reason} without {', '.join(lacking)}" if lacking else reason,
            remedy="tune on a machine that can run it, and bring the records",
        )


def merge(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """One task for each workload key, in the order of the first; weights add up."""
    merged: dict[str, Task] = {}
    for task in tasks:
        known = merged.get(task.workload.key)
        merged[task.workload.key] = task if known is None else _joined(known, task)
    return tuple(merged.values())


def _joined(one: Task, other: Task) -> Task:
    weights = dict(one.uses)
    for network, weight in other.uses:
        weights[network] = weights.get(network, 0.0) + weight
    shares = tuple(sorted(weights.items())) if len(weights) > 1 else ()
    return replace(one, weight=one.weight + other.weight, shares=shares)
