"""Make the report of a program, or of a search that has ended, and write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tensorwright import report
from tensorwright.cli.arguments.models import read_proto, short_name
from tensorwright.cli.arguments.options import Compilation
from tensorwright.cli.arguments.searching import Searching
from tensorwright.cli.group import same_command
from tensorwright.graph import Graph
from tensorwright.graph.onnx_export import save_proto
from tensorwright.records import Setting, opened
from tensorwright.runtime import Executable
from tensorwright.tuning.session import TuneResult

_SEVERAL = "several programs were tuned; `tensorwright report MODEL` measures one of them"


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
