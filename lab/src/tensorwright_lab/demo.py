"""`tensorwright demo`: the tour. A small network is tuned and compared with ONNX Runtime."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import click
import onnx

from tensorwright.base import cpu_target
from tensorwright.cli import INTERRUPTED
from tensorwright.cli.arguments.models import read_graph, read_proto
from tensorwright.cli.arguments.options import THREADS, Minutes, records_option, seed_option
from tensorwright.cli.printing import format_ms, print_table, print_workloads
from tensorwright.compile_options import USUAL
from tensorwright.drivers.tune import search, setting_of
from tensorwright.graph import interpret, random_inputs
from tensorwright.graph.imports import load_onnx
from tensorwright.peers.process import (
    Arrays,
    Failure,
    PeerProcess,
    Result,
    Timing,
    max_rel_error,
    rotate,
)
from tensorwright.pipeline import finish, prepare
from tensorwright.records import MemoryStore, RecordStore, opened
from tensorwright.runtime import usable_threads
from tensorwright.runtime.measuring import faster_half, typical_seconds
from tensorwright.tuning.session import Comparison, Options, choose_callbacks
from tensorwright_lab.comparison.agreement import show_logits

MODEL = "light:squeezenet"
TOLERANCE = 1e-4
_PEER = "onnxruntime"
_LIMIT_S = 40.0
_NEXT = (
    ("your model", "tensorwright optimize model.onnx -o model.tw --report report.html"),
    ("a program", "tensorwright run model.tw --input random, or docs/running.md from Python and C"),
    ("the tutorial", "docs/tutorial/1_your_own_model.md, the first of eight pages"),
)


@click.command()
@click.option("--minutes", type=Minutes(), default=4.0, help="Time for tuning; 4 if not given.")
@click.option("--threads", type=THREADS, help="Threads of the kernels.")
@click.option("--model", default=MODEL, metavar="MODEL", help=f"The network; {MODEL} if not given.")
@click.option("--rounds", type=click.IntRange(min=1), default=11, help="Turns of each runtime.")
@seed_option
@records_option
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(
    minutes: float,
    threads: int | None,
    model: str,
    rounds: int,
    seed: int,
    records: Path | None,
    quiet: bool,
) -> None:
    """Tune a small network for a few minutes, and compare it with ONNX Runtime.

    The network is SqueezeNet as the onnx package carries it, with random weights. At the end there
    is a table: each workload untuned and tuned, the whole network untuned, tuned and in ONNX
    Runtime, all in turns, and the largest error against the reference.

    Example: tensorwright demo --minutes 1
    """
    count = usable_threads(threads)
    target = cpu_target(USUAL.machine)
    start = time.monotonic()
    graph = read_graph(model, seed=seed)
    click.echo(f"{graph.name}: {len(graph.nodes)} nodes; {minutes:g} minutes on {count} threads")
    parts = prepare(graph, target, threads=threads)
    with tempfile.TemporaryDirectory(prefix="tensorwright-demo-") as name:
        folder = Path(name)
        with MemoryStore() as nothing:
            finish(parts, target, count, nothing).save(folder / "default.tw")
        with opened(records, create=True) as store:
            how = Options(minutes=minutes, seed=seed, callbacks=choose_callbacks(quiet))
            result = search(parts, setting_of(target, count), store, how)
            finish(parts, target, count, store).save(folder / "tuned.tw")
            error = check(model, seed, count, store)
        onnx.save(read_proto(model, seed=seed), folder / "model.onnx")
        print_workloads(result.tasks)
        click.echo()
        compare(folder, random_inputs(graph, seed), count, rounds)
    click.echo(f"\nlargest error against the reference: {error:.1e} (at most {TOLERANCE:g})")
    click.echo(f"done in {time.monotonic() - start:.0f} s; where to go next:")
    for name, way in _NEXT:
        click.echo(f"  {name:<13} {way}")
    if result.is_interrupted:
        sys.exit(INTERRUPTED)
    if not error <= TOLERANCE:
        sys.exit(1)


def check(model: str, seed: int, threads: int, store: RecordStore) -> float:
    """The largest error of the tuned network against the reference interpreter.

    The tensor before the last softmax counts as an output, too.
    """
    proto = read_proto(model, seed=seed)
    shown = show_logits(proto)
    graph = load_onnx(shown.model if shown is not None else proto)
    target = USUAL.machine
    executable = finish(prepare(graph, target, threads=threads), target, threads, store)
    inputs = random_inputs(graph, seed)
    return max_rel_error(executable.run(inputs), interpret(graph, inputs))


def compare(folder: Path, inputs: Arrays, threads: int, rounds: int) -> None:
    """Time the network untuned, tuned, and in ONNX Runtime, in turn; print the table."""
    competitors = [("untuned", "ours", "default.tw"), ("tuned", "ours", "tuned.tw")]
    if importlib.util.find_spec(_PEER) is not None:
        competitors.append(("ONNX Runtime", _PEER, "model.onnx"))
    with contextlib.ExitStack() as stack:
        processes = []
        for name, kind, file in competitors:
            process = stack.enter_context(PeerProcess(name, kind))
            process.load(str(folder / file), threads)
            process.bind(inputs)
            processes.append(process)
        results = rotate(processes, rounds, limit_s=_LIMIT_S)
    rows = [_line(each, results[0]) for each in results[:2]]
    rows += [(*_line(each, each)[:2], "") for each in results[2:]]
    print_table(("whole network", "ms", "speed-up"), rows)
    if len(results) < 3:
        click.echo("ONNX Runtime is not installed: pip install 'tensorwright[demo]'")
    else:
        click.echo(against_rival(results[1], results[2]))


def against_rival(ours: Result, rival: Result) -> str:
    """How fast the tuned network is beside another runtime, in words."""
    if isinstance(ours, Failure) or isinstance(rival, Failure):
        return f"no comparison with {rival.name}: one of the two failed"
    ratio = Comparison.of(faster_half(rival.samples_s), faster_half(ours.samples_s)).speed_up
    if ratio < 1:
        return f"{rival.name} is {1 / ratio:.1f} times as fast as tensorwright"
    return f"tensorwright is {ratio:.1f} times as fast as {rival.name}"


def _line(result: Result, untuned: Result) -> tuple[str, str, str]:
    """Name, time, and the speed-up with how far the turns are apart."""
    if isinstance(result, Failure):
        return result.name, "failed", result.reason.splitlines()[0]
    speed_up = "-"
    if result is not untuned and isinstance(untuned, Timing):
        halves = faster_half(untuned.samples_s), faster_half(result.samples_s)
        speed_up = str(Comparison.of(*halves))
    return result.name, format_ms(typical_seconds(result.samples_s)), speed_up
