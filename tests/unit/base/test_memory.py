"""What cannot fit into memory is refused, with the tensor and the sizes named."""

from __future__ import annotations

import platform
import resource
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest

import tensorwright
from tensorwright import base
from tensorwright.expr import placeholder
from tensorwright.graph import GraphBuilder
from tensorwright.ops import operator
from tensorwright.processes import Child, Done, Job
from tensorwright_lab.bench.machine import peak_memory_bytes

TEBI = 1 << 40
T = TypeVar("T")


def test_tensors_that_fit_pass() -> None:
    base.check_fits({})
    base.check_fits({"x": base.physical_memory_bytes() // 2, "y": 1})


def _peaks() -> tuple[int, int, int]:
    """The peak of this process before and after it fills a block, and that of one it starts."""
    before = peak_memory_bytes()
    np.ones(before // 8 + (8 << 20))
    return before, peak_memory_bytes(), _in_a_child(peak_memory_bytes)


def _in_a_child(function: Callable[[], T]) -> T:
    child = Child()
    outcome = child.do(Job(function), 60)
    child.close()
    assert isinstance(outcome, Done)
    return outcome.value


def test_the_peak_is_that_of_this_process_alone() -> None:
    """A process that is started by one with much memory begins small."""
    before, peak, of_another = _in_a_child(_peaks)
    assert peak >= before + (32 << 20)
    assert 0 < of_another < peak


def test_the_largest_is_named() -> None:
    with pytest.raises(base.MachineError) as caught:
        base.check_fits({"x": 64 * TEBI, "y": 128 * TEBI})
    assert caught.value.where == "tensor y"
    assert caught.value.reason.startswith(
        "it takes 131,072.0 GiB, with what is needed beside it 196,608.0 GiB; this machine has "
    )


def test_networks_are_refused_before_they_are_compiled() -> None:
    b = GraphBuilder("big")
    x = b.input("x", (4,))
    whole = b.add("expand", x, shape=(TEBI, 4))
    rows = b.add("topk", whole, k=1)  # a loop algorithm, so that it is in memory
    with pytest.raises(base.MachineError, match="tensor expand_0: it takes 16,384"):
        tensorwright.compile(b.finish([b.add("reduce_sum", rows)]))


def test_what_is_never_in_memory_is_not_refused() -> None:
    b = GraphBuilder("fused")
    x = b.input("x", (1 << 20, 1))
    y = b.input("y", (1 << 20,))
    total = b.add("reduce_sum", b.add("add", x, y), axes=(0, 1))  # of 2**40 sums
    assert tensorwright.compile(b.finish([total])).peak_memory_bytes < 1 << 26


def test_expressions_are_refused() -> None:
    x = placeholder("x", (TEBI, 32))
    relu = operator("relu").meaning
    assert relu is not None
    (y,) = relu((x,), {})
    with pytest.raises(base.MachineError, match="this machine has"):
        tensorwright.compile(y)


def _faults_of_large_arrays() -> int:
    """How many page faults ten arrays of 8 MiB take, one after the other, and not the first."""
    base.keep_freed_memory()
    np.ones(1 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only the allocator of glibc can keep memory"
)
def test_a_process_can_keep_the_memory_that_it_frees() -> None:
    assert _in_a_child(_faults_of_large_arrays) < 10  # of huge pages each array takes four
