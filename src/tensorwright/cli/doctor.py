"""`tensorwright doctor`: what this machine offers, and what is missing."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

import click

from tensorwright.base import MachineError, TensorwrightError, detect_target, knobs
from tensorwright.records import default_path, detect_hardware, open_store
from tensorwright.runtime import (
    default_cache,
    find_openmp,
    measure_bandwidth,
    measure_peak,
    openmp_runtime,
)
from tensorwright.version import __version__

_NEEDED = ("llvmlite", "numpy", "onnx", "ml_dtypes", "click", "rich")
_EXTRAS = (
    ("onnxruntime", "bench", "comparisons"),
    ("torch", "torch", "models of PyTorch"),
    ("z3", "prove", "proofs"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `remedy` says what to do where something is missing, "" where all is well."""

    name: str
    text: str
    remedy: str = ""
    is_needed: bool = False


@click.command()
@click.option("--measure/--no-measure", default=True, help="Measure the machine's peak.")
def command(measure: bool) -> None:
    """Say what this machine offers, and what is missing; exit with 9 if that is needed.

    Example: tensorwright doctor
    """
    checks: list[Callable[[], list[Finding]]] = [_python, _target, _libgomp]
    if measure:
        checks.append(_peak)
    checks += [_cache, _store, _extras]
    is_lacking = False
    for check in checks:
        try:
            findings = check()
        except TensorwrightError as error:
            findings = [Finding(error.where, error.reason, error.remedy or "-", is_needed=True)]
        for finding in findings:
            is_lacking = is_lacking or (finding.is_needed and bool(finding.remedy))
            _print(finding)
    if is_lacking:
        sys.exit(MachineError.exit_code)
    click.echo("all that is needed is here")


def _print(finding: Finding) -> None:
    lines = finding.text.splitlines() or [""]
    click.echo(f"{finding.name:14} {lines[0]}")
    for line in lines[1:]:
        click.echo(f"{'':14} {line}")
    if finding.remedy:
        word = "missing" if finding.is_needed else "optional"
        click.echo(f"{'':14} {word}; try: {finding.remedy}")


def _python() -> list[Finding]:
    system = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    found = [Finding("tensorwright", __version__), Finding("python", system)]
    for package in _NEEDED:
        version = _version(package)
        if version:
            found.append(Finding(package, version))
        else:
            found.append(
                Finding(package, "not installed", f"pip install {package}", is_needed=True)
            )
    return found


def _target() -> list[Finding]:
    target, hardware = detect_target(), detect_hardware()
    cores = f"{target.cores} cores, {target.threads_per_core} threads on each"
    vectors = f"{target.vector_registers} vectors of {target.vector_bytes} bytes"
    return [
        Finding("target", f"{target.arch}, {vectors}, {cores}\n{' '.join(target.features)}"),
        Finding("caches", "\n".join(map(str, hardware.caches)) or "not told"),
        Finding("fingerprint", hardware.fingerprint),
        Finding("threads", str(knobs.THREADS.get())),
    ]


def _libgomp() -> list[Finding]:
    found = openmp_runtime()
    if found is None:
        remedy = "install libgomp (Debian: apt install libgomp1; Fedora: dnf install libgomp)"
        return [Finding("libgomp", "not found: programs run on one thread", remedy, is_needed=True)]
    loaded = find_openmp() or found  # now loaded: its path is known in full
    text = f"{loaded.path} ({found.origin.value})"
    return [Finding("libgomp", "\n".join((text, *(f"also loaded: {p}" for p in found.duplicates))))]


def _peak() -> list[Finding]:
    target = detect_target()
    counts = (1, knobs.THREADS.get()) if openmp_runtime() is not None else (1,)
    return [
        Finding(
            f"peak, {count} thread{'s' if count > 1 else ''}",
            f"{measure_peak(target, count) / 1e9:.0f} GFLOP/s, "
            f"{measure_bandwidth(target, count) / 1e9:.1f} GB/s",
        )
        for count in dict.fromkeys(counts)
    ]


def _cache() -> list[Finding]:
    if not knobs.KERNEL_CACHE.get():
        return [Finding("kernel cache", "switched off")]
    cache = default_cache()
    return [Finding("kernel cache", f"{cache.folder}, {cache.size_bytes() / 2**20:.1f} MiB")]


def _store() -> list[Finding]:
    with open_store(create=False) as store:
        return [Finding("record store", f"{default_path()}, {store.count()} records")]


def _extras() -> list[Finding]:
    found = []
    for package, extra, purpose in _EXTRAS:
        if importlib.util.find_spec(package) is None:
            remedy = f"pip install 'tensorwright[{extra}]'"
            found.append(Finding(package, f"not installed (for {purpose})", remedy))
        else:
            found.append(Finding(package, _version(package) or "installed"))
    return found


def _version(package: str) -> str:
    names = {"z3": "z3-solver"}
    try:
        return metadata.version(names.get(package, package))
    except metadata.PackageNotFoundError:
        return ""
