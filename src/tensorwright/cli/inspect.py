"""`tensorwright inspect`: what becomes of a model, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tensorwright.base import (
    DUMP_STAGES,
    Dump,
    UsageError,
    collect_dumps,
    did_you_mean,
)
from tensorwright.build import backend_of, emit_source, loop_program
from tensorwright.cli.arguments.compilation import Compilation, compile_options
from tensorwright.cli.arguments.options import model_argument
from tensorwright.graph import Workload
from tensorwright.pipeline import choose, opened
from tensorwright.runtime import is_executable, load, usable_threads

STAGES = (*DUMP_STAGES[:4], "workloads", *DUMP_STAGES[4:])
_CODE = {"schedule", "loop", "source", "asm"}
_OLD_NAMES = {"loops": "loop", "llvm": "source"}
_DEFAULT = "graph,layouts,workloads"


@click.command()
@model_argument
@click.option(
    "--what",
    default=_DEFAULT,
    metavar="STAGES",
    help=f"Some of {', '.join(STAGES)}, with commas between; {_DEFAULT} if not given.",
)
@click.option("--workload", "wanted", metavar="KEY|NAME", help="This one only.")
@click.option("--passes", is_flag=True, help="Show what each pass makes, not only the last one.")
@compile_options
def command(
    model: str,
    what: str,
    wanted: str | None,
    passes: bool,
    how: Compilation,
) -> None:
    """Show what becomes of a model; of an executable, its steps.

    These are the texts that TENSORWRIGHT_DUMP writes. The graph is shown simplified, layouts lists
    the conversions that remain; schedule, loop, source and asm are those of each workload, with the
    schedule on record or, without one, by rule.

    Example: tensorwright inspect light:squeezenet --what loop --workload softmax
    """
    stages = read_stages(what)
    if is_executable(model):
        click.echo(str(load(model, how.threads)))
        return
    with collect_dumps(stages) as dumps:
        parts = how.prepare(model)
    workloads = select(parts.workloads, wanted)
    for each in dumps if passes else last_of_each(dumps):
        if passes:
            click.echo(f"--- {each.stage}: {each.name}".rstrip(": "))
        click.echo(each.text)
    if "workloads" in stages:
        click.echo(parts.describe_workloads(workloads))
    count = usable_threads(how.threads)
    with opened(how.records) as store:
        for workload in workloads if _CODE.intersection(stages) else ():
            chosen = choose(workload, how.target, count, store, is_cold=True)
            with collect_dumps(stages) as dumps:
                program = loop_program(workload, chosen.trace)
                if "source" in stages or "asm" in stages:
                    emit_source(program, how.target, backend_of(how.target))
            for each in dumps if passes else last_of_each(dumps):
                label = f"{workload.name} {workload.key} {each.name if passes else ''}"
                click.echo(f"--- {each.stage}: {label}".rstrip())
                if each.stage == "schedule":
                    click.echo(f"{chosen.source.value}:")
                click.echo(each.text)


def last_of_each(dumps: Sequence[Dump]) -> tuple[Dump, ...]:
    """What each stage ended with, in the order of the stages."""
    return tuple({each.stage: each for each in dumps}.values())


def read_stages(text: str) -> tuple[str, ...]:
    """The stages of a list with commas, in the order of the pipeline.

    Raises:  UsageError for a name that is none.
    """
    named = (part.strip() for part in text.split(",") if part.strip())
    given = tuple(_OLD_NAMES.get(name, name) for name in named)
    if not given:
        raise UsageError(
            stage="cli",
            where=f"--what {text!r}",
            reason="it names no stage",
            remedy="one of " + ", ".join(STAGES),
        )
    for name in given:
        if name not in STAGES:
            raise _unknown(f"--what {name}", "there is no such stage", name, STAGES)
    return tuple(name for name in STAGES if name in given)


def select(workloads: Sequence[Workload], wanted: str | None) -> tuple[Workload, ...]:
    """Those of that name, or whose key begins so; all where nothing is wanted.

    Raises:  UsageError where there is none.
    """
    if wanted is None:
        return tuple(workloads)
    found = tuple(w for w in workloads if w.name == wanted or w.key.startswith(wanted))
    if not found:
        names = sorted({workload.name for workload in workloads})
        reason = "the model has no workload of that name or key"
        raise _unknown(f"--workload {wanted}", reason, wanted, names)
    return found


def _unknown(where: str, reason: str, name: str, names: Sequence[str]) -> UsageError:
    remedy = f"{did_you_mean(name, names)} one of {', '.join(names)}".lstrip()
    return UsageError(stage="cli", where=where, reason=reason, remedy=remedy)
