"""`tensorwright bench models`: networks in this and in other runtimes, side by side."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import click
import onnx

from tensorwright.base import TensorwrightError, knobs
from tensorwright.cli.check_model import show_logits
from tensorwright.cli.models import (
    SUITES,
    Shapes,
    read_graph,
    read_proto,
    short_name,
    suite,
)
from tensorwright.cli.options import (
    machine_options,
    records_option,
    seed_of,
    seed_option,
    shapes_option,
)
from tensorwright.graph import Graph, load_onnx
from tensorwright.peers import (
    Arrays,
    BenchRow,
    compare_model,
    find_kind,
    make_row,
    print_rows,
    write_rows,
)
from tensorwright.pipeline import Scheduled, finish, opened, parse_target, prepare
from tensorwright.records import MemoryStore, RecordStore
from tensorwright.zoo import random_inputs

TOLERANCE = 1e-4
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How models are compared. `rounds` 0 checks and does not time."""

    target: str | None
    threads: int
    seed: int
    rounds: int
    peer: str
    shapes: Shapes | None


@click.command("models")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--suite", "suites", type=click.Choice(SUITES), multiple=True, help="A whole suite.")
@click.option(
    "--check",
    is_flag=True,
    help=f"Exit with 1 if a model fails or is off by more than {TOLERANCE:g}.",
)
@click.option("--tuned/--untuned", default=True, help="Use what is on record, or rules alone.")
@records_option
@machine_options
@seed_option
@shapes_option
@click.option(
    "--rounds", type=click.IntRange(min=0), default=11, help="Turns of each; 0 only checks."
)
@click.option("--peer", default="onnxruntime", help="The runtime to compare with.")
@click.option("--json", "json_path", metavar="FILE", help="Write the rows to a file, too.")
def command(
    models: tuple[str, ...],
    suites: tuple[str, ...],
    check: bool,
    tuned: bool,
    records: Path | None,
    target: str | None,
    threads: int | None,
    seed: int | None,
    input_shapes: Shapes | None,
    rounds: int,
    peer: str,
    json_path: str | None,
) -> None:
    """Compile networks, check their answers against a peer's, and time both in turn.

    The error is that of the worst output, the tensor before the last softmax among them, over the
    largest number of that output.

    Example: tensorwright bench models --suite light --check --json rows.json
    """
    find_kind(peer)
    names = (*models, *(each for name in suites for each in suite(name)))
    if not names:
        raise click.UsageError("name models, or a suite: --suite light")
    count = knobs.THREADS.get() if threads is None else threads
    drawn = seed_of(seed)
    plan = Plan(target, count, drawn, rounds, peer, input_shapes)
    rows: list[BenchRow] = []
    with MemoryStore() if not tuned else opened(records) as store:
        for name in names:
            rows.append(bench_model(name, plan, store))
            _note(rows[-1])
            if json_path is not None:
                write_rows(json_path, rows)
    print_rows(rows)
    if check and not all(passes(row) for row in rows):
        sys.exit(1)


def passes(row: BenchRow) -> bool:
    """Whether the model ran, with the right answers."""
    return not row.failure and row.max_rel_error is not None and row.max_rel_error <= TOLERANCE


def bench_model(model: str, plan: Plan, store: RecordStore) -> BenchRow:
    """The row of one model; whatever goes wrong with it is in the row."""
    name = short_name(model)
    try:
        with tempfile.TemporaryDirectory(prefix="tensorwright-bench-") as folder:
            return _compare(model, name, plan, store, Path(folder))
    except TensorwrightError as error:
        return make_row(name, plan.peer, failure=f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - one model's fault must not end the others' runs
        return make_row(name, plan.peer, failure=f"{type(error).__name__}: {error}")


def _compare(model: str, name: str, plan: Plan, store: RecordStore, folder: Path) -> BenchRow:
    graph = read_graph(model, plan.shapes, plan.seed)
    proto = read_proto(model, plan.shapes, plan.seed)
    inputs = random_inputs(graph, plan.seed)
    shown = show_logits(proto)
    theirs = folder / "model.onnx"
    _save(proto, theirs)
    row = _run_pair(name, graph, theirs, inputs, plan, store)
    if shown is None or row.max_rel_error is None:
        return row
    del graph, proto
    _save(shown.model, theirs)
    graph = load_onnx(shown.model, plan.shapes)
    checked = _run_pair(name, graph, theirs, inputs, replace(plan, rounds=0), store)
    if checked.max_rel_error is None:
        return replace(row, failure=row.failure or checked.failure)
    return replace(row, max_rel_error=max(row.max_rel_error, checked.max_rel_error))


def _run_pair(
    name: str, graph: Graph, theirs: Path, inputs: Arrays, plan: Plan, store: RecordStore
) -> BenchRow:
    ours = theirs.with_name("model.tw")
    target = parse_target(plan.target)
    ready: list[Scheduled] = []
    parts = prepare(graph, target)
    executable = finish(parts, target, plan.threads, store, lambda each, *_: ready.append(each))
    executable.save(ours)
    hosts = executable.host_operators
    if plan.rounds:
        tuned = sum(each.is_tuned for each in ready)
        click.echo(f"{name}: {tuned} of {len(ready)} workloads tuned", err=True)
    del executable, parts
    return compare_model(
        name,
        ours,
        theirs,
        inputs,
        plan.threads,
        plan.peer,
        rounds=plan.rounds,
        limit_s=_LIMIT_S,
        host_operators=hosts,
    )


def _save(proto: onnx.ModelProto, path: Path) -> None:
    """Write a model; one above 2 GiB with its weights beside it."""
    onnx.save(proto, path, save_as_external_data=proto.ByteSize() > 1 << 30)


def _note(row: BenchRow) -> None:
    """Say at once how a model did: the table comes at the end."""
    error = "-" if row.max_rel_error is None else f"{row.max_rel_error:.1e}"
    ratio = "" if row.ratio is None else f", {row.ours_ms:.2f} ms, ratio {row.ratio:.2f}"
    failure = f", {row.failure.splitlines()[0]}" if row.failure else ""
    click.echo(f"{row.model}: error {error}{ratio}{failure}", err=True)
