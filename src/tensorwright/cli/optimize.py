"""`tensorwright optimize`: tune a model on this machine and save the executable."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tensorwright.base import OutputError
from tensorwright.cli.arguments.compilation import Compilation, compile_options
from tensorwright.cli.arguments.machine import LoadCallback, check_before_measuring
from tensorwright.cli.arguments.options import budget_options, model_argument, output_option
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.arguments.searching import searching_options
from tensorwright.cli.group import ARGUMENTS, INTERRUPTED
from tensorwright.cli.summary import ending, print_networks, print_untuned, print_workloads
from tensorwright.joint_search import search_jointly
from tensorwright.pipeline import opened
from tensorwright.records import default_path
from tensorwright.runtime import Executable, usable_threads
from tensorwright.tuning.session import (
    Budget,
    Search,
    TuneOptions,
    check_runs_here,
    choose_callbacks,
)
from tensorwright.tuning.space import SpaceKind


@click.command()
@model_argument
@output_option
@compile_options
@budget_options
@searching_options
@click.option(
    "--rewrite/--no-rewrite",
    default=True,
    show_default=True,
    help="Look for a faster graph first, by proved rules.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    output: str,
    how: Compilation,
    minutes: float | None,
    trials: int | None,
    strategy: str,
    space: SpaceKind,
    rewrite: bool,
    quiet: bool,
) -> None:
    """Tune a model on this machine, compile it with the best graph and schedules found, save it.

    At most a tenth of the time goes into the search for a graph, which `rewrite` shows by itself;
    what is found is kept beside the records, where it was the faster in the end.
    Every measurement is kept in the record store. Interrupt with Ctrl-C whenever you like: OUT is
    written from the best so far, and the same command goes on where this one stopped.

    Example: tensorwright optimize model.onnx -o model.tw --minutes 10
    """
    check_writable(output)
    source = how.read(model)
    again = resume_command(ctx.meta.get(ARGUMENTS, ()))
    check_runs_here(how.target)
    check_before_measuring(how.target, usable_threads(how.threads))
    with opened(how.records, create=True) as store:
        try:
            wanted = Search(
                Budget(minutes, trials),
                how.seed,
                (*choose_callbacks(quiet), LoadCallback()),
                TuneOptions(strategy=strategy),
                space=space,
            )
            found = search_jointly(
                source,
                how.target,
                how.threads,
                store,
                wanted,
                rewrite=rewrite,
                on_interrupt=lambda: click.echo(
                    f"stopped; writing {output} from the best so far ...", err=True
                ),
            )
        except KeyboardInterrupt:
            click.echo(f"{output} is not written; to go on:\n  {again}", err=True)
            raise
    result = found.result
    _save(found.executable, output, model, how.records)
    if not quiet:
        print_workloads(result.tasks)
    print_networks(result.networks)
    click.echo(f"{output}: {ending(result)}")
    if found.graph is not source:
        counts = f"{len(source.nodes)} operators became {len(found.graph.nodes)}"
        click.echo(f"  rewritten: {counts}; --no-rewrite leaves them as they are")
    print_untuned(result)
    if result.is_interrupted:
        click.echo(f"{result.resume_text}\n  {again}", err=True)
        ctx.exit(INTERRUPTED)


def resume_command(arguments: Sequence[str]) -> str:
    """The command line that goes on with an interrupted session: the same one."""
    program = os.fspath(sys.argv[0])
    if Path(program).name == "__main__.py":
        return shlex.join([sys.executable, "-m", "tensorwright", *arguments])
    return shlex.join(["tensorwright", *arguments])


def _save(executable: Executable, output: str, model: str, records: Path | None) -> None:
    """Save; if that fails, say that the measurements are kept, and how to go on from them."""
    try:
        executable.save(output)
    except OutputError as error:
        kept = records or default_path()
        option = f" --records {shlex.quote(str(records))}" if records else ""
        again = f"tensorwright compile {shlex.quote(model)} -o FILE{option}"
        raise OutputError(
            stage=error.stage,
            where=error.where,
            reason=f"{error.reason} (no measurement is lost: all are in {kept})",
            remedy=f"{error.remedy}, then `{again}`",
        ) from error
