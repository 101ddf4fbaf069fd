"""Run the node cases of the onnx package's own backend tests, and count them by what really ran.

    python benchmarks/correctness/onnx_backend.py [--by-operator] [--unsupported] [--json FILE]
         [--match TEXT] [--one-each] [--count N --seed N] [--target NAME]

compiled     passed: machine code did all of the work
host         passed: some work was done by NumPy, in a call or while compiling (values of inputs
             that decide about shapes are fixed while compiling; where nothing else remains, the
             case counts here)
unsupported  refused with UnsupportedError, which names the operator and the reason
failed       everything else: a wrong result, another error, a crash, a case that did not run

The cases run through `onnx.backend.test.BackendTest`, whose runner compares element types, shapes
and values. It lets a case pass that raises `BackendIsNotSupposedToImplementIt`; here a case
passes only if outputs were computed and compared. Exit code 1 if a case failed or fewer than half
passed or fewer than four fifths of those compiled.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
import unittest
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import onnx
from onnx.backend.test import BackendTest

from tensorwright.base import UnsupportedError, knobs, override
from tensorwright.integrations import onnx_backend
from tensorwright.integrations.onnx_backend import Placement

OUTCOMES = ("compiled", "host", "unsupported", "failed")
SUITE = "OnnxBackendNodeModelTest"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one case; `named` is the operator that a refusal names."""

    case: str
    operator: str
    outcome: str
    placement: str
    seconds: float
    named: str = ""
    reason: str = ""


class Watch:
    """What the backend did in the case that runs now; mutable."""

    runs = 0
    placement = ""
    error: BaseException | None = None

    @classmethod
    def clear(cls) -> None:
        cls.runs, cls.placement, cls.error = 0, "", None


class WatchedRep:
    """Passes calls on and notes where the work was done."""

    def __init__(self, prepared: onnx_backend.BackendRep) -> None:
        self.prepared = prepared

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        try:
            results = self.prepared.run(inputs, **kwargs)
        except BaseException as error:
            Watch.error = error
            raise
        placement = self.prepared.placement
        Watch.runs += 1
        Watch.placement = placement.value if placement else ""
        return results


class WatchedBackend(onnx_backend.Backend):
    """The backend, watched."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
        try:
            return WatchedRep(super().prepare(model, device, **kwargs))
        except BaseException as error:
            Watch.error = error
            raise


def operators_of(items: dict[str, Any]) -> dict[str, str]:
    """The operator that each case is about: expanded function bodies count for their function."""
    found: dict[str, str] = {}
    for case in items.values():
        nodes = case.model.graph.node
        if "_expanded" not in case.name:
            found[case.name] = nodes[-1].op_type if nodes else "none"
    for case in items.values():
        if case.name not in found:
            base = re.sub(r"_expanded.*", "", case.name)
            found[case.name] = found.get(base, "function body")
    return found


def run_case(suite: type[unittest.TestCase], case: str, operator: str) -> Row:
    """Run one case of the runner, and judge it by what happened."""
    Watch.clear()
    result = unittest.TestResult()
    start = time.perf_counter()
    suite(case).run(result)
    seconds = time.perf_counter() - start
    error = Watch.error
    if isinstance(error, UnsupportedError):
        return Row(case, operator, "unsupported", "", seconds, error.operator, error.reason)
    troubles = [text for _, text in (*result.failures, *result.errors)]
    troubles += [f"skipped: {why}" for _, why in result.skipped]
    if not troubles and Watch.runs == 0:
        troubles = ["the case did not run"]
    if troubles:
        kind = f"{type(error).__name__}: " if error else ""
        return Row(case, operator, "failed", "", seconds, "", kind + troubles[0][-1500:])
    outcome = "compiled" if Watch.placement == Placement.COMPILED.value else "host"
    return Row(case, operator, outcome, Watch.placement, seconds)


def load_suite() -> tuple[type[unittest.TestCase], dict[str, str]]:
    """The runner's node cases for the CPU, and the operator of each."""
    runner = BackendTest(WatchedBackend, __name__)
    suite = runner.test_cases[SUITE]
    cases = onnx.backend.test.loader.load_model_tests(kind="node")
    operators = operators_of({case.name: case for case in cases})
    names = [name for name in dir(suite) if name.startswith("test_") and name.endswith("_cpu")]
    return suite, {name: operators[name.removesuffix("_cpu")] for name in names}


def worker(pipe: Connection, threads: int, target: str) -> None:
    """Run the cases that come, one by one; None ends it."""
    suite, operators = load_suite()
    pipe.send(operators)
    with override(threads=threads, target=target):
        while (case := pipe.recv()) is not None:
            pipe.send(run_case(suite, case, operators[case]))


@dataclass(slots=True)
class Helper:
    """A worker process and the case that it has in hand."""

    process: Any
    pipe: Connection
    case: str = ""


def start(threads: int, target: str) -> Helper:
    """A fresh worker process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=worker, args=(theirs, threads, target), daemon=True)
    process.start()
    theirs.close()
    return Helper(process, ours)


def run_all(options: argparse.Namespace) -> Iterator[Row]:
    """Run all cases; one that kills its process has failed, and a new process goes on."""
    threads, target = options.threads, options.target
    started = (start(threads, target) for _ in range(options.processes))
    helpers = {helper.pipe: helper for helper in started}
    todo: list[str] | None = None
    operators: dict[str, str] = {}
    while helpers:
        for pipe in wait(list(helpers)):
            helper = helpers[pipe]
            try:
                message = helper.pipe.recv()
            except EOFError:
                del helpers[pipe]
                helper.process.join()
                reason = f"its process died with exit code {helper.process.exitcode}"
                if not helper.case:
                    raise SystemExit(f"a worker could not start: {reason}") from None
                yield Row(helper.case, operators[helper.case], "failed", "", 0.0, "", reason)
                fresh = start(threads, target)
                helpers[fresh.pipe] = fresh
                continue
            if isinstance(message, Row):
                yield message
            else:
                operators = message
            if todo is None:
                todo = chosen_cases(operators, options)
            helper.case = todo.pop() if todo else ""
            helper.pipe.send(helper.case or None)
            if not helper.case:
                del helpers[pipe]
                helper.process.join()


def chosen_cases(operators: dict[str, str], options: argparse.Namespace) -> list[str]:
    """The cases to run, in the order from the last one."""
    names = [name for name in sorted(operators, reverse=True) if options.match in name]
    if options.count:
        return random.Random(options.seed).sample(names, min(options.count, len(names)))
    if not options.one_each:
        return names
    firsts = {operators[name]: name for name in names if "_expanded" not in name}
    return sorted(firsts.values(), reverse=True)


def print_table(rows: list[Row]) -> None:
    """How many cases came out how."""
    counts = Counter(row.outcome for row in rows)
    print(f"{'outcome':12s} {'cases':>6s} {'share':>7s}")
    for outcome in OUTCOMES:
        print(f"{outcome:12s} {counts[outcome]:6d} {counts[outcome] / max(1, len(rows)):7.1%}")
    print(f"{'all':12s} {len(rows):6d}")
    passed = counts["compiled"] + counts["host"]
    folded = sum(1 for row in rows if row.placement == Placement.FOLDED.value)
    print(f"passed {passed} ({passed / max(1, len(rows)):.1%}), ", end="")
    print(f"{counts['compiled'] / max(1, passed):.1%} of them compiled; ", end="")
    print(f"of the {counts['host']} on the host {folded} were done while compiling")


def print_operators(rows: list[Row]) -> None:
    """The same for each operator."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        table[row.operator][row.outcome] += 1
    print(f"{'operator':32s}" + "".join(f"{outcome:>13s}" for outcome in OUTCOMES))
    for operator, counts in sorted(table.items()):
        print(f"{operator:32s}" + "".join(f"{counts[outcome]:13d}" for outcome in OUTCOMES))
    print()


def print_unsupported(rows: list[Row]) -> None:
    """Which operator was refused how often, and why."""
    reasons = Counter((r.named, r.reason) for r in rows if r.outcome == "unsupported")
    for (named, reason), count in sorted(reasons.items()):
        print(f"{count:5d}  {named}: {reason}")
    print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by-operator", action="store_true", help="print a line per operator")
    parser.add_argument("--unsupported", action="store_true", help="print what is refused, and why")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every case into a file")
    parser.add_argument("--match", default="", metavar="TEXT", help="only cases named so")
    parser.add_argument("--one-each", action="store_true", help="one case of each operator")
    parser.add_argument("--count", type=int, default=0, help="so many cases, drawn from all")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default 0)")
    parser.add_argument("--target", default=knobs.TARGET.get(), help="for which code is made")
    parser.add_argument("--processes", type=int, default=2, help="how many at once (default 2)")
    parser.add_argument("--threads", type=int, default=2, help="of each kernel (default 2)")
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ONNX_HOME"] = folder  # the runner writes below it
        rows = sorted(run_all(options), key=_by_name)
    for row in rows:
        if row.outcome == "failed":
            print(f"FAILED {row.case} ({row.operator}): {row.reason}")
            print(f"repeat: python {sys.argv[0]} --match {row.case}\n")
    if options.by_operator:
        print_operators(rows)
    if options.unsupported:
        print_unsupported(rows)
        hosts = sorted({row.operator for row in rows if row.placement == Placement.HOST.value})
        print("on the host: " + ", ".join(hosts or ("none",)) + "\n")
    print(f"{len(rows)} node cases of onnx {onnx.__version__}, ", end="")
    print(f"{time.perf_counter() - began:.0f} s\n")
    print_table(rows)
    counts = Counter(row.outcome for row in rows)
    if options.json:
        record = {
            "onnx": onnx.__version__,
            "counts": {outcome: counts[outcome] for outcome in OUTCOMES},
            "cases": [asdict(row) for row in rows],
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(f"\n{len(rows)} cases, {counts['failed']} faults")
    if options.count:
        return 1 if counts["failed"] else 0
    passed = counts["compiled"] + counts["host"]
    enough = 2 * passed >= len(rows) and 5 * counts["compiled"] >= 4 * passed
    return 0 if enough and not counts["failed"] else 1


def _by_name(row: Row) -> str:
    return row.case


if __name__ == "__main__":
    sys.exit(main())
