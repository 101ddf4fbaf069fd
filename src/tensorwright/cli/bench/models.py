"""`tensorwright bench models`: networks in this and in other runtimes, side by side."""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click
import onnx

from tensorwright.base import MachineError, Target, TensorwrightError
from tensorwright.cli.arguments.check_model import show_logits
from tensorwright.cli.arguments.models import (
    PAPER,
    SUITES,
    Shapes,
    check_model,
    read_graph,
    read_proto,
    short_name,
    suite,
)
from tensorwright.cli.arguments.options import (
    Minutes,
    machine_options,
    read_names,
    records_option,
    seed_option,
    shapes_option,
    threads_of,
)
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.bench.machine import Ceiling, describe_machine, measure_ceiling
from tensorwright.graph import Graph, Partition, load_onnx
from tensorwright.peers import (
    Arrays,
    BenchRow,
    compare_model,
    find_kind,
    make_row,
    print_rows,
    write_rows,
)
from tensorwright.pipeline import Scheduled, finish, opened, prepare
from tensorwright.records import MemoryStore, RecordStore
from tensorwright.runtime import KernelStep
from tensorwright.search import search, setting_of
from tensorwright.tuning.session import Budget, Search, choose_callbacks
from tensorwright.zoo import random_inputs

TOLERANCE = 1e-4
DEFAULT_PEERS = ("onnxruntime",)
PAPER_PEERS = ("onnxruntime", "openvino", "inductor")
_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How models are compared.

    rounds  of the rotation; 0 checks and does not time      minutes   of tuning before it, or None
    peak    of the machine in flop/s; 0 if not measured
    """

    target: Target
    threads: int
    seed: int
    rounds: int
    peers: tuple[str, ...]
    shapes: Shapes | None
    minutes: float | None = None
    peak: float = 0.0


def read_peers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names of peers with commas between; what is unknown is refused."""
    names = read_names(ctx, param, text)
    for name in names:
        with suppress(MachineError):  # one that is not installed fails in each row
            find_kind(name)
    return names


@click.command("models")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--suite", "suites", type=click.Choice(SUITES), multiple=True, help="A whole suite.")
@click.option(
    "--check",
    is_flag=True,
    help=f"Exit with 1 if a model fails or is off by more than {TOLERANCE:g}.",
)
@click.option("--tuned/--untuned", default=True, help="Use what is on record, or rules alone.")
@click.option("--minutes", type=Minutes(), help="Tune each model first, so long in all runs.")
@records_option
@machine_options
@seed_option
@shapes_option
@click.option(
    "--rounds", type=click.IntRange(min=0), default=11, help="Turns of each; 0 only checks."
)
@click.option(
    "--peers",
    "--peer",
    "peers",
    callback=read_peers,
    metavar="A,B",
    help="The runtimes to compare with; onnxruntime if not given, for the suite paper also "
    "openvino and inductor.",
)
@click.option("--json", "json_path", metavar="FILE", help="Write the rows to a file, too.")
def command(
    models: tuple[str, ...],
    suites: tuple[str, ...],
    check: bool,
    tuned: bool,
    minutes: float | None,
    records: Path | None,
    target: Target,
    threads: int | None,
    seed: int,
    input_shapes: Shapes | None,
    rounds: int,
    peers: tuple[str, ...],
    json_path: str | None,
) -> None:
    """Compile networks, check their answers against a peer's, and time all in turn.

    The error is that of the worst output, the tensor before the last softmax among them, over the
    largest number of that output. The ratio is the time of the fastest peer over ours. With
    --minutes a model that has not been tuned so long is tuned first; the same command goes on where
    it stopped.

    Example: tensorwright bench models --suite light --check --json rows.json
    """
    names = (*models, *(each for name in suites for each in suite(name)))
    if not names:
        raise click.UsageError("name models, or a suite: --suite light")
    if minutes and not tuned:
        raise click.UsageError("--minutes tunes, --untuned uses nothing of it: leave one out")
    for name in names:
        check_model(name)
    if json_path is not None:
        check_writable(json_path)
    count = threads_of(threads)
    ceiling = measure_ceiling(target, count) if rounds else Ceiling(count, 0.0, 0.0)
    chosen = peers or (PAPER_PEERS if PAPER in suites else DEFAULT_PEERS)
    plan = Plan(target, count, seed, rounds, chosen, input_shapes, minutes, ceiling.peak)
    head = {
        "suites": list(suites),
        **describe_machine(target, ceiling),
        "peers": list(chosen),
        "rounds": rounds,
        "seed": plan.seed,
        "tuned": tuned,
        "minutes": minutes,
    }
    rows: list[BenchRow] = []
    with MemoryStore() if not tuned else opened(records, create=bool(minutes)) as store:
        for name in names:
            rows.append(bench_model(name, plan, store))
            _note(rows[-1])
            if rounds:
                rows, plan = _measure_peak_again(rows, plan)
            if json_path is not None:
                write_rows(json_path, rows, {**head, "peak_gflops": plan.peak / 1e9})
    print_rows(rows)
    if check and not all(passes(row) for row in rows):
        sys.exit(1)


def _measure_peak_again(rows: list[BenchRow], plan: Plan) -> tuple[list[BenchRow], Plan]:
    """Shares of the highest peak that was seen: others on the machine only ever lower it."""
    peak = measure_ceiling(plan.target, plan.threads).peak
    if peak <= plan.peak:
        return rows, plan
    scale = plan.peak / peak
    scaled = [
        row if row.peak_share is None else replace(row, peak_share=row.peak_share * scale)
        for row in rows
    ]
    return scaled, replace(plan, peak=peak)


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
        return make_row(name, plan.peers[0], failure=f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - one model's fault must not end the others' runs
        return make_row(name, plan.peers[0], failure=f"{type(error).__name__}: {error}")


def _compare(model: str, name: str, plan: Plan, store: RecordStore, folder: Path) -> BenchRow:
    graph = read_graph(model, plan.shapes, plan.seed)
    proto = read_proto(model, plan.shapes, plan.seed)
    inputs = random_inputs(graph, plan.seed)
    shown = show_logits(proto)
    theirs = folder / "model.onnx"
    _save(proto, theirs)
    row = _run(name, graph, theirs, inputs, plan, store)
    if shown is None or row.max_rel_error is None:
        return row
    del graph, proto
    _save(shown.model, theirs)
    graph = load_onnx(shown.model, plan.shapes)
    first = next((each.peer for each in row.peers if not each.failure), plan.peers[0])
    check = replace(plan, rounds=0, peers=(first,), minutes=None)
    checked = _run(name, graph, theirs, inputs, check, store)
    if checked.max_rel_error is None:
        return replace(row, failure=row.failure or checked.failure)
    return replace(row, max_rel_error=max(row.max_rel_error, checked.max_rel_error))


def _run(
    name: str, graph: Graph, theirs: Path, inputs: Arrays, plan: Plan, store: RecordStore
) -> BenchRow:
    ours = theirs.with_name("model.tw")
    ready: list[Scheduled] = []
    parts = prepare(graph, plan.target)
    if plan.minutes:
        _tune(name, parts, plan, store)
    executable = finish(
        parts, plan.target, plan.threads, store, lambda each, *_: ready.append(each)
    )
    executable.save(ours)
    hosts = executable.host_operators
    flops = sum(step.flops for step in executable.plan.steps if isinstance(step, KernelStep))
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
        plan.peers,
        rounds=plan.rounds,
        limit_s=_LIMIT_S * (1 + len(plan.peers)),
        host_operators=hosts,
        flops=flops,
        peak=plan.peak,
    )


def _tune(name: str, parts: Partition, plan: Plan, store: RecordStore) -> None:
    """Spend what is left of the model's minutes. Raises KeyboardInterrupt after an interrupt."""
    click.echo(f"{name}: tuning, {plan.minutes:g} minutes in all", err=True)
    how = Search(Budget(plan.minutes), plan.seed, choose_callbacks(is_quiet=False))
    result = search(parts, setting_of(plan.target, plan.threads), store, how)
    click.echo(f"{name}: {result.trials} trials in {result.elapsed_s:.0f} s", err=True)
    if result.is_interrupted:
        click.echo(result.resume_text, err=True)
        raise KeyboardInterrupt


def _save(proto: onnx.ModelProto, path: Path) -> None:
    """Write a model; one above 2 GiB with its weights beside it."""
    onnx.save(proto, path, save_as_external_data=proto.ByteSize() > 1 << 30)


def _note(row: BenchRow) -> None:
    """Say at once how a model did: the table comes at the end."""
    error = "-" if row.max_rel_error is None else f"{row.max_rel_error:.1e}"
    ratio = ""
    if row.ratio is not None:
        ratio = f", {row.ours_ms:.2f} ms, ratio {row.ratio:.2f} to {row.peer}"
    failure = f", {row.failure.splitlines()[0]}" if row.failure else ""
    click.echo(f"{row.model}: error {error}{ratio}{failure}", err=True)
