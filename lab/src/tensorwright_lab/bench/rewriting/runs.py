"""One network of `bench rewrite`: searched in a process of its own, compiled before and after,
timed in turns; and how the cost of a search grows with the network (`--growth`).
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

from tensorwright.base import CpuTarget, InternalError, MachineError, TensorwrightError
from tensorwright.cli.arguments.models import read_graph, read_proto
from tensorwright.cli.printing import print_line, print_table
from tensorwright.compile_options import Shapes
from tensorwright.drivers.rewrite import Rewritten, rewrite
from tensorwright.drivers.tune import search, setting_of
from tensorwright.graph import Graph, random_inputs
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import save_onnx, save_proto
from tensorwright.peers.process import Arrays, Versions, compare_versions
from tensorwright.pipeline import finish, open_price, prepare
from tensorwright.processes import Child, Done, Job, Raised
from tensorwright.records import MemoryStore, opened
from tensorwright.rewriting.candidates import CostKind, SearchKind
from tensorwright.rewriting.networks import ProgramPrices, operator_seconds
from tensorwright.runtime.measuring import this_machine
from tensorwright.tuning.session import Options, choose_callbacks
from tensorwright_lab.bench.machine import peak_memory_bytes
from tensorwright_lab.bench.rewriting.rows import Measured, RewriteRow, Searched
from tensorwright_lab.comparison import this_build
from tensorwright_lab.comparison.agreement import apart, choose_reference, worst_of, wrong_text
from tensorwright_lab.rows import row_name
from tensorwright_lab.zoo import repeated_blocks

DEFAULT_PEERS = ("onnxruntime",)
_SEARCH_LIMIT_S = 4 * 3600.0
_RUN_LIMIT_S = 120.0
_BEFORE, _AFTER = "before", "after"
OURS = "ours"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan:
    """How networks are searched and measured.

    seconds   of a search, see `rewrite`      rounds    of the rotation; 0 does not time
    is_tuned  whether schedules on record are used, those of the store at `records`
    search, cost, measures, nodes   as `rewrite` calls them
    minutes   of tuning for each of both networks; None tunes nothing
    """

    target: CpuTarget
    threads: int
    seed: int
    seconds: float | None
    rounds: int = 11
    is_exact: bool = False
    is_tuned: bool = False
    records: Path | None = None
    shapes: Shapes | None = None
    search: str = SearchKind.BOTH
    cost: str = CostKind.PROGRAMS
    measures: bool = True
    nodes: int | None = None
    minutes: float | None = None
    peers: tuple[str, ...] = DEFAULT_PEERS


def bench_rewriting(model: str, plan: Plan) -> RewriteRow:
    """The row of a network; a failure is part of the row."""
    return replace(_row_or_failure(model, plan), build=this_build())


def _row_or_failure(model: str, plan: Plan) -> RewriteRow:
    name = row_name(model)
    try:
        with tempfile.TemporaryDirectory(prefix="tensorwright-bench-") as folder:
            return _row(name, model, plan, Path(folder))
    except TensorwrightError as error:
        return RewriteRow(name, failure=f"{type(error).__name__}: {error.message()}")


def _row(name: str, model: str, plan: Plan, folder: Path) -> RewriteRow:
    searched = in_own_process(search_model, model, plan, folder)
    trials = 0
    try:
        if plan.minutes and searched.is_changed:
            trials = _tune(name, model, plan, folder)
        inputs = in_own_process(build_versions, model, plan, folder, searched.is_changed)
    except TensorwrightError as error:
        return RewriteRow(name, searched, failure=f"{type(error).__name__}: {error.message()}")
    words = (_BEFORE, _AFTER) if searched.is_changed else (_BEFORE,)
    models = [folder / f"{each}.onnx" for each in words]
    runs = {peer: _compare(peer, models, inputs, plan) for peer in plan.peers}
    runs[OURS] = _compare(OURS, [folder / f"{each}.tw" for each in words], inputs, plan)
    measured, largest = judge(runs)
    ours = measured.pop(OURS)
    return RewriteRow(name, searched, ours, measured, trials, largest)


def judge(
    runs: Mapping[str, tuple[Measured, tuple[Arrays, ...]]],
) -> tuple[dict[str, Measured], float | None]:
    """Drop the times of runtimes whose answers are wrong; also return the largest error of ours.

    runs   of each runtime the times, and the answers of the network before and after; ours last

    The reference is that of `choose_reference`, among the peers' answers before, or ours where
    there is none. What the network that we have rewritten computes in a peer that has the first
    one right is an answer of ours.
    """
    measured = {name: each for name, (each, _) in runs.items()}
    answers = {name: outputs for name, (_, outputs) in runs.items() if outputs}
    if not answers:
        return measured, None
    first = {name: outputs[0] for name, outputs in answers.items()}
    voices = {name: each for name, each in first.items() if name != OURS} or first
    reference = first[choose_reference(voices)]
    before = {name: apart(each, reference) for name, each in first.items()}
    ours = []
    for name, outputs in answers.items():
        error = worst_of([apart(each, reference) for each in outputs])
        if name == OURS or not before[name].is_wrong:
            ours.append(error)
        if error.is_wrong:
            what = name if before[name].is_wrong else f"{name}, rewritten,"
            failure = wrong_text(what, error, before)
            measured[name] = Measured(failure=failure, version=measured[name].version)
    return measured, worst_of(ours).relative


def _tune(name: str, model: str, plan: Plan, folder: Path) -> int:
    """Tune both networks into one store, each for the plan's minutes; how many candidates.

    What they share is tuned for both.  The first has its second half last, so that neither gains
    by coming later.  Raises KeyboardInterrupt after an interrupt.
    """
    assert plan.minutes is not None
    before = read_graph(model, plan.shapes, plan.seed)
    after = load_onnx(str(folder / f"{_AFTER}.onnx"))
    turns = ((before, plan.minutes / 2), (after, plan.minutes), (before, plan.minutes / 2))
    setting, trials = setting_of(plan.target, plan.threads), 0
    with opened(plan.records, create=True) as store:
        for turn, (graph, minutes) in enumerate(turns):
            click.echo(f"{name}: tuning for {minutes:g} minutes", err=True)
            how = Options(
                minutes=minutes, seed=plan.seed + turn, callbacks=choose_callbacks(is_quiet=False)
            )
            parts = prepare(graph, plan.target, threads=plan.threads)
            result = search(parts, setting, store, how)
            trials += result.trials
            if result.is_interrupted:
                click.echo(result.resume_text, err=True)
                raise KeyboardInterrupt
    return trials


def _compare(
    kind: str, paths: list[Path], inputs: Arrays, plan: Plan
) -> tuple[Measured, tuple[Arrays, ...]]:
    """Times and outputs of a runtime; of a network that did not change both times are one."""
    try:
        versions: Versions = compare_versions(
            kind,
            [str(path) for path in paths],
            inputs,
            plan.threads,
            target=plan.target,
            rounds=plan.rounds,
            limit_s=_RUN_LIMIT_S,
        )
    except MachineError as error:  # it is not installed, or failed
        return Measured(failure=error.message().splitlines()[0]), ()
    version = versions.runtime
    if not versions.times_s:
        return Measured(version=version), versions.outputs
    before_ms, after_ms = versions.times_s[0] * 1e3, versions.times_s[-1] * 1e3
    return Measured(before_ms, after_ms, version=version), versions.outputs


def in_own_process(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a fresh process, whose memory is that of the function alone.

    Raises:  what the function raises; InternalError where the process ends or hangs.
    """
    child = Child()
    try:
        outcome = child.do(Job(function, arguments), _SEARCH_LIMIT_S)
    finally:
        child.close()
    if isinstance(outcome, Done):
        value: T = outcome.value
        return value
    if isinstance(outcome, Raised) and outcome.error is not None:
        raise outcome.error
    raise InternalError(stage="bench", where=function.__name__, reason=str(outcome))


def search_model(model: str, plan: Plan, folder: Path) -> Searched:
    """Rewrite a network, and keep it as a file if it changed.  Runs in a process of its own."""
    graph = read_graph(model, plan.shapes, plan.seed)
    rewritten, searched = search_graph(graph, plan)
    if rewritten.is_changed:
        save_onnx(rewritten.graph, folder / f"{_AFTER}.onnx")
    return searched


def search_graph(graph: Graph, plan: Plan) -> tuple[Rewritten, Searched]:
    """Rewrite a network, and say what that took in this process."""
    loaded_bytes, start_s = peak_memory_bytes(), time.process_time()
    rewritten = rewrite(
        graph,
        target=plan.target,
        threads=plan.threads,
        seconds=plan.seconds,
        exact=plan.is_exact,
        search=plan.search,
        cost=plan.cost,
        measure=plan.measures,
        nodes=plan.nodes,
    )
    cpu_s, peak_bytes = time.process_time() - start_s, peak_memory_bytes()
    price = open_price(plan.target, plan.threads)
    assert price is not None, "rewriting has asked it"
    prices = ProgramPrices(this_machine(plan.target, plan.threads), price)
    before_s, trial = operator_seconds(rewritten.source, prices), rewritten.trial
    searched = Searched(
        nodes_before=len(rewritten.source.nodes),
        nodes_after=len(rewritten.graph.nodes),
        rules=dict(rewritten.rules),
        search_s=rewritten.seconds,
        cpu_s=cpu_s,
        loaded_bytes=loaded_bytes,
        peak_bytes=peak_bytes,
        egraph_nodes=rewritten.nodes,
        stop=rewritten.stop_text,
        operators_before_s=before_s,
        operators_after_s=operator_seconds(rewritten.graph, prices)
        if rewritten.is_changed
        else before_s,
        programs_before_s=_finite(rewritten.before_s),
        programs_after_s=_finite(rewritten.after_s),
        is_changed=rewritten.is_changed,
        trial_gain=None if trial is None else trial.before_s / trial.after_s,
    )
    return rewritten, searched


def _finite(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds


def build_versions(model: str, plan: Plan, folder: Path, is_changed: bool) -> Arrays:
    """Write the files that are timed, and draw inputs.  Runs in a process of its own."""
    graph = read_graph(model, plan.shapes, plan.seed)
    save_proto(read_proto(model, plan.shapes, plan.seed), folder / f"{_BEFORE}.onnx")
    _compile(graph, plan, folder / f"{_BEFORE}.tw")
    if is_changed:
        after = load_onnx(str(folder / f"{_AFTER}.onnx"))
        _compile(after, plan, folder / f"{_AFTER}.tw")
    return random_inputs(graph, plan.seed)


def _compile(graph: Graph, plan: Plan, path: Path) -> None:
    parts = prepare(graph, plan.target, threads=plan.threads)
    with opened(plan.records) if plan.is_tuned else MemoryStore() as store:
        finish(parts, plan.target, plan.threads, store).save(path)


SIZES = (100, 200, 400, 800, 1600, 3200)
"""About so many operators."""


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """A network of repeated blocks.

    exponent   so that processor time grew with that power of the operators since the row before:
               others on the machine take time from a search, and no processor time
    """

    operators: int
    search_s: float
    cpu_s: float
    peak_bytes: int
    egraph_nodes: int
    steps: int
    stop: str
    gain: float | None
    exponent: float | None = None


def search_repeated(size: int, plan: Plan) -> Searched:
    """Rewrite repeated blocks of about `size` operators, by saturation, which ends by itself;
    nothing is measured.  Runs in a process of its own.
    """
    plan = replace(plan, search=SearchKind.SATURATE, measures=False)
    return search_graph(repeated_blocks(size, plan.seed), plan)[1]


def growth_row(searched: Searched, before: GrowthRow | None) -> GrowthRow:
    """The row of a search, after that of a smaller network."""
    gain = None
    if searched.programs_before_s and searched.programs_after_s:
        gain = searched.programs_before_s / searched.programs_after_s
    exponent = None
    if before is not None and searched.nodes_before != before.operators:
        exponent = _slope(before.operators, before.cpu_s, searched.nodes_before, searched.cpu_s)
    return GrowthRow(
        searched.nodes_before,
        searched.search_s,
        searched.cpu_s,
        searched.peak_bytes,
        searched.egraph_nodes,
        sum(searched.rules.values()),
        searched.stop,
        gain,
        exponent,
    )


def _slope(small: int, small_s: float, large: int, large_s: float) -> float:
    """The power of the size with which a cost grew."""
    return math.log(large_s / small_s) / math.log(large / small)


def print_growth(rows: Sequence[GrowthRow], console: Console | None = None) -> None:
    """Print the rows; the last columns are the exponents of the processor time and of n log n."""
    console = console or Console()
    columns = (
        *(
            "operators",
            "search s",
            "CPU s",
            "ms each",
            "MB",
            "e-graph",
            "steps",
            "gain",
            "ended by",
        ),
        *("exponent", "of n log n"),
    )
    cells = []
    for number, row in enumerate(rows):
        bound = "-"
        if row.exponent is not None:
            n, m = rows[number - 1].operators, row.operators
            bound = f"{_slope(n, n * math.log(n), m, m * math.log(m)):.2f}"
        cells.append(
            (
                str(row.operators),
                f"{row.search_s:.2f}",
                f"{row.cpu_s:.2f}",
                f"{row.cpu_s / row.operators * 1e3:.2f}",
                f"{row.peak_bytes / 1e6:.0f}",
                str(row.egraph_nodes),
                str(row.steps),
                "-" if row.gain is None else f"{row.gain:.2f}",
                row.stop,
                "-" if row.exponent is None else f"{row.exponent:.2f}",
                bound,
            )
        )
    print_table(columns, cells, console)
    if any(row.stop in ("seconds", "nodes") for row in rows):
        print_line("a search that a limit ended did less than it would have", console)
