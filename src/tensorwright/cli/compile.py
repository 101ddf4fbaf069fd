"""`tensorwright compile`: a model to an executable, by records and rules, without measuring."""

from __future__ import annotations

from pathlib import Path

import click

from tensorwright.cli.arguments.models import Shapes, read_graph, short_name
from tensorwright.cli.arguments.options import (
    machine_options,
    model_argument,
    output_option,
    records_option,
    seed_of,
    seed_option,
    shapes_option,
)
from tensorwright.cli.arguments.output import check_writable
from tensorwright.ops import work
from tensorwright.pipeline import Scheduled, export_c, finish, opened, parse_target, prepare
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
@machine_options
@records_option
@shapes_option
@seed_option
def command(
    model: str,
    output: str,
    emit: str,
    target: str | None,
    threads: int | None,
    records: Path | None,
    input_shapes: Shapes | None,
    seed: int | None,
) -> None:
    """Compile a model with the schedules on record; the others are made by rule.

    Example: tensorwright compile model.onnx -o model.tw
             tensorwright compile model.onnx --emit c -o library && make -C library
    """
    drawn = seed_of(seed)
    machine = parse_target(target)
    if emit == "executable":
        check_writable(output)
    graph = read_graph(model, input_shapes, drawn)
    if emit == "c":
        with opened(records) as store:
            parts, example = prepare(graph, machine), random_inputs(graph, drawn)
            name = short_name(model)
            files = export_c(parts, machine, threads, store, Path(output), name, example)
        click.echo(f"{output}: {len(files)} files; make -C {output} && {output}/example")
        return
    chosen: list[Scheduled] = []
    with opened(records) as store:
        parts = prepare(graph, machine)
        executable = finish(parts, machine, threads, store, lambda each, *_: chosen.append(each))
    executable.save(output)
    untuned = [each.workload for each in chosen if not each.is_tuned]
    click.echo(f"{output}: {len(chosen)} workloads, {len(untuned)} of them untuned")
    shares = {w.key: parts.count(w) * work(w.outputs) for w in parts.workloads}
    total = sum(shares.values()) or 1
    for workload in sorted(untuned, key=lambda w: -shares[w.key]):
        share = f"{shares[workload.key] / total:.1%} of the operations"
        click.echo(f"  untuned {workload.key} {workload.name}: {share}")
    if executable.host_operators:
        click.echo("  on the host: " + ", ".join(executable.host_operators))
