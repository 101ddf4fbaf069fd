"""The pool: pieces that nobody begins, threads that stand still, the gate, many models, forks."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.targets import native_target
from tests.unit.runtime.test_teams import small_network

from tensorwright import compile as compile_model
from tensorwright.base import cpu_target
from tensorwright.graph import random_inputs
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import load_object
from tensorwright.runtime.native.jit import Session
from tensorwright.runtime.native.own_modules import own_modules
from tensorwright.runtime.native.pool import Pool, Worker, pool_memory, worker_base
from tensorwright.runtime.native.pool.gate import write_pay
from tensorwright.runtime.native.pool.layout import Clock
from tensorwright.runtime.native.pool.serving import write_do_piece

ROOT = Path(__file__).parents[3]

SLOW_WORKER = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define internal void @body(ptr %data) {
entry:
  %number = call i32 @omp_get_thread_num()
  %count = call i32 @omp_get_num_threads()
  %at = getelementptr i32, ptr %data, i32 %number
  store i32 %count, ptr %at
  %here = call ptr inttoptr (i64 SELF to ptr)()
  %callers.at = getelementptr ptr, ptr %data, i32 4
  %caller = load ptr, ptr %callers.at
  %is.caller = icmp eq ptr %here, %caller
  %time = select i1 %is.caller, i32 5000, i32 50000
  call i32 inttoptr (i64 USLEEP to ptr)(i32 %time)
  ret void
}
define void @run(ptr %data, i32 %threads) {
  %callers.at = getelementptr ptr, ptr %data, i32 4
  %here = call ptr inttoptr (i64 SELF to ptr)()
  store ptr %here, ptr %callers.at
  call void @GOMP_parallel(ptr @body, ptr %data, i32 %threads, i32 0)
  ret void
}
"""
"""run: each piece writes how many there are and then sleeps, longer than the caller's in others."""


def run_script(script: str, **environment: str) -> str:
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **environment},
        timeout=120,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["x86-64-sse2", "aarch64-neon"])
def test_own_functions_are_compiled_on_other_processors(name: str) -> None:
    target = cpu_target(name)
    texts = own_modules(target.arch)  # inline assembly would end this process
    assert all(compile_module(text, target).startswith(b"\x7fELF") for text in texts)


def test_words_change_in_one_step() -> None:
    module = Module()
    function = NativeFunction(module, "change", (Kind.POINTER,))
    words = function.parameters[0].array(Kind.I64)
    words[1] = words.exchange(0, 5, 6).cast("zext", Kind.I64)
    words[2] = words.exchange(0, 5, 7).cast("zext", Kind.I64)
    words[3] = words.count(0, -2)
    function.finish()
    code = load_object(compile_module(module.text(), native_target()), ("change",))
    data = (ctypes.c_int64 * 4)(5)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("change"))(data)
    assert list(data) == [4, 1, 0, 6]


@pytest.mark.parametrize(
    ("order", "done"), [(0, [(1, 2)]), (6, [(3, 6), (4, 6), (5, 6)]), (7, [(5, 6), (4, 6), (3, 6)])]
)
def test_a_piece_is_done_in_parts_first_to_last_or_last_to_first(
    order: int, done: list[tuple[int, int]]
) -> None:
    """The second of two pieces; each part notes its number, and how many there are."""
    module = Module()
    note = NativeFunction(module, "note", (Kind.POINTER,))
    words = note.parameters[0].array(Kind.I64)
    words[words[Worker.DATA]] = words[Worker.NUMBER]
    words[words[Worker.DATA] + 1] = words[Worker.COUNT]
    words[Worker.DATA] = words[Worker.DATA] + 2
    note.finish()
    run = NativeFunction(module, "run", (Kind.POINTER, Kind.I64))
    slot, number = run.parameters
    run.do(write_do_piece(module), slot, run.address_of(note), slot, number)
    run.finish()
    code = load_object(compile_module(module.text(), native_target()), ("run",))
    data = (ctypes.c_int64 * 32)()
    data[Worker.DATA], data[Worker.NUMBER], data[Worker.COUNT] = 16, 1, 2
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("run"))(data, order)
    assert list(data[16 : data[Worker.DATA]]) == [word for pair in done for word in pair]
    assert (data[Worker.NUMBER], data[Worker.COUNT]) == (1, 2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The start of a script: `open_it(threads)` loads a network; its input x, what it computes."""
    folder = tmp_path_factory.mktemp("pool")
    graph = small_network(4)
    program = compile_model(graph, target=native_target(), threads=4)
    program.save(folder / "net.tw")
    x = random_inputs(graph)["x"]
    np.savez(folder / "arrays.npz", x=x, y=program(x))
    return f"""
import os, threading
import numpy as np
from tensorwright import load
from tensorwright.runtime.native.pool import Pool, Worker, pool_memory, worker_base
folder = {str(folder)!r}
arrays = np.load(folder + "/arrays.npz")
x, expected = arrays["x"], arrays["y"]
def open_it(threads):
    return load(folder + "/net.tw", threads)
def is_right(program):
    return np.array_equal(program(x), expected)
words = pool_memory().words
"""


def test_a_call_does_the_pieces_of_threads_that_never_begin_and_lets_them_rest(saved: str) -> None:
    script = """
words[Pool.WORKERS] = 3  # which no thread serves
program = open_it(4)
bound = program.bind({"x": x})
rest = worker_base(0) + Worker.REST
for _ in range(10000):
    (result,) = bound.run().values()
    if words[rest]:
        break
print(np.array_equal(result, expected), words[Pool.LIVE], words[rest])
"""
    assert run_script(saved + script, TENSORWRIGHT_CORES="4") == "True 0 10000000\n"


def test_a_thread_that_stands_still_is_waited_for_once_and_then_rests() -> None:
    script = """
import ctypes
def address_of(name):
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
from tensorwright.base import detect_target
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import load_object
from tensorwright.runtime.native.pool import Pool, Worker, pool_memory, worker_base
text = SLOW_WORKER.replace("USLEEP", str(address_of("usleep")))
text = text.replace("SELF", str(address_of("pthread_self")))
code = load_object(compile_module(text, detect_target()), ("run",))
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(code.address("run"))
data = (ctypes.c_int64 * 8)()
words, rest = pool_memory().words, worker_base(0) + Worker.REST
for _ in range(200):
    run(data, 2)  # the thread may not begin in time: then the call does both pieces
    if words[rest]:
        break
first = words[rest]
run(data, 2)
print(first, ctypes.cast(data, ctypes.POINTER(ctypes.c_int32))[0], words[Pool.WORKERS])
"""
    slow = f"SLOW_WORKER = {SLOW_WORKER!r}"
    assert run_script(slow + script, TENSORWRIGHT_CORES="2") == "10000000 1 1\n"


def test_a_thread_pays_for_standing_still_with_time_that_it_ran() -> None:
    module = Module()
    function = NativeFunction(module, "ask", (Kind.POINTER, Kind.I64))
    worker, stood = function.parameters
    answer = function.call(Kind.TRUTH, write_pay(module, Clock(module)), worker, stood)
    worker.array(Kind.I64)[Worker.STATE] = answer.cast("zext", Kind.I64)
    function.finish()
    clock_gettime = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value
    assert clock_gettime is not None
    session = Session((("clock_gettime", clock_gettime),))
    code = session.load(compile_module(module.text(), native_target()), ("ask",))
    ask = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("ask"))
    words = (ctypes.c_int64 * Worker.SIZE)()
    words[Worker.CLOCK] = time.CLOCK_MONOTONIC  # as if it had run since the machine started

    def rest_ms(stood_ms: int) -> int:
        ask(words, stood_ms * 1_000_000)
        assert bool(words[Worker.REST]) == bool(words[Worker.STATE])
        return words[Worker.REST] // 1_000_000

    assert rest_ms(6) == 0  # with 96 of 100 ms
    assert [rest_ms(7) for _ in range(6)] == [10, 40, 160, 640, 1600, 1600]
    words[Worker.PAID] = 0
    assert [rest_ms(6), rest_ms(7)] == [0, 10]
    words[Worker.PAID] = 1 << 62  # from the clock of a thread that had not begun
    assert rest_ms(7) == 40
    assert words[Worker.PAID] < 1 << 62


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no masks")
def test_a_cpuset_of_one_core_gets_no_further_thread(saved: str) -> None:
    script = """
program = open_it(4)
print(words[Pool.CORES], all(is_right(program) for _ in range(20)), words[Pool.WORKERS])
"""
    pinned = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    assert run_script(pinned + saved + script) == "1 True 0\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no masks")
def test_threads_use_all_cores_also_if_a_caller_that_is_pinned_starts_them(saved: str) -> None:
    script = """
program = open_it(4)
cores = os.sched_getaffinity(0)
def work():
    os.sched_setaffinity(0, {min(cores)})
    while not words[Pool.WORKERS]: program(x)
caller = threading.Thread(target=work)
caller.start()
caller.join()
latest_s = time.monotonic() + 10
while True:
    masks = [os.sched_getaffinity(int(each)) for each in os.listdir("/proc/self/task")]
    are_set = all(each == cores for each in masks)
    if are_set or time.monotonic() > latest_s:
        break
print(are_set, len(masks) > 1)
"""
    given = "import time\n" + saved + script
    assert run_script(given, TENSORWRIGHT_CORES="4") == "True True\n"


def test_callers_eight_times_the_cores_get_the_same_bits(saved: str) -> None:
    script = """
from concurrent.futures import ThreadPoolExecutor
programs = [open_it(threads) for threads in (16, 3, 1)]
def work(number):
    return all(is_right(programs[number % 3]) for _ in range(100))
with ThreadPoolExecutor(16) as pool:
    print(all(pool.map(work, range(16))))
"""
    assert run_script(saved + script, TENSORWRIGHT_CORES="16") == "True\n"


def test_ten_models_share_the_threads_of_the_pool(saved: str) -> None:
    script = """
programs = [open_it(2) for _ in range(10)]
right = []
def work(program):
    right.append(all(is_right(program) for _ in range(50)))
threads = [threading.Thread(target=work, args=(each,)) for each in programs]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(all(right), len(right), is_right(programs[0]))
print(words[Pool.ACTIVE], words[Pool.FIRST], words[Pool.WORKERS] <= 2)
"""
    lines = run_script(saved + script, TENSORWRIGHT_CORES="2").splitlines()
    assert lines[0] == "True 10 True"
    assert lines[1] == "0 0 True"


def test_callers_share_as_many_arenas_as_there_are_cores(saved: str) -> None:
    script = """
program = open_it(2)
calls = [program.bind({"x": x}) for _ in range(8)]
right = []
def gives(call):
    (result,) = call.run().values()
    return np.array_equal(result, expected)
def work(call):
    right.append(all(gives(call) for _ in range(50)))
def arenas():
    return len(program._loaded.arenas._memory)
threads = [threading.Thread(target=work, args=(each,)) for each in calls]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(all(right), len(right), arenas())
program.trim()
print(arenas(), is_right(program), arenas(), gives(calls[0]))
"""
    lines = run_script(saved + script, TENSORWRIGHT_CORES="3").splitlines()
    assert lines == ["True 8 3", "0 True 1 True"]


@pytest.mark.parametrize("workers", [0, 1])
def test_the_gate_runs_calls_one_after_the_other(workers: int) -> None:
    """With one core no two calls run at once, whether a thread of the pool runs those that wait,
    or the system has no thread for it.
    """
    script = """
import ctypes, threading
from tensorwright.base import detect_target
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import load_object
from tensorwright.runtime.native.pool import ADMIT_SYMBOL, Pool, pool_memory
module = Module()
body = NativeFunction(module, "body", (Kind.POINTER,), is_internal=True)
words = body.parameters[0].array(Kind.I64)
before = words[0]
sleep = body.parameters[0].array(Kind.POINTER)[1]
body.call(Kind.I32, sleep, body.number(50, Kind.I32))
words[0] = before + 1  # two at once would lose some
body.finish()
function = NativeFunction(module, "pass_gate", (Kind.POINTER,))
with function.loop(100):
    function.do(ADMIT_SYMBOL, function.address_of(body), *function.parameters)
function.finish()
code = load_object(compile_module(module.text(), detect_target()), ("pass_gate",))
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("pass_gate"))
usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
data, words = (ctypes.c_int64 * 2)(0, usleep), pool_memory().words
words[Pool.MOST] = MOST
threads = [threading.Thread(target=run, args=(data,)) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(data[0], words[Pool.WORKERS], words[Pool.ACTIVE], words[Pool.FIRST], words[Pool.PASSES])
""".replace("MOST\n", f"{workers}\n")
    assert run_script(script, TENSORWRIGHT_CORES="1") == f"800 {workers} 0 0 0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_of_a_fork_has_threads_of_its_own(saved: str) -> None:
    script = """
program = open_it(2)
ok = is_right(program)
stop = []
def busy():
    while not stop: program(x)
caller = threading.Thread(target=busy)
caller.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        live = int(words[Pool.LIVE])
        same = all(is_right(program) for _ in range(20))
        os._exit(0 if same and live == 0 and words[Pool.LIVE] == 1 else 1)
    codes.append(os.waitpid(child, 0)[1])
stop.append(1)
caller.join()
print(ok, codes)
"""
    assert run_script(saved + script, TENSORWRIGHT_CORES="2") == "True [0, 0, 0, 0, 0]\n"


def test_positions_do_not_overlap() -> None:
    words = [
        Pool.CORES,
        Pool.WORKERS,
        Pool.MOST,
        Pool.STOP,
        Pool.LIVE,
        Pool.KEY,
        Pool.MASK_BYTES,
        Pool.ACTIVE,
        Pool.CROWD,
    ]
    words += [Pool.CROWD_UNTIL, Pool.FIRST, Pool.LAST, Pool.PASSES, Pool.MUTEX, Pool.MASK]
    words += [Pool.SIZE]
    assert sorted(set(words)) == words
    assert worker_base(0) == Pool.SIZE
    assert Worker.CONDITION + 12 <= Worker.SIZE  # 96 bytes for a condition
    assert pool_memory().address % 64 == 0
