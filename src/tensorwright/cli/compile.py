"""`tensorwright compile`: a model to an executable, by records and the time model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from tensorwright.cli.arguments.compilation import Compilation, compile_options
from tensorwright.cli.arguments.models import short_name
from tensorwright.cli.arguments.options import model_argument, output_option
from tensorwright.cli.arguments.output import check_writable
from tensorwright.ops import work
from tensorwright.pipeline import Scheduled, Source, export_c, finish, opened
from tensorwright.zoo import random_inputs


@click.command()
@model_argument
@output_option
@click.option(
    "--emit",
    type=click.Choice(("executable", "c")),
    default="executable",
    help="What to write: an executable, or a folder with a C library that needs no Python.",
)
@compile_options
def command(
    model: str,
    output: str,
    emit: str,
    how: Compilation,
) -> None:
    """Compile a model with the schedules on record; the others are chosen by the time model.

    Example: tensorwright compile model.onnx -o model.tw
             tensorwright compile model.onnx --emit c -o library && make -C library
    """
    if emit == "executable":
        check_writable(output)
    chosen: list[Scheduled] = []
    with opened(how.records) as store:
        parts = how.prepare(model, store)
        if emit == "c":
            example, name = random_inputs(parts.graph, how.seed), short_name(model)
            folder = Path(output)
            files = export_c(parts, how.target, how.threads, store, folder, name, example)
            click.echo(f"{output}: {len(files)} files; make -C {output} && {output}/example")
            return
        executable = finish(parts, how.target, how.threads, store, lambda it, *_: chosen.append(it))
    executable.save(output)
    untuned = [each.workload for each in chosen if not each.is_tuned]
    sources = Counter(each.source for each in chosen)
    counts = [f"{sources[each]} {each.value}" for each in Source if sources[each]]
    told = f": {', '.join(counts)}" if counts else ""
    click.echo(f"{output}: {len(chosen)} workloads, {len(untuned)} of them untuned{told}")
    shares = {w.key: parts.count(w) * work(w.outputs) for w in parts.workloads}
    total = sum(shares.values()) or 1
    for workload in sorted(untuned, key=lambda w: -shares[w.key]):
        share = f"{shares[workload.key] / total:.1%} of the operations"
        click.echo(f"  untuned {workload.key} {workload.name}: {share}")
    if executable.host_operators:
        click.echo("  on the host: " + ", ".join(executable.host_operators))
