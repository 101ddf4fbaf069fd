"""What programs for graphics processors may be: limits, widths of indices, launches; NVRTC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests import grids
from tests.conformance.test_grids import tiled_product
from tests.unit.codegen.kernels import F32, PARALLEL, SERIAL, buffer, i, k, program

import tensorwright
from tensorwright import base, loop
from tensorwright.codegen import cuda
from tensorwright.codegen.cuda import find_nvrtc
from tensorwright.expr import Fn, Load, apply, compute, exp, named_size, placeholder
from tensorwright.schedule import ForKind, Scope
from tensorwright_lab.loop_interpreter import interpret

BLOCK_X, BLOCK_Y = ForKind.BLOCK_X, ForKind.BLOCK_Y
THREAD_X, THREAD_Y = ForKind.THREAD_X, ForKind.THREAD_Y
X, Y = buffer("x", 64), buffer("y", 64)
COPY = loop.Store(Y, (i,), Load(X, (i,)))


def text(body: loop.Stmt, *buffers: loop.Buffer, target: base.GpuTarget = grids.SM_80) -> str:
    source = program(body, (X,), Y, *buffers)
    return grids.CUDA_BACKEND.emit(source, target).text


def shared(size: int) -> loop.LoopProgram:
    """Threads exchange elements through an array of the block."""
    row = loop.Buffer("row", (size,), F32, Scope.SHARED)
    body = loop.block(
        loop.Store(row, (i,), Load(X, (i,))),
        loop.Barrier(),
        loop.Store(Y, (i,), Load(row, (63 - i,))),
    )
    return program(loop.Allocate(row, loop.For(i, 64, THREAD_X, body)), (X,), Y)


REFUSED = {
    "parallel": (loop.For(i, 64, PARALLEL, COPY), "loop i: @parallel is for processors"),
    "extent": (
        loop.For(k, 4, BLOCK_X, loop.For(i, k + 1, BLOCK_Y, COPY)),
        "the number of its blocks depends on a loop",
    ),
    "open threads": (
        loop.For(i, named_size("n", 1, 64), THREAD_X, COPY),
        "kernel kernel: the number of its threads is open",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_card_can_do_is_refused(name: str) -> None:
    body, reason = REFUSED[name]
    with pytest.raises(base.UnsupportedError) as refused:
        text(body)
    assert reason in refused.value.message()


def test_shared_memory_is_asked_for_where_it_is_large() -> None:
    machine = grids.MACHINES[1]
    machine.require()
    arrays = {"x": np.arange(64, dtype=np.float32)}
    for size, bytes_asked in ((64, 0), (16 * 1024, 64 * 1024)):
        source = shared(size)
        (launch,) = grids.CUDA_BACKEND.emit(source, grids.SM_80).signature.launches
        assert isinstance(launch, base.Grid)
        assert launch.shared_bytes == bytes_asked
        np.testing.assert_array_equal(
            machine.run(source, arrays)["y"], interpret(source, arrays)["y"]
        )


def test_indices_are_long_only_where_they_must_be() -> None:
    assert "const int i = threadIdx.x;  // 0..64" in text(loop.For(i, 64, THREAD_X, COPY))
    large = buffer("large", 1 << 16, 1 << 16)
    body = loop.For(i, 64, THREAD_X, loop.Store(large, (i, i), Load(X, (i,))))
    assert "const long long i = threadIdx.x;" in text(body, large)


def test_fast_functions_are_a_choice() -> None:
    body = loop.For(i, 64, THREAD_X, loop.Store(Y, (i,), apply(Fn.EXP, Load(X, (i,)))))
    source = program(body, (X,), Y)
    exact = grids.CUDA_BACKEND.key(), grids.OPENCL.key()
    assert "= expf(x[i])" in grids.CUDA_BACKEND.emit(source, grids.SM_80).text
    with base.override(fast_math=True):
        assert "= __expf(x[i])" in grids.CUDA_BACKEND.emit(source, grids.SM_80).text
        assert "= native_exp(x[i])" in grids.OPENCL.emit(source, grids.OPENCL_GENERIC).text
        assert not {grids.CUDA_BACKEND.key(), grids.OPENCL.key()} & set(exact)


def test_a_nest_without_threads_is_one_thread() -> None:
    source = grids.CUDA_BACKEND.emit(program(loop.For(i, 64, SERIAL, COPY), (X,), Y), grids.SM_80)
    assert source.signature.launches == (base.Grid((1, 1, 1), (1, 1, 1)),)


def test_an_executable_is_made_without_a_card(tmp_path: Path) -> None:
    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    x = placeholder("x", (8, 8))
    result = compute("y", (8, 8), lambda i, j: exp(x[i, j]))
    executable = tensorwright.compile(result, target="cuda:sm_90a")
    executable.save(tmp_path / "exp.tw")
    assert executable.objects[0][:4] == b"\x7fELF"
    with pytest.raises(base.MachineError) as refused:
        executable(np.zeros((8, 8), np.float32))
    assert "\n" not in refused.value.reason
    assert "target cuda:sm_90a" in refused.value.message()


def test_without_nvrtc_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "find_nvrtc", lambda: None)
    source = grids.CUDA_BACKEND.emit(program(loop.For(i, 64, THREAD_X, COPY), (X,), Y), grids.SM_80)
    with pytest.raises(base.MachineError) as refused:
        grids.CUDA_BACKEND.compile(source, grids.SM_80)
    assert refused.value.message() == (
        "CUDA: NVIDIA's compiler library NVRTC is not installed\n"
        "  try: install it with its extra: pip install 'tensorwright[cuda]'"
    )


def test_nvrtc_names_the_architectures_that_it_knows() -> None:
    compiler = find_nvrtc()
    if compiler is None:
        pytest.skip("NVRTC is not installed")
    with pytest.raises(base.MachineError, match=r"architecture sm_20: NVRTC .* it knows sm_\d+, "):
        compiler.machine_code("", "sm_20", "kernel")
    with pytest.raises(base.InternalError, match=r"kernel broken: NVRTC refuses it: .*COMPILATION"):
        compiler.machine_code("nonsense", "sm_90a", "broken")


@pytest.mark.parametrize("name", ["cuda:sm_75", "cuda:sm_86"])
def test_other_cards_get_code(name: str) -> None:
    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    target = grids.gpu_target(name)
    source = grids.CUDA_BACKEND.emit(tiled_product(64, 64, 64), target)
    assert grids.CUDA_BACKEND.compile(source, target)[:4] == b"\x7fELF"
