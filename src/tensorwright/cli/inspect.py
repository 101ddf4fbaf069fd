"""`tensorwright inspect`: show what becomes of a model, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from tensorwright import base
from tensorwright.artifacts import backend_of, emit_source, loop_program
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.programs import prepare, read_expression
from tensorwright.cli.foreign_logs import is_foreign_log, seed_record
from tensorwright.graph import Partition, Workload
from tensorwright.pipeline import setting_of
from tensorwright.records import load_choice, opened
from tensorwright.records.logs import format_of, read_log
from tensorwright.runtime import read_container
from tensorwright.schedule import Schedule, parse_trace
from tensorwright.tuning.selection import Chooser

STAGES = (*base.DUMP_STAGES[:4], "workloads", *base.DUMP_STAGES[4:])
_CODE = {"schedule", "loop", "source", "asm"}
_OF_WORKLOADS = {"workloads", *_CODE}
_OLD_NAMES = {"loops": "loop", "llvm": "source"}
_DEFAULT = "graph,layouts,workloads"
_OF_LOG = "workloads,schedule"


@click.command()
@click.argument("program", metavar="MODEL|MODULE:EXPR|EXECUTABLE|LOG")
@click.option(
    "--what",
    metavar="STAGES",
    help=f"Some of {', '.join(STAGES)}, separated by commas; by default {_DEFAULT}.",
)
@click.option("--workload", "wanted", metavar="KEY|NAME", help="Only this workload.")
@click.option(
    "--passes", is_flag=True, help="Show the result of each pass, not only of the last one."
)
@options.compile_options
def command(
    program: str,
    what: str | None,
    wanted: str | None,
    passes: bool,
    how: options.Compilation,
) -> None:
    """Show what becomes of a model or a tensor expression.

    Of an executable the command shows the steps. Of a log of AutoTVM it shows the program of each
    line that a template here can make.

    These are the texts that TENSORWRIGHT_DUMP writes. graph is the simplified graph, layouts lists
    the remaining conversions; schedule, loop, source and asm belong to each workload. Its schedule
    comes from records or, without one, from a prediction or a heuristic.

    Example: tensorwright inspect light:squeezenet --what loop --workload softmax
    """
    if options.kind_of(program) is options.ProgramKind.EXECUTABLE:
        _show_plan(program)
        return
    if is_foreign_log(program):
        options.refuse_given(
            ("wanted", "threads", "records", "input_shapes", "sizes", "seed"),
            because=f"{program} is a log, whose lines say what their programs are",
        )
        _show_log(program, read_stages(_OF_LOG if what is None else what), passes, how.machine)
        return
    is_expression = options.is_reference(program)
    stages = read_stages(_DEFAULT if what is None else what)
    if is_expression:
        stages = _stages_of_expression(program, stages, is_given=what is not None)
        parts, workloads = None, select((read_expression(program),), wanted)
    else:
        if wanted is not None and not _OF_WORKLOADS.intersection(stages):
            shown = ", ".join(sorted(_OF_WORKLOADS))
            options.refuse_given(("wanted",), because=f"--what does not name any of {shown}")
        with base.collect_dumps(stages) as dumps:
            parts = prepare(program, how)
        workloads = select(parts.workloads, wanted)
        _show(dumps, passes)
    if "workloads" in stages:
        texts = map(str, workloads) if parts is None else [parts.describe_workloads(workloads)]
        click.echo("\n".join(texts))
    if _CODE.intersection(stages):
        _show_code(workloads, stages, passes, how, parts)


def _show_plan(path: str) -> None:
    """Print the steps of an executable, which may be for another processor."""
    options.refuse_given(
        ("what", "wanted", "passes", "target", "threads", "records", "input_shapes", "seed"),
        because=f"{path} is {options.ProgramKind.EXECUTABLE}: the command shows its steps",
    )
    click.echo(str(read_container(path, check_constants=False).plan))


def _stages_of_expression(text: str, stages: Sequence[str], is_given: bool) -> tuple[str, ...]:
    """Those of the stages that a tensor expression has.

    is_given   whether the user named the stages
    """
    possible = tuple(name for name in stages if name in _OF_WORKLOADS)
    others = ", ".join(name for name in stages if name not in _OF_WORKLOADS)
    if is_given and others:
        raise base.UsageError(
            stage="cli",
            where=f"--what {others}",
            reason=f"{text} is {options.ProgramKind.EXPRESSION}, and has no graph",
            remedy="some of " + ", ".join(name for name in STAGES if name in _OF_WORKLOADS),
        )
    return possible


def _show(dumps: Sequence[base.Dump], passes: bool) -> None:
    for each in dumps if passes else last_of_each(dumps):
        if passes:
            click.echo(f"--- {each.stage}: {each.name}".rstrip(": "))
        click.echo(each.text)


def _show_code(
    workloads: Sequence[Workload],
    stages: Sequence[str],
    passes: bool,
    how: options.Compilation,
    parts: Partition | None,
) -> None:
    """Print the texts of each workload with its schedule.

    parts   the network of the workloads; None for a tensor expression
    """
    setting = setting_of(how.machine, how.threads)
    with opened(how.records) as store:
        together: Mapping[str, Schedule] = {}
        if parts is not None:
            together = load_choice(store, parts, setting)
        for workload in workloads:
            chooser = Chooser(setting, store, is_cold=parts is not None)
            chosen = chooser.choose(workload, together.get(workload.key))
            origin = chosen.source.value
            _show_scheduled(workload, chosen.schedule, origin, stages, passes, how.machine)


def _show_scheduled(
    workload: Workload,
    schedule: Schedule,
    origin: str,
    stages: Sequence[str],
    passes: bool,
    target: base.Target,
) -> None:
    """Print the texts of a workload with a schedule, which comes from `origin`."""
    with base.collect_dumps(stages) as dumps:
        program = loop_program(workload, schedule, target)
        if "source" in stages or "asm" in stages:
            emit_source(program, target, backend_of(target))
    for each in dumps if passes else last_of_each(dumps):
        label = f"{workload.name} {workload.key} {each.name if passes else ''}"
        click.echo(f"--- {each.stage}: {label}".rstrip())
        if each.stage == "schedule":
            click.echo(f"{origin}:")
        click.echo(each.text)


def _show_log(path: str, stages: Sequence[str], passes: bool, target: base.Target) -> None:
    """Print the texts of each line's program with its schedule, or why the line has no program."""
    for number, line in read_log(path, format_of(path)).items():
        click.echo(f"--- line {number}: {line}")
        seed = seed_record(line, target, {})
        if isinstance(seed, str):
            click.echo(seed)
            continue
        workload, record, change = seed
        if "workloads" in stages:
            click.echo(str(workload))
        origin = f"of the log, {change}" if change else "of the log"
        _show_scheduled(workload, parse_trace(record.trace), origin, stages, passes, target)


def last_of_each(dumps: Sequence[base.Dump]) -> tuple[base.Dump, ...]:
    """The last text of each stage, in the order of the stages."""
    return tuple({each.stage: each for each in dumps}.values())


def read_stages(text: str) -> tuple[str, ...]:
    """The stages of a comma-separated list, in the order of the pipeline.

    Raises:  UsageError for an unknown name, and for a list without a name.
    """
    named = (part.strip() for part in text.split(",") if part.strip())
    given = tuple(_OLD_NAMES.get(name, name) for name in named)
    if not given:
        raise base.UsageError(
            stage="cli",
            where=f"--what {text!r}",
            reason="it does not name a stage",
            remedy="one of " + ", ".join(STAGES),
        )
    for name in given:
        if name not in STAGES:
            raise _unknown(f"--what {name}", "there is no such stage", name, STAGES)
    return tuple(name for name in STAGES if name in given)


def select(workloads: Sequence[Workload], wanted: str | None) -> tuple[Workload, ...]:
    """The workloads of a name or with the beginning of a key; all if `wanted` is None.

    Raises:  UsageError if there is none.
    """
    if wanted is None:
        return tuple(workloads)
    matches = tuple(w for w in workloads if w.name == wanted or w.key.startswith(wanted))
    if not matches:
        names = sorted({workload.name for workload in workloads})
        reason = "the model has no workload of that name or key"
        raise _unknown(f"--workload {wanted}", reason, wanted, names)
    return matches


def _unknown(where: str, reason: str, name: str, names: Sequence[str]) -> base.UsageError:
    remedy = f"{base.did_you_mean(name, names)} one of {', '.join(names)}".lstrip()
    return base.UsageError(stage="cli", where=where, reason=reason, remedy=remedy)
