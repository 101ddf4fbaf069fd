"""`tensorwright optimize`: tune a program on this machine and save the executable."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from tensorwright.base import OutputError, make_home, option
from tensorwright.cli.arguments import options, programs
from tensorwright.cli.arguments.models import short_name
from tensorwright.cli.arguments.output import check_executable, check_writable
from tensorwright.cli.arguments.searching import Searching, search_options
from tensorwright.cli.printing import ending
from tensorwright.cli.report import expression_subject, model_subject, write_after_search
from tensorwright.drivers.optimize import search_jointly
from tensorwright.drivers.sized_network import sized_program
from tensorwright.drivers.tune import search_networks, setting_of
from tensorwright.pipeline import compile_program
from tensorwright.records import default_path
from tensorwright.report import LiveReport, Subject
from tensorwright.runtime import Executable
from tensorwright.tuning import session


@dataclass(frozen=True, kw_only=True)
class Optimizing(Searching):
    """The options of `optimize`."""

    rewrite: bool = option(default=True, text="Look for a faster graph first, by proved rules.")


@click.command()
@options.program_argument
@options.output_option
@options.constants_option
@search_options(Optimizing)
def command(program: str, output: str, constants: Path | None, how: Optimizing) -> None:
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
    check_writable(how.report, program, constants, how.records_path, output)
    how.workers.check(how.machine)

    def say_stopped(_: session.TuneResult) -> None:
        click.echo(f"stopped; writing {output} from the best so far ...", err=True)

    with how.opened_page(program) as page:
        try:
            optimized = (
                _optimize_expression(program, how, constants, page, say_stopped)
                if options.is_reference(program)
                else _optimize_model(program, how, page, say_stopped)
            )
        except KeyboardInterrupt:
            click.echo(f"{output} is not written", err=True)
            raise
        result = optimized.result
        _save(optimized.executable, output, program, how.records_path)
        setting = setting_of(how.machine, how.threads)
        write_after_search(how, program, result, setting, lambda: optimized.subject, page)
    heading = f"{output}: {ending(result)}{optimized.note}"
    how.end(result, heading, [short_name(program)])


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
    how: Optimizing,
    page: LiveReport | None,
    on_interrupt: Callable[[session.TuneResult], None],
) -> _Optimized:
    """Search for a graph and for schedules, within one budget."""
    programs.refuse_constants(model)
    source = programs.read_network(model, how)
    with how.opened(page, spare=True) as (store, _, search):
        best = search_jointly(
            source,
            how.machine,
            how.threads,
            store,
            search,
            rewrite=how.rewrite,
            on_interrupt=on_interrupt,
        )
    subject = model_subject(model, how, best.executable, source, best.graph, best.result)
    if best.graph is source:
        return _Optimized(best.executable, best.result, subject)
    counts = f"{len(source.nodes)} operators became {len(best.graph.nodes)}"
    note = f"\n  rewritten: {counts}; --no-rewrite leaves them as they are"
    return _Optimized(best.executable, best.result, subject, note)


def _optimize_expression(
    text: str,
    how: Optimizing,
    constants: Path | None,
    page: LiveReport | None,
    on_interrupt: Callable[[session.TuneResult], None],
) -> _Optimized:
    """Search for a schedule of a tensor expression, which has no graph."""
    options.refuse_given(
        ("rewrite",), because=f"{text} is {options.ProgramKind.EXPRESSION}, and has no graph"
    )
    workload = programs.read_expression(text)
    values = programs.read_constants(workload, text, constants)
    with how.opened(page, spare=True) as (store, setting, search):
        result = search_networks([sized_program(workload, name=text)], setting, store, search)
        if result.is_interrupted:
            on_interrupt(result)
        executable = compile_program(workload, how.machine, how.threads, store, values)
    return _Optimized(executable, result, expression_subject(text, executable, result))


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
