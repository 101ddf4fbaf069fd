"""Networks and kernels on an OpenCL device; PoCL is one where no card is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.grids import OPENCL_GENERIC, opencl_device
from tests.unit.runtime import on_cards

import tensorwright
from tensorwright import expr, runtime
from tensorwright.artifacts import load_kernel
from tensorwright.base import (
    Grid,
    InternalError,
    MachineError,
    detect_target,
    override,
)
from tensorwright.graph import GraphBuilder
from tensorwright.runtime.cards import opencl
from tensorwright.runtime.cards.opencl import DEVICE

pytestmark = [pytest.mark.usefixtures("by_rule"), pytest.mark.layer("pocl")]


@pytest.fixture
def device() -> runtime.Device:
    return opencl_device()


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What was found of drivers and devices is forgotten before and after."""
    cached = (
        opencl.opencl_driver,
        opencl._devices,
        opencl.find_device,
        opencl._open,
    )
    yield
    for each in cached:
        each.cache_clear()


def test_a_network_runs_on_the_device(device: runtime.Device, tmp_path: Path) -> None:
    on_cards.check_network("opencl:generic", tmp_path)


def test_bytes_are_copied_only_where_they_change_their_memory(device: runtime.Device) -> None:
    plan = tensorwright.compile(on_cards.network(), target="opencl:generic").plan
    kinds = [type(step) for step in plan.steps]
    between = kinds[kinds.index(runtime.KernelStep) : kinds.index(runtime.HostStep)]
    assert between.count(runtime.KernelStep) >= 2
    assert between.count(runtime.CopyStep) == 1, "the operand of the step on the host"
    copies = [step for step in plan.steps if isinstance(step, runtime.CopyStep)]
    ways = [isinstance(step.destination, runtime.DeviceRef) for step in copies]
    assert ways == [True, False, True, False]


def test_each_call_has_one_arena(device: runtime.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tensorwright.compile(on_cards.network(), target="opencl:generic")
    sizes: list[int] = []
    allocate = DEVICE.allocate

    def counted(self: runtime.Device, size_bytes: int) -> runtime.Memory:
        sizes.append(size_bytes)
        return allocate(size_bytes)

    monkeypatch.setattr(type(DEVICE), "allocate", counted)
    x = np.ones((1, 3, 6, 6), np.float32)
    for _ in range(3):
        executable(x)
    assert len(sizes) == 1
    assert sizes[0] >= executable.plan.arena_bytes + x.nbytes


def test_sizes_of_a_call_decide_the_grid(device: runtime.Device) -> None:
    on_cards.check_open_sizes("opencl:generic")


def test_a_product_of_any_size_has_tiles(device: runtime.Device) -> None:
    n, k = expr.named_size("n", 1, 300), expr.reduce_axis("k", 24)
    a, b = expr.placeholder("a", (n, 24)), expr.placeholder("b", (24, 48))
    product = expr.compute("c", (n, 48), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))
    executable = tensorwright.compile(product, target="opencl:generic")
    assert b"__local" in executable.objects[0]
    random = np.random.default_rng(0)
    right = random.standard_normal((24, 48)).astype(np.float32)
    for rows in (1, 65, 300, 65):
        left = random.standard_normal((rows, 24)).astype(np.float32)
        np.testing.assert_allclose(executable(left, right), left @ right, 1e-4, 1e-4)


def test_rows_of_any_length_are_no_memory_of_a_block(device: runtime.Device) -> None:
    """A block has memory of a known size only: its schedule is another one than that of a row."""
    b = GraphBuilder("rows")
    x = b.input("x", (expr.named_size("n", 1, 300), 64))
    weighted = b.add("matmul", x, b.input("w", (64, 64)))
    scores = b.add("matmul", weighted, b.add("transpose", x, perm=(1, 0)))
    graph = b.finish((b.add("matmul", b.add("softmax", scores), x),))
    executable = tensorwright.compile(graph, target="opencl")
    for length in (1, 33):
        rows = np.random.default_rng(0).standard_normal((length, 64), np.float32) / 8
        exponentials = np.exp(rows @ rows.T)
        expected = exponentials / exponentials.sum(1, keepdims=True) @ rows
        unit = np.eye(64, dtype=np.float32)
        np.testing.assert_allclose(executable(rows, unit), expected, 1e-4, 1e-5)


def test_what_is_infinite_decides(device: runtime.Device) -> None:
    x = expr.placeholder("x", (3,))
    finite = expr.compute(
        "y", (3,), lambda i: expr.select(expr.apply(expr.Fn.ISINF, x[i]), 0.0, x[i])
    )
    executable = tensorwright.compile(finite, target="opencl:generic")
    array = np.array([1, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(executable(array), [1, 0, 0])


def test_nothing_is_launched_for_no_elements(device: runtime.Device) -> None:
    x = expr.placeholder("x", (0, 3))
    doubled = expr.compute("y", (0, 3), lambda i, j: x[i, j] * 2.0)
    executable = tensorwright.compile(doubled, target="opencl:generic")
    assert executable(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_kernels_are_launched_and_timed(device: runtime.Device) -> None:
    on_cards.check_launches(device, OPENCL_GENERIC)


def test_code_is_freed(device: runtime.Device) -> None:
    kernels = opencl._open("").kernels
    before = len(kernels)
    code = load_kernel(on_cards.doubled_kernel(OPENCL_GENERIC))
    assert len(kernels) == before + 1
    del code
    assert len(kernels) == before


def test_memory_is_counted_and_freed(device: runtime.Device) -> None:
    before = device.free_bytes()
    memory = device.allocate(1 << 20)
    assert device.free_bytes() == before - (1 << 20)
    del memory
    assert device.free_bytes() == before
    with pytest.raises(MemoryError, match="bytes are free, and one buffer has at most"):
        device.allocate(1 << 50)


def test_a_call_without_room_says_what_it_needs(
    device: runtime.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = tensorwright.compile(on_cards.network(), target="opencl:generic")
    monkeypatch.setattr(type(DEVICE), "free_bytes", lambda self: 100)
    with pytest.raises(MachineError, match=r"a call needs [1-9]\d{2,} bytes.*about 100 are free"):
        executable(np.ones((1, 3, 6, 6), np.float32))
    with pytest.raises(MachineError, match=r"its constants need 864 bytes.*about 100 are free"):
        tensorwright.compile(on_cards.network(), target="opencl:generic")


def test_the_device_is_a_target(device: runtime.Device) -> None:
    target, facts = runtime.named_target("opencl"), opencl.opencl_devices()[0]
    assert target.name == "opencl"
    assert target.missing_on(OPENCL_GENERIC).startswith("it is opencl:generic, not opencl:")
    assert getattr(target, "multiprocessors", 0) == facts.compute_units
    assert facts.memory_bytes > 0


def test_a_device_is_chosen_by_its_name(device: runtime.Device, forgetful: None) -> None:
    name = opencl.opencl_devices()[0].name
    with override(opencl_device=name.upper()):
        assert DEVICE.missing(OPENCL_GENERIC) is None
    with override(opencl_device="no such card"):
        lack = DEVICE.missing(OPENCL_GENERIC)
    assert lack is not None
    assert lack.reason == "no OpenCL device has 'no such card' in its name"
    assert name in lack.remedy


@pytest.mark.parametrize(
    ("missing", "reason", "remedy"),
    [
        ("opencl_driver", "the package pyopencl is not installed", "tensorwright[opencl]"),
        ("_devices", "no OpenCL driver is installed", "the driver of your card"),
    ],
)
def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, forgetful: None, missing: str, reason: str, remedy: str
) -> None:
    opencl.find_device.cache_clear()
    monkeypatch.setattr(
        opencl, "opencl_driver", lambda: None if missing == "opencl_driver" else object()
    )
    monkeypatch.setattr(opencl, "_devices", tuple)
    with pytest.raises(MachineError, match=reason) as refused:
        runtime.device_of(OPENCL_GENERIC)
    assert remedy in refused.value.remedy
    opencl.find_device.cache_clear()
    monkeypatch.undo()


def test_code_for_another_driver_is_refused() -> None:
    lack = DEVICE.missing(detect_target())
    assert lack is not None
    assert lack.reason.startswith("OpenCL does not run code for")


def test_text_that_the_driver_refuses_is_a_fault_of_ours(device: runtime.Device) -> None:
    with pytest.raises(InternalError, match=r"kernel broken: the driver of .* refuses it"):
        device.load(b"__kernel void broken() { nonsense; }", ("broken",))


def test_a_grid_is_printed() -> None:
    assert str(on_cards.doubled_kernel(OPENCL_GENERIC).signature.launches[0]) == str(
        Grid((1, 1, 1), (64, 1, 1))
    )


def test_cards_come_first_and_simulators_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that says it is a card and a processor is a simulator."""
    kinds = SimpleNamespace(CPU=2, GPU=4)
    simulator, processor, accelerator, card = (
        SimpleNamespace(type=each) for each in (1 | 2 | 4 | 8, 2, 8, 4)
    )
    platforms = [
        SimpleNamespace(get_devices=lambda each=each: each)
        for each in ([simulator, processor], [accelerator, card])
    ]
    driver = SimpleNamespace(device_type=kinds, get_platforms=lambda: platforms, Error=OSError)
    monkeypatch.setattr(opencl, "opencl_driver", lambda: driver)
    assert opencl._devices.__wrapped__() == (card, accelerator, processor, simulator)
