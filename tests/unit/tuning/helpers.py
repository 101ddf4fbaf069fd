"""Small workloads, kernels written by hand, and a builder and a runner that take no time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from tests.targets import native_target

from tensorwright import expr
from tensorwright.artifacts import BuildRequest, Kernel
from tensorwright.base import CpuTarget, DType
from tensorwright.codegen import Signature
from tensorwright.graph import Workload
from tensorwright.loop import Buffer, Parameter, Role
from tensorwright.machine_code.compilation import compile_module
from tensorwright.records import Status
from tensorwright.schedule import Split
from tensorwright.tuning.measuring import (
    BuildFailed,
    BuildResult,
    BuildStopped,
    Measurement,
    Runner,
)
from tensorwright.tuning.measuring.runner import BackgroundJob
from tensorwright.tuning.space import Choice, Sketch, Space
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import TaskState

SIZE = 1024


def workload_of(
    *outputs: expr.Compute, key: str = "", constants: frozenset[str] = frozenset()
) -> Workload:
    tensors: tuple[expr.Tensor, ...] = expr.topological_order(*outputs)
    inputs = tuple(tensor for tensor in tensors if isinstance(tensor, expr.Placeholder))
    name = key or outputs[0].name
    return Workload(name, inputs, constants, outputs, name)


def measured_task(
    name: str,
    calls: float,
    trials: int,
    default_s: float,
    best_s: float,
    error: str = "",
    uses: tuple[tuple[str, float], ...] = (),
) -> TaskState:
    """The state of a task that a display shows."""
    task = Task(Workload(name, (), frozenset(), (), name[:16]), calls, calls=uses)
    return TaskState(task, trials, default_s, best_s, error=error)


def padded_convolution(
    shape: tuple[int, int, int, int], filters: int, stride: int = 1
) -> expr.Compute:
    """A 3x3 convolution in NHWC with its weights in HWIO, padded by one."""
    images, height, width, channels = shape
    x, w = expr.placeholder("x", shape), expr.placeholder("w", (3, 3, channels, filters))
    padded = expr.compute(
        "padded",
        (images, height + 2, width + 2, channels),
        lambda n, i, j, c: expr.select(
            expr.all_of(i >= 1, i <= height, j >= 1, j <= width), x[n, i - 1, j - 1, c], 0.0
        ),
    )
    p, q, c = expr.reduce_axis("p", 3), expr.reduce_axis("q", 3), expr.reduce_axis("c", channels)
    return expr.compute(
        "conv",
        (images, -(-height // stride), -(-width // stride), filters),
        lambda n, i, j, o: expr.sum_over(
            padded[n, i * stride + p, j * stride + q, c] * w[p, q, c, o], p, q, c
        ),
    )


def doubled(key: str = "doubled") -> Workload:
    """y[i] = 2 * x[i], of `SIZE` floats."""
    x = expr.placeholder("x", (SIZE,))
    return workload_of(expr.compute("y", (SIZE,), lambda i: x[i] * 2.0), key=key)


def matmul(size: int = 32) -> Workload:
    """A matrix product with a constant operand, then ReLU."""
    a, b = expr.placeholder("a", (size, size)), expr.placeholder("b", (size, size))
    k = expr.reduce_axis("k", size)
    c = expr.compute("c", (size, size), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))
    relu = expr.compute("relu", (size, size), lambda i, j: expr.apply(expr.Fn.MAX, c[i, j], 0.0))
    return workload_of(relu, key=f"matmul{size}", constants=frozenset({"b"}))


HEAD = """
define void @kernel(ptr %args, ptr %workspace, i32 %threads) {
entry:
  %x = load ptr, ptr %args
  %y.at = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %y.at
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
"""
TAIL = """
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, COUNT
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
DOUBLE = """
  %from = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %from
  %twice = fadd float %value, %value
  %to = getelementptr float, ptr %y, i64 %i
  store float %twice, ptr %to
"""


def kernel_of(
    body: str = DOUBLE, count: int = SIZE, workspace_bytes: int = 0, beside: str = ""
) -> Kernel:
    """A kernel for `doubled`: the body is run for %i = 0..count-1.

    beside   what stands in the module beside the function
    """
    text = HEAD + body + TAIL.replace("COUNT", str(count)) + beside
    code = compile_module(text, native_target())
    parameters = (
        Parameter(Buffer("x", (SIZE,), DType.F32), Role.INPUT),
        Parameter(Buffer("y", (SIZE,), DType.F32), Role.OUTPUT),
    )
    return Kernel(code, Signature("kernel", parameters, workspace_bytes), 0.0, native_target())


def numbered_space(task: Task, target: CpuTarget, count: int = 40) -> Space:
    """Unroll factors 1..count: decisions that print, for searches that build nothing."""
    step = Split(task.workload.outputs[0].name, "i", (expr.Decision("t"),))
    return Space((Sketch("numbers", (step,), (Choice.of("t", tuple(range(1, count + 1)), 8),)),))


def number_of(trace: str) -> int:
    """The decision that a trace of `numbered_space` stands for."""
    return int(trace.partition("[")[2].partition("]")[0])


class FakeBuilder:
    """Builds nothing: the object code is the trace. Numbers in `failing` do not build.

    Background jobs are done where `does_background_jobs`.
    """

    def __init__(self, failing: Sequence[int] = (), *, does_background_jobs: bool = False) -> None:
        self.failing = set(failing)
        self.does_background_jobs = does_background_jobs
        self.requests: list[BuildRequest] = []
        self.is_closed = False

    def build(
        self,
        requests: Sequence[BuildRequest],
        should_stop: Callable[[], bool] = lambda: False,
        background_jobs: Sequence[BackgroundJob] = (),
    ) -> list[BuildResult]:
        self.requests += requests
        for background in background_jobs if self.does_background_jobs else ():
            background.take(background.job.function(*background.job.arguments))
        return [BuildStopped() if should_stop() else self._one(request) for request in requests]

    def _one(self, request: BuildRequest) -> BuildResult:
        if number_of(request.trace) in self.failing:
            return BuildFailed(Status.BUILD_ERROR, "it does not build")
        return Kernel(request.trace.encode(), Signature("kernel", ()), 0.0, request.target)

    def close(self) -> None:
        self.is_closed = True


class FakeRunner(Runner):
    """Every trace has a time of its own, between 1 and 2 ms; numbers in `statuses` fail."""

    def __init__(
        self,
        statuses: dict[int, Status] | None = None,
        before: Callable[[int], None] | None = None,
    ) -> None:
        self.statuses = statuses or {}
        self.before = before or (lambda count: None)
        self.measured: list[tuple[str, str]] = []
        self.turns: list[int] = []
        self.is_closed = False

    def measure(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[Measurement] | None:
        self.before(len(self.measured))
        if should_stop():
            return None
        if len(kernels) > 1:
            self.turns.append(len(kernels))
        return [self._one(workload, kernel.object_code.decode()) for kernel in kernels]

    def _one(self, workload: Workload, trace: str) -> Measurement:
        self.measured.append((workload.key, trace))
        status = self.statuses.get(number_of(trace), Status.OK)
        times_s = (time_of(workload.key, trace),) if status.is_timed else ()
        return Measurement(status, times_s, "" if status.is_timed else f"it {status.value}")

    def close(self) -> None:
        self.is_closed = True


def time_of(key: str, trace: str) -> float:
    """What `FakeRunner` says."""
    digest = hashlib.sha256(f"{key} {trace}".encode()).digest()
    return 0.001 + int.from_bytes(digest[:4]) / 2**32 / 1000
