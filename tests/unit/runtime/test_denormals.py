"""Denormal numbers count as 0 during calls, by the knob; the callers' threads keep their state."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.backends import CPU_BACKENDS
from tests.targets import native_target
from tests.unit.runtime.networks import CHAIN, COUNT, HOSTED, chain_inputs, executable
from tests.unit.runtime.test_pool import run_script

from tensorwright import compile as compile_model
from tensorwright.artifacts import Kernel, assemble_workload, emit_source, loop_program
from tensorwright.base import CpuTarget, DType, InternalError, override
from tensorwright.codegen import Backend
from tensorwright.codegen.c import refusal
from tensorwright.drivers.c_library import build_shared, export_c
from tensorwright.expr import cast, compute, placeholder
from tensorwright.graph import Graph, GraphBuilder, program
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.machine_code.compilation import compile_module
from tensorwright.pipeline import prepare
from tensorwright.records import opened
from tensorwright.runtime import HOST, load_object
from tensorwright.runtime.native.pool import float_bits, float_state, set_float_state
from tensorwright.schedule import Parallel

pytestmark = pytest.mark.usefixtures("by_rule")

TARGET = native_target()
TINY = np.float32(2e-39)
BEHAVIOURS = {"flush": np.float32(0), "keep": 2 * TINY}


class FloatState:
    """Reads and writes the float state of a thread."""

    def __init__(self) -> None:
        module = Module()
        get, put = (
            NativeFunction(module, name, (Kind.POINTER,)) for name in ("get_state", "put_state")
        )
        get.parameters[0].array(Kind.I64)[0] = float_state(get, TARGET.arch)
        set_float_state(put, TARGET.arch, put.parameters[0].array(Kind.I64)[0])
        get.finish()
        put.finish()
        self._code = load_object(compile_module(module.text(), TARGET), ("get_state", "put_state"))
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._get, self._put = (kind(self._code.address(each)) for each in self._code.symbols)

    @property
    def now(self) -> int:
        word = ctypes.c_int64()
        self._get(ctypes.byref(word))
        return word.value

    @now.setter
    def now(self, state: int) -> None:
        self._put(ctypes.byref(ctypes.c_int64(state)))


UP = 1 << 14 if TARGET.arch == "x86-64" else 1 << 22
"""The bit of the float state that rounds upwards."""


@pytest.fixture
def state() -> FloatState:
    return FloatState()


def sums_of(values: np.ndarray) -> Graph:  # type: ignore[type-arg]
    """x + x of many rows, which threads share."""
    graph = GraphBuilder("sums")
    x = graph.input("x", values.shape)
    return graph.finish(graph.apply("add", (x, x)))


@pytest.mark.parametrize("word", BEHAVIOURS)
def test_the_knob_decides_when_a_program_is_loaded(word: str, tmp_path: Path) -> None:
    x = np.full((64, 1024), TINY)
    with override(denormals=word):
        program = compile_model(sums_of(x), target=TARGET, threads=2)
    (result,) = program.run({"x": x}).values()
    np.testing.assert_array_equal(result, np.full_like(x, BEHAVIOURS[word]))
    program.save(tmp_path / "program.tw")
    script = f"""
import numpy as np
from tensorwright import load
x = np.full((64, 1024), np.float32(2e-39))
(result,) = load({str(tmp_path / "program.tw")!r}, 2).run({{"x": x}}).values()
print((result == 0).all(), (result == x + x).all(), x[0, 0] * np.float32(0.5) > 0)
"""
    said = run_script(script, TENSORWRIGHT_DENORMALS=word, TENSORWRIGHT_CORES="2")
    assert said == f"{word == 'flush'} {word == 'keep'} True\n"


@pytest.mark.parametrize("word", BEHAVIOURS)
def test_the_caller_has_its_float_state_after_a_call(word: str, state: FloatState) -> None:
    with override(denormals=word):
        program = executable(CHAIN, threads=2)
    before = state.now
    try:
        state.now = before | UP
        program.run(chain_inputs())
        program.bind(chain_inputs()).run_timed()
        after = state.now
    finally:
        state.now = before
    assert after == before | UP


def test_functions_on_the_host_have_the_callers_float_state_and_so_has_an_error(
    state: FloatState,
) -> None:
    seen: list[int] = []

    def fail(*_: object) -> tuple[Any, ...]:
        seen.append(state.now)
        raise ValueError

    before = state.now
    with pytest.raises(InternalError):
        executable(HOSTED, hosts={"flip": fail}).run(chain_inputs())
    assert [*seen, state.now] == [before, before]


def test_each_thread_of_a_loop_has_the_float_state_of_the_call(state: FloatState) -> None:
    script = f"""
import ctypes
from tensorwright.base import detect_target
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import load_object
from tensorwright.runtime.native.pool import float_state, set_float_state
arch, module = detect_target().arch, Module()
piece = NativeFunction(module, "piece", (Kind.POINTER,), is_internal=True)
words = piece.parameters[0].array(Kind.I64)
number = piece.call(Kind.I32, "omp_get_thread_num").cast("zext", Kind.I64)
words[number] = float_state(piece, arch)
with piece.when(piece.call(Kind.I64, "pthread_self").differs(words[4])):
    words[5] = 1  # another thread than the caller's has done a piece
piece.call(Kind.I32, piece.parameters[0].array(Kind.POINTER)[6], piece.number(2000, Kind.I32))
piece.finish()
run = NativeFunction(module, "run", (Kind.POINTER, Kind.I64))
words, bits = run.parameters[0].array(Kind.I64), run.parameters[1]
words[4] = run.call(Kind.I64, "pthread_self")
own = float_state(run, arch)
set_float_state(run, arch, own | bits)
run.do("GOMP_parallel", run.address_of(piece), run.parameters[0], *(
    run.number(n, Kind.I32) for n in (2, 0)))
set_float_state(run, arch, own)
run.finish()
text = module.text().replace("@pthread_self", "inttoptr (i64 SELF to ptr)")
text = text.replace("declare i64 inttoptr (i64 SELF to ptr)()", "")
self = ctypes.cast(ctypes.CDLL(None).pthread_self, ctypes.c_void_p).value
text = text.replace("SELF", str(self))
code = load_object(compile_module(text, detect_target()), ("run",))
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("run"))
data = (ctypes.c_int64 * 8)()
data[6] = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
for bits in ({UP}, 0, {float_bits(TARGET.arch)}, 0):
    data[5] = 0
    for _ in range(1000):
        run(data, bits)
        if data[5]:
            break
    print(data[5], data[0] == data[1], data[0] & ({UP | float_bits(TARGET.arch)}) == bits)
"""
    assert run_script(script, TENSORWRIGHT_CORES="2") == "1 True True\n" * 4


def test_calls_that_keep_and_calls_that_flush_meet_at_the_gate() -> None:
    script = """
import threading
import numpy as np
from tensorwright import compile as compile_model
from tensorwright.base import override
from tensorwright.graph import GraphBuilder
x = np.full((64, 256), np.float32(2e-39))
graph = GraphBuilder("sums")
given = graph.input("x", x.shape)
graph = graph.finish(graph.apply("add", (given, given)))
programs = {}
for word in ("flush", "keep"):
    with override(denormals=word):
        programs[word] = compile_model(graph, threads=2)
right = []
def work(word):
    expected = x * 0 if word == "flush" else x + x
    for _ in range(200):
        (result,) = programs[word].run({"x": x}).values()
        right.append((result == expected).all() and (x[:1] + x[:1] > 0).all())
threads = [threading.Thread(target=work, args=(word,)) for word in ("flush", "keep") * 4]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(all(right), len(right))
"""
    for cores in ("1", "2"):
        assert run_script(script, TENSORWRIGHT_CORES=cores) == "True 1600\n"


def test_the_loop_that_times_a_kernel_flushes_and_restores(state: FloatState) -> None:
    x = np.full(COUNT, TINY)
    z = np.empty_like(x)
    program = executable(CHAIN)
    table = np.array([[x.ctypes.data, z.ctypes.data]], np.int64)
    code = program._linked().program.code[0]
    workspace = HOST.allocate(64)
    (launch,) = program.plan.kernels[0].launches
    before = state.now
    for word, doubled in BEHAVIOURS.items():
        with override(denormals=word):
            HOST.time_calls([(code.address("double"), launch)], table, workspace, 1)
        np.testing.assert_array_equal(z, np.full_like(z, doubled))
    assert state.now == before


@pytest.mark.parametrize("backend", CPU_BACKENDS, ids=lambda backend: backend.name)
def test_numbers_of_16_bits_keep_their_denormal_ones(backend: Backend[CpuTarget]) -> None:
    if backend.supports(TARGET):
        pytest.skip(backend.supports(TARGET))
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    halves[np.isnan(halves)] = 0
    x = placeholder("x", halves.shape, DType.F16)
    wide = compute("wide", halves.shape, lambda i, j: cast(x[i, j], DType.F32))
    back = compute("back", halves.shape, lambda i, j: cast(wide[i, j] * 0.5, DType.F16))
    workload = program([wide, back])
    source = emit_source(loop_program(workload, (Parallel("wide", "i"),), TARGET), TARGET, backend)
    kernel = Kernel(backend.compile(source, TARGET), source.signature, 0.0, TARGET)
    made = assemble_workload(workload, kernel, TARGET, 2, {})
    results = made.run({"x": halves})
    np.testing.assert_array_equal(results["wide"], halves.astype(np.float32))
    halved = (halves.astype(np.float32) * np.float32(0.5)).astype(np.float16)
    np.testing.assert_array_equal(results["back"], halved)


@pytest.mark.parametrize("word", BEHAVIOURS)
def test_a_c_library_does_the_same(word: str, tmp_path: Path, state: FloatState) -> None:
    if shutil.which("make") is None or refusal(TARGET):
        pytest.skip(refusal(TARGET) or "there is no make")
    x = np.full((64, 4096), TINY)
    with override(denormals=word), opened(None) as store:
        export_c(prepare(sums_of(x), TARGET), TARGET, 2, store, tmp_path, "sums")
    assert ("Denormal" in (tmp_path / "tw_sums.h").read_text()) == (word == "flush")
    library = ctypes.CDLL(str(build_shared(tmp_path, "sums")))
    model, result = ctypes.c_void_p(), np.empty_like(x)
    path = str(tmp_path / "tw_sums.weights").encode()
    assert library.tw_sums_load(ctypes.byref(model), path) == 0
    arrays = [(ctypes.c_void_p * 1)(each.ctypes.data) for each in (x, result)]
    before = state.now
    for threads in (1, 2):
        assert library.tw_sums_run(model, *arrays, threads) == 0
        np.testing.assert_array_equal(result, np.full_like(x, BEHAVIOURS[word]))
        assert state.now == before
    library.tw_sums_free(model)
