"""Where the seconds of one compilation go: the parts of `tensorwright.compile`, each without those
inside it.

The process should be fresh, and its home folder empty or not, as is to be measured.  Seconds are
those of the clock; on one core (`--alone`) no process works ahead, so they are the whole work.

Run: python benchmarks/compile_parts.py MODEL [--alone]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import tensorwright

_PARTS = (
    ("digest of the model", "tensorwright.compiling", "_question"),
    ("reading the model", "tensorwright.pipeline", "load_model"),
    ("graph passes", "tensorwright.pipeline", "simplify"),
    ("graph passes", "tensorwright.pipeline", "run_target_passes"),
    ("layouts and partition", "tensorwright.pipeline", "choose_layouts"),
    ("layouts and partition", "tensorwright.pipeline", "partition"),
    ("measuring the machine", "tensorwright.tuning.selection.predictor", "this_machine"),
    ("choosing: structures", "tensorwright.tuning.selection.candidates", "Candidates.structures"),
    ("choosing: search", "tensorwright.tuning.selection.candidates", "Candidates.search"),
    (
        "choosing: exact prices",
        "tensorwright.tuning.selection.candidates",
        "Candidates.price_exactly",
    ),
    ("choosing: the rest", "tensorwright.tuning.selection.predictor", "Predictor.best"),
    ("lowering", "tensorwright.artifacts.kernel", "loop_program"),
    ("LLVM IR", "tensorwright.artifacts.kernel", "emit_source"),
    ("LLVM", "tensorwright.codegen.llvm.backend", "compile_module"),
    ("kernels: the rest", "tensorwright.pipeline", "build_cached"),
    ("packing constants", "tensorwright.artifacts.assemble", "pack"),
    ("assembling, linking", "tensorwright.pipeline", "assemble"),
    ("files beside the model", "tensorwright.compiling", "_external_files"),
    ("writing the cache", "tensorwright.runtime.caches", "ExecutableCache.put"),
)
"""Part, module, and the function in which it is done."""


class Clock:
    """The seconds of each part; mutable.

    seconds   by part, without those of parts inside
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inside: list[float] = []

    def watch(self, part: str, module: str, function: str) -> None:
        """Count the time of a function for a part from now on; a checkout may lack it."""
        *owner, name = function.split(".")
        holder: Any = importlib.import_module(module)
        for each in owner:
            holder = getattr(holder, each)
        if hasattr(holder, name):
            setattr(holder, name, self.timed(part, getattr(holder, name)))

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time is counted."""

        def run(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            self._inside.append(0.0)
            try:
                return function(*arguments, **options)
            finally:
                whole = time.perf_counter() - start
                self.seconds[part] += whole - self._inside.pop()
                if self._inside:
                    self._inside[-1] += whole

        return run


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the parts of compiling a model.")
    parser.add_argument("model")
    parser.add_argument("--alone", action="store_true", help="on one core, without a process ahead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if arguments.alone:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start = time.perf_counter()
    clock = Clock()
    importlib.import_module("tensorwright.pipeline")
    clock.seconds["imports"] = time.perf_counter() - start
    for part in _PARTS:
        clock.watch(*part)
    clock.timed("everything else", tensorwright.compile)(arguments.model)
    if arguments.json:
        print(json.dumps(clock.seconds))
        return
    whole_s = sum(clock.seconds.values())
    for part, seconds in clock.seconds.most_common():
        print(f"{seconds:8.3f} s  {seconds / whole_s:4.0%}  {part}")
    print(f"{whole_s:8.3f} s  all parts")


if __name__ == "__main__":
    main()
