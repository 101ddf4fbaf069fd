"""Small executables for the tests, out of kernels written as LLVM IR by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from tests.targets import native_target

from tensorwright import runtime
from tensorwright.base import DType
from tensorwright.loop import Role
from tensorwright.machine_code.compilation import compile_module
from tensorwright.ops import TensorType

COUNT = 96
SIZE = COUNT * 4
TENSOR = TensorType(DType.F32, (COUNT,))
NATIVE = native_target()


def loop_ir(name: str, formula: str, inputs: int, count: int = COUNT) -> str:
    """out[i] = formula(%a, %b); `formula` is IR that defines %r. Checks the alignment promised."""
    loads = "".join(
        f"  %{letter}.slot = getelementptr ptr, ptr %args, i64 {position}\n"
        f"  %{letter}.data = load ptr, ptr %{letter}.slot\n"
        f'  call void @llvm.assume(i1 true) ["align"(ptr %{letter}.data, i64 64)]\n'
        for position, letter in enumerate("ab"[:inputs])
    )
    values = "".join(
        f"  %{letter}.at = getelementptr float, ptr %{letter}.data, i64 %i\n"
        f"  %{letter} = load float, ptr %{letter}.at\n"
        for letter in "ab"[:inputs]
    )
    return f"""
declare void @llvm.assume(i1)
define void @{name}(ptr %args, ptr %workspace, i32 %threads) {{
entry:
{loads}
  %o.slot = getelementptr ptr, ptr %args, i64 {inputs}
  %o.data = load ptr, ptr %o.slot
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i.next, %loop]
{values}
  {formula}
  %o.at = getelementptr float, ptr %o.data, i64 %i
  store float %r, ptr %o.at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, {count}
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


PROBE_IR = """
define void @probe(ptr %args, ptr %workspace, i32 %threads) {
  %o.data = load ptr, ptr %args
  %f = sitofp i32 %threads to float
  store float %f, ptr %o.data
  %size = mul i32 %threads, 64
  %all = add i32 %size, 256
  %all64 = sext i32 %all to i64
  call void @llvm.memset.p0.i64(ptr %workspace, i8 1, i64 %all64, i1 false)
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
"""Writes its number of threads, and every byte of the scratch memory that it asked for."""


@lru_cache
def compiled(name: str, formula: str, inputs: int, count: int = COUNT) -> bytes:
    return compile_module(loop_ir(name, formula, inputs, count), NATIVE)


def kernel(name: str, inputs: int, size: int = SIZE) -> runtime.KernelSpec:
    roles = [Role.INPUT] * inputs + [Role.OUTPUT]
    return runtime.KernelSpec(name, tuple(runtime.ArgumentSpec(role, size) for role in roles))


DOUBLE = ("double", "%r = fadd float %a, %a", 1)
ADD = ("add", "%r = fadd float %a, %b", 2)
KERNELS = (kernel("double", 1), kernel("add", 2))


def tensor(
    name: str, shape: tuple[int, ...] = (COUNT,), dtype: DType = DType.F32
) -> runtime.TensorSpec:
    return runtime.TensorSpec(name, dtype, shape)


def arena(slot: int) -> runtime.ArenaRef:
    return runtime.ArenaRef(slot * SIZE, SIZE)


def double(
    source: runtime.BufferRef, destination: runtime.BufferRef, label: str = "double"
) -> runtime.KernelStep[runtime.BufferRef]:
    return runtime.KernelStep(0, (source, destination), label, COUNT, 2 * SIZE)


def add(
    a: runtime.BufferRef, b: runtime.BufferRef, destination: runtime.BufferRef
) -> runtime.KernelStep[runtime.BufferRef]:
    return runtime.KernelStep(1, (a, b, destination), "add", COUNT, 3 * SIZE)


def plan(steps: Sequence[runtime.Step], **changes: Any) -> runtime.Plan:
    """Inputs x and y, outputs z and (where changed so) others, constant w, an arena of four."""
    fields: dict[str, Any] = {
        "name": "net",
        "target": NATIVE,
        "threads": 1,
        "inputs": (tensor("x"), tensor("y")),
        "outputs": (tensor("z"),),
        "constants": (tensor("w"),),
        "kernels": KERNELS,
        "steps": tuple(steps),
        "arena_bytes": 4 * SIZE,
    }
    return runtime.Plan(**{**fields, **changes})


def weights() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.linspace(-1, 1, COUNT, dtype=np.float32)


def executable(plan: runtime.Plan, **options: Any) -> runtime.Executable:
    return runtime.Executable(plan, [compiled(*DOUBLE), compiled(*ADD)], [weights()], **options)


CHAIN = plan(
    [
        double(runtime.InputRef(0), arena(0), "double x"),
        double(arena(0), arena(1), "double again"),
        add(arena(1), runtime.InputRef(1), arena(0)),
        add(arena(0), runtime.ConstantRef(0), runtime.OutputRef(0)),
    ]
)
"""z = 4 x + y + w."""

HOSTED = plan(
    [
        double(runtime.InputRef(0), arena(0)),
        runtime.HostStep(
            "flip",
            (("axis", 0),),
            (runtime.TypedRef(arena(0), TENSOR),),
            (runtime.TypedRef(arena(1), TENSOR),),
            "flip it",
        ),
        add(arena(1), runtime.InputRef(1), runtime.OutputRef(0)),
        runtime.CopyStep(runtime.InputRef(1), runtime.OutputRef(1), SIZE),
    ],
    outputs=(tensor("z"), tensor("same")),
)
"""z = flip(2 x) + y, same = y."""


def chain_inputs(seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {name: generator.standard_normal(COUNT).astype(np.float32) for name in "xy"}


def chain_result(inputs: dict[str, Any]) -> Any:
    return inputs["x"] * 4 + inputs["y"] + weights()
