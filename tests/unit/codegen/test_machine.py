"""IR text to object code: features, contraction, refusals, AArch64."""

import gc
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.targets import AVX2, AVX512, NEON, SSE2, native_target

from tensorwright.base import CpuTarget, DType, InternalError, MachineError
from tensorwright.codegen.llvm import math_function
from tensorwright.machine_code import compilation, float_literal

ELF_MACHINE = {"x86-64": 62, "aarch64": 183}


def scale_ir(lanes: int, flags: str = "") -> str:
    kind = f"<{lanes} x float>"
    return f"""
define void @scale(ptr %x, ptr %y) {{
  %a = load {kind}, ptr %x, align 4
  %b = load {kind}, ptr %y, align 4
  %p = fmul {flags} {kind} %a, %b
  %s = fadd {flags} {kind} %p, %a
  store {kind} %s, ptr %y, align 4
  ret void
}}
"""


@pytest.mark.parametrize("target", [SSE2, AVX2, AVX512, NEON], ids=str)
def test_an_object_file_is_for_its_target(target: CpuTarget) -> None:
    data = compilation.compile_module(scale_ir(16), target)
    assert data[:4] == b"\x7fELF"
    assert int.from_bytes(data[18:20], "little") == ELF_MACHINE[target.arch]


@pytest.mark.parametrize(
    ("target", "register", "absent"),
    [
        (AVX512, "%zmm", "%ymm"),
        (AVX2, "%ymm", "%zmm"),
        (SSE2, "%xmm", "%ymm"),
        (NEON, "v0", "%xmm"),
    ],
    ids=str,
)
def test_sixteen_lanes_use_the_widest_registers(
    target: CpuTarget, register: str, absent: str
) -> None:
    text = compilation.assembly(scale_ir(16), target)
    assert register in text
    assert absent not in text


def test_avx512_prefers_its_full_width() -> None:
    assert compilation.feature_flags(AVX512).endswith(",-prefer-256-bit")
    assert "prefer" not in compilation.feature_flags(NEON)


def test_features_are_flags_in_one_order() -> None:
    shuffled = replace(AVX2, features=tuple(reversed(AVX2.features)))
    assert compilation.feature_flags(shuffled) == compilation.feature_flags(AVX2)


@pytest.mark.parametrize("target", [AVX2, NEON], ids=str)
def test_only_flagged_operations_are_contracted(target: CpuTarget) -> None:
    fused = re.compile("vfm|fmla|fmadd")
    assert not fused.search(compilation.assembly(scale_ir(8), target))
    assert fused.search(compilation.assembly(scale_ir(8, "contract"), target))


def test_without_fma_a_contracted_sum_is_two_operations() -> None:
    text = compilation.assembly(scale_ir(4, "contract"), SSE2)
    assert "mulps" in text
    assert "addps" in text


def test_a_syntax_error_is_shown_in_its_place() -> None:
    text = "define float @f(float %a) {\n  %b = add float %a, %a\n  ret float %b\n}\n"
    with pytest.raises(InternalError) as caught:
        compilation.compile_module(text, AVX2)
    assert caught.value.where == "LLVM IR line 2"
    assert "      2    %b = add float %a, %a    <- here\n" in caught.value.reason
    assert caught.value.stage == "codegen"


def test_a_verifier_error_is_shown_in_its_place() -> None:
    text = """define i32 @f(i1 %c) {
  br i1 %c, label %x, label %y
x:
  %a = add i32 1, 2
  br label %y
y:
  %b = add i32 %a, 3
  ret i32 %b
}
"""
    with pytest.raises(InternalError) as caught:
        compilation.compile_module(text, AVX2)
    assert "does not dominate" in caught.value.reason
    assert "%a = add i32 1, 2    <- here" in caught.value.reason


@pytest.mark.usefixtures("young_garbage")
def test_refused_modules_are_freed_in_order() -> None:
    text = "define i32 @f() {\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  ret i32 %a\n}\n"
    errors = []
    for _ in range(20):
        with pytest.raises(InternalError) as caught:
            compilation.compile_module(text, AVX2)
        errors.append(caught)  # keeps the traceback, in a cycle for the collector to break
    del errors, caught
    gc.collect()
    assert compilation.compile_module(scale_ir(4), AVX2)


def test_an_unknown_triple_is_refused() -> None:
    with pytest.raises(MachineError, match="cannot generate code for it"):
        compilation.compile_module(scale_ir(4), replace(NEON, triple="pdp11-dec-unix"))


def test_always_inlined_functions_disappear() -> None:
    text = """
define internal float @twice(float %x) alwaysinline {
  %y = fadd float %x, %x
  ret float %y
}
define float @f(float %x) {
  %y = call float @twice(float %x)
  ret float %y
}
"""
    assert "call" not in compilation.assembly(text, AVX2)
    assert "twice" not in compilation.assembly(text, AVX2)


def test_inline_assembly_of_the_host_is_accepted() -> None:
    text = 'define void @f() {\n  call void asm sideeffect "nop", ""()\n  ret void\n}\n'
    assert compilation.compile_module(text, native_target())[:4] == b"\x7fELF"


def test_equal_inputs_give_equal_code() -> None:
    assert compilation.compile_module(scale_ir(8), AVX2) == compilation.compile_module(
        scale_ir(8), AVX2
    )
    assert compilation.pipeline_key().startswith("llvm")


# A program without a C library: exit status 0 if every lane of exp is right to 1e-6.
_INPUTS = (-3.0, -0.5, 0.0, 0.25, 1.0, 2.5, 10.0, -20.0)


def exp_program() -> str:
    exp = math_function("exp", DType.F32, 8, NEON)

    def constant(values: list[float]) -> str:
        return "<" + ", ".join(f"float {float_literal(v, DType.F32)}" for v in values) + ">"

    wanted = constant([math.exp(value) for value in _INPUTS])
    declarations = "\n".join(exp.declarations)
    return f"""{declarations}
{exp.ir_text}
@inputs = global <8 x float> {constant(list(_INPUTS))}
declare <8 x float> @llvm.fabs.v8f32(<8 x float>)
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
declare void @leave(i64)
define void @_start() {{
  %x = load <8 x float>, ptr @inputs
  %y = call <8 x float> {exp.symbol}(<8 x float> %x)
  %d = fsub <8 x float> %y, {wanted}
  %e = call <8 x float> @llvm.fabs.v8f32(<8 x float> %d)
  %bound = fmul <8 x float> %y, {constant([1e-6] * 8)}
  %bad = fcmp ugt <8 x float> %e, %bound
  %any = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %bad)
  %status = zext i1 %any to i64
  call void @leave(i64 %status)
  unreachable
}}
"""


def test_aarch64_code_runs_where_an_emulator_is(tmp_path: Path) -> None:
    data = compilation.compile_module(exp_program(), NEON)
    assert int.from_bytes(data[18:20], "little") == ELF_MACHINE["aarch64"]
    assert "fmla" in compilation.assembly(exp_program(), NEON)
    tools = [shutil.which(f"aarch64-linux-gnu-{name}") for name in ("as", "ld")]
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if None in tools or emulator is None:
        return
    source, leave, program = tmp_path / "exp.o", tmp_path / "leave.o", tmp_path / "exp"
    source.write_bytes(data)
    exit_call = b".globl leave\nleave: mov x8, #93\nsvc #0\n"
    subprocess.run([tools[0], "-o", leave, "-"], input=exit_call, check=True, timeout=60)
    subprocess.run([tools[1], "-o", program, source, leave], check=True, timeout=60)
    assert subprocess.run([emulator, program], check=False, timeout=60).returncode == 0
