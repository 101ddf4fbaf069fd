"""Loop algorithms compute what NumPy does: interpreted, on every back end and target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.backends import CPU_BACKENDS, LLVM
from tests.grids import MACHINES as GRIDS
from tests.unit.codegen.kernels import NATIVE, TARGETS, run

from tensorwright.base import CpuTarget, DType, TargetKind
from tensorwright.codegen import Backend
from tensorwright.loop import LoopProgram, Role, loop_algorithm
from tensorwright.ops import TensorType, operator
from tensorwright_lab.loop_interpreter import interpret

RANDOM = np.random.default_rng(7)
MACHINES = [(backend, NATIVE) for backend in CPU_BACKENDS] + [(LLVM, target) for target in TARGETS]


def reals(*shape: int) -> NDArray[Any]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def places(extent: int, *shape: int) -> NDArray[Any]:
    return RANDOM.integers(-extent, extent, shape)


def program_of(
    name: str,
    arrays: tuple[NDArray[Any], ...],
    kind: TargetKind = TargetKind.CPU,
    **attributes: Any,
) -> LoopProgram | None:
    types = tuple(TensorType(DType.from_numpy(each.dtype), each.shape) for each in arrays)
    return loop_algorithm(name, types, operator(name).complete(attributes), kind)


def check(name: str, *arrays: NDArray[Any], on_grids: bool = False, **attributes: Any) -> None:
    """Compare with the host: the interpreter, then machine code of every kind; that of graphics
    processors, which takes a second, where asked for.
    """
    host = operator(name).host
    assert host is not None
    expected = host(arrays, operator(name).complete(attributes))
    program = program_of(name, arrays, **attributes)
    assert program is not None
    buffers = [each.buffer for each in program.parameters]
    given = {
        buffer.name: array.reshape(buffer.extents)
        for buffer, array in zip(buffers, arrays, strict=False)
    }
    outputs = [each.buffer.name for each in program.parameters if each.role is Role.OUTPUT]

    def same(found: Mapping[str, NDArray[Any]], where: str) -> None:
        for output, array in zip(outputs, expected, strict=True):
            shaped = found[output].reshape(array.shape)
            np.testing.assert_allclose(shaped, array, rtol=1e-5, atol=1e-6, err_msg=where)

    same(interpret(program, given), "interpreted")
    for backend, target in MACHINES:
        if not backend.supports(target):
            same(compiled(program, given, target, backend), f"{backend.name} for {target}")
    for machine in GRIDS if on_grids else ():
        on_groups = program_of(name, arrays, TargetKind.GPU, **attributes)
        assert on_groups is not None
        same(interpret(on_groups, given), "interpreted, by groups")
        if not machine.missing():
            same(machine.run(on_groups, given), machine.name)


def compiled(
    program: LoopProgram,
    given: Mapping[str, NDArray[Any]],
    target: CpuTarget,
    backend: Backend[CpuTarget],
) -> Mapping[str, NDArray[Any]]:
    return run(program, given, target, 2, backend)


@pytest.mark.parametrize(
    ("k", "axis", "largest"),
    [(1, -1, False), (5, 0, True), (9, 1, True), (9, 1, False), (70, 1, False)],
)
def test_topk(k: int, axis: int, largest: bool) -> None:
    x = reals(6, 70 if k == 70 else 32, 3)
    x[0, 5:9, 0], x[1, 3, 1], x[0, 10:30, 2] = -np.inf, np.nan, x[0, 11, 2]
    x[2, :, 0] = -np.inf if largest else np.inf
    check("topk", x, k=k, axis=axis, largest=largest, on_grids=largest and k == 9)


@pytest.mark.parametrize("order", [1, -1])
def test_topk_of_rows_in_order(order: int) -> None:
    check("topk", np.arange(100)[::order].astype(np.float32).copy(), k=7)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_topk_of_types(dtype: type) -> None:
    x = RANDOM.integers(-3, 4, (3, 90)).astype(dtype)
    limits = np.iinfo(dtype) if x.dtype.kind == "i" else np.finfo(dtype)
    x[0, 40], x[1, 50] = limits.min, limits.max
    check("topk", x, k=9)
    check("topk", x, k=9, largest=False)


@pytest.mark.parametrize(
    ("axis", "reduction"), [(0, "none"), (1, "add"), (2, "mul"), (0, "max"), (1, "min")]
)
def test_scatter_elements(axis: int, reduction: str) -> None:
    x, shape = reals(5, 7, 19), [4, 6, 18]
    shape[axis] = 23
    indices = places(x.shape[axis], *shape)
    check("scatter_elements", x, indices, reals(*shape), axis=axis, reduction=reduction)


@pytest.mark.parametrize(
    ("count", "reduction"), [(1, "none"), (2, "add"), (3, "mul"), (2, "max"), (1, "min")]
)
def test_scatter_nd(count: int, reduction: str) -> None:
    x, indices = reals(4, 5, 37), places(4, 3, 6, count)
    check("scatter_nd", x, indices, reals(3, 6, *x.shape[count:]), reduction=reduction)


def test_scatter_of_large_and_of_whole_numbers() -> None:
    x = np.zeros((3, 5000), np.int32)
    check("scatter_nd", x, places(3, 9, 1), RANDOM.integers(-9, 9, (9, 5000), np.int32))
    check("scatter_elements", x, places(5000, 2, 40), np.ones((2, 40), np.int32), axis=1)


@pytest.mark.parametrize(
    ("dtype", "reduction"),
    [
        *(("f16", "add"), ("bf16", "max"), ("i16", "mul"), ("u64", "min")),
        *(("u32", "add"), ("u8", "max"), ("bool", "none")),
    ],
)
def test_scatter_of_types(dtype: str, reduction: str) -> None:
    kind = DType.parse(dtype).numpy
    x, updates = (RANDOM.integers(0, 4, (n, 19)).astype(kind) for n in (5, 9))
    check("scatter_nd", x, places(5, 9, 1).astype(np.int32), updates, reduction=reduction)
    check("scatter_elements", x, places(5, 9, 19), updates, reduction=reduction)


def test_the_last_of_equal_places_stays() -> None:
    x, indices = np.zeros((4, 40), np.float32), np.zeros((7, 40), np.int64)
    check("scatter_elements", x, indices, reals(7, 40), axis=0, on_grids=True)
    check("scatter_nd", x, indices[:, :1], reals(7, 40), on_grids=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("trees", [1, 13])
def test_tree_leaves(trees: int, dtype: type) -> None:
    """Children and features outside of the tables are those at their ends."""
    x, nodes = reals(21, 3).astype(dtype), 17
    x[4, 1] = np.nan
    features, children = (RANDOM.integers(-2, n, nodes).astype(np.int32) for n in (5, 2 * nodes))
    roots = RANDOM.integers(0, nodes, trees).astype(np.int32)
    tables = (features, reals(nodes).astype(dtype), children, roots)
    check("tree_leaves", x, *tables, depth=4, on_grids=trees > 1)


def test_what_is_left_to_the_host() -> None:
    x = reals(2, 300)
    assert program_of("topk", (x,), k=200) is None
    assert program_of("topk", (x.astype(np.float16),), k=2) is None
    assert program_of("topk", (x[:, :0],), k=0) is None
    nothing = np.zeros((0, 300), np.int64)
    assert program_of("scatter_elements", (x, nothing, reals(0, 300))) is None
    assert loop_algorithm("unique", (), {}) is None
    apart = np.zeros((2, 5000, 2), np.float32)  # of such a row each thread would have a copy
    assert program_of("topk", (apart,), k=2, axis=1) is not None
    assert program_of("topk", (apart,), TargetKind.GPU, k=2, axis=1) is None
