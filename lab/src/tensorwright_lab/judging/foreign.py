"""Answers to calls of foreign files, compared with those of ONNX Runtime."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tensorwright import compiling
from tensorwright.base import Array, TensorwrightError
from tensorwright.runtime import Executable
from tensorwright_lab.judging.onnxruntime_answers import answers
from tensorwright_lab.zoo.foreign import Case

ANSWERS = ("program", "instance", "both refuse", "ours only", "refused", "wrong")
FAULTS = ("refused", "wrong")


@dataclass(slots=True)
class Verdict:
    """What became of the calls of a case.

    counts     of the points by answer
    compile_s  seconds of compiling it as it is
    faults     a line for each point that was refused by us alone, or is wrong
    """

    title: str
    counts: Counter[str] = field(default_factory=Counter)
    compile_s: float = 0.0
    faults: list[str] = field(default_factory=list)
    no_file: str = ""

    def record(self) -> dict[str, object]:
        """It as values of JSON."""
        seconds = {"compile_s": round(self.compile_s, 2)}
        return {
            "graph": self.title,
            "counts": dict(self.counts),
            "faults": self.faults,
            **(seconds if not self.no_file else {"no file": self.no_file}),
        }


def judge(case: Case, seed: int) -> Verdict:
    """Compile a case as it is, and compare five calls of it."""
    verdict = Verdict(case.title)
    try:
        model = case.build()
    except Exception as error:  # noqa: BLE001 - exporters raise whatever they like
        verdict.no_file = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return verdict
    start = time.perf_counter()
    try:
        executable = compiling.compile(model)
    except TensorwrightError as error:
        verdict.counts["refused"] += 5
        verdict.faults.append(f"compile: {error}")
        return verdict
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
        verdict.counts["wrong"] += 5
        verdict.faults.append(f"compile: {type(error).__name__}: {error}")
        return verdict
    verdict.compile_s = time.perf_counter() - start
    names = {each.name for each in model.graph.input}
    missing = names - {each.name for each in (*case.inputs, *model.graph.initializer)}
    if missing:
        raise ValueError(f"{case.title} gives nothing for {missing}")
    points = case.points(seed)
    feeds = [
        {name: array for name, array in case.feed(sizes, seed).items() if name in names}
        for sizes in points
    ]
    for sizes, feed, wanted in zip(
        points, feeds, answers(model.SerializeToString(), feeds), strict=True
    ):
        answer, why = _compared(executable, feed, wanted, case.tolerance)
        verdict.counts[answer] += 1
        if answer in FAULTS:
            verdict.faults.append(f"{sizes}: {why}")
    return verdict


def _compared(
    executable: Executable,
    feed: dict[str, Array],
    wanted: list[Array] | None,
    tolerance: float,
) -> tuple[str, str]:
    """Who answers a call, and what is wrong with the answer."""
    before = _instances(executable)
    try:
        results = tuple(executable.run(feed).values())
    except TensorwrightError as error:
        return ("both refuse" if wanted is None else "refused"), str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
        return "wrong", f"{type(error).__name__}: {error}"
    if wanted is None:
        return "ours only", ""
    for difference in _differences(wanted, results, tolerance):
        return "wrong", difference
    return ("instance" if _instances(executable) > before else "program"), ""


def _instances(executable: Executable) -> int:
    kept = getattr(executable, "instances", None)
    return 0 if kept is None else len(kept)


def _differences(
    wanted: list[Array], results: tuple[Array, ...], tolerance: float
) -> Iterator[str]:
    """What differs: shapes, types, or numbers beyond the tolerance, of the greatest magnitude."""
    if len(wanted) != len(results):
        yield f"{len(results)} results instead of {len(wanted)}"
    for index, (want, got) in enumerate(zip(wanted, results, strict=False)):
        if want.shape != got.shape or want.dtype != got.dtype:
            yield f"output {index} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        elif not np.array_equal(np.isfinite(want), np.isfinite(got)):
            yield f"output {index}: other numbers are not finite"
        else:
            finite = np.isfinite(want)
            a, b = want[finite].astype(np.float64), got[finite].astype(np.float64)
            scale = max(float(np.max(np.abs(a), initial=0.0)), 1e-3)
            error = float(np.max(np.abs(a - b), initial=0.0)) / scale
            if error > tolerance:
                yield f"output {index} differs by {error:.2g} of the greatest magnitude"
