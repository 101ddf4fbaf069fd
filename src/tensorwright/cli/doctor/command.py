"""`tensorwright doctor`: what this machine offers, and what is missing."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable

import click

from tensorwright.base import (
    KNOBS,
    MachineError,
    OutputError,
    TensorwrightError,
    UsageError,
    cpu_target,
    detect_target,
    knobs,
    make_home,
)
from tensorwright.cli.doctor.devices import devices
from tensorwright.cli.doctor.finding import Finding
from tensorwright.cli.doctor.tools import packages, portable_opencl, programs, version_of
from tensorwright.machine import (
    LoadWatch,
    detect_hardware,
    keep_ceilings,
    kept_ceilings,
    refine_ceilings,
)
from tensorwright.processes import hold_turn
from tensorwright.records import default_path, open_store
from tensorwright.runtime import default_cache
from tensorwright.runtime.measuring import measure_ceilings, this_machine
from tensorwright.version import __version__

_NEEDED = ("llvmlite", "numpy", "onnx", "ml_dtypes", "click", "rich")


@click.command()
@click.option(
    "--measure/--no-measure", default=True, help="Measure peak and bandwidths, and keep them."
)
def command(measure: bool) -> None:
    """Say what this machine offers, and what is missing. The exit status is 9 if tensorwright
    needs what is missing.

    Peak and bandwidths are measured and kept with their date: `profile`, `bench`, `tune` and
    `optimize` compare with them, and say if the machine is busy.

    Example: tensorwright doctor
    """
    checks: list[Callable[[], list[Finding]]] = [_python, _target]
    checks += [_measured, _core] if measure and not knobs.ASSUME.get() else [_kept]
    checks += [_settings, _home, _cache, _store]
    checks += [packages, programs, portable_opencl]
    if measure:
        checks.append(devices)
    is_lacking = False
    for check in checks:
        try:
            findings = check()
        except TensorwrightError as error:
            findings = [Finding(error.where, error.reason, error.remedy or "-", is_needed=True)]
        for finding in findings:
            is_lacking = is_lacking or (finding.is_needed and bool(finding.remedy))
            finding.print()
    if is_lacking:
        sys.exit(MachineError.exit_code)
    click.echo("everything that is needed is here")


def _python() -> list[Finding]:
    system = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = [Finding("tensorwright", __version__), Finding("python", system)]
    for package in _NEEDED:
        version = version_of(package)
        if version:
            findings.append(Finding(package, version))
        else:
            findings.append(
                Finding(package, "not installed", f"pip install {package}", is_needed=True)
            )
    return findings


def _target() -> list[Finding]:
    target, hardware = detect_target(), detect_hardware()
    threads = f"{target.threads_per_core} thread{'s' if target.threads_per_core > 1 else ''}"
    cores = f"{target.cores} cores, {threads} on each"
    assumed = knobs.ASSUME.get()
    vectors = f"{target.vector_registers} vectors of {target.vector_bytes} bytes"
    choices = f"{assumed}, for which all choices are made (knob assume)"
    return [
        *([Finding("assumed", choices)] if assumed else []),
        Finding("target", f"{target.arch}, {vectors}, {cores}\n{' '.join(target.features)}"),
        Finding("caches", "\n".join(map(str, hardware.caches)) or "not told"),
        Finding("fingerprint", hardware.fingerprint),
        Finding("threads", f"{knobs.THREADS.get()}, calls share {knobs.CORES.get()} cores"),
    ]


def _measured() -> list[Finding]:
    """Measure and keep the ceilings; on a busy machine, a kept rate stays if it is higher."""
    target = cpu_target("native")
    findings = []
    with hold_turn():
        watch = LoadWatch()
        measured = [measure_ceilings(target, count) for count in _thread_counts()]
        load = watch.load()
    for now in measured:
        before = kept_ceilings(target, now.threads)
        best = refine_ceilings(target, now) if load.is_busy else now
        keep_ceilings(target, best)
        previous = f"\nkept: {before}, of {before.day}" if before is not None else ""
        stays = "; the higher of each rate is kept" if load.is_busy and before else ""
        findings.append(Finding(_peak_name(now.threads), f"{now}{previous}{stays}"))
    advice = (
        "\nthe rates are too low: measure again when the machine is idle" if load.is_busy else ""
    )
    return [*findings, Finding("load", f"{load}{advice}")]


def _kept() -> list[Finding]:
    """The ceilings that were kept; nothing is measured."""
    kept = [kept_ceilings(cpu_target("native"), count) for count in _thread_counts()]
    return [
        Finding(_peak_name(each.threads), f"{each}, of {each.day}" if each.day else str(each))
        for each in kept
        if each is not None
    ]


def _core() -> list[Finding]:
    """The rates of one core; they are measured if none are kept."""
    rates = this_machine(cpu_target("native"), 1).rates
    return [Finding("one core", f"{rates}, in estimates of time")]


def _thread_counts() -> tuple[int, ...]:
    return tuple(dict.fromkeys((1, knobs.THREADS.get())))


def _peak_name(threads: int) -> str:
    return f"peak, {threads} thread{'s' if threads > 1 else ''}"


def _settings() -> list[Finding]:
    """A finding for each setting whose value cannot be read, and for each that sets nothing."""
    findings = [
        Finding("setting", f"{name} sets nothing", f"did you mean {variable}?", is_needed=True)
        for name, variable in knobs.misspelt_variables().items()
    ]
    for knob in KNOBS:
        try:
            knob.get()
        except UsageError as error:
            text = f"{knob.variable}: {error.reason}"
            findings.append(Finding("setting", text, error.remedy, is_needed=True))
    return findings


def _home() -> list[Finding]:
    """A finding if the folder of caches and records cannot be used; otherwise nothing."""
    try:
        make_home()
    except OutputError as error:
        text = f"{knobs.HOME.get()}: {error.reason}"
        return [Finding("home", text, error.remedy, is_needed=True)]
    return []


def _cache() -> list[Finding]:
    if not knobs.KERNEL_CACHE.get():
        return [Finding("kernel cache", "switched off")]
    cache = default_cache()
    return [Finding("kernel cache", f"{cache.folder}, {cache.size_bytes() / 2**20:.1f} MiB")]


def _store() -> list[Finding]:
    with open_store(create=False) as store:
        return [Finding("record store", f"{default_path()}, {store.count()} records")]
