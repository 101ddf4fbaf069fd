"""What every driver of cards has to do, for the tests of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.targets import native_target

import tensorwright
from tensorwright.artifacts import build_kernel, load_kernel
from tensorwright.base import DType, GpuTarget, InternalError, Threads
from tensorwright.expr import compute, named_size, placeholder
from tensorwright.graph import Graph, GraphBuilder, program
from tensorwright.runtime import Device
from tensorwright.schedule import parse_trace


def network() -> Graph:
    """A convolution, and the bits of its sums, which NumPy makes on the host."""
    random = np.random.default_rng(0)
    graph = GraphBuilder("net")
    x = graph.input("x", (1, 3, 6, 6), DType.F32)
    weights = graph.constant(random.standard_normal((8, 3, 3, 3)).astype(np.float32))
    features = graph.add("relu", graph.add("conv", x, weights, pads=(1, 1, 1, 1)))
    sums = graph.add("reduce_sum", features, axes=(2, 3), keepdims=False)
    bits = graph.add("bitcast", sums, to=DType.I32)
    return graph.finish((graph.add("exp", graph.add("bitcast", bits, to=DType.F32)), bits))


def check_network(target: str, folder: Path) -> None:
    """A network computes what it does on the processor, also after it was saved."""
    executable = tensorwright.compile(network(), target=target)
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 6)).astype(np.float32)
    wanted = tensorwright.compile(network(), target=native_target())(x)
    executable.save(folder / "net.tw")
    for each in (executable, tensorwright.load(folder / "net.tw")):
        for _ in range(2):
            for got, want in zip(each(x), wanted, strict=True):
                np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    assert set(executable.host_operators) == {"bitcast"}


def check_open_sizes(target: str) -> None:
    """The sizes of a call decide the grid."""
    n = named_size("n", 1, 600)
    x = placeholder("x", (n, 3))
    doubled = compute("y", (n, 3), lambda i, j: x[i, j] * 2.0)
    executable = tensorwright.compile(doubled, target=target)
    for count in (1, 7, 600):
        array = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
        np.testing.assert_array_equal(executable(array), array * 2)
    times = executable.profile({"x": array}, repeat=1)
    assert [step.time_s > 0 for step in times] == [True] * 3


def doubled_kernel(target: GpuTarget) -> Any:
    x = placeholder("x", (64,))
    workload = program([compute("y", (64,), lambda i: x[i] * 2.0)])
    return build_kernel(workload, parse_trace("bind(y, i, thread.x)"), target)


def check_launches(device: Device, target: GpuTarget) -> None:
    """Kernels are launched and timed between copies, which keep to their memory."""
    code = load_kernel(doubled_kernel(target))
    array = np.arange(64, dtype=np.float32)
    both = device.allocate(2 * array.nbytes)
    given, made = both.part(0, array.nbytes), both.part(array.nbytes, array.nbytes)
    workspace = device.allocate(0)
    source = array.copy()
    device.copy_in(source, given)
    source[:] = -1  # the copy is done: the caller may write
    assert device.time(lambda: code.launch((given, made), workspace)) > 0
    assert device.time(lambda: None) == 0
    result = np.empty_like(array)
    device.copy_out(made, result)
    np.testing.assert_array_equal(result, array * 2)
    table = np.array([[made.address, given.address], [given.address, made.address]], np.uint64)
    assert device.time_calls(code.functions, table, workspace, 1, count=2, first=1) > 0
    device.copy_out(given, result)
    np.testing.assert_array_equal(result, array * 4)
    device.copy(made, given)
    device.copy_out(given, result)
    np.testing.assert_array_equal(result, array * 2)
    with pytest.raises(InternalError, match="a copy of 256 bytes exceeds it"):
        device.copy_in(array, given.part(0, 8))
    with pytest.raises(InternalError, match="cards launch grids"):
        device.launch(code.functions[0][0], Threads(), (given, made), workspace)
