"""The cases of `tensorwright bench models`, and how they are run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from onnx import ModelProto

from tensorwright.base import CpuTarget, TensorwrightError, number_in
from tensorwright.cli.arguments import models
from tensorwright.cli.arguments.models import quantised_steps, read_graph
from tensorwright.cli.arguments.options import refuse_given, split
from tensorwright.compile_options import Shapes, Sizes
from tensorwright.drivers.tune import search, setting_of
from tensorwright.graph import (
    Graph,
    Partition,
    SizePoint,
    SizesAt,
    bind_sizes,
    counted_sizes,
    points_of,
    random_inputs,
)
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import save_proto
from tensorwright.peers.process import Arrays, PeerFailed, PeerProcess, Steps, find_kind
from tensorwright.pipeline import finish, prepare
from tensorwright.records import MemoryStore, RecordStore
from tensorwright.runtime import Executable, KernelStep
from tensorwright.tuning.selection import Scheduled
from tensorwright.tuning.session import Options, choose_callbacks
from tensorwright_lab.comparison import BenchRow, Compiled, compare_model, make_row
from tensorwright_lab.comparison.agreement import show_logits
from tensorwright_lab.rows import row_name

NUMBERS = SizePoint(())
"""The only point of a model whose shapes are numbers; its text is empty."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model, and the points at which it is compared: `(NUMBERS,)` if its shapes are numbers."""

    model: str
    points: tuple[SizePoint, ...]


def read_cases(
    models: Sequence[str], shapes: Shapes | None, sizes: Sizes | None, at: SizesAt | None
) -> tuple[Case, ...]:
    """The points of each model: those that `at` names, or a few that the bounds suggest.

    A model that cannot be imported has one row, which says so, as long as another one can.
    Raises:  UsageError as `points_of`, and where no model has open sizes for `at`; the error of the
             first model where none can be imported.
    """
    cases: list[Case] = []
    failures: list[TensorwrightError] = []
    for model in models:
        if split(model)[0] and not sizes:
            cases.append(Case(model, (NUMBERS,)))
            continue
        try:
            graph = read_graph(model, shapes, sizes=sizes, is_open=True)
        except TensorwrightError as error:
            failures.append(error)
            cases.append(Case(model, (NUMBERS,)))
        else:
            cases.append(Case(model, _points(graph, at)))
    if failures and len(failures) == len(cases):
        raise failures[0]
    if all(case.points == (NUMBERS,) for case in cases):
        refuse_given(("at",), because="all shapes are numbers")
    return tuple(cases)


def _points(graph: Graph, at: SizesAt | None) -> tuple[SizePoint, ...]:
    """Numbers for all sizes of the inputs; a size that a node decides is left to the node."""
    if not graph.sizes:
        return (NUMBERS,)
    decided = counted_sizes(graph)
    points = points_of(graph.sizes, at, decided, graph.input_types.values())
    given = (tuple(pair for pair in point.numbers if pair[0] not in decided) for point in points)
    return tuple(map(SizePoint, dict.fromkeys(given)))


_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How models are compared.

    rounds  of the rotation; 0 checks and does not time      minutes   of tuning before it, or None
    peak    of the machine in flop/s; 0 if not measured
    sizes   bounds of open sizes          at        for which of them to tune, as of `tune`
    """

    target: CpuTarget
    threads: int
    seed: int
    rounds: int
    peers: tuple[str, ...]
    shapes: Shapes | None
    minutes: float | None = None
    peak: float = 0.0
    sizes: Sizes | None = None
    at: SizesAt | None = None


def bench_model(case: Case, plan: Plan, store: RecordStore) -> Iterator[BenchRow]:
    """A row for each point of one model; a failure is part of the row."""
    with tempfile.TemporaryDirectory(prefix="tensorwright-bench-") as folder:
        try:
            comparison = _Comparison(case, plan, store, Path(folder))
        except Exception as error:  # noqa: BLE001 - one model's fault must not end the others' runs
            for point in case.points:
                yield _failed(case.model, point, plan, error)
            return
        for point in case.points:
            try:
                row = comparison.at(point)
            except Exception as error:  # noqa: BLE001 - nor one point's those of the others
                row = _failed(case.model, point, plan, error)
            yield row


def _failed(model: str, point: SizePoint, plan: Plan, error: Exception) -> BenchRow:
    failure = f"{type(error).__name__}: {error}"
    return make_row(row_name(model), plan.peers[0], failure=failure, at=str(point))


@dataclass(frozen=True, slots=True)
class _Files:
    """The files that the competitors read.

    ours        compiled once, for all points      untuned   the same without records, or None
    compiled    what is known of ours at each point
    steps       of the quantised outputs, by name
    """

    theirs: Path
    ours: Path
    untuned: Path | None
    compiled: Mapping[SizePoint, Compiled]
    steps: Steps


class _Comparison:
    """One model, compiled once, against its peers at each point."""

    def __init__(self, case: Case, plan: Plan, store: RecordStore, folder: Path) -> None:
        model = case.model
        self.case, self.plan, self.store, self.folder = case, plan, store, folder
        self.graph = models.read_graph(model, plan.shapes, plan.seed, plan.sizes, is_open=True)
        proto = models.read_proto(model, plan.shapes, plan.seed)
        self.shown = show_logits(proto)
        theirs = folder / "model.onnx"
        save_proto(proto, theirs)
        _ask_peers(theirs, plan)
        self.files = self._compile(self.graph, theirs, quantised_steps(proto), plan)
        self.logits: _Files | None = None

    def at(self, point: SizePoint) -> BenchRow:
        """The row of a point, with the error of what the last softmax reads."""
        inputs = random_inputs(bind_sizes(self.graph, point.values), self.plan.seed)
        row = self._compare(self.files, point, inputs, self.plan)
        if self.shown is None or row.max_rel_error is None:
            return row
        first = next((each.peer for each in row.peers if not each.failure), self.plan.peers[0])
        check = replace(self.plan, rounds=0, peers=(first,), minutes=None)
        if self.logits is None:
            self.logits = self._compile_logits(self.shown.model, check)
        checked = self._compare(self.logits, point, inputs, check)
        if checked.max_rel_error is None:
            return replace(row, failure=row.failure or checked.failure)
        return row.with_error(checked.error, checked.failure)

    def _compile_logits(self, model: ModelProto, plan: Plan) -> _Files:
        """The same for the model with a further output; the shapes are in it."""
        theirs = self.folder / "logits.onnx"
        save_proto(model, theirs)
        graph = load_onnx(model, sizes=plan.sizes)
        return self._compile(graph, theirs, quantised_steps(model), plan)

    def _compile(self, graph: Graph, theirs: Path, steps: Steps, plan: Plan) -> _Files:
        """Tune if asked, and compile, also without records where there are some."""
        name = models.short_name(self.case.model)
        parts = prepare(graph, plan.target, threads=plan.threads)
        if plan.minutes:
            _tune(name, parts, plan, self.store)
        ours, untuned = theirs.with_suffix(".tw"), None
        executable, tuned = _finish(parts, plan, self.store)
        executable.save(ours)
        if tuned:
            untuned = theirs.with_suffix(".untuned.tw")
            with MemoryStore() as nothing:
                _finish(parts, plan, nothing)[0].save(untuned)
        count = len(parts.workloads)
        if plan.rounds:
            click.echo(f"{name}: {tuned} of {count} workloads tuned", err=True)
        compiled = {
            point: Compiled(
                executable.host_operators,
                _flops(executable.at(**point.values)),
                plan.peak,
                tuned,
                count,
            )
            for point in self.case.points
        }
        return _Files(theirs, ours, untuned, compiled, steps)

    def _compare(self, files: _Files, point: SizePoint, inputs: Arrays, plan: Plan) -> BenchRow:
        return compare_model(
            row_name(self.case.model),
            files.ours,
            files.theirs,
            inputs,
            plan.threads,
            plan.peers,
            untuned=files.untuned,
            target=plan.target,
            rounds=plan.rounds,
            limit_s=_LIMIT_S * (1 + len(plan.peers) + (files.untuned is not None)),
            compiled=files.compiled[point],
            steps=files.steps,
            at=str(point),
        )


def _flops(executable: Executable) -> int:
    """The operations of a call whose sizes are numbers."""
    steps = executable.plan.steps
    return sum(number_in(step.flops) for step in steps if isinstance(step, KernelStep))


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


def _finish(parts: Partition, plan: Plan, store: RecordStore) -> tuple[Executable, int]:
    """The executable by the records, and the number of workloads that have one."""
    ready: list[Scheduled] = []
    executable = finish(
        parts, plan.target, plan.threads, store, lambda each, *_: ready.append(each)
    )
    return executable, sum(each.is_tuned for each in ready)


def _tune(name: str, parts: Partition, plan: Plan, store: RecordStore) -> None:
    """Spend what is left of the model's minutes. Raises KeyboardInterrupt after an interrupt."""
    click.echo(f"{name}: tuning, {plan.minutes:g} minutes in all", err=True)
    how = Options(minutes=plan.minutes, seed=plan.seed, callbacks=choose_callbacks(is_quiet=False))
    at = plan.at if parts.graph.sizes else None
    result = search(parts, setting_of(plan.target, plan.threads), store, how, at)
    click.echo(f"{name}: {result.trials} trials in {result.elapsed_s:.0f} s", err=True)
    if result.is_interrupted:
        click.echo(result.resume_text, err=True)
        raise KeyboardInterrupt
