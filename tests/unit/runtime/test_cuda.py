"""Networks and kernels on a card: that of the shim, which runs CUDA's text on the processor."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cuda_driver import ShimDriver, forget, shim_driver
from tests.grids import SM_80, SM_90A
from tests.targets import native_target
from tests.unit.runtime import on_cards

import tensorwright
from tensorwright.artifacts import build_kernel, load_kernel
from tensorwright.base import (
    DType,
    GpuApi,
    GpuTarget,
    InputError,
    MachineError,
    override,
    parse_target,
)
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.graph import Graph, GraphBuilder, program
from tensorwright.profiling import devices
from tensorwright.profiling.devices import measure_devices
from tensorwright.runtime import device_of, named_target
from tensorwright.runtime.cards import cuda, cuda_cards
from tensorwright.runtime.cards.cuda import DEVICE
from tensorwright.runtime.dlpack import DeviceArray
from tensorwright.runtime.native.cuda_driver import open_driver
from tensorwright.schedule import parse_trace
from tensorwright_lab.cards import shared_tiles

pytestmark = [pytest.mark.usefixtures("by_rule"), pytest.mark.layer("shim")]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[ShimDriver]:
    yield from shim_driver(monkeypatch)


def test_a_network_runs_on_the_card(card: ShimDriver, tmp_path: Path) -> None:
    before = card.read("allocated"), card.read("modules")
    on_cards.check_network("cuda", tmp_path)
    gc.collect()
    assert (card.read("allocated"), card.read("modules")) == before


def chain() -> Graph:
    """Two convolutions, one after the other, and a sum of both."""
    random = np.random.default_rng(0)
    graph = GraphBuilder("chain")
    x = graph.input("x", (1, 4, 6, 6), DType.F32)
    first, second = (
        graph.constant(random.standard_normal((4, 4, 3, 3)).astype(np.float32)) for _ in range(2)
    )
    y = graph.add("conv", x, first, pads=(1, 1, 1, 1))
    return graph.finish((graph.add("add", graph.add("conv", y, second, pads=(1, 1, 1, 1)), y),))


def test_launches_of_a_network_are_one_graph(card: ShimDriver) -> None:
    gc.collect()
    before, graphs = card.read("allocated"), card.read("graphs")
    executable = tensorwright.compile(chain(), target="cuda")
    native = tensorwright.compile(chain(), target=native_target())
    random, launches = np.random.default_rng(1), []
    for _ in range(4):
        x = random.standard_normal((1, 4, 6, 6)).astype(np.float32)
        np.testing.assert_allclose(executable(x), native(x), 1e-5, 1e-5)
        launches.append(card.read("graph_launches"))
    assert launches == [0, 1, 2, 3]
    bound = executable.bind({"x": x})
    assert [bound.run_seconds() > 0 for _ in range(3)] == [True] * 3
    assert card.read("graph_launches") == 5
    del bound, executable
    gc.collect()
    assert (card.read("allocated"), card.read("graphs")) == (before, graphs)


def test_steps_are_timed_inside_one_graph(card: ShimDriver) -> None:
    executable, x = tensorwright.compile(chain(), target="cuda"), np.ones((1, 4, 6, 6), np.float32)
    launches, graphs = card.read("graph_launches"), card.read("graphs")
    bound = executable.bind({"x": x})
    for count in (1, 2):
        times_s = bound.run_timed()
        assert min(times_s) >= 0 < max(times_s)
        assert card.read("graph_launches") == launches + count
    with override(device_graphs=False):
        assert len(executable.bind({"x": x}).run_timed()) == len(times_s)
    assert card.read("graph_launches") == launches + 2
    del bound
    gc.collect()
    assert card.read("graphs") == graphs


@pytest.mark.parametrize("reason", ["knob", "driver", "refused"])
def test_launches_are_made_one_by_one_where_there_are_no_graphs(
    card: ShimDriver, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = tensorwright.compile(chain(), target="cuda")
    x = np.ones((1, 4, 6, 6), np.float32)
    wanted = executable(x)
    if reason == "driver":
        opened = cuda._open()
        monkeypatch.setattr(opened, "driver", replace(opened.driver, has_graphs=False))
    card.write(graph=900 if reason == "refused" else 0)
    with override(device_graphs=reason != "knob"):
        for _ in range(3):
            np.testing.assert_array_equal(executable(x), wanted)
    assert card.read("graph_launches") == 0


def test_sizes_of_a_call_decide_the_grid(card: ShimDriver) -> None:
    on_cards.check_open_sizes("cuda:sm_90a")


def test_kernels_are_launched_and_timed(card: ShimDriver) -> None:
    gc.collect()
    graphs = card.read("graphs")
    on_cards.check_launches(DEVICE, SM_90A)
    assert card.read("graph_launches") == 1, "both calls are one graph"
    assert card.read("graphs") == graphs


def test_launches_are_done_after_the_wait(card: ShimDriver) -> None:
    code = load_kernel(on_cards.doubled_kernel(SM_90A))
    array = np.arange(64, dtype=np.float32)
    given, made = DEVICE.memory_of(array), DEVICE.memory_of(np.zeros_like(array))
    code.launch((given, made), DEVICE.allocate(0))
    DEVICE.wait()
    result = np.empty_like(array)
    DEVICE.copy_out(made, result)
    np.testing.assert_array_equal(result, array * 2)


def test_a_block_asks_for_much_shared_memory(card: ShimDriver) -> None:
    """Two tiles of 128x64 floats have 64 KiB, which a function must be told that it may have."""
    k = reduce_axis("k", 128)
    a, b = placeholder("a", (128, 128)), placeholder("b", (128, 128))
    c = compute("c", (128, 128), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    trace = parse_trace(shared_tiles((16, 16), (8, 8), 64, (4, 4)))
    kernel = build_kernel(program([c]), trace, SM_90A)
    (launch,) = kernel.signature.launches
    code, random = load_kernel(kernel), np.random.default_rng(0)
    left, right = (random.standard_normal((128, 128)).astype(np.float32) for _ in range(2))
    result = np.zeros((128, 128), np.float32)
    memories = [DEVICE.memory_of(each) for each in (left, right, result)]
    code.launch(memories, DEVICE.allocate(0))
    DEVICE.wait()
    DEVICE.copy_out(memories[2], result)
    np.testing.assert_allclose(result, left @ right, 1e-4, 1e-4)
    assert card.read("allowed") == launch.shared_bytes == 64 << 10


def test_memory_is_counted_and_freed(card: ShimDriver) -> None:
    before = DEVICE.free_bytes()
    memory = DEVICE.allocate(1 << 20)
    assert DEVICE.free_bytes() == before - (1 << 20)
    del memory
    assert DEVICE.free_bytes() == before
    needs = rf"{1 << 50} bytes are needed in one piece; {before} bytes of Card of the shim are free"
    with pytest.raises(MemoryError, match=needs):
        DEVICE.allocate(1 << 50)


def test_a_call_without_room_says_what_it_needs(card: ShimDriver) -> None:
    executable = tensorwright.compile(on_cards.network(), target="cuda")
    card.write(memory=card.read("allocated") + 100)
    with pytest.raises(MachineError, match=r"a call needs [1-9]\d{2,} bytes.*about 100 are free"):
        executable(np.ones((1, 3, 6, 6), np.float32))
    with pytest.raises(MachineError, match=r"its constants need 864 bytes.*about 100 are free"):
        tensorwright.compile(on_cards.network(), target="cuda")


def test_the_card_is_a_target(card: ShimDriver) -> None:
    target = named_target("cuda")
    assert isinstance(target, GpuTarget)
    assert (target.name, target.arch, target.multiprocessors) == ("cuda", "sm_90a", 66)
    assert (target.bandwidth, target.opt_in_shared_bytes) == (1.024e12, 232448)
    assert dict(target.flops)[DType.F32] == pytest.approx(66.9e12 / 2)
    assert target.missing_on(SM_90A) == ""
    card.write(major=8, minor=9)
    forget()
    assert getattr(named_target("cuda"), "arch", "") == "sm_89"


@pytest.mark.parametrize(
    ("major", "minor", "target", "runs"),
    [
        (9, 0, "cuda:sm_90", True),
        (9, 0, "cuda:sm_90a", True),
        (9, 0, "cuda:sm_80", False),
        (8, 6, "cuda:sm_80", True),
        (8, 0, "cuda:sm_86", False),
        (12, 0, "cuda:sm_90a", False),
    ],
)
def test_code_of_the_family_runs(
    card: ShimDriver, major: int, minor: int, target: str, runs: bool
) -> None:
    card.write(major=major, minor=minor)
    forget()
    lack = DEVICE.missing(parse_target(target))
    assert (lack is None) == runs
    if lack is not None:
        assert lack.reason.startswith(f"Card of the shim is sm_{major}{minor}")
        assert "compile for the target cuda" in lack.remedy


@pytest.mark.parametrize(
    ("state", "reason", "remedy"),
    [
        ({"init": 100}, "the CUDA driver shows no card", "CUDA_VISIBLE_DEVICES"),
        ({"devices": 0}, "the CUDA driver shows no card", "CUDA_VISIBLE_DEVICES"),
        ({"init": 803}, "does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "nvidia-smi"),
    ],
)
def test_a_machine_without_a_card(
    card: ShimDriver, state: dict[str, int], reason: str, remedy: str
) -> None:
    card.write(**state)
    forget()
    with pytest.raises(MachineError, match=reason) as refused:
        device_of(SM_90A)
    assert remedy in refused.value.remedy
    with pytest.raises(MachineError, match=reason):
        named_target("cuda")


def test_a_card_that_does_not_start(card: ShimDriver) -> None:
    card.write(context=46)
    with pytest.raises(MachineError, match="CUDA: the card does not start") as refused:
        DEVICE.free_bytes()
    assert refused.value.remedy.startswith("see in nvidia-smi")


def test_a_machine_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_cards, "open_driver", lambda: open_driver("libno-such-driver.so.1"))
    forget()
    with pytest.raises(MachineError) as refused:
        device_of(SM_80)
    assert refused.value.message() == (
        "target cuda:sm_80: this machine has no device for its code: the CUDA driver is not "
        "installed: no libcuda.so.1\n"
        "  try: install NVIDIA's driver of the card, and run nvidia-smi to check it"
    )
    forget()


@pytest.mark.parametrize("result", [209, 222])
def test_code_that_the_driver_does_not_take(card: ShimDriver, result: int) -> None:
    kernel = on_cards.doubled_kernel(SM_90A)
    card.write(load=result)
    with pytest.raises(
        MachineError, match=r"which is of CUDA 13.0, does not take its machine code"
    ):
        load_kernel(kernel)


def test_a_fault_of_a_kernel_is_named(card: ShimDriver) -> None:
    code = load_kernel(on_cards.doubled_kernel(SM_90A))
    memory, workspace = DEVICE.allocate(256), DEVICE.allocate(0)
    code.launch((memory, memory), workspace)
    card.write(wait=700)
    with pytest.raises(MachineError, match="reports CUDA_ERROR_ILLEGAL_ADDRESS") as refused:
        DEVICE.wait()
    assert refused.value.remedy.startswith("start the program again")


def test_the_card_is_measured(card: ShimDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_ROUNDS", "_MOST_ROUNDS", "_BLOCKS_PER_UNIT", "_REPEATS"):
        monkeypatch.setattr(devices, name, 1)
    (measured,) = measure_devices(GpuApi.CUDA)
    assert measured.facts.name == "Card of the shim"
    assert measured.facts.version == "sm_90, driver of CUDA 13.0"
    rates, speed = measured.rates, measured.speed
    assert min(rates.to_device, rates.on_device, rates.from_device, rates.round_trip_s) > 0
    assert min(speed.flops_per_s, speed.bytes_per_s, speed.launch_s) > 0


class Foreign:
    """An array of another library on the card: it exports what it has, and notes its stream."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None) -> object:
        self.streams.append(stream)
        return self.array.__dlpack__()


def on_card(array: np.ndarray[Any, Any]) -> Foreign:
    return Foreign(DeviceArray.of(DEVICE, array))


def test_arrays_of_the_card_stay_there(card: ShimDriver) -> None:
    """What NumPy works on is copied to the host, and comes back."""
    gc.collect()
    before = card.read("allocated")
    executable = tensorwright.compile(on_cards.network(), target="cuda")
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 6)).astype(np.float32)
    given = on_card(x)
    for _ in range(3):
        values, places = executable(given)
        for got, want in zip((values, places), executable(x), strict=True):
            assert isinstance(got, DeviceArray)
            assert got.__dlpack_device__() == (2, 0)
            np.testing.assert_array_equal(np.asarray(got), want)
    assert given.streams == [cuda._open().stream] * 3
    again = executable.run({"x": given})
    np.testing.assert_array_equal(np.asarray(again[executable.outputs[0].name]), np.asarray(values))
    del given, values, places, again, got, executable
    gc.collect()
    assert card.read("allocated") == before, "all memory is given back"


def test_arrays_of_the_card_that_do_not_fit(card: ShimDriver) -> None:
    executable = tensorwright.compile(chain(), target="cuda")
    with pytest.raises(InputError, match=r"it must be f32\(1, 4, 6, 6\), not f32\(1, 4, 6, 5\)"):
        executable(on_card(np.zeros((1, 4, 6, 5), np.float32)))
    with pytest.raises(InputError, match="not f16"):
        executable(on_card(np.zeros((1, 4, 6, 6), np.float16)))
    with pytest.raises(InputError, match="1 arrays are needed, not 2"):
        executable(on_card(np.zeros((1, 4, 6, 6), np.float32)), 1)
    with pytest.raises(ValueError, match="NumPy needs a copy"):
        np.array(on_card(np.zeros(3)).array, copy=False)
    with pytest.raises(BufferError, match="exported without a copy"):
        on_card(np.zeros(3)).array.__dlpack__(copy=True)


def test_a_bound_call_works_where_the_arrays_are(card: ShimDriver) -> None:
    """No bytes go to the host or from it, and nothing is copied on the card."""
    executable = tensorwright.compile(chain(), target="cuda")
    random = np.random.default_rng(1)
    x, other = (random.standard_normal((1, 4, 6, 6)).astype(np.float32) for _ in range(2))
    name = executable.outputs[0].name
    given, result = on_card(x), on_card(np.zeros((1, 4, 6, 6), np.float32))
    for bound in (
        executable.bind({"x": given}),
        executable.bind({"x": given}, {name: result}),
    ):
        before = card.read("copies")
        for array in (x, other, x):
            given.array.device.copy_in(array, given.array.memory)
            got = bound.run()[name]
            assert isinstance(got, DeviceArray)
            np.testing.assert_array_equal(np.asarray(got), executable(array))
        assert card.read("copies") == before, "of the card"
    np.testing.assert_array_equal(np.asarray(result.array), executable(x))


def test_results_are_written_to_arrays_of_the_card(card: ShimDriver) -> None:
    """Also those of operators that NumPy computes."""
    executable = tensorwright.compile(on_cards.network(), target="cuda")
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 6)).astype(np.float32)
    wanted = executable.run({"x": x})
    outputs = {name: on_card(np.zeros_like(array)) for name, array in wanted.items()}
    executable.run_into({"x": x}, outputs)
    mixed: dict[str, Any] = {name: np.zeros_like(array) for name, array in wanted.items()}
    executable.run_into({"x": on_card(x)}, mixed)
    for name, array in wanted.items():
        np.testing.assert_array_equal(np.asarray(outputs[name].array), array)
        np.testing.assert_array_equal(mixed[name], array)


def test_arrays_of_the_card_that_cannot_be_written(card: ShimDriver) -> None:
    executable = tensorwright.compile(chain(), target="cuda")
    given = on_card(np.zeros((1, 4, 6, 6), np.float32))
    name = executable.outputs[0].name
    with pytest.raises(InputError, match="it shares memory with an input"):
        executable.run_into({"x": given}, {name: given})
    with pytest.raises(InputError, match=r"output .*it must be f32\(1, 4, 6, 6\)"):
        executable.bind({"x": given}, {name: on_card(np.zeros((1, 4, 6, 5), np.float32))})
    both = tensorwright.compile(on_cards.network(), target="cuda")
    x = on_card(np.zeros((1, 3, 6, 6), np.float32))
    outputs = {
        each.name: on_card(np.zeros(each.extents, each.dtype.numpy)) for each in both.outputs
    }
    with pytest.raises(InputError, match="a step on the host uses it"):
        both.bind({"x": x}, outputs)
