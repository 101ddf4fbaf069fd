"""Teams of threads: which steps share one, that its threads work at once, that results agree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.targets import native_target
from tests.unit.runtime.networks import (
    CHAIN,
    COUNT,
    NATIVE,
    SIZE,
    TENSOR,
    arena,
    plan,
    tensor,
)

from tensorwright import compile as compile_model
from tensorwright import runtime
from tensorwright.base import CpuTarget, InternalError, cpu_target
from tensorwright.graph import Graph, GraphBuilder, interpret, random_inputs
from tensorwright.loop import Role
from tensorwright.machine_code.compilation import compile_module
from tensorwright_lab.zoo import build

pytestmark = pytest.mark.usefixtures("by_rule")

ROOT = Path(__file__).parents[3]
LONG_S, SHORT_S = 1e-3, 1e-8

# ------------------------------------------------------------------ which steps share a team


def steps_of(kinds: str) -> tuple[runtime.Step, ...]:
    """A chain of steps: l long, s short, h on the host."""
    steps: list[runtime.Step] = []
    source: runtime.BufferRef = runtime.InputRef(0)
    for position, kind in enumerate(kinds):
        destination = arena(position % 2)
        if kind == "h":
            typed = runtime.TypedRef(source, TENSOR), runtime.TypedRef(destination, TENSOR)
            steps.append(runtime.HostStep("flip", (("axis", 0),), typed[:1], typed[1:], "host"))
        else:
            steps.append(runtime.KernelStep(0, (source, destination), kind, COUNT, 2 * SIZE))
        source = destination
    steps.append(runtime.KernelStep(0, (source, runtime.OutputRef(0)), "s", COUNT, 2 * SIZE))
    return tuple(steps)


def seconds(step: runtime.KernelStep[runtime.BufferRef], target: CpuTarget) -> float:
    return LONG_S if step.label == "l" else SHORT_S


@pytest.mark.parametrize(
    ("kinds", "teams"),
    [
        ("ll", [(0, 2)]),
        ("lsssl", [(0, 5)]),
        ("sslslss", [(2, 5)]),
        ("l", []),
        ("ss", []),
        ("llhll", [(0, 2), (3, 5)]),
        ("lhl", []),
    ],
)
def test_a_team_spans_the_shared_steps_between_steps_on_the_host(
    kinds: str, teams: list[tuple[int, int]]
) -> None:
    chosen = runtime.choose_teams(plan(steps_of(kinds), threads=2), seconds)
    runtime.verify_plan(chosen)
    assert [(team.begin, team.end) for team in chosen.teams] == teams
    kernels = [step for step in chosen.steps if isinstance(step, runtime.KernelStep)]
    assert all(step.most_threads == (0 if step.label == "l" else 1) for step in kernels)
    assert runtime.choose_teams(plan(steps_of(kinds)), seconds).teams == ()


def test_no_thread_waits_for_long_stretches_on_one() -> None:
    def slow_alone(step: runtime.KernelStep[runtime.BufferRef], target: CpuTarget) -> float:
        return LONG_S if step.label == "l" else 4e-7

    short = "s" * 2600
    chosen = runtime.choose_teams(plan(steps_of(f"ll{short}ll"), threads=2), slow_alone)
    assert [(team.begin, team.end) for team in chosen.teams] == [(0, 2), (2602, 2604)]


def test_threads_follow_from_the_work() -> None:
    def microsecond(step: runtime.KernelStep[runtime.BufferRef], target: CpuTarget) -> float:
        return 1e-6

    chosen = runtime.choose_teams(plan(steps_of("s"), threads=16), microsecond)
    assert isinstance(chosen.steps[0], runtime.KernelStep)
    assert chosen.steps[0].most_threads == 4
    back = runtime.without_teams(chosen)
    assert back == plan(steps_of("s"), threads=16)
    little, much = (
        runtime.KernelStep(0, (), "", 100, 100),
        runtime.KernelStep(0, (), "", 10**9, 100),
    )
    avx2 = cpu_target("x86-64-avx2")
    assert runtime.estimate_seconds(little, avx2) < 1e-8
    assert 0.01 < runtime.estimate_seconds(much, avx2) < 0.1


@pytest.mark.parametrize(
    ("teams", "reason"),
    [
        ([(0, 3), (2, 4)], "team 2..4: it shares steps with another one"),
        ([(1, 1)], "team 1..1: it shares steps with another one, or is empty"),
        ([(0, 9)], "team 0..9: .* or has steps that do not exist"),
    ],
)
def test_teams_that_do_not_fit_are_refused(teams: list[tuple[int, int]], reason: str) -> None:
    broken = replace(CHAIN, teams=tuple(runtime.Team(*each) for each in teams))
    with pytest.raises(InternalError, match=reason):
        runtime.verify_plan(broken)


def test_a_team_with_a_step_on_the_host_is_refused() -> None:
    broken = replace(plan(steps_of("lhl")), teams=(runtime.Team(0, 3),))
    with pytest.raises(InternalError, match="a step on the host is among its steps"):
        runtime.verify_plan(broken)
    steps = (replace(CHAIN.steps[0], most_threads=-1), *CHAIN.steps[1:])
    with pytest.raises(InternalError, match="it may run on -1 threads"):
        runtime.verify_plan(replace(CHAIN, steps=steps))


def test_teams_are_written_and_plans_without_them_are_read() -> None:
    chosen = runtime.choose_teams(plan(steps_of("lsl"), threads=2), seconds)
    assert runtime.plan_from_data(runtime.plan_to_data(chosen)) == chosen
    assert "team: steps 0..3" in str(chosen)
    assert "@threads<=1" in str(chosen)
    data: Any = runtime.plan_to_data(runtime.without_teams(chosen))
    del data["teams"]  # as earlier versions wrote it
    for step in data["steps"]:
        del step["most_threads"]
    assert runtime.plan_from_data(data) == runtime.without_teams(chosen)


# ------------------------------------------------------------------ threads that work at once

KERNELS_IR = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

define void @meet(ptr %args, ptr %workspace, i32 %threads) {
  store atomic i32 0, ptr %workspace release, align 4
  %context = alloca [2 x ptr]
  %o.slot = getelementptr ptr, ptr %args, i64 1
  %o = load ptr, ptr %o.slot
  store ptr %o, ptr %context
  %flag = getelementptr ptr, ptr %context, i64 1
  store ptr %workspace, ptr %flag
  call void @GOMP_parallel(ptr @meeting, ptr %context, i32 %threads, i32 0)
  ret void
}
define internal void @meeting(ptr %context) {
entry:
  %o = load ptr, ptr %context
  %flag.at = getelementptr ptr, ptr %context, i64 1
  %flag = load ptr, ptr %flag.at
  %count = call i32 @omp_get_num_threads()
  %before = atomicrmw add ptr %flag, i32 1 acq_rel
  br label %wait
wait:
  %here = load atomic i32, ptr %flag acquire, align 4
  %all = icmp sge i32 %here, %count
  br i1 %all, label %done, label %wait
done:
  %number = call i32 @omp_get_thread_num()
  %o.at = getelementptr float, ptr %o, i32 %number
  %value = sitofp i32 %count to float
  store float %value, ptr %o.at
  ret void
}

define void @nest(ptr %args, ptr %workspace, i32 %threads) {
  %o.slot = getelementptr ptr, ptr %args, i64 1
  %o = load ptr, ptr %o.slot
  call void @GOMP_parallel(ptr @outer, ptr %o, i32 %threads, i32 0)
  ret void
}
define internal void @outer(ptr %o) {
  %number = call i32 @omp_get_thread_num()
  %at = mul i32 %number, 4
  %own = getelementptr float, ptr %o, i32 %at
  call void @GOMP_parallel(ptr @inner, ptr %own, i32 2, i32 0)
  %again = call i32 @omp_get_thread_num()
  %count = call i32 @omp_get_num_threads()
  %a = sitofp i32 %again to float
  %c = sitofp i32 %count to float
  %a.at = getelementptr float, ptr %own, i64 2
  store float %a, ptr %a.at
  %c.at = getelementptr float, ptr %own, i64 3
  store float %c, ptr %c.at
  ret void
}
define internal void @inner(ptr %own) {
  %number = call i32 @omp_get_thread_num()
  %count = call i32 @omp_get_num_threads()
  %at = getelementptr float, ptr %own, i32 %number
  %c = sitofp i32 %count to float
  store float %c, ptr %at
  ret void
}
"""
"""meet: thread n waits until all are there, then writes how many to element n.

nest: thread n writes from element 4n on how many threads a loop inside its loop has, and then its
own number and how many there are outside of that loop.
"""


def meeting(symbol: str, threads: int, most: int = 0, steps: int = 3) -> dict[str, Any]:
    """The outputs of some such steps, one each, in a team of so many threads."""
    spec = runtime.KernelSpec(
        symbol,
        (runtime.ArgumentSpec(Role.INPUT, SIZE), runtime.ArgumentSpec(Role.OUTPUT, SIZE)),
        64,
    )
    calls = tuple(
        runtime.KernelStep(
            0, (runtime.InputRef(0), runtime.OutputRef(n)), f"{n}", most_threads=most
        )
        for n in range(steps)
    )
    asked = plan(
        calls,
        inputs=(tensor("x"),),
        outputs=tuple(tensor(f"z{n}") for n in range(steps)),
        constants=(),
        kernels=(spec,),
        threads=threads,
        teams=(runtime.Team(0, steps),),
    )
    program = runtime.Executable(asked, [compile_module(KERNELS_IR, NATIVE)], [], threads=threads)
    outputs = {spec.name: np.zeros(COUNT, np.float32) for spec in program.outputs}
    program.run_into({"x": np.zeros(COUNT, np.float32)}, outputs)
    return outputs


@pytest.mark.parametrize(("threads", "most", "count"), [(2, 0, 2), (2, 1, 1)])
def test_the_threads_of_a_team_work_at_the_same_time(threads: int, most: int, count: int) -> None:
    check_meetings("meet", threads, most, [*range(count)], [count] * count)


def test_a_loop_inside_a_shared_loop_runs_alone() -> None:
    check_meetings("nest", 2, 0, [0, 2, 3, 4, 6, 7], [1, 0, 2, 1, 1, 2])


def check_meetings(
    symbol: str, threads: int, most: int, elements: list[int], expected: list[int]
) -> None:
    """Check some elements of each result.

    A team has fewer threads while one rests, since other processes kept it from its work: then the
    call is made again.
    """
    for _ in range(100):
        results = [each[elements].tolist() for each in meeting(symbol, threads, most).values()]
        if all(each == expected for each in results):
            return
        time.sleep(0.05)
    assert results == [expected] * len(results)


# ------------------------------------------------------------------ whole networks


def small_network(steps: int = 6) -> Graph:
    """Products of rows with matrices, large enough to be shared, small things between."""
    builder = GraphBuilder("cells")
    source = np.random.default_rng(0)
    x = state = builder.input("x", (1, 192))
    for _ in range(steps):
        w = builder.constant(source.standard_normal((192, 192)).astype(np.float32) / 14)
        (product,) = builder.apply("matmul", (state, w))
        (shifted,) = builder.apply("add", (product, x))
        (total,) = builder.apply("reduce_sum", (shifted,), axes=(1,), keepdims=True)
        (scaled,) = builder.apply("tanh", (total,))
        (state,) = builder.apply("add", (shifted, scaled))
    return builder.finish((state,))


@pytest.fixture(scope="module")
def program() -> runtime.Executable:
    compiled = compile_model(small_network(), target=native_target(), threads=2)
    assert compiled.plan.teams
    return compiled


def meaning(graph: Graph, inputs: dict[str, Any]) -> Any:
    return next(iter(interpret(graph, inputs).values()))


def test_a_network_in_a_team_computes_its_meaning(program: runtime.Executable) -> None:
    graph = small_network()
    for seed in range(3):
        inputs = random_inputs(graph, seed)
        np.testing.assert_allclose(program(inputs["x"]), meaning(graph, inputs), 1e-4, 1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_team_changes_no_bit(threads: int, program: runtime.Executable, tmp_path: Path) -> None:
    program.save(tmp_path / "net.tw")
    loaded = runtime.load(tmp_path / "net.tw", threads)
    assert loaded.plan == program.plan
    contents = program._contents
    forking = runtime.Executable(
        runtime.without_teams(program.plan), contents.objects, contents.constants, threads=2
    )
    inputs = random_inputs(small_network())
    np.testing.assert_array_equal(loaded(inputs["x"]), forking(inputs["x"]))


def test_several_callers_have_a_team_each(program: runtime.Executable) -> None:
    graph = small_network()

    def work(seed: int) -> bool:
        x = random_inputs(graph, seed)["x"]
        expected = program(x)
        return all(np.array_equal(program(x), expected) for _ in range(30))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, range(3)))


def test_every_step_of_a_team_is_timed(program: runtime.Executable) -> None:
    times = program.profile(random_inputs(small_network()), repeat=3)
    assert [time.label for time in times] == list(program.steps)
    assert all(0 < time.time_s < 10 for time in times)


def test_an_interrupt_comes_after_the_call(program: runtime.Executable) -> None:
    inputs = random_inputs(small_network())
    expected = program(inputs["x"])
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs ignore it
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()

    def call_until_interrupted() -> None:
        while True:
            program(inputs["x"])

    with pytest.raises(KeyboardInterrupt):
        call_until_interrupted()
    timer.join()
    signal.signal(signal.SIGINT, kept)
    np.testing.assert_array_equal(program(inputs["x"]), expected)


def run_script(script: str, **environment: str) -> None:
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **environment},
        timeout=120,
        check=True,
    )


def test_a_forked_child_runs_without_its_team() -> None:
    script = """
import os, sys
import numpy as np
from tensorwright import compile
from tensorwright.graph import random_inputs
from tests.unit.runtime.test_teams import small_network
program = compile(small_network(), threads=2)
x = random_inputs(small_network())["x"]
expected = program(x)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(program(x), expected) else 1)
sys.exit(os.waitpid(child, 0)[1] >> 8)
"""
    run_script(script)


def test_a_recurrent_network_of_the_zoo_has_one_team() -> None:
    graph = build("nasrnn")
    compiled = compile_model(graph, target=native_target(), threads=2)
    assert [(team.begin, team.end) for team in compiled.plan.teams] == [(0, len(compiled.steps))]
    inputs = random_inputs(graph)
    result = next(iter(compiled.run(inputs).values()))
    np.testing.assert_allclose(result, meaning(graph, inputs), 1e-4, 1e-4)
