from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import threading
import time
import timeit
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.runtime.networks import (
    CHAIN,
    COUNT,
    HOSTED,
    NATIVE,
    PROBE_IR,
    SIZE,
    chain_inputs,
    chain_result,
    double,
    executable,
    plan,
    tensor,
    weights,
)

from tensorwright.base import (
    DType,
    InputError,
    InternalError,
    MachineError,
    UnsupportedError,
    UsageError,
    override,
)
from tensorwright.loop import Role
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import (
    ArgumentSpec,
    ConstantRef,
    CopyStep,
    Executable,
    InputRef,
    KernelSpec,
    KernelStep,
    OutputRef,
    empty,
)

pytestmark = pytest.mark.target

ROOT = Path(__file__).parents[3]


def flip(arrays: tuple[Any, ...], attributes: Any) -> tuple[Any, ...]:
    return (np.flip(arrays[0], attributes["axis"]),)


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_a_chain_of_kernels_computes_what_its_plan_says() -> None:
    inputs = chain_inputs()
    results = executable(CHAIN).run(inputs)
    assert list(results) == ["z"]
    np.testing.assert_allclose(results["z"], chain_result(inputs), rtol=1e-6)
    assert address(results["z"]) % 64 == 0


def test_calling_with_arrays_gives_an_array() -> None:
    inputs = chain_inputs()
    result = executable(CHAIN)(inputs["x"], inputs["y"])
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, chain_result(inputs), rtol=1e-6)


def test_several_outputs_come_as_a_tuple() -> None:
    inputs = chain_inputs()
    results = executable(HOSTED, hosts={"flip": flip})(*inputs.values())
    assert isinstance(results, tuple)
    np.testing.assert_allclose(results[0], np.flip(2 * inputs["x"]) + inputs["y"], rtol=1e-6)
    np.testing.assert_array_equal(results[1], inputs["y"])


def test_results_are_the_callers_own() -> None:
    program = executable(CHAIN)
    first = program.run(chain_inputs(1))["z"]
    kept = first.copy()
    program.run(chain_inputs(2))
    np.testing.assert_array_equal(first, kept)


def misaligned() -> Any:
    memory = np.empty(SIZE + 64, np.uint8)
    start = (4 - address(memory)) % 64
    return memory[start : start + SIZE].view(np.float32)


class Exporter:
    """Only `__array__`."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


class DLPackExporter(Exporter):
    """Only DLPack."""

    __array__ = None  # type: ignore[assignment]

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def strided(array: Any) -> Any:
    wide = np.zeros((COUNT, 3), np.float32)
    wide[:, 1] = array
    return wide[:, 1]


def shifted(array: Any) -> Any:
    place = misaligned()
    place[:] = array
    return place


@pytest.mark.parametrize(
    "form",
    [
        strided,
        shifted,
        lambda array: array.astype(">f4"),
        lambda array: array.tolist(),
        memoryview,
        Exporter,
        DLPackExporter,
    ],
    ids="strided misaligned big-endian list buffer __array__ dlpack".split(),
)
def test_inputs_in_any_form(form: Any) -> None:
    inputs = chain_inputs()
    given = {"x": form(inputs["x"]), "y": inputs["y"]}
    np.testing.assert_allclose(executable(CHAIN).run(given)["z"], chain_result(inputs), rtol=1e-6)


def test_torch_tensors_go_in_and_out() -> None:
    torch = pytest.importorskip("torch")
    inputs = chain_inputs()
    program = executable(CHAIN)
    results = program.run({name: torch.from_numpy(array) for name, array in inputs.items()})
    tensor = torch.from_dlpack(results["z"])
    assert tensor.data_ptr() == address(results["z"])
    np.testing.assert_allclose(tensor.numpy(), chain_result(inputs), rtol=1e-6)
    place = torch.empty(COUNT)
    program.run_into(inputs, {"z": place})
    np.testing.assert_allclose(place.numpy(), chain_result(inputs), rtol=1e-6)


def test_a_tensor_with_a_gradient_is_refused_with_advice() -> None:
    torch = pytest.importorskip("torch")
    given = {"x": torch.ones(COUNT, requires_grad=True), "y": torch.ones(COUNT)}
    with pytest.raises(InputError) as caught:
        executable(CHAIN).run(given)
    assert caught.value.where == "input x"
    assert caught.value.remedy == "detach it from the gradient: tensor.detach()"


ONES = np.ones(COUNT, np.float32)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"x": ONES},
            "input y: it is not given\n  try: give x: f32(96), y: f32(96)",
        ),
        (
            {"x": ONES, "yy": ONES},
            "input yy: there is no such input\n  try: did you mean y? give x: f32(96), y: f32(96)",
        ),
        (
            {"x": ONES, "y": ONES, "zzz": ONES},
            "input zzz: there is no such input\n  try: give x: f32(96), y: f32(96)",
        ),
        (
            {"x": ONES[:5], "y": ONES},
            (
                "input x: it must be f32(96), not f32(5)\n"
                "  try: shapes are fixed when a model is compiled: compile it for this shape"
            ),
        ),
        (
            {"x": ONES.reshape(4, 24), "y": ONES},
            "input x: it must be f32(96), not f32(4, 24)\n  try: reshape it: array.reshape((96,))",
        ),
        (
            {"x": ONES.astype(np.float64), "y": ONES},
            "input x: it must be f32(96), not f64(96)\n  try: convert it: array.astype('float32')",
        ),
        (
            {"x": ONES.astype(np.complex64), "y": ONES},
            (
                "input x: it must be f32(96), not complex64(96)\n"
                "  try: convert it: array.astype('float32')"
            ),
        ),
        (
            {"x": ["a"], "y": ONES},
            (
                "input x: a list cannot be read as an array of f32(96) "
                "(could not convert string to float: 'a')\n  try: give a NumPy array"
            ),
        ),
        (
            ONES,
            (
                "inputs: they must be a mapping from name to array, not ndarray\n"
                "  try: give x: f32(96), y: f32(96)"
            ),
        ),
    ],
    ids="missing unknown extra shape reshape dtype complex text mapping".split(),
)
def test_wrong_inputs_are_named(given: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        executable(CHAIN).run(given)
    assert str(caught.value) == message


def test_the_wrong_number_of_arrays() -> None:
    with pytest.raises(InputError, match="2 arrays are needed, not 1"):
        executable(CHAIN)(ONES)


@pytest.mark.parametrize(
    "place", [empty((COUNT,), DType.F32), misaligned(), strided(ONES)], ids="in copied far".split()
)
def test_results_written_into_given_arrays(place: Any) -> None:
    inputs = chain_inputs()
    executable(CHAIN).run_into(inputs, {"z": place})
    np.testing.assert_allclose(place, chain_result(inputs), rtol=1e-6)


def read_only() -> Any:
    array = empty((COUNT,), DType.F32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ({"z": read_only()}, "it is read-only"),
        ({"z": ONES}, "it shares memory with an input or another output"),
        ({"z": ONES.astype(np.float64)}, "it must be f32(96), not f64(96)"),
        ({"z": [1.0] * COUNT}, "it is not an array that can be written"),
        ({}, "it is not given"),
    ],
    ids="read-only shared dtype list missing".split(),
)
def test_outputs_that_cannot_be_written(outputs: Any, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        executable(CHAIN).run_into({"x": ONES, "y": ONES}, outputs)
    assert caught.value.where == "output z"
    assert caught.value.reason == reason


def test_an_output_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"not f32\(5\)\n  try: give an array of that shape"):
        executable(CHAIN).run_into({"x": ONES, "y": ONES}, {"z": np.zeros(5, np.float32)})


def test_outputs_do_not_share_memory() -> None:
    """One step would write over what another has written."""
    steps = [double(InputRef(0), OutputRef(0)), double(InputRef(1), OutputRef(1))]
    both = executable(plan(steps, outputs=(tensor("z"), tensor("v"))))
    place = empty((2 * COUNT,), DType.F32)
    one, other = place[:COUNT], place[COUNT:]
    inputs = chain_inputs()
    for outputs in ({"z": one, "v": one}, {"z": other, "v": place[COUNT // 2 : -COUNT // 2]}):
        for call in (both.run_into, both.bind):
            with pytest.raises(InputError, match="output v: it shares memory with an input or ano"):
                call(inputs, outputs)
    both.run_into(inputs, {"z": one, "v": other})
    np.testing.assert_array_equal(one, 2 * inputs["x"])
    np.testing.assert_array_equal(other, 2 * inputs["y"])


def test_a_bound_call_reads_its_inputs_anew() -> None:
    program = executable(CHAIN)
    inputs = chain_inputs(1)
    bound = program.bind(inputs)
    np.testing.assert_allclose(bound.run()["z"], chain_result(inputs), rtol=1e-6)
    later = chain_inputs(2)
    for name, array in later.items():
        bound.inputs[name][:] = array
    assert bound()["z"] is bound.outputs["z"]
    np.testing.assert_allclose(bound.outputs["z"], chain_result(later), rtol=1e-6)


def test_a_bound_call_reads_aligned_arrays_in_place_and_writes_given_ones() -> None:
    inputs = {name: empty((COUNT,), DType.F32) for name in "xy"}
    place = empty((COUNT,), DType.F32)
    for name, array in chain_inputs().items():
        inputs[name][:] = array
    bound = executable(CHAIN).bind(inputs, {"z": place})
    assert bound.inputs["x"] is inputs["x"]
    assert bound.run()["z"] is place
    np.testing.assert_allclose(place, chain_result(inputs), rtol=1e-6)
    with pytest.raises(InputError, match="not dense, row-major and on a multiple of 64 bytes"):
        executable(CHAIN).bind(inputs, {"z": misaligned()})
    for wrong in (empty((COUNT,), DType.I32), empty((COUNT,), DType.F64), empty((1,), DType.F32)):
        with pytest.raises(InputError, match=r"it must be f32\(96\), not"):
            executable(CHAIN).bind(inputs, {"z": wrong})


def test_a_bound_call_costs_little() -> None:
    """Under 2 us on an idle machine; the bound here is for a busy one."""
    bound = executable(CHAIN).bind(chain_inputs())
    assert min(timeit.repeat(bound.run, number=200, repeat=20)) / 200 < 8e-6


def test_several_threads_call_one_executable() -> None:
    program = executable(CHAIN)
    start = threading.Barrier(4)

    def work(seed: int) -> bool:
        start.wait()
        for turn in range(50):
            inputs = chain_inputs(100 * seed + turn)
            if not np.allclose(program.run(inputs)["z"], chain_result(inputs), rtol=1e-5):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_kernels_run_without_the_interpreters_lock() -> None:
    """A kernel waits for a flag that only another Python thread can set."""
    ir = """
define void @wait(ptr %args, ptr %workspace, i32 %threads) {
  %flag = load ptr, ptr %args
  %o.at = getelementptr ptr, ptr %args, i64 1
  %o = load ptr, ptr %o.at
  br label %again
again:
  %seen = load atomic i32, ptr %flag acquire, align 4
  %is_set = icmp ne i32 %seen, 0
  br i1 %is_set, label %done, label %again
done:
  store i32 %seen, ptr %o
  ret void
}
"""
    spec = KernelSpec("wait", (ArgumentSpec(Role.INPUT, 4), ArgumentSpec(Role.OUTPUT, 4)))
    waiting = plan(
        [KernelStep(0, (InputRef(0), OutputRef(0)), "wait")],
        inputs=(tensor("flag", (), DType.I32),),
        outputs=(tensor("seen", (), DType.I32),),
        constants=(),
        kernels=(spec,),
    )
    flag = empty((), DType.I32)
    flag[...] = 0
    bound = Executable(waiting, [compile_module(ir, NATIVE)], []).bind({"flag": flag})

    def set_flag() -> None:
        time.sleep(0.01)
        ctypes.c_int32.from_address(address(flag)).value = 7

    other = threading.Thread(target=set_flag)
    other.start()
    assert bound.run()["seen"] == 7
    other.join()


TEAM_IR = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define void @team(ptr %args, ptr %workspace, i32 %threads) {
  %is_alone = icmp eq i32 %threads, 1
  br i1 %is_alone, label %alone, label %fork
alone:
  call void @body(ptr %args)
  ret void
fork:
  call void @GOMP_parallel(ptr @body, ptr %args, i32 %threads, i32 0)
  ret void
}
define internal void @body(ptr %args) {
entry:
  %x = load ptr, ptr %args
  %o.slot = getelementptr ptr, ptr %args, i64 1
  %o = load ptr, ptr %o.slot
  %first = call i32 @omp_get_thread_num()
  %step = call i32 @omp_get_num_threads()
  br label %loop
loop:
  %i = phi i32 [%first, %entry], [%i.next, %work]
  %more = icmp slt i32 %i, 96
  br i1 %more, label %work, label %done
work:
  %x.at = getelementptr float, ptr %x, i32 %i
  %value = load float, ptr %x.at
  %twice = fadd float %value, %value
  %o.at = getelementptr float, ptr %o, i32 %i
  store float %twice, ptr %o.at
  %i.next = add i32 %i, %step
  br label %loop
done:
  ret void
}
"""


def forking_program() -> Executable:
    forking = plan(
        [KernelStep(0, (InputRef(0), OutputRef(0)), "team")],
        inputs=(tensor("x"),),
        constants=(),
        kernels=(KernelSpec("team", CHAIN.kernels[0].arguments),),
    )
    return Executable(forking, [compile_module(TEAM_IR, NATIVE)], [], threads=2)


def test_several_threads_call_kernels_that_fork() -> None:
    program = forking_program()

    def work(seed: int) -> bool:
        x = chain_inputs(seed)["x"]
        return all(np.array_equal(program(x), x + x) for _ in range(20))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, range(3)))


def probe(threads: int | None) -> Executable:
    spec = KernelSpec("probe", (ArgumentSpec(Role.OUTPUT, 4),), 256, 64)
    asking = plan(
        [KernelStep(0, (OutputRef(0),), "probe")],
        inputs=(),
        outputs=(tensor("threads", ()),),
        constants=(),
        kernels=(spec,),
        arena_bytes=0,
    )
    return Executable(asking, [compile_module(PROBE_IR, NATIVE)], [], threads=threads)


def test_kernels_are_told_their_threads_and_get_their_scratch_memory() -> None:
    assert probe(3).run({})["threads"] == 3
    assert probe(3).peak_memory_bytes == 256 + 3 * 64
    with override(threads=2):
        assert probe(None).run({})["threads"] == 2


def test_outputs_may_be_inputs_constants_and_each_other() -> None:
    copying = plan(
        [
            CopyStep(InputRef(1), OutputRef(0), SIZE),
            CopyStep(ConstantRef(0), OutputRef(1), SIZE),
            CopyStep(OutputRef(0), OutputRef(2), SIZE),
        ],
        outputs=(tensor("a"), tensor("b"), tensor("c")),
    )
    inputs = chain_inputs()
    results = executable(copying).run(inputs)
    np.testing.assert_array_equal(results["a"], inputs["y"])
    np.testing.assert_array_equal(results["b"], weights())
    np.testing.assert_array_equal(results["c"], inputs["y"])


def test_host_steps_run_between_kernels() -> None:
    program = executable(HOSTED, hosts={"flip": flip})
    inputs = chain_inputs()
    np.testing.assert_allclose(
        program.run(inputs)["z"], np.flip(2 * inputs["x"]) + inputs["y"], rtol=1e-6
    )
    assert program.host_operators == ("flip",)
    assert program.steps == ("double", "flip it", "add", "copy")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda a, _: (a[0][:5],), "the host gave float32(5,), but f32(96) is declared"),
        (lambda a, _: (a[0].astype("f8"),), "the host gave float64(96,), but f32(96) is declared"),
        (lambda a, _: (), "0 results, but 1 are declared"),
        (lambda a, _: (a[0].reshape(7),), "operator flip failed on the host: cannot reshape"),
        (lambda a, _: a[0].fill(0), "operator flip failed on the host: assignment destination"),
    ],
    ids="shape dtype count raises writes".split(),
)
def test_a_host_function_that_breaks_its_word(function: Any, reason: str) -> None:
    with pytest.raises(InternalError) as caught:
        executable(HOSTED, hosts={"flip": function}).run(chain_inputs())
    assert caught.value.where == "step flip it"
    assert caught.value.reason.startswith(reason)


def test_an_unknown_host_operator_is_refused_when_the_program_is_made() -> None:
    with pytest.raises(UnsupportedError):
        executable(HOSTED, hosts={})
    with pytest.raises(UnsupportedError):
        executable(HOSTED)


@pytest.mark.parametrize("shown", [CHAIN, HOSTED], ids="kernels hosted".split())
def test_profile_times_every_step(shown: Any) -> None:
    program = executable(shown, hosts={"flip": flip})
    inputs = chain_inputs()
    times = program.profile(inputs, repeat=3)
    assert tuple(step.label for step in times) == program.steps
    assert all(0 <= step.time_s < 0.1 for step in times)
    assert times[0].flops == COUNT
    expected = executable(shown, hosts={"flip": flip}).run(inputs)["z"]
    np.testing.assert_array_equal(program.run(inputs)["z"], expected)


def test_zero_sized_tensors_pass() -> None:
    nothing = plan(
        [CopyStep(InputRef(0), OutputRef(0), 0)],
        inputs=(tensor("x", (0, 3)),),
        outputs=(tensor("z", (0, 3)),),
        constants=(),
        kernels=(),
        arena_bytes=0,
    )
    program = Executable(nothing, [], [])
    assert program.run({"x": np.zeros((0, 3), np.float32)})["z"].shape == (0, 3)


def test_constants_must_fit_the_plan() -> None:
    with pytest.raises(InternalError, match="0 given, 1 declared"):
        Executable(
            replace(CHAIN, kernels=(), steps=(CopyStep(InputRef(0), OutputRef(0), SIZE),)), [], []
        )


def test_properties_and_text() -> None:
    program = executable(CHAIN, threads=1)
    assert program.inputs == CHAIN.inputs
    assert program.outputs == CHAIN.outputs
    assert program.target is NATIVE
    assert program.threads == 1
    assert program.constant_bytes == SIZE
    assert program.peak_memory_bytes == 4 * SIZE
    assert repr(program) == f"<Executable net: 4 steps, target {NATIVE}, 1 threads>"
    assert str(program).splitlines()[1:] == [
        "  in x: f32(96)",
        "  in y: f32(96)",
        "  out z: f32(96)",
        "  double x:      double(in0, arena[0:384])",
        "  double again:  double(arena[0:384], arena[384:768])",
        "  add:           add(arena[384:768], in1, arena[0:384])",
        "  add:           add(arena[0:384], const0, out0)",
    ]
    program.run(chain_inputs())
    program.trim()
    program.run(chain_inputs())


def test_pickling_is_refused_with_advice() -> None:
    with pytest.raises(UsageError, match="holds machine code and memory of this process"):
        pickle.dumps(executable(CHAIN))


def test_a_forked_child_does_not_hang() -> None:
    """The threads of its parent's pool did not survive the fork."""
    code = """
import os, numpy as np
from tests.unit.runtime.test_executable import forking_program
program = forking_program()
x = np.arange(96, dtype=np.float32)
bound = program.bind({"x": x})
bound.run()
program(x)
child = os.fork()
if child == 0:
    ok = all(np.array_equal(z, 2 * x) for z in (bound.run()["z"], program(x), program(x)))
    ok = ok and np.array_equal(forking_program()(x), 2 * x)
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), np.array_equal(program(x), 2 * x))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "0 True", done.stderr


def test_an_arena_that_does_not_fit_into_memory() -> None:
    program = executable(replace(CHAIN, arena_bytes=1 << 60))
    with pytest.raises(
        MachineError, match=r"tensor memory: it takes 1,073,741,824\.0 GiB; this machine has"
    ):
        program.run(chain_inputs())


@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_than_one_thread(threads: int) -> None:
    with pytest.raises(UsageError, match="give a whole number, at least 1"):
        executable(CHAIN, threads=threads)
