"""Object code into the process: addresses, symbols, refusals, unloading."""

import ctypes
import gc
import math
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tensorwright.base import InternalError, cpu_target, detect_target
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import LoadedObject, load_object
from tensorwright.runtime.native.jit import Session, load_function, runtime_symbols
from tensorwright.runtime.native.linker import PAGE_BYTES

NATIVE = detect_target()
FOREIGN = cpu_target("aarch64-neon" if NATIVE.arch == "x86-64" else "x86-64-avx2")

FORK_JOIN = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define internal void @body(ptr %data) {
  %thread = call i32 @omp_get_thread_num()
  %count = call i32 @omp_get_num_threads()
  %place = getelementptr i32, ptr %data, i32 %thread
  store i32 %count, ptr %place
  ret void
}
define void @run(ptr %data, i32 %threads) {
  call void @GOMP_parallel(ptr @body, ptr %data, i32 %threads, i32 0)
  ret void
}
"""


def constant_function(value: int) -> bytes:
    return compile_module(f"define i32 @f() {{\n  ret i32 {value}\n}}\n", NATIVE)


def call_int(code: LoadedObject) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("f"))())


def test_a_function_is_called_by_its_address() -> None:
    assert call_int(load_object(constant_function(42), ("f",))) == 42


def test_equal_names_in_different_objects_do_not_clash() -> None:
    codes = [load_object(constant_function(value), ("f",)) for value in range(5)]
    assert [call_int(code) for code in codes] == [0, 1, 2, 3, 4]


def test_constants_and_library_functions_are_resolved() -> None:
    text = """
declare double @sin(double)
define double @f(double %x) {
  %y = call double @sin(double %x)
  %z = fmul double %y, 1.2345678901234567
  ret double %z
}
"""
    code = load_object(compile_module(text, NATIVE), ("f",))
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))
    assert call(0.5) == math.sin(0.5) * 1.2345678901234567


def test_memory_functions_are_resolved() -> None:
    text = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @f(ptr %x, i64 %n) {
  call void @llvm.memset.p0.i64(ptr %x, i8 7, i64 %n, i1 false)
  ret void
}
"""
    code = load_object(compile_module(text, NATIVE), ("f",))
    data = (ctypes.c_uint8 * 100)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("f"))(data, 99)
    assert list(data) == [7] * 99 + [0]
    assert {"memcpy", "memset", "sinf", "pow"} <= {name for name, _ in runtime_symbols()}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_piece_of_a_region_runs_once(threads: int) -> None:
    code = load_object(compile_module(FORK_JOIN, NATIVE), ("run",))
    data = (ctypes.c_int32 * 4)()
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(code.address("run"))
    run(data, threads)
    assert 1 <= data[0] <= threads
    assert list(data) == [data[0]] * data[0] + [0] * (4 - data[0])


def test_refusals_name_the_reason() -> None:
    good = constant_function(1)
    undefined = (
        "declare void @nowhere()\ndefine void @f() {\n  call void @nowhere()\n  ret void\n}\n"
    )
    cases = [
        (b"", "cannot be linked"),
        (b"not an object file at all", "cannot be linked"),
        (good[: len(good) // 3], "cannot be linked"),
        (compile_module(undefined, NATIVE), "cannot be linked"),
        (compile_module("define void @f() {\n  ret void\n}\n", FOREIGN), "it is for ELF machine"),
    ]
    for data, reason in cases:
        with pytest.raises(InternalError, match=reason):
            load_object(data, ("f",))
    with pytest.raises(InternalError, match="Symbols not found"):
        load_object(good, ("g",))
    assert call_int(load_object(good, ("f",))) == 1


@pytest.mark.usefixtures("young_garbage")
def test_code_is_unloaded_with_its_owner() -> None:
    data = constant_function(3)

    def executable_bytes() -> int:
        lines = Path("/proc/self/maps").read_text().splitlines()
        spans = [line.split()[0].split("-") for line in lines if " r-xp " in line]
        return sum(int(end, 16) - int(begin, 16) for begin, end in spans)

    load_object(data, ("f",))
    gc.collect()
    before = executable_bytes()
    kept = [load_object(data, ("f",)) for _ in range(50)]
    assert executable_bytes() >= before + 50 * PAGE_BYTES
    assert call_int(kept[-1]) == 3
    del kept
    gc.collect()
    assert executable_bytes() <= before


@pytest.mark.usefixtures("young_garbage")
def test_a_session_ends_after_its_last_object() -> None:
    first, second = Session(), Session()
    kept = first.load(constant_function(1), ("f",)), second.load(constant_function(2), ("f",))
    del first, second
    gc.collect()
    assert [call_int(code) for code in kept] == [1, 2]


def test_a_network_of_kernels_loads_at_once() -> None:
    data = compile_module(FORK_JOIN, NATIVE)
    start = time.perf_counter()
    kept = [load_object(data, ("run",)) for _ in range(60)]
    assert time.perf_counter() - start < 1.0  # measured: 0.01
    assert len({code.address("run") for code in kept}) == 60


def test_threads_may_load_at_the_same_time() -> None:
    results: list[int] = []

    def work(first: int) -> None:
        results.extend(
            call_int(load_object(constant_function(value), ("f",)))
            for value in range(first, first + 20)
        )

    workers = [threading.Thread(target=work, args=(100 * index,)) for index in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(results) == [100 * index + value for index in range(4) for value in range(20)]


def test_a_process_that_still_holds_code_ends_cleanly() -> None:
    program = """
from tensorwright.base import detect_target
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import load_object
code = load_object(compile_module("define void @f() { ret void }", detect_target()), ("f",))
cycle = [code]
cycle.append(cycle)
"""
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": str(Path(__file__).parents[3] / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_function_keeps_its_code() -> None:
    function = NativeFunction(Module(), "tw_nothing", (Kind.I64,))
    function.finish()
    loaded = load_function(function)
    address, run = loaded.code.address(function.symbol), loaded.run
    del loaded
    gc.collect()
    mapped = [line.split()[:2] for line in Path("/proc/self/maps").read_text().splitlines()]
    ends = [(*(int(end, 16) for end in part.split("-")), rights) for part, rights in mapped]
    assert [rights for low, high, rights in ends if low <= address < high] == ["r-xp"]
    run(1)
