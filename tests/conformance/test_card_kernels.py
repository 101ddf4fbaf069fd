"""Six kernels for cards with schedules by hand, in each of the layers that judge such code."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from tests import grids

from tensorwright.base import GpuTarget, InternalError
from tensorwright.codegen import Backend
from tensorwright.codegen.cuda import find_nvrtc
from tensorwright_lab import cards
from tensorwright_lab.cards import product as product_of
from tensorwright_lab.cards.faults import SIZES
from tensorwright_lab.loop_interpreter import interpret

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90a")
EACH_SMALL, EACH_LARGE = (
    [pytest.param(each, id=each.name) for each in cards.kernels(sizes)]
    for sizes in (cards.SMALL, cards.LARGE)
)


def some(names: str) -> list[ParameterSet]:
    """The small kernels; those that are not named are left to the runs of single layers."""
    chosen = names.split()
    return [
        pytest.param(each, id=each.name, marks=[] if each.name in chosen else pytest.mark.slow)
        for each in cards.kernels(cards.SMALL)
    ]


@pytest.mark.layer("interpreter")
@pytest.mark.parametrize("kernel", EACH_SMALL)
def test_each_means_what_numpy_computes(kernel: cards.CardKernel) -> None:
    arrays = kernel.arrays()
    check(kernel, interpret(kernel.program, arrays))


def check(kernel: cards.CardKernel, results: dict[str, np.ndarray]) -> None:
    (result,) = results.values()
    np.testing.assert_allclose(result, kernel.answer(kernel.arrays()), 1e-6, 1e-6)


@pytest.mark.layer("shim")
def test_the_text_for_cuda_computes_it() -> None:
    _, by_shim = grids.MACHINES
    by_shim.require()
    each = cards.kernels(cards.SMALL)
    results = grids.run_all_on_cpu([k.program for k in each], [k.arrays() for k in each])
    for kernel, result in zip(each, results, strict=True):
        check(kernel, result)


@pytest.mark.layer("pocl")
@pytest.mark.parametrize("kernel", some("depthwise softmax"))
def test_the_text_for_opencl_computes_it(kernel: cards.CardKernel) -> None:
    check(kernel, grids.run_on_opencl(kernel.program, kernel.arrays()))


@pytest.mark.parametrize("backend", [grids.OPENCL, grids.CUDA_BACKEND], ids=lambda each: each.name)
@pytest.mark.parametrize("kernel", EACH_LARGE)
def test_text(
    backend: Backend[GpuTarget], kernel: cards.CardKernel, golden: Callable[..., None]
) -> None:
    target = grids.OPENCL_GENERIC if backend is grids.OPENCL else grids.SM_80
    golden(backend.emit(kernel.program, target).text, suffix=backend.suffix)


# faults


COMPLAINTS = (
    "is read and was never stored; a thread that stores it does so in: ",
    "is read and was never stored; a thread that stores it does so in: ",
    "is read too early: a copy to it is in flight, started in: start ",
)


@pytest.mark.layer("interpreter")
@pytest.mark.parametrize(("fault", "words"), list(zip(cards.FAULTS, COMPLAINTS, strict=True)))
def test_the_interpreter_names_both_places(fault: cards.Fault, words: str) -> None:
    arrays = product_of(*SIZES).arrays()
    with pytest.raises(InternalError) as caught:
        interpret(fault.program, arrays)
    message = str(caught.value)
    assert words in message
    (marked,) = (line for line in message.splitlines() if line.endswith("<- here"))
    assert "c_cache[c_cache.i, c_cache.j] += " in marked


@pytest.fixture
def oclgrind() -> None:
    reason = cards.missing_oclgrind()
    if reason:
        pytest.skip(reason)


@pytest.mark.layer("oclgrind")
@pytest.mark.parametrize("kernel", some("depthwise softmax"))
def test_oclgrind_finds_nothing(oclgrind: None, kernel: cards.CardKernel) -> None:
    results, complaints = cards.run_by_oclgrind(
        grids.OPENCL_GENERIC, kernel.program, kernel.arrays()
    )
    assert not complaints
    check(kernel, results)


@pytest.mark.layer("oclgrind")
@pytest.mark.parametrize("number", [0, 1])
def test_oclgrind_names_both_threads_of_a_race(oclgrind: None, number: int) -> None:
    kernel = product_of(*SIZES, cards.SMALL_TILES, "")
    wrong = cards.without_barrier(kernel.program, number)
    _, complaints = cards.run_by_oclgrind(grids.OPENCL_GENERIC, wrong, kernel.arrays())
    assert complaints
    for each in complaints:
        assert "data race at local memory address" in each
        assert "First entity:" in each
        assert "Second entity:" in each
    assert any("_cache_cache[" in each for each in complaints)


# machine code


def compiled_for(architectures: str, names: str) -> list[ParameterSet]:
    """All architectures and large kernels; others than these are left to single layers."""
    chosen = set(product(architectures.split(), names.split()))
    return [
        pytest.param(
            grids.gpu_target(f"cuda:{architecture}"),
            kernel,
            id=f"{architecture}-{kernel.name}",
            marks=[] if (architecture, kernel.name) in chosen else pytest.mark.slow,
        )
        for architecture in ARCHITECTURES
        for kernel in cards.kernels(cards.LARGE)
    ]


@pytest.mark.layer("nvrtc")
@pytest.mark.parametrize(("target", "kernel"), compiled_for("sm_75 sm_80", "product"))
def test_nothing_is_spilled(target: GpuTarget, kernel: cards.CardKernel) -> None:
    nvrtc = find_nvrtc()
    if nvrtc is None:
        pytest.skip("NVRTC is not installed")
    source = grids.CUDA_BACKEND.emit(kernel.program, target)
    taken = nvrtc.resources(source.text, target.arch, source.signature.symbol)
    assert len(taken) == len(source.signature.launches)
    for each in taken:
        assert (each.stack_bytes, each.spilled_bytes) == (0, 0)
        assert each.registers <= 192


LEAST_SHARES = {"product": 0.85, "split_product": 0.8, "convolution": 0.55, "winograd": 0.75}
"""Of multiply-adds in main loops."""


@pytest.mark.layer("sass")
@pytest.mark.parametrize(("target", "kernel"), compiled_for("sm_90a", "product"))
def test_main_loops_stay_in_registers(target: GpuTarget, kernel: cards.CardKernel) -> None:
    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    if cards.find_disassembler() is None:
        pytest.skip("nvdisasm is not installed")
    source = grids.CUDA_BACKEND.emit(kernel.program, target)
    functions = cards.functions_of(cards.disassemble(grids.CUDA_BACKEND.compile(source, target)))
    assert len(functions) == len(source.signature.launches)
    assert not sum(loop.local for each in functions for loop in each.loops)
    shares = [each.main_loop.share for each in functions if each.main_loop is not None]
    assert max(shares, default=0.0) >= LEAST_SHARES.get(kernel.name, 0.0)


def test_loops_are_read_off_the_text_of_machine_code() -> None:
    """Two loops, one inside the other, in a function; and one that only waits for ever."""
    (function,) = cards.functions_of(TEXT)
    assert function.name == "kernel"
    loop, around = function.loops
    assert (loop.operations, around.own) == (loop.own, {"STL": 1, "BRA": 1})
    assert (around.size, function.main_loop) == (7, loop)
    assert dict(loop.operations) == {"FFMA": 2, "LDL": 1, "LDS": 1, "BRA": 1}
    assert (loop.size, loop.multiply_adds, loop.local, loop.share) == (5, 2, 1, 0.4)


TEXT = """
.text.kernel:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   STL [R1], R2 ;
.L_x_0:
        /*0020*/                   LDL R2, [R1] ;
        /*0030*/                   LDS.128 R4, [R3] ;
        /*0040*/                   FFMA R8, R4, R5, R8 ;
        /*0050*/              @!P1 FFMA.FTZ R9, R4, R6, R9 ;
        /*0060*/               @P0 BRA `(.L_x_0) ;
        /*0070*/              @UP0 BRA `(.L_x_1) ;
        /*0080*/                   EXIT ;
.L_x_2:
        /*0090*/                   BRA `(.L_x_2);
"""
