"""What a new device must bring: a target, a back end, a device; the page that says so is right."""

from __future__ import annotations

import ctypes
import inspect
import math
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from tensorwright import artifacts, base
from tensorwright.codegen import Backend
from tensorwright.expr import compute, placeholder
from tensorwright.graph import passes as graph_passes
from tensorwright.graph import program
from tensorwright.loop.passes import TARGET_PASSES
from tensorwright.records import Status
from tensorwright.runtime import DEVICES, HOST, Device, HostDevice, KernelSpec, Missing, device_of
from tensorwright.runtime.cards.cuda import CudaDevice
from tensorwright.runtime.cards.opencl import OpenClDevice
from tensorwright.runtime.measuring import measure_peak
from tensorwright.schedule import state_of
from tensorwright.tuning import space
from tensorwright.tuning.features import FEATURE_GROUPS, Featurizer, ScalarGroup
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.measuring.expected_results import make_expected_results
from tensorwright.tuning.measuring.timing import prepare, try_kernels
from tensorwright.tuning.space.derived import GENERATORS
from tensorwright.tuning.space.derived.engine import FINISHERS
from tensorwright.tuning.space.templates import TEMPLATES
from tensorwright.tuning.time_model import TIME_MODELS
from tensorwright.tuning.time_model.rows import MACHINE_COLUMNS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "device.md"
MOST_FILES = 10


def members(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_what_a_target_has() -> None:
    assert members(base.TargetProtocol) == {"name", "kind", "instructions", "key", "missing_on"}
    for kind in (base.CpuTarget, base.GpuTarget):
        assert members(base.TargetProtocol) <= set(dir(kind)), kind


def test_what_a_back_end_has() -> None:
    named = {"name", "suffix", "supports", "key", "emit", "compile", "listing"}
    assert members(Backend) == named
    for name in (name for names in artifacts.BACKENDS.values() for name in names):
        backend = artifacts.load_backend(name)
        assert named <= set(dir(backend))
        assert backend.name == name


def test_what_a_device_has() -> None:
    named = {"missing", "free_bytes", "allocate", "copy_in", "copy_out", "copy", "memory_of"}
    named |= {"load", "launch", "record", "record_timed", "wait", "time", "time_calls", "dlpack"}
    assert members(Device) == named
    for name in members(Device):
        for device in (HostDevice, OpenClDevice, CudaDevice):
            promised, given = (
                inspect.signature(getattr(each, name), eval_str=True) for each in (Device, device)
            )
            assert promised == given, name


LISTS: dict[str, base.ByKind[Any]] = {
    "back ends": artifacts.BACKENDS,
    "devices": DEVICES,
    "passes of graphs": graph_passes.TARGET_PASSES,
    "passes of loops": TARGET_PASSES,
    "heuristic schedules": space.HEURISTICS,
    "schedules by another algorithm": space.OTHER_ALGORITHMS,
    "sketch generators": GENERATORS,
    "finishers": FINISHERS,
    "templates": TEMPLATES,
    "limits of tiles": space.TILE_LIMITS,
    "features": FEATURE_GROUPS,
    "columns of the machine": MACHINE_COLUMNS,
    "time models": TIME_MODELS,
}


def test_processors_have_every_list() -> None:
    assert not [what for what, lists in LISTS.items() if not lists.get(base.TargetKind.CPU)]


def test_what_a_gpu_has_to_bring() -> None:
    """A list without its kind refuses its targets; in the others it has nothing to add yet."""
    missing = {what for what, lists in LISTS.items() if base.TargetKind.GPU not in lists}
    assert missing == {"columns of the machine"}
    brought = {what for what, lists in LISTS.items() if lists.get(base.TargetKind.GPU)}
    programs = {"back ends", "devices", "passes of loops"}
    searched = {"heuristic schedules", "sketch generators", "finishers", "limits of tiles"}
    searched |= {"templates", "schedules by another algorithm"}
    assert brought == programs | searched | {"features", "time models"}


def test_a_kind_without_a_list_is_refused() -> None:
    card = base.parse_target("cuda:sm_90")
    assert base.of_kind(graph_passes.TARGET_PASSES, card, "passes of graphs") == ()
    with pytest.raises(base.MachineError) as refused:
        base.of_kind(MACHINE_COLUMNS, card, "columns of the machine")
    assert refused.value.message() == (
        "target cuda:sm_90: there are no columns of the machine for machines of the kind gpu\n"
        "  try: name a target of another kind: cpu"
    )


def test_a_kind_brings_its_features_and_limits_by_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    card: Any = base.parse_target("cuda:sm_90")
    x = placeholder("x", (64,))
    state = state_of(program([compute("y", (64,), lambda i: x[i] * 2.0)]))
    stored = ScalarGroup(
        ("stored_bytes", "threads"), lambda nest, _: {"stored_bytes": 4 * nest.loops.inside[0]}
    )
    monkeypatch.setitem(cast("Any", FEATURE_GROUPS), base.TargetKind.GPU, (stored,))
    features = Featurizer(state, card).of_trace(())
    np.testing.assert_allclose(features, [[[np.log2(257), 0]]], rtol=1e-6)
    limits = space.TileLimits(8, 8, 32, 16, 64, 4096)
    monkeypatch.setitem(cast("Any", space.TILE_LIMITS), base.TargetKind.GPU, (limits,))
    assert space.limits_of(card) is limits


@pytest.mark.parametrize("kind", base.TargetKind)
def test_a_kind_of_machine_has_targets(kind: base.TargetKind) -> None:
    assert [each for each in base.TARGETS if each.kind is kind]


@pytest.mark.parametrize("target", base.TARGETS, ids=str)
def test_a_target_tells_what_it_is(target: base.Target) -> None:
    facts: base.TargetProtocol = target
    assert facts.missing_on(target) == ""
    assert str(target) == facts.name
    assert all(isinstance(each, str) for each in (facts.key, *facts.features))


def test_the_host_is_a_device() -> None:
    """A kernel is compiled, loaded and launched through nothing but the protocols."""
    x = placeholder("x", (64,))
    workload = program([compute("y", (64,), lambda i: x[i] * 2.0)])
    kernel = artifacts.build_kernel(workload, (), base.detect_target())
    code = artifacts.load_kernel(kernel)
    array = np.arange(64, dtype=np.float32)
    given, made = HOST.allocate(array.nbytes), HOST.allocate(array.nbytes)
    workspace = HOST.allocate(kernel.spec.scratch_bytes(1))
    HOST.copy_in(array, given)
    assert HOST.time(lambda: code.launch((given, made), workspace)) > 0
    HOST.wait()
    result = np.empty_like(array)
    HOST.copy_out(made, result)
    np.testing.assert_array_equal(result, array * 2)
    table = np.array([[made.address, given.address], [given.address, made.address]], np.uint64)
    assert HOST.time_calls(code.functions, table, workspace, 1, count=2, first=1) > 0
    HOST.copy_out(given, result)
    np.testing.assert_array_equal(result, array * 4)
    HOST.copy(given, made)
    HOST.copy_out(made, result)
    np.testing.assert_array_equal(result, array * 4)
    assert HOST.missing(base.detect_target()) is None
    assert HOST.missing(base.parse_target("cuda:sm_90")) == Missing(
        "it is not a graphics processor"
    )
    assert HOST.free_bytes() > array.nbytes
    assert given.address % 64 == 0


class Counted(HostDevice):
    """The host, which counts what is asked of it."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name in members(Device):
            self.asked[name] += 1
        return super().__getattribute__(name)

    def take_asked(self) -> set[str]:
        """What was asked of it since the last time."""
        asked = set(self.asked)
        self.asked.clear()
        return asked


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """The device of the processors, in place of the host."""
    module = ModuleType("tensorwright.runtime.counted")
    device = Counted()
    vars(module)["DEVICE"] = device
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("tensorwright.runtime.device.DEVICES", {base.TargetKind.CPU: ("counted",)})
    return device


def test_all_that_runs_code_asks_the_device(counted: Counted, tmp_path: Path) -> None:
    """A network, its timing, the peak and the measuring of candidates need only the protocol."""
    x = placeholder("x", (64,))
    workload = program([compute("y", (64,), lambda i: x[i] * 2.0)])
    target = base.detect_target()
    kernel = artifacts.build_kernel(workload, (), target)
    bound = artifacts.assemble_workload(workload, kernel, target, 1).bind(
        {"x": np.ones(64, np.float32)}
    )
    prepared = {"missing", "load", "allocate", "memory_of"}
    assert counted.take_asked() == prepared
    assert bound.run_seconds() > 0
    assert counted.take_asked() == {"time"}
    assert measure_peak(target) > 0
    assert counted.take_asked() == {*prepared, "time_calls"}
    expected = make_expected_results(workload, tmp_path)
    prepare(expected)
    (one,) = try_kernels(expected.key, (kernel,), 1, math.inf, MeasureOptions(repeats=2))
    assert one.status is Status.OK
    assert counted.take_asked() == {*prepared, "copy_in", "copy_out", "time_calls"}


def test_a_machine_without_the_device_is_refused(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = Missing("it is switched off", "switch it on")
    monkeypatch.setattr(Counted, "missing", lambda self, target: lack)
    with pytest.raises(base.MachineError) as refused:
        device_of(base.parse_target("x86-64-avx2"))
    assert refused.value.message() == (
        "target x86-64-avx2: this machine has no device for its code: it is switched off\n"
        "  try: switch it on"
    )


def test_what_the_device_reads_in_place() -> None:
    array = np.zeros(160, np.float32)
    start = -array.ctypes.data % 64 // 4
    ready, other = array[start : start + 64], array[start + 1 : start + 65]
    assert HOST.memory_of(ready).address == ready.ctypes.data
    copy = HOST.memory_of(other)
    assert copy.address % 64 == 0
    assert copy.size_bytes == other.nbytes


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.int8, bool])
def test_copies_keep_every_byte(shape: tuple[int, ...], dtype: Any) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype).reshape(shape)
    memory = HOST.allocate(array.nbytes)
    HOST.copy_in(array, memory)
    again = np.empty_like(array)
    HOST.copy_out(memory, again)
    np.testing.assert_array_equal(again, array)


def test_a_copy_stays_in_its_memory() -> None:
    memory = HOST.allocate(16)
    for copy in (HOST.copy_in, lambda array, memory: HOST.copy_out(memory, array)):
        with pytest.raises(base.InternalError, match="a copy of 32 bytes exceeds it"):
            copy(np.zeros(4), memory)


def test_the_host_launches_no_grid() -> None:
    memory = HOST.allocate(64)
    done: list[int] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
    called = kind(lambda arguments, workspace, threads: done.append(threads))
    function = ctypes.cast(called, ctypes.c_void_p).value or 0
    HOST.launch(function, base.Threads(), (memory,), memory, 3)
    assert done == [3]
    with pytest.raises(base.InternalError, match="a processor has no grids"):
        HOST.launch(function, base.Grid((1, 1, 1), (1, 1, 1)), (memory,), memory)


def test_a_kernel_of_several_launches_has_several_symbols() -> None:
    grid = base.Grid((1, 1, 1), (32, 1, 1))
    assert KernelSpec("one", ()).symbols == ("one",)
    assert KernelSpec("sum", (), launches=(grid,) * 3).symbols == ("sum", "sum_1", "sum_2")


def test_the_page_lists_few_files_and_all_are_there() -> None:
    rows = re.findall(r"^\| \d+ \| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert 0 < len(rows) <= MOST_FILES
    assert not [row for row in rows if not (ROOT / "src" / "tensorwright" / row).is_file()]
