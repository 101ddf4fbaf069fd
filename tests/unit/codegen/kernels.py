"""Run loop programs as machine code and by the interpreter; small ways to write them by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.backends import LLVM
from tests.targets import AVX2, AVX512, NEON, native_target

from tensorwright import loop
from tensorwright.base import CpuTarget, DType, ShortProduct, cpu_target, missing_here
from tensorwright.codegen import Backend
from tensorwright.expr import Index, Load, Value, Var, cast, constant
from tensorwright.runtime import HOST, kernel_spec
from tensorwright.schedule import ForKind, Scope
from tensorwright_lab.loop_interpreter import interpret

NATIVE = native_target()
NEON_ALL = cpu_target("aarch64-neon+fullfp16+dotprod+i8mm")
TARGETS = tuple(target for target in (AVX512, AVX2, NEON_ALL, NEON) if not missing_here(target))

i, j, k, m, n, q = (Var(name) for name in "ijkmnq")
SERIAL, UNROLLED = ForKind.SERIAL, ForKind.UNROLLED
VECTOR, PARALLEL = ForKind.VECTOR, ForKind.PARALLEL
F32 = DType.F32


def buffer(name: str, *shape: int, dtype: DType = F32) -> loop.Buffer:
    return loop.Buffer(name, shape, dtype)


def local(name: str, *shape: int, dtype: DType = F32) -> loop.Buffer:
    return loop.Buffer(name, shape, dtype, Scope.LOCAL)


def loops(*heads: tuple[Var, Index, ForKind], body: loop.Stmt) -> loop.Stmt:
    for var, extent, kind in reversed(heads):
        body = loop.For(var, extent, kind, body)
    return body


def program(
    body: loop.Stmt, inputs: tuple[loop.Buffer, ...], *outputs: loop.Buffer
) -> loop.LoopProgram:
    parameters = [loop.Parameter(b, loop.Role.INPUT) for b in inputs]
    parameters += [loop.Parameter(b, loop.Role.OUTPUT) for b in outputs]
    return loop.LoopProgram("kernel", tuple(parameters), body)


def sample(shape: tuple[int, ...], dtype: DType, seed: int) -> NDArray[Any]:
    """Random numbers that suit a type: small integers, floats around zero."""
    random = np.random.default_rng(seed)
    if dtype.is_float:
        return random.standard_normal(shape).astype(dtype.numpy)
    if dtype is DType.BOOL:
        return random.integers(0, 2, shape).astype(bool)
    low = -20 if dtype.is_signed else 0
    return random.integers(low, 20, shape).astype(dtype.numpy)


def run(
    source: loop.LoopProgram,
    arrays: Mapping[str, NDArray[Any]],
    target: CpuTarget = NATIVE,
    threads: int = 1,
    backend: Backend[CpuTarget] = LLVM,
) -> dict[str, NDArray[Any]]:
    """The outputs of the compiled program; they hold 77 before."""
    kernel = backend.emit(source, target)
    symbol = kernel.signature.symbol
    loaded = HOST.load(backend.compile(kernel, target), (symbol,))
    held: list[NDArray[Any]] = []
    for parameter in source.parameters:
        piece = parameter.buffer
        array = np.empty(tuple(piece.shape), piece.dtype.numpy)  # type: ignore[arg-type]  # bound
        array[...] = arrays[piece.name] if parameter.role is not loop.Role.OUTPUT else 77
        held.append(array)
    memories = [HOST.allocate(array.nbytes) for array in held]
    for array, memory in zip(held, memories, strict=True):
        HOST.copy_in(array, memory)
    workspace = HOST.allocate(kernel_spec(kernel.signature).scratch_bytes(threads))
    for launch in kernel.signature.launches:
        HOST.launch(loaded.address(symbol), launch, memories, workspace, threads)
    HOST.wait()
    for array, memory in zip(held, memories, strict=True):
        HOST.copy_out(memory, array)
    return {
        parameter.buffer.name: array
        for parameter, array in zip(source.parameters, held, strict=True)
        if parameter.role is loop.Role.OUTPUT
    }


def check(
    source: loop.LoopProgram,
    target: CpuTarget = NATIVE,
    threads: int = 1,
    arrays: Mapping[str, NDArray[Any]] | None = None,
    tolerance: float = 1e-5,
    backend: Backend[CpuTarget] = LLVM,
) -> None:
    """Compare the machine code with the interpreter on random inputs, or on those given."""
    given = dict(arrays or {})
    for seed, parameter in enumerate(source.parameters):
        piece = parameter.buffer
        if parameter.role is not loop.Role.OUTPUT and piece.name not in given:
            given[piece.name] = sample(tuple(piece.shape), piece.dtype, seed)  # type: ignore[arg-type]
    expected = interpret(source, given)
    found = run(source, given, target, threads, backend)
    for name, array in expected.items():
        if array.dtype.kind == "f" or array.dtype.itemsize == 2:
            np.testing.assert_allclose(
                found[name].astype(np.float64),
                array.astype(np.float64),
                rtol=tolerance,
                atol=tolerance,
                err_msg=f"{name} on {target}",
            )
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name} on {target}")


def _dot4(
    total: loop.Buffer, data: loop.Buffer, weights: loop.Buffer, product: ShortProduct
) -> loop.Stmt:
    def wide(value: Value) -> Value:
        return cast(value, product.sums)

    term = wide(Load(data, (k, m))) * wide(Load(weights, (k, q, m)))
    update = loop.Store(total, (q,), Load(total, (q,)) + term)
    windows = (loop.Window(total, (0,)), loop.Window(data, (k, 0)), loop.Window(weights, (k, 0, 0)))
    meaning = loops((q, product.columns, SERIAL), (m, product.terms, SERIAL), body=update)
    return loop.Call(product.intrinsic, windows, meaning)


def product_of_bytes(product: ShortProduct, *, is_tile: bool) -> loop.LoopProgram:
    """A vector of sums of nine times some products, in registers or in memory."""
    lanes = product.columns
    terms = product.terms
    data = buffer("data", 9, terms, dtype=product.data)
    weights = buffer("weights", 9, lanes, terms, dtype=product.weights)
    y = buffer("y", lanes, dtype=product.sums)
    total = local("total", lanes, dtype=product.sums) if is_tile else y
    body = loop.block(
        loop.For(i, lanes, VECTOR, loop.Store(total, (i,), constant(5, product.sums))),
        loop.For(k, 9, SERIAL, _dot4(total, data, weights, product)),
    )
    if is_tile:
        copy = loop.For(i, lanes, VECTOR, loop.Store(y, (i,), Load(total, (i,))))
        body = loop.Allocate(total, loop.block(body, copy))
    return program(body, (data, weights), y)


def tile_of_bytes(tile: ShortProduct, row: int, group: int) -> loop.LoopProgram:
    """Two rows by two columns of sums of three times eight products of bytes, in a register; where
    a row and a group of the data begin.
    """
    data = buffer("data", 4 * 48, dtype=tile.data)
    weights = buffer("weights", 3, 2, 2, 4, dtype=DType.I8)
    y, total = buffer("y", 4, dtype=DType.I32), local("total", 2, 2, dtype=DType.I32)
    r, c, g = j, q, n

    def wide(value: Value) -> Value:
        return cast(value, DType.I32)

    def at(one: Index, other: Index, last: Index) -> Index:
        return k * 48 + one * row + other * group + last

    terms = wide(Load(data, (at(r, g, m),))) * wide(Load(weights, (k, c, g, m)))
    update = loop.Store(total, (r, c), Load(total, (r, c)) + terms)
    heads = ((r, 2, SERIAL), (c, 2, SERIAL))
    meaning = loops(*heads, (g, 2, SERIAL), (m, 4, SERIAL), body=update)
    windows = (
        loop.Window(total, (0, 0)),
        *(loop.Window(data, (at(one, other, 0),)) for one in range(2) for other in range(2)),
        loop.Window(weights, (k, 0, 0, 0)),
    )
    first = loops(*heads, body=loop.Store(total, (r, c), constant(3, DType.I32)))
    sums = loop.For(k, 3, SERIAL, loop.Call(tile.intrinsic, windows, meaning))
    last = loops(*heads, body=loop.Store(y, (r * 2 + c,), Load(total, (r, c))))
    return program(loop.Allocate(total, loop.block(first, sums, last)), (data, weights), y)
