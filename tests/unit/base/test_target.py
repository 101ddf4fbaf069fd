from __future__ import annotations

import dataclasses
import platform
import re
import struct
import sys
from pathlib import Path

import pytest

from tensorwright.base import (
    CPU_TARGETS,
    GPU_TARGETS,
    TARGETS,
    CpuTarget,
    DType,
    GpuApi,
    GpuTarget,
    MachineError,
    Target,
    TargetKind,
    UsageError,
    check_runs_here,
    cpu_target,
    detect_target,
    missing_here,
    parse_target,
)
from tensorwright.base import cpu_targets as cpu_module


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_named_targets_parse_back(target: Target) -> None:
    assert parse_target(str(target)) is target
    names = {"CpuTarget": CpuTarget, "GpuTarget": GpuTarget}
    shown = re.sub(r"<(\w+\.\w+): '[^']*'>", r"\1", repr(target))
    assert eval(shown, {**names, "GpuApi": GpuApi, "DType": DType}) == target


@pytest.mark.parametrize("target", CPU_TARGETS, ids=str)
def test_processors_are_processors(target: CpuTarget) -> None:
    assert target.kind is TargetKind.CPU
    assert cpu_target(target) is target
    assert cpu_target(target.name) is target


@pytest.mark.parametrize("target", GPU_TARGETS, ids=str)
def test_graphics_processors_are_no_processors(target: GpuTarget) -> None:
    assert target.kind is TargetKind.GPU
    assert target.missing_on(target) == ""
    assert missing_here(target) == "it is not a graphics processor"
    for given in (target, target.name):
        with pytest.raises(MachineError, match="only processors have what this asks for"):
            cpu_target(given)
    with pytest.raises(MachineError, match="cannot run its code: it is not a graphics processor"):
        check_runs_here(target, "test")


def test_graphics_processors_tell_what_differs() -> None:
    hopper, generic = map(parse_target, ("cuda:sm_90", "opencl:generic"))
    assert isinstance(hopper, GpuTarget)
    assert hopper.missing_on(generic) == "it is opencl:generic, not cuda:sm_90"
    assert CPU_TARGETS[0].missing_on(hopper) == "it is not a processor"
    faster = dataclasses.replace(hopper, bandwidth=4.8e12)
    assert faster.key != hopper.key
    assert dataclasses.replace(hopper, name="mine").key == hopper.key


@pytest.mark.parametrize("target", GPU_TARGETS, ids=str)
def test_limits_of_graphics_processors_fit_each_other(target: GpuTarget) -> None:
    assert target.name == f"{target.api}:{target.arch}"
    assert target.static_shared_bytes <= target.opt_in_shared_bytes <= target.shared_bytes
    assert target.threads_per_block % target.warp == 0
    assert target.flops == tuple(sorted(target.flops, key=lambda pair: str(pair[0])))


@pytest.mark.parametrize(
    ("name", "lanes", "registers", "fma", "masks"),
    [
        ("x86-64-sse2", 4, 16, False, False),
        ("x86-64-avx2", 8, 16, True, False),
        ("x86-64-avx512", 16, 32, True, True),
        ("aarch64-neon", 4, 32, True, False),
    ],
)
def test_vectors(name: str, lanes: int, registers: int, *, fma: bool, masks: bool) -> None:
    target = cpu_target(name)
    assert target.lanes(DType.F32) == lanes
    assert target.lanes(DType.F64) == lanes // 2
    assert target.lanes(DType.I8) == lanes * 4
    assert (target.vector_registers, target.fma, target.has_masks) == (registers, fma, masks)


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        cpu_target("x86-64-avx-512")
    assert caught.value.remedy.startswith("did you mean x86-64-avx512?")
    with pytest.raises(UsageError, match="one of native, opencl, cuda, x86-64-sse2"):
        cpu_target("cray")


def test_the_key_tells_targets_apart() -> None:
    assert len({target.key for target in TARGETS}) == len(TARGETS)
    avx2 = cpu_target("x86-64-avx2")
    for change in (
        {"features": (*avx2.features, "avxvnni")},
        {"l2_bytes": 2 * avx2.l2_bytes},
        {"cores": 64},
        {"vector_registers": 8},
    ):
        assert dataclasses.replace(avx2, **change).key != avx2.key
    renamed = dataclasses.replace(avx2, name="mine", features=avx2.features[::-1])
    assert renamed.key == avx2.key


def test_the_key_is_stable() -> None:
    """Records are found by it: changing it orphans every record that was ever made."""
    assert cpu_target("x86-64-avx512").key == (
        "x86_64-unknown-linux-gnu:v64x32:a5b85867:32K/1024K/16384K:4x2"
    )


@pytest.mark.usefixtures("unassumed")
def test_native_is_this_machine() -> None:
    native = cpu_target("native")
    assert native == detect_target()
    assert native.name == "native"
    assert native.arch in ("x86-64", "aarch64")
    assert native.vector_bytes in (16, 32, 64)
    assert 0 < native.l1_bytes <= native.l2_bytes
    assert native.cores >= 1


FLAGS_AVX2 = "sse4_1 sse4_2 pni ssse3 popcnt avx f16c fma movbe abm bmi1 bmi2 avx2"
FLAGS_AVX512 = FLAGS_AVX2 + " avx512f avx512cd avx512dq avx512bw avx512vl avx512_vnni"


def fake_machine(
    patch: pytest.MonkeyPatch, folder: Path, flags: str, machine: str = "x86_64"
) -> CpuTarget:
    """Detect the target on an invented Linux machine without a description of its caches."""
    (folder / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n\n" * 2)
    patch.setattr(cpu_module, "_LINUX_CPUINFO", folder / "cpuinfo")
    patch.setattr(cpu_module, "_LINUX_CPU0", folder / "cpu0")
    patch.setattr(platform, "machine", lambda: machine)
    return detect_target()


@pytest.mark.parametrize(
    ("flags", "vector_bytes", "last"),
    [
        (FLAGS_AVX512, 64, "avx512vnni"),
        (FLAGS_AVX512.replace("avx512vl ", ""), 32, "avx2"),
        (FLAGS_AVX2, 32, "avx2"),
        (FLAGS_AVX2.replace(" fma", ""), 16, "popcnt"),
        ("pni", 16, "sse3"),
        ("", 16, None),
    ],
)
def test_flags_decide(
    flags: str,
    vector_bytes: int,
    last: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = fake_machine(monkeypatch, tmp_path, flags)
    assert target.vector_bytes == vector_bytes
    assert (target.features[-1] if target.features else None) == last
    assert target.l1_bytes == 32 * 1024
    assert target.threads_per_core == 1


def test_caches_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = [("1", "Data", "48K"), ("1", "Instruction", "64K"), ("2", "Unified", "2M")]
    for index, (level, kind, size) in enumerate(described):
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        (folder / "level").write_text(level + "\n")
        (folder / "type").write_text(kind + "\n")
        (folder / "size").write_text(size + "\n")
    target = fake_machine(monkeypatch, tmp_path, FLAGS_AVX2)
    sizes = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    assert sizes == (48 << 10, 2 << 20, 16 << 20)


def auxiliary_vector(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("@LL", *entry) for entry in (*entries, (0, 0)))


@pytest.mark.parametrize(
    ("entries", "features", "products"),
    [
        ((), ("neon",), []),
        (((16, 1 << 1 | 1 << 10), (26, 0)), ("neon", "fullfp16"), []),
        (((6, 4096), (16, 1 << 1 | 1 << 20)), ("neon", "dotprod"), [DType.I8]),
        (
            ((16, 1 << 20 | 1 << 1), (26, 1 << 13 | 1 << 14)),
            ("neon", "dotprod", "i8mm", "bf16"),
            [DType.U8, DType.I8],
        ),
    ],
)
def test_the_kernel_tells_what_an_arm_has(
    entries: tuple[tuple[int, int], ...],
    features: tuple[str, ...],
    products: list[DType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "auxv").write_bytes(auxiliary_vector(*entries) + b"torn")
    monkeypatch.setattr(cpu_module, "_LINUX_AUXV", tmp_path / "auxv")
    target = fake_machine(monkeypatch, tmp_path, FLAGS_AVX512, machine="aarch64")
    assert target.features == features
    assert [each.data for each in target.short_products()] == products
    assert bool(target.short_products(rows=2)) == ("i8mm" in features)
    assert target.multiplies_bytes == bool(products)
    assert target.computes_halves == ("fullfp16" in features)
    assert target.missing_on(cpu_target("aarch64-neon+dotprod+fullfp16+i8mm+bf16")) == ""


@pytest.mark.parametrize("text", ["aarch64-neon+dotprod+i8mm", "x86-64-avx512+avx512vnni"])
def test_features_are_added_by_name(text: str) -> None:
    base, *more = text.split("+")
    target = cpu_target(text)
    assert target.name == text
    assert target.features == (*cpu_target(base).features, *more)
    assert target.missing_on(cpu_target(base)) == "it has no " + ", ".join(sorted(more))
    assert cpu_target(base).missing_on(target) == ""


def test_features_of_others_are_refused() -> None:
    with pytest.raises(UsageError, match="there is no feature avx2, sve9 to add to it"):
        parse_target("aarch64-neon+avx2+dotprod+sve9")
    with pytest.raises(MachineError, match="only processors have what this asks for"):
        parse_target("cuda:sm_90+dotprod")


def test_other_systems_get_a_conservative_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    arm = fake_machine(monkeypatch, tmp_path, "", machine="arm64")
    assert (arm.arch, arm.triple, arm.vector_bytes) == ("aarch64", "arm64-apple-darwin", 16)
    monkeypatch.setattr(sys, "platform", "win32")
    assert fake_machine(monkeypatch, tmp_path, "", "AMD64").triple == "x86_64-pc-windows-msvc"


def test_other_processors_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="riscv64, which is not supported"):
        fake_machine(monkeypatch, tmp_path, "", machine="riscv64")
