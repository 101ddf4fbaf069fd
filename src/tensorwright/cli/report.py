"""`tensorwright report`: write one HTML file about a search or a program.

Searches write it at their end, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tensorwright import report
from tensorwright.base import UsageError
from tensorwright.cli.arguments import options, programs
from tensorwright.cli.arguments.machine import check_before_measuring
from tensorwright.cli.arguments.models import read_proto, short_name
from tensorwright.cli.arguments.options import Compilation, compile_options, open_program
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.arguments.searching import Searching
from tensorwright.cli.group import same_command
from tensorwright.drivers.tune import setting_of
from tensorwright.graph import Graph
from tensorwright.graph.onnx_export import save_proto
from tensorwright.pipeline import cut, finish, recorded_graph
from tensorwright.records import SavedSession, Setting, default_path, opened
from tensorwright.runtime import Executable
from tensorwright.tuning.session import TuneResult

_SEVERAL = "several programs were tuned; `tensorwright report MODEL` measures one of them"
_FILES = (".html", ".htm", ".json")


@click.command()
@click.argument(
    "sources", metavar="[REPORT|PROFILE|MODEL|MODULE:EXPR|EXECUTABLE] [REPORT]", nargs=-1
)
@click.option(
    "-o", "--output", metavar="FILE.html", help="The file to write; by default report.html."
)
@click.option("--json", "is_json", is_flag=True, help="Print the data; write only what -o names.")
@click.option(
    "--session", metavar="ID|NAME", help="The session of the records; by default the last."
)
@options.constants_option
@compile_options
def command(
    sources: tuple[str, ...],
    output: str | None,
    is_json: bool,
    session: str | None,
    constants: Path | None,
    how: Compilation,
) -> None:
    """Write a report: one HTML file that needs nothing else.

    Without arguments it shows the last search on record, and what was measured for it then. For a
    MODEL or an expression the schedules on record are measured now, beside other runtimes. REPORT
    is a file that this command or `--report` wrote; PROFILE is a file that `profile --json` wrote.
    Of two such files the command writes a comparison; the second is the newer one.

    Example: tensorwright report light:squeezenet -o squeezenet.html
    """
    path = output or (None if is_json else "report.html")
    check_writable(path, *sources, constants, how.records_path)
    if len(sources) > 2:
        raise UsageError(
            stage="report",
            where=" ".join(sources),
            reason="more than two reports cannot be compared",
            remedy="give two",
        )
    if session is not None and sources:
        options.refuse_given(("session",), because=f"{sources[0]} says what the report is about")
    if sources and all(each.lower().endswith(_FILES) for each in sources):
        options.refuse_given(("target", "threads", "records"), because="the files have all data")
        reports = [report.read_report(each) for each in sources]
    elif len(sources) == 2:
        raise UsageError(
            stage="report",
            where=" ".join(sources),
            reason="only two files can be compared",
            remedy="write the report of each first:\n  tensorwright report MODEL -o FILE.html",
        )
    else:
        reports = [_measured(sources[0], how, constants) if sources else _recorded(session, how)]
    if path is not None:
        report.write_report(path, reports)
        click.echo(f"{path}: {Path(path).stat().st_size / 1e6:.2f} MB")
    if is_json:
        click.echo(json.dumps(reports[0] if len(reports) == 1 else reports, indent=1))


def _measured(program: str, how: Compilation, constants: Path | None) -> dict[str, object]:
    """Measure a program with the schedules on record, and return its report."""
    setting = setting_of(how.machine, how.threads)
    check_before_measuring(how.machine, setting.threads)
    if options.kind_of(program) is options.ProgramKind.EXECUTABLE:
        executable = open_program(program, how, constants, draws=True)
        subject = report.Subject(executable.plan.name, same_command(), executable)
        return write_subject(None, subject.name, subject, (), setting, how)
    if options.is_reference(program):
        workload = programs.read_expression(program)
        executable = programs.compile_any(program, how, constants, draws=True)
        subject = expression_subject(program, executable, None)
        searched = report.searched_of_workloads([(workload, 1.0)], setting, is_cold=False)
        return write_subject(None, program, subject, searched, setting, how)
    programs.refuse_constants(program)
    source = programs.read_network(program, how)
    with opened(how.records) as store:
        graph = recorded_graph(store, source, how.machine, how.threads) or source
        parts = cut(graph, how.machine, how.threads)
        executable = finish(parts, how.machine, how.threads, store)
    subject = model_subject(program, how, executable, source, graph)
    counted = [(each, float(parts.count(each))) for each in parts.workloads if not each.sizes]
    searched = report.searched_of_workloads(counted, setting, is_cold=True)
    return write_subject(None, short_name(program), subject, searched, setting, how)


def _recorded(wanted: str | None, how: Compilation) -> dict[str, object]:
    """The report of a session on record, with the measurements that were kept for it."""
    with opened(how.records) as store:
        named: SavedSession | None = None if wanted is None else store.session(wanted)
        sessions = store.sessions() if wanted is None else [named] if named else []
        for session in sessions:
            searched = report.searched_of_session(session, store, how.machine)
            if searched is None:
                continue
            setting, workloads = searched
            measured = report.load_measured(store, setting, workloads) or {
                "name": session.name,
                "command": "",
                "missing": {"profile": "nothing was measured but the candidates"},
            }
            return report.report_values(setting, store, workloads, measured)
    path = how.records or default_path()
    raise UsageError(
        stage="report",
        where=f"session {wanted}" if wanted else f"records {path}",
        reason=f"there is no search for {how.machine.name} on record",
        remedy="tune first, or name a model:\n  tensorwright report MODEL -o FILE.html",
    )


def model_subject(
    model: str,
    how: Compilation,
    executable: Executable,
    source: Graph,
    graph: Graph,
    result: TuneResult | None = None,
) -> report.Subject:
    """The subject of a MODEL argument.

    Other runtimes get the model as it was before any pass. They get none if its sizes are open.
    """

    def write_model(path: Path) -> None:
        save_proto(read_proto(model, how.input_shapes, how.seed), path)

    networks = result.networks if result is not None else ()
    return report.Subject(
        short_name(model),
        same_command(),
        executable,
        source,
        graph,
        networks[0].whole if len(networks) == 1 else None,
        None if source.sizes else write_model,
    )


def expression_subject(
    text: str, executable: Executable, result: TuneResult | None
) -> report.Subject:
    """The subject of a tensor expression, which has no graph."""
    tasks = result.tasks if result is not None else ()
    compared = tasks[0].compared if len(tasks) == 1 else None
    return report.Subject(text, same_command(), executable, whole=compared)


def write_after_search(
    how: Searching,
    name: str,
    result: TuneResult,
    setting: Setting,
    subject: Callable[[], report.Subject | None],
    page: report.LiveReport | None,
) -> None:
    """With --report, measure what a report needs, write the report, and show it on an open page.

    subject   makes what is measured; None if several programs were searched
    """
    if how.report is None or result.is_interrupted:
        return
    measured = subject()
    is_network = measured is None or measured.source is not None
    workloads = report.searched_of(result, setting, is_cold=is_network)
    write_subject(how.report, name, measured, workloads, setting, how, page)


def write_subject(
    path: str | None,
    name: str,
    subject: report.Subject | None,
    workloads: Sequence[report.SearchedWorkload],
    setting: Setting,
    how: Compilation,
    page: report.LiveReport | None = None,
) -> dict[str, object]:
    """Measure a program and write its report; return the report's document.

    path      None if no file is written
    subject   None if several programs were searched; then nothing is measured
    """

    def tell(part: str) -> None:
        click.echo(f"report: measuring {part} ...", err=True)
        if page is not None:
            page.tell(part)

    with opened(how.records, create=True) as store:
        if subject is None:
            measured = {
                "name": name,
                "command": same_command(),
                "missing": {"profile": _SEVERAL},
            }
        else:
            measured = report.measure(subject, setting, store, workloads, on_part=tell)
        values = report.report_values(setting, store, workloads, measured)
    if path is not None:
        report.write_report(path, [values])
        click.echo(f"{path}: {Path(path).stat().st_size / 1e6:.2f} MB")
    if page is not None:
        page.finish([values])
    return values
