"""The hardware fingerprint: stable, and made of what code generation can see."""

from __future__ import annotations

from pathlib import Path

from tensorwright.base import Cache
from tensorwright.machine import detect_hardware


def write_machine(folder: Path, flags: str) -> tuple[Path, Path]:
    cpuinfo = folder / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nmodel name\t: Some Name\nflags\t\t: {flags}\n\n")
    shapes = (
        ("1", "Data", "48K", "0"),
        ("1", "Instruction", "32K", "0"),
        ("2", "Unified", "2M", "0-1"),
    )
    for number, (level, kind, size, shared) in enumerate(shapes):
        index = folder / f"index{number}"
        index.mkdir(parents=True)
        (index / "level").write_text(level + "\n")
        (index / "type").write_text(kind + "\n")
        (index / "size").write_text(size + "\n")
        (index / "coherency_line_size").write_text("64\n")
        (index / "shared_cpu_list").write_text(shared + "\n")
    return cpuinfo, folder


def test_features_and_caches_are_read(tmp_path: Path) -> None:
    cpuinfo, caches = write_machine(tmp_path, "fpu fma avx2 avx512f never_heard_of")
    hardware = detect_hardware("AMD64", 4, cpuinfo, caches)
    assert hardware.features == ("avx2", "avx512f", "fma")
    assert hardware.caches == (
        Cache(1, "data", 48 * 1024, 64, 1),
        Cache(2, "unified", 2 * 1024**2, 64, 2),
    )
    assert hardware.fingerprint.startswith("x86_64-4c-avx512f-")
    assert str(hardware).splitlines() == [
        "x86_64, 4 cores",
        "  features: avx2 avx512f fma",
        "  cache: L1 data 48 KiB, line 64 bytes, of one core",
        "  cache: L2 unified 2048 KiB, line 64 bytes, shared by 2",
    ]


def test_only_what_matters_changes_the_fingerprint(tmp_path: Path) -> None:
    cpuinfo, caches = write_machine(tmp_path, "fma avx2")
    first = detect_hardware("x86_64", 2, cpuinfo, caches).fingerprint
    cpuinfo = tmp_path / "newer"  # a file is read once
    cpuinfo.write_text("model name: Other\nflags: avx2 fma a_newer_kernel_says_this\n")
    assert detect_hardware("x86_64", 2, cpuinfo, caches).fingerprint == first
    assert detect_hardware("x86_64", 3, cpuinfo, caches).fingerprint != first
    cpuinfo = tmp_path / "other"
    cpuinfo.write_text("flags: avx2 fma avx512f\n")
    assert detect_hardware("x86_64", 2, cpuinfo, caches).fingerprint != first


def test_a_machine_that_tells_nothing_has_a_fingerprint_too(tmp_path: Path) -> None:
    hardware = detect_hardware("riscv64", 1, tmp_path / "none", tmp_path / "none")
    assert (hardware.features, hardware.caches) == ((), ())
    assert hardware.fingerprint.startswith("riscv64-1c-base-")


def test_this_machine_is_the_same_twice() -> None:
    assert detect_hardware() == detect_hardware()
    assert detect_hardware().fingerprint == detect_hardware().fingerprint
