"""`tensorwright tune`: tune models and tensor expressions, and keep the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real

import click

from tensorwright import base
from tensorwright.base import option
from tensorwright.cli.arguments.models import short_name
from tensorwright.cli.arguments.options import (
    Compilation,
    is_reference,
    points_option,
    refuse_given,
)
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.arguments.programs import (
    compile_any,
    prepare,
    read_function,
    read_network,
    read_program,
)
from tensorwright.cli.arguments.searching import Searching, search_options
from tensorwright.cli.printing import ending
from tensorwright.cli.report import expression_subject, model_subject, write_after_search
from tensorwright.drivers.sized_network import AnyProgram, sized_program, tasks_of
from tensorwright.drivers.tune import as_in_network, search_networks, setting_of
from tensorwright.graph import SizesAt
from tensorwright.pipeline import cut, finish
from tensorwright.records import default_path, opened
from tensorwright.report import Subject
from tensorwright.tuning import Task, session, task_scheduling
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.space import SpaceKind

_FLUSH_BYTES = 512 << 20


@dataclass(frozen=True, kw_only=True)
class Tuning(Searching):
    """The options of `tune`."""

    objective: str | None = option(
        None, "A function of the networks' times to make small.", metavar="MODULE:FUNCTION"
    )
    limits: tuple[str, ...] = option(
        (), "NAME need not be faster than MS.", metavar="NAME=MS", spelling="limit"
    )
    references: tuple[str, ...] = option(
        (),
        "Make the mean speed-up against these times large.",
        metavar="NAME=MS",
        spelling="reference",
    )
    flush: bool = option(default=False, text="Empty the caches before each call that is timed.")


@click.command()
@click.argument("programs", metavar="MODEL|MODULE:EXPR...", nargs=-1, required=True)
@points_option
@search_options(Tuning)
def command(programs: tuple[str, ...], at: SizesAt | None, how: Tuning) -> None:
    """Tune models and tensor expressions on this machine; every measurement is kept.

    MODULE:EXPR names a tensor expression in a Python module, or in a file (op.py:y): a tensor, a
    tuple of tensors, `tensorwright.program(...)`, or a function that returns one of these.
    Several MODELs share the budget. A model with open sizes is tuned for several of them. Ctrl-C
    stops; the same command continues.

    Example: tensorwright tune model.onnx --minutes 10
    """
    if how.records is None:
        base.make_home()
    check_writable(how.report, *programs, how.records_path)
    wanted = choose_objective(how.objective, how.limits, how.references)
    tuned = read_programs(programs, how, at)
    setting, is_weighted = setting_of(how.machine, how.threads), wanted is None
    tasks = [task for each in tuned for task in tasks_of(each, setting, is_weighted=is_weighted)]
    check_names("--limit", how.limits, tasks)
    check_names("--reference", how.references, tasks)
    if wanted is not None:
        _try_objective(wanted, tasks)
    measuring = MeasureOptions(flush_bytes=_FLUSH_BYTES) if how.flush else as_in_network(*tuned)
    name = " ".join(programs)
    with how.opened_page(name) as page:
        if how.search.space is not SpaceKind.SKETCHES and not how.quiet:
            print_spaces(tasks, how.machine, SpaceKind(how.search.space))
        with how.opened(page) as (store, setting, search):
            own = replace(search, objective=wanted)
            result = search_networks(tuned, setting, store, own, measuring, name=name, tasks=tasks)
        subject = partial(_subject, programs, how, result)
        write_after_search(how, name, result, setting, subject, page)
    models = [short_name(text) for text in programs if not is_reference(text)]
    how.end(result, f"{ending(result)}; kept in {how.records or default_path()}", models)


def _subject(
    programs: Sequence[str], how: Compilation, result: session.TuneResult
) -> Subject | None:
    """What a report measures: the program with recorded schedules; None for several programs."""
    if len(programs) > 1:
        return None
    (text,) = programs
    if is_reference(text):
        return expression_subject(text, compile_any(text, how, draws=True), result)
    source = read_network(text, how)
    with opened(how.records) as store:
        parts = cut(source, how.machine, how.threads)
        executable = finish(parts, how.machine, how.threads, store)
    return model_subject(text, how, executable, source, source, result)


def read_programs(
    texts: Sequence[str], how: Compilation, at: SizesAt | None = None
) -> tuple[AnyProgram, ...]:
    """The models and expressions of all arguments, each with its points.

    at       the points at which programs with open sizes are tuned
    Raises:  UsageError and ModelError for an argument without a program, UsageError for sizes that
             the programs do not have.
    """
    if all(map(is_reference, texts)):
        refuse_given(("input_shapes", "sizes"), because="tensor expressions have their shapes")
    programs: list[AnyProgram] = []
    for text in texts:
        if is_reference(text):
            workload = read_program(text)
            programs.append(sized_program(workload, at if workload.sizes else None, text))
        else:
            parts = prepare(text, how)
            points = at if parts.graph.sizes else None
            programs.append(sized_program(parts, points, short_name(text)))
    if not any(each.is_open for each in programs):
        refuse_given(("at",), because="all shapes are numbers")
    return tuple(programs)


def print_spaces(tasks: Sequence[Task], target: base.Target, kind: SpaceKind) -> None:
    """Print how many schedules the space of each workload holds, and in which families."""
    for task in {task.workload.key: task for task in tasks}.values():
        space = session.make_space(task, target, kind)
        families = ", ".join(dict.fromkeys(sketch.family for sketch in space.sketches))
        click.echo(f"{task.workload.name}: {space.size:,} schedules of {families}", err=True)


def choose_objective(
    function: str | None, limits: Sequence[str], references: Sequence[str]
) -> task_scheduling.Objective | None:
    """The objective that the options name; None stands for the sum of all times.

    Raises:  UsageError for several objectives, and for a text that is not of the form NAME=MS.
    """
    if sum(map(bool, (function, limits, references))) > 1:
        raise base.UsageError(
            stage="cli",
            where="--objective, --limit, --reference",
            reason="several objectives are given",
            remedy="give one of them",
        )
    if function:
        return _own_objective(function)
    if limits:
        return task_scheduling.LatencyRequirement(_read_times("--limit", limits))
    if references:
        return task_scheduling.MeanSpeedUp(_read_times("--reference", references))
    return None


def _try_objective(wanted: task_scheduling.Objective, tasks: Sequence[Task]) -> None:
    """Call an objective once with made-up times, so that its errors appear before the search."""
    names = dict.fromkeys(task.network for task in tasks)
    wanted(tuple(task_scheduling.NetworkTimes(name, (1.0,), (1e-3,)) for name in names))


def check_names(option: str, texts: Sequence[str], tasks: Sequence[Task]) -> None:
    """Raise a UsageError for NAME=MS if no network or expression of this name is tuned."""
    networks = tuple(dict.fromkeys(task.network for task in tasks))
    for name, _ in _read_times(option, texts):
        if name not in networks:
            reason = "no network or expression of this name is tuned"
            raise base.unknown_name("cli", f"{option} {name}", reason, name, networks)


def _own_objective(reference: str) -> task_scheduling.Objective:
    """The user's function as an objective; its errors become a UsageError that names it."""
    function = read_function(reference)

    def fault(reason: str) -> base.UsageError:
        return base.UsageError(
            stage="tune",
            where=f"objective {reference}",
            reason=reason,
            remedy="it gets the networks, each with name and latency_s, and returns a number",
        )

    def objective(networks: Sequence[task_scheduling.NetworkTimes]) -> float:
        try:
            cost = function(networks)
        except Exception as error:
            raise fault(f"calling it failed: {type(error).__name__}: {error}") from error
        if not isinstance(cost, Real):
            raise fault(f"it returned {cost!r}, not a number")
        return float(cost)

    return objective


def _read_times(option: str, texts: Sequence[str]) -> tuple[tuple[str, float], ...]:
    pairs = []
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            time_ms = float(number)
        except ValueError:
            time_ms = 0.0
        if not name or not time_ms > 0:
            raise base.UsageError(
                stage="cli",
                where=f"{option} {text}",
                reason="it is not of the form NAME=MS, with a time above zero",
                remedy=f"for example {option} resnet50=2.5",
            )
        pairs.append((name, time_ms / 1e3))
    return tuple(sorted(pairs))
