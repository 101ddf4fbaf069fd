"""Ansor's log lines: each has one measured program, as the steps of Ansor's tuner.

    {"i": [[WORKLOAD, TARGET, HARDWARE, TARGET_HOST, LAYOUT_REWRITE, INPUTS], [[], STEPS]],
     "r": [[COSTS_S...], ERROR_NO, ALL_COST_S, TIMESTAMP], "v": "v0.6"}

The workload is JSON text: the name of a function and its arguments, or a digest and shapes.  The
steps name stages of a program that the line does not have, so they are listed and not replayed.
Source:  Zheng et al., "Ansor", OSDI 2020, and its program, TVM.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tensorwright.records.logs.fields import LineReader, Result
from tensorwright.records.record import parse_object


@dataclass(frozen=True, slots=True)
class AnsorLine:
    """One line.

    function, arguments   the workload: a function's name or a digest, and the rest as text
    target                the machine of the program
    steps                 names of the steps: "SP", "RE", "FU", ..., in order
    """

    function: str
    arguments: str
    target: str
    steps: tuple[str, ...]
    result: Result
    version: str

    @property
    def name(self) -> str:
        """The workload, for people."""
        return f"{self.function} {self.arguments}"

    def __str__(self) -> str:
        time = self.result.failure or f"{1e3 * self.result.latency_s:.4g} ms"
        return f"{self.name}\n  {' '.join(self.steps)}\n  {time}"


def parse_ansor(line: str, where: str) -> AnsorLine:
    """Read one line.

    Raises:  RecordError that names `where`, for a line of another form.
    """
    fields, read = parse_object(line, where), LineReader(where)
    missing = [name for name in ("i", "r", "v") if name not in fields]
    if missing:
        raise read.fault(f"not a line of Ansor: it lacks {', '.join(missing)}")
    given, state = read.items(fields["i"], 2, "the input")
    workload, target, *_ = (*read.items(given, None, "the task"), "", "")
    steps = read.items(read.items(state, 2, "the state")[1], None, "the steps")
    names = [read.items(step, None, "a step")[:1] for step in steps]
    if not all(names):
        raise read.fault("a step has no name")
    function, arguments = _workload(read.text(workload, "the workload"), read)
    return AnsorLine(
        function,
        arguments,
        read.text(target, "the target"),
        tuple(read.text(name, "the name of a step") for (name,) in names),
        read.result(fields["r"]),
        read.text(fields["v"], "the version"),
    )


def _workload(text: str, read: LineReader) -> tuple[str, str]:
    try:
        parts = json.loads(text)
    except ValueError:
        raise read.fault("the workload is not JSON text") from None
    function, *arguments = read.items(parts, None, "the workload") or [""]
    return read.text(function, "the workload's name"), ", ".join(map(json.dumps, arguments))
