"""From a workload and a trace to object code, here and in worker processes."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import doubled, matmul, workload_of

from tensorwright.artifacts import Kernel, build, build_request
from tensorwright.base import ScheduleError, UsageError
from tensorwright.expr import Compute, Fn, apply, compute, placeholder
from tensorwright.records import Status
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.measuring import BuildFailed, BuildStopped, ChildRunner, PoolBuilder
from tensorwright.tuning.space import space_of

TARGET = native_target()


@pytest.fixture(scope="module")
def builder() -> Iterator[PoolBuilder]:
    with PoolBuilder(workers=1) as found:
        yield found


def test_a_kernel_and_what_it_takes_to_call_it() -> None:
    built = build(build_request(matmul(), "", TARGET))
    assert built.object_code.startswith(b"\x7fELF")
    assert [parameter.name for parameter in built.parameters] == ["a", "b", "relu"]
    spec = built.spec
    assert spec.symbol == built.symbol
    assert spec.scratch_bytes(4) == spec.workspace_bytes + 4 * spec.local_workspace_bytes
    assert built.seconds > 0


@pytest.mark.parametrize(
    ("trace", "kind"), [("conjure(y)", UsageError), ("split(y, nowhere, [2])", ScheduleError)]
)
def test_a_trace_that_is_no_good_is_refused(trace: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        build(build_request(doubled(), trace, TARGET))


def test_results_come_in_order_and_failures_are_values(builder: PoolBuilder) -> None:
    traces = ("", "split(y, i, [8])", "split(y, nowhere, [2])", "")
    first, second, bad, last = builder.build(
        [build_request(doubled(), trace, TARGET) for trace in traces]
    )
    assert isinstance(first, Kernel)
    assert isinstance(second, Kernel)
    assert isinstance(last, Kernel)
    assert first.object_code == last.object_code
    assert isinstance(bad, BuildFailed)
    assert bad.status is Status.BUILD_ERROR
    assert bad.error.startswith("ScheduleError: split(y, nowhere, [2])")


def test_a_build_that_takes_too_long_fails() -> None:
    with PoolBuilder(workers=1, limit_s=0.0001) as builder:
        (result,) = builder.build([build_request(matmul(), "", TARGET)])
    assert result == BuildFailed(Status.BUILD_TIMEOUT, "not built within 0.0001 s")


def test_after_the_wish_to_stop_nothing_is_built(builder: PoolBuilder) -> None:
    stop = threading.Event()
    stop.set()
    assert builder.build([build_request(doubled(), "", TARGET)], stop.is_set) == [BuildStopped()]


def chain(length: int) -> Compute:
    """A deep program: its tensors hang on each other one by one."""
    tensor = compute("t0", (4,), lambda i: placeholder("x", (4,))[i] + 1.0)
    for number in range(1, length):
        source = tensor
        tensor = compute(f"t{number}", (4,), lambda i, source=source: source[i] + 1.0)
    return tensor


def test_deep_programs_travel_to_workers(builder: PoolBuilder) -> None:
    (result,) = builder.build([build_request(workload_of(chain(150)), "", TARGET)])
    assert isinstance(result, Kernel)


def test_what_is_built_computes_the_workload(builder: PoolBuilder) -> None:
    """The whole way once: a real space, real builds, real measurements, packed constants."""
    workload = matmul(48)
    space = space_of(state_of(workload), TARGET)
    (result,) = builder.build([build_request(workload, format_trace(space.default_trace), TARGET)])
    assert isinstance(result, Kernel)
    x = placeholder("x", (100,))
    roots = workload_of(compute("roots", (100,), lambda i: apply(Fn.SQRT, x[i])))
    (other,) = builder.build([build_request(roots, "", TARGET)])
    assert isinstance(other, Kernel)
    with ChildRunner() as runner:
        for each, kernel in ((workload, result), (roots, other)):
            measured = runner.measure(each, [kernel], 1, math.inf)
            assert measured is not None
            assert measured[0].status is Status.OK
