"""`tensorwright bench serve`: many callers of one network, in this and in other runtimes.

Each runtime has a process of its own, in which so many threads call it without a pause. They take
turns. Beside ours as it is, ours is measured with the fixed ways of sharing the cores: a thread for
each call, all threads for one call at a time, and what lies between them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from tensorwright.base import CpuTarget, MachineError, knobs
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.models import check_model, read_graph, read_proto
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing import print_table
from tensorwright.compile_options import Shapes
from tensorwright.graph import random_inputs
from tensorwright.graph.onnx_export import save_proto
from tensorwright.peers.process import Arrays, PeerFailed, PeerProcess
from tensorwright.pipeline import compile as compile_model
from tensorwright_lab.bench.machine import Ceiling, describe_machine, threads_of
from tensorwright_lab.bench.options import peers_option, read_numbers
from tensorwright_lab.rows import machine_options, row_name, write_objects

_CALLERS = "1,2,4,8,32"
_COLUMNS = (
    *("network", "callers", "runtime"),
    *("calls/s", "p50 ms", "p90 ms", "p95 ms", "longest ms", ""),
)
_SPIN = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
_WARM_UP_S = 0.2


@dataclass(frozen=True, slots=True)
class Server:
    """A competitor: its kind, its name in the table, its file, and how calls share the cores.

    at_once   the most calls at once, of those that its callers make; 0 for all
    """

    kind: str
    name: str
    path: Path
    threads: int
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class ServeRow:
    """The measurements of one server's callers: calls in each second, and seconds of a call."""

    network: str
    callers: int
    runtime: str
    calls_per_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p95_s: float = 0.0
    longest_s: float = 0.0
    failure: str = ""


@click.command("serve")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--callers", default=_CALLERS, callback=read_numbers, metavar="N,M", help="How many threads."
)
@click.option("--seconds", type=click.FloatRange(0.05), default=1.0, help="Of each turn.")
@click.option("--rounds", type=click.IntRange(1), default=3, help="Turns of each.")
@click.option(
    "--neighbours", type=click.IntRange(0), default=0, help="Processes that keep a core busy."
)
@options.records_option
@machine_options
@options.seed_option
@options.shapes_option
@peers_option("onnxruntime if not given")
@click.option("--json", "json_path", metavar="FILE", help="Write the rows to a file, too.")
def command(
    models: tuple[str, ...],
    callers: tuple[int, ...],
    seconds: float,
    rounds: int,
    neighbours: int,
    records: Path | None,
    target: CpuTarget,
    threads: int | None,
    seed: int,
    input_shapes: Shapes | None,
    peers: tuple[str, ...],
    json_path: str | None,
) -> None:
    """Call networks from several threads; show calls per second and how long calls take.

    Example: tensorwright bench serve light:squeezenet --callers 1,8 --neighbours 1
    """
    for model in models:
        check_model(model)
    check_writable(json_path, *models, records)
    count = threads_of(threads)
    rows: list[ServeRow] = []
    head = {
        **describe_machine(target, Ceiling(count, 0.0, 0.0)),
        "cores": knobs.CORES.get(),
        "seconds": seconds,
        "rounds": rounds,
        "neighbours": neighbours,
    }
    for model in models:
        with tempfile.TemporaryDirectory(prefix="tensorwright-bench-") as name:
            folder = Path(name)
            graph = read_graph(model, input_shapes, seed)
            ours, theirs = folder / "model.tw", folder / "model.onnx"
            compile_model(graph, target=target, threads=count, records=records).save(ours)
            save_proto(read_proto(model, input_shapes, seed), theirs)
            servers = [*_ours(ours, count)]
            servers += [Server(peer, peer, theirs, count) for peer in peers or ("onnxruntime",)]
            with _started(servers, random_inputs(graph, seed), target) as started:
                for number in callers:
                    measured = measure_callers(started, number, seconds, rounds, neighbours)
                    rows += [_row(row_name(model), number, *each) for each in measured]
                    click.echo(f"{row_name(model)}: {number} callers done", err=True)
        if json_path is not None:
            write_objects(json_path, head, [asdict(row) for row in rows])
    print_table(_COLUMNS, [_cells(row) for row in rows])
    if all(row.failure for row in rows):
        sys.exit(1)


def _ours(path: Path, threads: int) -> Iterator[Server]:
    yield Server("ours", "tensorwright", path, threads)
    if threads > 1:
        yield Server("ours", "one thread a call", path, 1, threads)
        for at_once in range(2, threads):
            if threads % at_once == 0:
                share = threads // at_once
                name = f"{at_once} calls of {share} threads"
                yield Server("ours", name, path, share, at_once)
        yield Server("ours", "one call at a time", path, threads, 1)


Started = tuple[Server, PeerProcess | str]
"""A server and its process; or why it has none."""


@contextmanager
def _started(
    servers: Sequence[Server], inputs: Arrays, target: CpuTarget
) -> Iterator[list[Started]]:
    """All servers with their network loaded and called once."""
    with ExitStack() as stack:
        started: list[Started] = []
        for server in servers:
            try:
                process = stack.enter_context(PeerProcess(server.name, server.kind, None, target))
                process.load(str(server.path), server.threads)
                process.check(inputs)
            except MachineError as error:  # it is not installed, or it failed
                started.append((server, error.reason))
            else:
                started.append((server, process))
        yield started


def measure_callers(
    started: Sequence[Started], callers: int, duration_s: float, rounds: int, neighbours: int
) -> list[tuple[str, list[tuple[float, float]], float, str]]:
    """The calls of each server, its seconds in all, and how it failed; turns change about."""
    calls: list[list[tuple[float, float]]] = [[] for _ in started]
    spent_s = [0.0] * len(started)
    failures = [process if isinstance(process, str) else "" for _, process in started]
    for _ in range(rounds):
        for number, (server, process) in enumerate(started):
            if failures[number] or isinstance(process, str):
                continue
            with process.turn(), _busy(neighbours, duration_s):
                try:
                    process.serve(callers, _WARM_UP_S, server.at_once)
                    turn = process.serve(callers, duration_s, server.at_once)
                except PeerFailed as error:
                    failures[number] = error.reason
                    continue
            calls[number] += turn
            spent_s[number] += max(map(sum, turn)) - min(began for began, _ in turn)
    names = [server.name for server, _ in started]
    return list(zip(names, calls, spent_s, failures, strict=True))


@contextmanager
def _busy(count: int, duration_s: float) -> Iterator[None]:
    """Other processes that compute without a pause; they end by themselves in any case."""
    command = [sys.executable, "-c", _SPIN.format(duration_s + 60.0)]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _row(
    network: str,
    callers: int,
    runtime: str,
    calls: Sequence[tuple[float, float]],
    spent_s: float,
    failure: str,
) -> ServeRow:
    if not calls or failure:
        return ServeRow(network, callers, runtime, failure=failure or "it was not called")
    times_s = [time_s for _, time_s in calls]
    p50_s, p90_s, p95_s = np.percentile(times_s, (50, 90, 95)).tolist()
    rate = len(calls) / spent_s
    return ServeRow(network, callers, runtime, rate, p50_s, p90_s, p95_s, max(times_s))


def _cells(row: ServeRow) -> tuple[str, ...]:
    shown_s = (row.p50_s, row.p90_s, row.p95_s, row.longest_s)
    times = (f"{1e3 * each:.2f}" for each in shown_s)
    named = (row.network, str(row.callers), row.runtime)
    return (*named, f"{row.calls_per_s:.0f}", *times, row.failure)
