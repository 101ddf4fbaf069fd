"""`tensorwright optimize`: tune a program on this machine and save the executable."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tensorwright.base import OutputError, make_home
from tensorwright.cli import reporting
from tensorwright.cli.arguments import options, programs
from tensorwright.cli.arguments.compilation import Compilation, compile_options
from tensorwright.cli.arguments.machine import Workers, workers_options
from tensorwright.cli.arguments.models import short_name
from tensorwright.cli.arguments.output import check_executable, check_writable
from tensorwright.cli.arguments.searching import search_options
from tensorwright.cli.group import end_interrupted
from tensorwright.cli.printing import ending, print_result
from tensorwright.drivers.optimize import search_jointly
from tensorwright.drivers.sized_network import sized_program
from tensorwright.drivers.tune import search_networks, setting_of
from tensorwright.pipeline import compile_program
from tensorwright.records import default_path, opened
from tensorwright.report import Subject
from tensorwright.runtime import Executable, usable_threads
from tensorwright.tuning import session


@click.command()
@options.program_argument
@options.output_option
@options.constants_option
@compile_options
@search_options
@click.option(
    "--rewrite/--no-rewrite",
    default=True,
    show_default=True,
    help="Look for a faster graph first, by proved rules.",
)
@workers_options
@reporting.report_options
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(
    program: str,
    output: str,
    constants: Path | None,
    how: Compilation,
    search: session.Options,
    rewrite: bool,
    workers: Workers,
    report: str | None,
    live: bool,
    quiet: bool,
) -> None:
    """Tune on this machine, compile with the best graph and schedules, and save.

    At most a tenth of the time goes into the search for a graph, which `rewrite` does separately.
    The graph is kept beside the records if it is faster at the end.
    Every measurement is kept in the record store. You can interrupt with Ctrl-C at any time: after
    the first round has begun, OUT is written from the best so far. The same command continues
    where this one stopped.

    Example: tensorwright optimize model.onnx -o model.tw --minutes 10
    """
    if how.records is None:
        make_home()
    check_executable(output, program, constants, how.records_path)
    check_writable(report, program, constants, how.records_path, output)
    workers.check(how.machine)

    def say_stopped(_: session.TuneResult) -> None:
        click.echo(f"stopped; writing {output} from the best so far ...", err=True)

    with reporting.opened_page(program, is_live=live) as page:
        shown = (*session.choose_callbacks(quiet), *workers.callbacks(), *filter(None, [page]))
        wanted = replace(search, seed=how.seed, callbacks=shown)
        try:
            optimized = (
                _optimize_expression(program, how, constants, wanted, workers, say_stopped)
                if options.is_reference(program)
                else _optimize_model(program, how, wanted, rewrite, workers, say_stopped)
            )
        except KeyboardInterrupt:
            click.echo(f"{output} is not written", err=True)
            raise
        result = optimized.result
        _save(optimized.executable, output, program, how.records_path)
        if report is not None and not result.is_interrupted:
            searched = reporting.Searched(program, result, optimized.subject)
            reporting.write_after_search(
                report, searched, setting_of(how.machine, how.threads), how, page
            )
    heading = f"{output}: {ending(result)}{optimized.note}"
    print_result(result, heading, [short_name(program)], is_quiet=quiet)
    if result.is_interrupted:
        end_interrupted(result.resume_text)


@dataclass(frozen=True, slots=True)
class _Optimized:
    """What the search for a program returns.

    subject   what a report measures
    note      a line that says how the graph changed; "" if it did not change
    """

    executable: Executable
    result: session.TuneResult
    subject: Subject
    note: str = ""


def _optimize_model(
    model: str,
    how: Compilation,
    wanted: session.Options,
    rewrite: bool,
    workers: Workers,
    on_interrupt: Callable[[session.TuneResult], None],
) -> _Optimized:
    """Search for a graph and for schedules, within one budget."""
    programs.refuse_constants(model)
    source = programs.read_network(model, how)
    with opened(how.records, create=True, spare=True) as store, workers.opened() as farm:
        workers.warn_if_unfit(how.machine, usable_threads(how.threads))
        best = search_jointly(
            source,
            how.machine,
            how.threads,
            store,
            replace(wanted, farm=farm),
            rewrite=rewrite,
            on_interrupt=on_interrupt,
        )
    subject = reporting.model_subject(model, how, best.executable, source, best.graph, best.result)
    if best.graph is source:
        return _Optimized(best.executable, best.result, subject)
    counts = f"{len(source.nodes)} operators became {len(best.graph.nodes)}"
    note = f"\n  rewritten: {counts}; --no-rewrite leaves them as they are"
    return _Optimized(best.executable, best.result, subject, note)


def _optimize_expression(
    text: str,
    how: Compilation,
    constants: Path | None,
    wanted: session.Options,
    workers: Workers,
    on_interrupt: Callable[[session.TuneResult], None],
) -> _Optimized:
    """Search for a schedule of a tensor expression, which has no graph."""
    options.refuse_given(
        ("rewrite",), because=f"{text} is {options.ProgramKind.EXPRESSION}, and has no graph"
    )
    workload = programs.read_expression(text)
    values = programs.read_constants(workload, text, constants)
    with opened(how.records, create=True, spare=True) as store, workers.opened() as farm:
        workers.warn_if_unfit(how.machine, usable_threads(how.threads))
        setting, own = setting_of(how.machine, how.threads, farm), replace(wanted, farm=farm)
        result = search_networks([sized_program(workload, name=text)], setting, store, own)
        if result.is_interrupted:
            on_interrupt(result)
        executable = compile_program(workload, how.machine, how.threads, store, values)
    return _Optimized(executable, result, reporting.expression_subject(text, executable, result))


def _save(executable: Executable, output: str, program: str, records: Path | None) -> None:
    """Save the executable; an error says that the measurements are kept, and how to use them."""
    try:
        executable.save(output)
    except OutputError as error:
        kept = records or default_path()
        option = f" --records {shlex.quote(str(records))}" if records else ""
        again = f"tensorwright compile {shlex.quote(program)} -o FILE{option}"
        raise OutputError(
            stage=error.stage,
            where=error.where,
            reason=f"{error.reason} (no measurement is lost: all are in {kept})",
            remedy=f"{error.remedy}, then\n  {again}",
        ) from error
