"""A kernel on a device that takes its process with it costs a record, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.grids import OPENCL_GENERIC, opencl_device

from tensorwright.artifacts import build_kernel
from tensorwright.expr import compute, placeholder
from tensorwright.graph import program
from tensorwright.records import Status
from tensorwright.schedule import parse_trace
from tensorwright.tuning.measuring import ChildRunner, MeasureOptions

OPTIONS = MeasureOptions(repeats=2, min_sample_s=0.0005, limit_s=60.0)


def test_a_crash_on_a_device() -> None:
    opencl_device()
    x = placeholder("x", (64,))
    workload = program([compute("y", (64,), lambda i: x[i] + x[i])])
    kernel = build_kernel(workload, parse_trace("bind(y, i, thread.x)"), OPENCL_GENERIC)
    head, body = kernel.object_code.split(b"{\n", 1)
    crash = replace(kernel, object_code=head + b"{\n    *(volatile __global int *)8 = 1;\n" + body)
    with ChildRunner(OPTIONS, bounds_addresses=False) as runner:
        found = [runner.measure(workload, [each], 1, math.inf) for each in (crash, kernel)]
    ((first,), (second,)) = (each or [] for each in found)
    assert first.status is Status.CRASHED
    assert "SIGSEGV" in first.error
    assert second.status is Status.OK
    assert len(second.times_s) >= 1
