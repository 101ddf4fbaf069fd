"""`tensorwright inspect`: what becomes of a model, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tensorwright.base import Target, UsageError, did_you_mean
from tensorwright.build import backend_of, loop_program
from tensorwright.cli.arguments.models import Shapes, is_executable, read_graph
from tensorwright.cli.arguments.options import (
    machine_options,
    model_argument,
    records_option,
    seed_of,
    seed_option,
    shapes_option,
)
from tensorwright.codegen import Source
from tensorwright.graph import Workload, describe_layouts
from tensorwright.pipeline import Scheduled, choose, opened, parse_target, prepare
from tensorwright.runtime import load, usable_threads
from tensorwright.schedule import format_trace

_DEFAULT = "graph,layouts,workloads"


@click.command()
@model_argument
@click.option(
    "--what",
    default=_DEFAULT,
    metavar="STAGES",
    help="Some of graph, layouts, workloads, schedule, loops, llvm, asm, with commas between; "
    f"{_DEFAULT} if not given.",
)
@click.option("--workload", "wanted", metavar="KEY|NAME", help="This one only.")
@machine_options
@records_option
@shapes_option
@seed_option
def command(
    model: str,
    what: str,
    wanted: str | None,
    target: str | None,
    threads: int | None,
    records: Path | None,
    input_shapes: Shapes | None,
    seed: int | None,
) -> None:
    """Show what becomes of a model; of an executable, its steps.

    The graph is shown simplified, layouts lists the conversions that remain; schedule, loops, llvm
    and asm are those of each workload, with the schedule on record or, without one, by rule.

    Example: tensorwright inspect light:squeezenet --what loops --workload softmax
    """
    stages = read_stages(what)
    if is_executable(model):
        click.echo(str(load(model, threads)))
        return
    machine = parse_target(target)
    parts = prepare(read_graph(model, input_shapes, seed_of(seed)), machine)
    workloads = select(parts.workloads, wanted)
    count = usable_threads(threads)
    if "graph" in stages:
        click.echo(str(parts.graph))
    if "layouts" in stages:
        click.echo(describe_layouts(parts.graph))
    if "workloads" in stages:
        for workload in workloads:
            click.echo(f"{workload}\n  runs {parts.count(workload)} times\n")
    with opened(records) as store:
        for workload in workloads if set(stages) & CODE.keys() else ():
            chosen = choose(workload, machine, count, store)
            for stage in stages:
                if stage in CODE:
                    click.echo(f"--- {stage}: {workload.name} {workload.key}")
                    click.echo(CODE[stage](chosen, machine))


def read_stages(text: str) -> tuple[str, ...]:
    """The stages of a list with commas, in the order of the pipeline.

    Raises:  UsageError for a name that is none.
    """
    known = ("graph", "layouts", "workloads", *CODE)
    given = tuple(part.strip() for part in text.split(",") if part.strip())
    if not given:
        raise UsageError(
            stage="cli",
            where=f"--what {text!r}",
            reason="it names no stage",
            remedy="some of " + ",".join(known),
        )
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(
                stage="cli",
                where=f"--what {name}",
                reason="there is no such stage",
                remedy=f"{hint} some of {','.join(known)}".lstrip(),
            )
    return tuple(name for name in known if name in given)


def select(workloads: Sequence[Workload], wanted: str | None) -> tuple[Workload, ...]:
    """Those of that name, or whose key begins so; all where nothing is wanted.

    Raises:  UsageError where there is none.
    """
    if wanted is None:
        return tuple(workloads)
    found = tuple(w for w in workloads if w.name == wanted or w.key.startswith(wanted))
    if not found:
        names = sorted({workload.name for workload in workloads})
        hint = did_you_mean(wanted, names)
        raise UsageError(
            stage="cli",
            where=f"--workload {wanted}",
            reason="the model has no workload of that name or key",
            remedy=f"{hint} one of {', '.join(names)}".lstrip(),
        )
    return found


def _source(chosen: Scheduled, target: Target) -> Source:
    return backend_of(target).emit(loop_program(chosen.workload, chosen.trace), target)


def _schedule(chosen: Scheduled, target: Target) -> str:
    return f"{'on record' if chosen.is_tuned else 'by rule'}:\n{format_trace(chosen.trace)}"


def _loops(chosen: Scheduled, target: Target) -> str:
    return str(loop_program(chosen.workload, chosen.trace))


def _llvm(chosen: Scheduled, target: Target) -> str:
    return str(_source(chosen, target))


def _asm(chosen: Scheduled, target: Target) -> str:
    return backend_of(target).listing(_source(chosen, target), target)


CODE: dict[str, Callable[[Scheduled, Target], str]] = {
    "schedule": _schedule,
    "loops": _loops,
    "llvm": _llvm,
    "asm": _asm,
}
"""The stages of a workload, and how each is shown."""
