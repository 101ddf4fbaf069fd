"""One network of `tensorwright bench models`: tuned if asked, compiled, checked, timed in turns."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tensorwright.base import CpuTarget, TensorwrightError, number_in
from tensorwright.cli.arguments.check_model import quantised_steps
from tensorwright.cli.arguments.models import (
    read_graph,
    read_proto,
    row_name,
    save_proto,
    short_name,
)
from tensorwright.cli.arguments.options import Shapes
from tensorwright.drivers.tune import search, setting_of
from tensorwright.graph import Graph, Partition, random_inputs
from tensorwright.graph.onnx_import import load_onnx
from tensorwright.peers.process import Arrays, PeerFailed, PeerProcess, Steps, find_kind
from tensorwright.pipeline import finish, prepare
from tensorwright.records import MemoryStore, RecordStore
from tensorwright.runtime import Executable, KernelStep
from tensorwright.tuning.selection import Scheduled
from tensorwright.tuning.session import Budget, SearchArguments, choose_callbacks
from tensorwright_lab.comparison import BenchRow, Compiled, compare_model, make_row
from tensorwright_lab.comparison.logits import show_logits

_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How models are compared.

    rounds  of the rotation; 0 checks and does not time      minutes   of tuning before it, or None
    peak    of the machine in flop/s; 0 if not measured
    """

    target: CpuTarget
    threads: int
    seed: int
    rounds: int
    peers: tuple[str, ...]
    shapes: Shapes | None
    minutes: float | None = None
    peak: float = 0.0


def bench_model(model: str, plan: Plan, store: RecordStore) -> BenchRow:
    """The row of one model; whatever goes wrong with it is in the row."""
    try:
        with tempfile.TemporaryDirectory(prefix="tensorwright-bench-") as folder:
            return _compare(model, plan, store, Path(folder))
    except TensorwrightError as error:
        failure = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - one model's fault must not end the others' runs
        failure = f"{type(error).__name__}: {error}"
    return make_row(row_name(model), plan.peers[0], failure=failure)


def _compare(model: str, plan: Plan, store: RecordStore, folder: Path) -> BenchRow:
    graph = read_graph(model, plan.shapes, plan.seed)
    proto = read_proto(model, plan.shapes, plan.seed)
    inputs = random_inputs(graph, plan.seed)
    shown = show_logits(proto)
    theirs = folder / "model.onnx"
    save_proto(proto, theirs)
    _ask_peers(theirs, plan)
    row = _run(model, graph, theirs, inputs, plan, store, quantised_steps(proto))
    if shown is None or row.max_rel_error is None:
        return row
    del graph, proto
    save_proto(shown.model, theirs)
    graph = load_onnx(shown.model)  # it has all shapes, as `read_proto` gives it
    first = next((each.peer for each in row.peers if not each.failure), plan.peers[0])
    check = replace(plan, rounds=0, peers=(first,), minutes=None)
    checked = _run(model, graph, theirs, inputs, check, store, quantised_steps(shown.model))
    if checked.max_rel_error is None:
        return replace(row, failure=row.failure or checked.failure)
    return row.with_error(checked.error, checked.failure)


def _ask_peers(model: Path, plan: Plan) -> None:
    """Find out before the work whether a peer takes a model, where each may lack an operator.

    Raises:  PeerFailed of the last one where none does.
    """
    if not all(find_kind(name).lacks for name in plan.peers):
        return
    for number, name in enumerate(plan.peers, 1):
        try:
            with PeerProcess(name, name) as process:
                process.load(str(model), plan.threads)
        except PeerFailed:
            if number == len(plan.peers):
                raise
        else:
            return


def _run(
    model: str,
    graph: Graph,
    theirs: Path,
    inputs: Arrays,
    plan: Plan,
    store: RecordStore,
    steps: Steps,
) -> BenchRow:
    name = short_name(model)
    parts = prepare(graph, plan.target, threads=plan.threads)
    if plan.minutes:
        _tune(name, parts, plan, store)
    ours, untuned = theirs.with_name("model.tw"), None
    executable, tuned = _finish(parts, plan, store)
    executable.save(ours)
    compiled = Compiled(
        executable.host_operators,
        sum(
            number_in(step.flops) for step in executable.plan.steps if isinstance(step, KernelStep)
        ),
        plan.peak,
        tuned,
        len(parts.workloads),
    )
    if tuned:
        untuned = theirs.with_name("untuned.tw")
        with MemoryStore() as nothing:
            _finish(parts, plan, nothing)[0].save(untuned)
    if plan.rounds:
        click.echo(f"{name}: {tuned} of {compiled.workloads} workloads tuned", err=True)
    del executable, parts
    return compare_model(
        row_name(model),
        ours,
        theirs,
        inputs,
        plan.threads,
        plan.peers,
        untuned=untuned,
        target=plan.target,
        rounds=plan.rounds,
        limit_s=_LIMIT_S * (1 + len(plan.peers) + bool(tuned)),
        compiled=compiled,
        steps=steps,
    )


def _finish(parts: Partition, plan: Plan, store: RecordStore) -> tuple[Executable, int]:
    """The executable by what is on record, and for how many workloads that is something."""
    ready: list[Scheduled] = []
    executable = finish(
        parts, plan.target, plan.threads, store, lambda each, *_: ready.append(each)
    )
    return executable, sum(each.is_tuned for each in ready)


def _tune(name: str, parts: Partition, plan: Plan, store: RecordStore) -> None:
    """Spend what is left of the model's minutes. Raises KeyboardInterrupt after an interrupt."""
    click.echo(f"{name}: tuning, {plan.minutes:g} minutes in all", err=True)
    how = SearchArguments(Budget(plan.minutes), plan.seed, choose_callbacks(is_quiet=False))
    result = search(parts, setting_of(plan.target, plan.threads), store, how)
    click.echo(f"{name}: {result.trials} trials in {result.elapsed_s:.0f} s", err=True)
    if result.is_interrupted:
        click.echo(result.resume_text, err=True)
        raise KeyboardInterrupt
