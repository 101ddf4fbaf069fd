"""Import logs of other tuners, and export records of templates in the form of AutoTVM."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tensorwright.base import Target
from tensorwright.cli.arguments.models import read_graph
from tensorwright.cli.arguments.options import is_reference
from tensorwright.cli.arguments.programs import read_program
from tensorwright.cli.printing import format_ms
from tensorwright.graph import Graph, Workload
from tensorwright.pipeline import prepare
from tensorwright.records import Record, RecordStore, Status, WorkloadText, logs
from tensorwright.schedule import state_of
from tensorwright.tuning.logs import TASK, LineWriter, graph_of_task, seed_of

Row = tuple[str, str, str, str]
COLUMNS = ("line", "program", "ms", "here")


def workloads_of(programs: Sequence[str], target: Target) -> tuple[Workload, ...]:
    """The workloads of models and tensor expressions, each once."""
    workloads: dict[str, Workload] = {}
    for text in programs:
        if is_reference(text):
            workload = read_program(text)
            workloads.setdefault(workload.key, workload)
            continue
        for workload in prepare(read_graph(text), target).workloads:
            workloads.setdefault(workload.key, workload)
    return tuple(workloads.values())


def is_foreign_log(path: str) -> bool:
    """Whether a file has lines of AutoTVM or Ansor."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(1)
    except OSError:
        return False
    return start in (b"{", b"#") and logs.format_of(path) is not logs.LogFormat.OWN


def import_log(
    file: Path,
    written_by: logs.LogFormat,
    store: RecordStore,
    target: Target,
    workloads: Sequence[Workload],
) -> list[Row]:
    """Keep the lines of a log that become seeds; return a row about each line.

    workloads   the programs to which lines may belong
    Raises:     RecordError that names the first bad line; then nothing is kept.
    """
    by_key = {workload.key: workload for workload in workloads}
    rows: list[Row] = []
    records: list[Record] = []
    texts: list[WorkloadText] = []
    for number, line in logs.read_log(file, written_by).items():
        outcome = seed_record(line, target, by_key)
        if not isinstance(outcome, str):
            workload, record, change = outcome
            records.append(record)
            texts.append(WorkloadText.of(workload))
            outcome = f"seed of {workload.name} {workload.key}"
            outcome += f", {change}" if change else ""
        latency_s = line.result.latency_s
        time = format_ms(latency_s) if math.isfinite(latency_s) else "-"
        rows.append((str(number), line.name, time, outcome))
    store.append(records, texts)
    return rows


def seed_record(
    line: logs.LogLine, target: Target, by_key: Mapping[str, Workload]
) -> tuple[Workload, Record, str] | str:
    """Make a seed from a line of a log: its workload, its record, and how it differs from the line.

    Return the reason instead if the line does not become a seed.
    """
    if line.result.failure:
        return line.result.failure
    if not isinstance(line, logs.AutoTvmLine):
        return "listed: its steps name stages of another compiler"
    workload = _program(line, target, by_key)
    if isinstance(workload, str):
        return workload
    seed = seed_of(line, state_of(workload), target)
    if isinstance(seed, str):
        return seed
    record = Record(
        workload=workload.key,
        target=target.key,
        hardware=logs.LogFormat.AUTOTVM.value,
        threads=1,
        trace=seed.candidate.trace,
        times_s=tuple(map(float, line.result.costs_s)),
        status=Status.OK,
        decisions=seed.candidate.decisions,
    )
    return workload, record, seed.change


def _program(
    line: logs.AutoTvmLine, target: Target, by_key: Mapping[str, Workload]
) -> Workload | str:
    if line.task.startswith(f"{TASK}."):
        keywords = json.loads(line.keywords)
        key = keywords.get("workload") if isinstance(keywords, dict) else None
        return by_key.get(str(key)) or f"workload {key} is not among the programs given with --of"
    graph = graph_of_task(line)
    if not isinstance(graph, Graph):
        return graph
    candidates = [
        w
        for w in prepare(graph, target).workloads
        if any(stage.tensor.reduction is not None for stage in state_of(w).stages)
    ]
    return candidates[0] if len(candidates) == 1 else "its program is more than one workload here"


def export_log(
    file: Path, store: RecordStore, target: Target, workloads: Sequence[Workload]
) -> int:
    """Write the records of the workloads' templates as lines of AutoTVM; return how many."""
    return logs.write_autotvm(file, _lines(store, target, workloads))


def _lines(
    store: RecordStore, target: Target, workloads: Sequence[Workload]
) -> Iterator[logs.AutoTvmLine]:
    for workload in workloads:
        records = list(store.query(workload=workload.key, target=target.key))
        writer = LineWriter(workload, target) if records else None
        for record in records:
            line = writer.line_of(record) if writer is not None else None
            if line is not None:
                yield line
