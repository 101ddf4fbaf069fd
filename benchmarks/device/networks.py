"""Do whole networks run on a device, and are their answers those of ONNX Runtime?

A line for each network: the largest difference from ONNX Runtime over the largest magnitude of the
output, launches of kernels, kernels, copies between the memories, steps on the host and why they
are there, seconds of compiling, of the first call and of the next one. PoCL, which runs OpenCL on
the processor, will do: `pip install '.[opencl,pocl]'`.

Run: python benchmarks/device/networks.py [NETWORK ...] [--target opencl] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import tensorwright
from tensorwright.base import TensorwrightError
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.runtime import CopyStep, Executable, HostStep, KernelStep, named_target
from tensorwright.runtime import random_array as draw
from tensorwright_lab.suites import read_proto
from tensorwright_lab.zoo.architectures.bert import BertShape, bert_base

NETWORKS = (
    "light:squeezenet",
    "light:resnet50",
    "zoo:mobilenet_v2",
    "zoo:bert_base",
    "wild:deberta",
    "zoo:nasrnn",
)
TOLERANCE = 1e-4
BERT_LAYERS = 2


@dataclass(frozen=True)
class Row:
    """What a network does on the device; `error` where it does not run."""

    name: str
    difference: float = 0.0
    kernels: int = 0
    launches: int = 0
    copies: int = 0
    host_steps: Mapping[str, int] | None = None
    compile_s: float = 0.0
    first_s: float = 0.0
    next_s: float = 0.0
    error: str = ""

    @property
    def is_right(self) -> bool:
        return not self.error and self.difference <= TOLERANCE


def read(name: str) -> Any:
    """The ONNX model of a network; two layers of BERT."""
    if name == "zoo:bert_base":
        return to_onnx(bert_base(shape=BertShape(layers=BERT_LAYERS)))
    return read_proto(*name.split(":"))


def check(name: str, target: str) -> Row:
    """Compile a network, run it twice, and compare."""
    model = read(name)
    start = time.perf_counter()
    executable = tensorwright.compile(model, target=target)
    compiled = time.perf_counter()
    source = np.random.default_rng(0)
    inputs = {each.name: draw(each, source) for each in executable.inputs}
    results = executable.run(inputs)
    first = time.perf_counter()
    executable.run(inputs)
    end = time.perf_counter()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted = session.run(list(results), inputs)
    difference = max(map(difference_of, results.values(), wanted))
    return Row(
        name,
        difference,
        **counts(executable),
        compile_s=compiled - start,
        first_s=first - compiled,
        next_s=end - first,
    )


def difference_of(result: Any, wanted: Any) -> float:
    """The largest difference over the largest magnitude wanted."""
    left, right = (np.asarray(each).astype(np.float64) for each in (result, wanted))
    if left.shape != right.shape or not np.isfinite(left).all():
        return float("inf")
    return float(np.abs(left - right).max(initial=0) / max(np.abs(right).max(initial=0), 1e-30))


def counts(executable: Executable) -> dict[str, Any]:
    """What the plan of an executable consists of."""
    plan = executable.plan
    steps = [step for step in plan.steps if isinstance(step, KernelStep)]
    hosts = Counter(step.label for step in plan.steps if isinstance(step, HostStep))
    return {
        "kernels": len(plan.kernels),
        "launches": sum(len(plan.kernels[step.kernel].launches) for step in steps),
        "copies": sum(isinstance(step, CopyStep) for step in plan.steps),
        "host_steps": dict(hosts),
    }


def text_of(row: Row) -> str:
    if row.error:
        return f"FAILS {row.name:20} {row.error}"
    verdict = "ok" if row.is_right else "WRONG"
    hosts = ", ".join(f"{count} x {label}" for label, count in (row.host_steps or {}).items())
    return (
        f"{verdict:5} {row.name:20} {row.difference:8.1e} {row.kernels:7} {row.launches:8}"
        f" {row.copies:6} {row.compile_s:9.1f} {row.first_s:8.1f} {row.next_s:8.2f}"
        f"  {hosts or 'none'}"
    )


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--target", default="opencl")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    print(
        f"{'':5} {'network':20} {'differs':>8} {'kernels':>7} {'launches':>8} {'copies':>6}"
        f" {'compile s':>9} {'first s':>8} {'next s':>8}  steps on the host"
    )
    rows: list[Row] = []
    for name in options.networks:
        try:
            row = check(name, options.target)
        except TensorwrightError as error:
            row = Row(name, error=error.message())
        rows.append(row)
        print(text_of(row), flush=True)
    if options.json:
        facts = {"target": named_target(options.target).key, "rows": [asdict(row) for row in rows]}
        Path(options.json).write_text(json.dumps(facts, indent=1) + "\n")
    return int(not all(row.is_right for row in rows))


if __name__ == "__main__":
    sys.exit(main())
