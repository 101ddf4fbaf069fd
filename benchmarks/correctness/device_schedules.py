"""Random schedules for graphics processors: texts against the interpreter and NumPy.

    python benchmarks/correctness/device_schedules.py [--shim 500] [--pocl 100] [--seed 0]
                                                      [--json FILE]

A third of the schedules are candidates of the space that a search for cards has, for products and
convolutions with rests, with a pipeline where one may be.  The others are legal traces of small
expressions, drawn as the tests draw them; in half of these threads share memory, wait for each
other or exchange values.  Each program is interpreted and compared with NumPy; then so many run as
CUDA's text, compiled by g++ with the shim of the tests, and so many, evenly among them, by OpenCL
on this machine (PoCL).  Programs that OpenCL has no text for, folds over lanes, are passed over.
Prints counts and the faults.  Exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path[:0] = [str(Path(__file__).parents[2])]

# ruff: noqa: E402
from tests import grids
from tests.unit.schedule.expressions import Expression, conv, matmul
from tests.unit.schedule.test_random_traces import pipelines_of, schedules

from tensorwright.artifacts import loop_program
from tensorwright.base import TensorwrightError, UnsupportedError
from tensorwright.loop import LoopProgram, lower, run_passes
from tensorwright.schedule import Trace, format_trace, replay
from tensorwright.tuning.population import make_space_tables, sample
from tensorwright.tuning.space import space_of
from tensorwright_lab.loop_interpreter import interpret

BATCH = 50
"""Programs whose texts are compiled together."""
TOLERANCE = 1e-4
_MOST_DRAWN = 12
"""Traces drawn, at most, for each that is wanted."""
_TOGETHER = ("shared ", "barrier", "wait for", " over ")
Results = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Case:
    """An expression, its schedule, and the program that they make."""

    expression: Expression
    trace: Trace
    program: LoopProgram


class Outcome:
    """What was compared, and what is wrong; mutable."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()
        self.faults: list[str] = []

    def compare(self, way: str, case: Case, results: Results, wanted: Results) -> None:
        """Count the results of a way to run a case, or note what is wrong."""
        try:
            assert results.keys() == wanted.keys(), "other outputs"
            for name, want in wanted.items():
                np.testing.assert_allclose(results[name], want, TOLERANCE, TOLERANCE, err_msg=name)
        except AssertionError as error:
            self.note(way, case, error)
        else:
            self.right[way] += 1

    def note(self, way: str, case: Case, error: Exception) -> None:
        """Keep a fault, with what repeats it."""
        self.faults.append(f"{way}: {error}\n{format_trace(case.trace)}\n{case.program}")


def draw(count: int, number: int) -> list[Case]:
    """So many different programs for graphics processors, mixed."""
    candidates = count // 3
    plain = (count - candidates) // 2
    cases = [*from_spaces(candidates, number)]
    cases += from_traces(count - len(cases), plain, number)
    np.random.default_rng(number).shuffle(cases)
    return cases


def from_spaces(count: int, number: int) -> Iterator[Case]:
    """Candidates of a search."""
    expressions = (matmul(20, 18, 12), matmul(13, 22, 9, with_relu=True), conv(6, 1, 3, 10))
    source = np.random.default_rng(number)
    for position, expression in enumerate(expressions):
        space = space_of(expression.state, grids.OPENCL_GENERIC)
        share = len(range(position, count, len(expressions)))
        drawn = sample(make_space_tables(space), share, source)
        for sketch, genes in zip(drawn.sketch.tolist(), drawn.genes, strict=True):
            chosen = space.sketches[sketch]
            decisions = chosen.decisions_of(tuple(genes[: len(chosen.choices)].tolist()))
            trace = chosen.bound(decisions)
            pipelines = pipelines_of(replay(expression.state, trace))
            if pipelines:
                trace = (*trace, pipelines[source.integers(len(pipelines))])
            yield Case(expression, trace, loop_program(expression, trace, grids.SM_80))


def from_traces(count: int, plain: int, number: int) -> list[Case]:
    """Random traces; in at most `plain` of the programs threads have nothing to do together."""
    cases: dict[str, Case] = {}
    left = Counter(plain=plain, together=count - plain)

    @seed(number)
    @settings(
        max_examples=_MOST_DRAWN * count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(schedules(on_card=True))
    def keep(drawn: tuple[Expression, Trace, dict[str, int]]) -> None:
        if not left.total():
            return
        expression, trace, _ = drawn
        program = run_passes(lower(replay(expression.state, trace)))
        text = str(program)
        kind = "together" if any(word in text for word in _TOGETHER) else "plain"
        if left[kind] and text not in cases and ("@thread" in text or "@block" in text):
            cases[text] = Case(expression, trace, program)
            left[kind] -= 1

    keep()
    return list(cases.values())


def check_batch(cases: Sequence[Case], shim: int, outcome: Outcome) -> None:
    """Interpret some programs, and run the first so many by the shim."""
    arrays = [case.expression.arrays() for case in cases]
    for case, given_arrays in zip(cases, arrays, strict=True):
        outcome.steps.update(type(step).__name__ for step in case.trace)
        answers = case.expression.answers(given_arrays)
        try:
            outcome.compare("interpreter", case, interpret(case.program, given_arrays), answers)
        except TensorwrightError as error:
            outcome.note("interpreter", case, error)
    if shim:
        by_shim = grids.run_all_on_cpu([case.program for case in cases[:shim]], arrays[:shim])
        for case, given_arrays, results in zip(cases[:shim], arrays, by_shim, strict=False):
            outcome.compare("shim", case, results, case.expression.answers(given_arrays))


def check_on_opencl(cases: Sequence[Case], count: int, outcome: Outcome) -> None:
    """Run so many programs by OpenCL, evenly among all."""
    step = max(1, len(cases) // count) if count else 1
    for case in [*cases[::step], *cases]:
        if outcome.right["opencl"] >= count:
            return
        arrays = case.expression.arrays()
        try:
            results = grids.run_on_opencl(case.program, arrays)
        except UnsupportedError:
            continue
        outcome.compare("opencl", case, results, case.expression.answers(arrays))


def main() -> int:
    """Draw, run and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shim", type=int, default=500)
    parser.add_argument("--pocl", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    for count, lack in (
        (asked.shim, grids.missing_compiler()),
        (asked.pocl, grids.missing_opencl()),
    ):
        if count and lack:
            print(lack, file=sys.stderr)
            return 1
    outcome, start = Outcome(), time.perf_counter()
    cases = draw(max(asked.shim, asked.pocl), asked.seed)
    print(f"{len(cases)} programs drawn", file=sys.stderr)
    for first in range(0, len(cases), BATCH):
        check_batch(cases[first : first + BATCH], max(0, asked.shim - first), outcome)
        print(f"{first + BATCH}: {dict(outcome.right)}", file=sys.stderr, flush=True)
    by_shim_s = time.perf_counter() - start
    check_on_opencl(cases, asked.pocl, outcome)
    figures = {
        "measured": datetime.now(UTC).date().isoformat(),
        "seed": asked.seed,
        "right": dict(outcome.right),
        "faults": len(outcome.faults),
        "steps": dict(outcome.steps.most_common()),
        "interpreter_and_shim_s": round(by_shim_s),
        "opencl_s": round(time.perf_counter() - start - by_shim_s),
    }
    print(json.dumps(figures, indent=1))
    print(*outcome.faults, sep="\n\n")
    if outcome.faults:
        print(f"repeat: python {' '.join(sys.argv)}")
    print(f"\n{len(cases)} cases, {len(outcome.faults)} faults")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
