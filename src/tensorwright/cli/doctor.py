"""`tensorwright doctor`: what this machine offers, and what is missing.

A program prints its own version. The version of a package comes from pip; no package is imported.
OpenCL is queried in a separate process, because its drivers may crash the process.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata

import click
import numpy as np

from tensorwright import base, expr, machine
from tensorwright.processes import hold_turn
from tensorwright.records import default_path, open_store
from tensorwright.runtime import default_cache
from tensorwright.runtime.measuring import measure_ceilings, this_machine
from tensorwright.version import __version__

_NAME = 15


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one thing.

    remedy      what to do if the thing is missing; "" if there is nothing to do
    is_needed   whether tensorwright does not work without the thing
    """

    name: str
    text: str
    remedy: str = ""
    is_needed: bool = False

    def print(self) -> None:
        """Print the name, the finding, and what to do."""
        lines = self.text.splitlines() or [""]
        click.echo(f"{self.name:{_NAME}} {lines[0]}")
        for line in lines[1:]:
            click.echo(f"{'':{_NAME}} {line}")
        if self.remedy:
            word = "needed" if self.is_needed else "optional"
            click.echo(f"{'':{_NAME}} {word}; try: {self.remedy}")


_LIMIT_S = 20.0
_PORTABLE = "Portable Computing Language"
_PLATFORMS = (
    "import pyopencl\n"
    "for one in pyopencl.get_platforms(): print(one.name, one.version.strip(), sep='\\t')"
)


@dataclass(frozen=True, slots=True)
class Package:
    """A Python package that some commands need.

    module         the name by which Python imports it
    distribution   the name by which pip knows it
    install        the argument of `pip install`
    """

    name: str
    module: str
    distribution: str
    install: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program that some commands start."""

    name: str
    file: str
    option: str
    install: str
    purpose: str


PACKAGES = (
    Package("LightGBM", "lightgbm", "lightgbm", "lightgbm", "cost models that learn"),
    Package(
        "ONNX Runtime",
        *("onnxruntime", "onnxruntime", "'tensorwright[bench]'"),
        "comparisons, the default peer",
    ),
    Package(
        "OpenVINO",
        *("openvino", "openvino", "'tensorwright[bench]'"),
        "comparisons, often the fastest peer on Intel's processors",
    ),
    Package(
        "PyTorch", "torch", "torch", "'tensorwright[torch]'", "models of PyTorch, and two peers"
    ),
    Package("tokenizers", "tokenizers", "tokenizers", "'tensorwright[text]'", "text in `generate`"),
    Package("Z3", "z3", "z3-solver", "'tensorwright[prove]'", "proofs of rules"),
    Package(
        "Dask", "distributed", "distributed", "'tensorwright[farm]'", "building on other machines"
    ),
)

PROGRAMS = (
    Program("gcc", "gcc", "--version", "apt install gcc", "C libraries, and the C back end"),
    Program("clang", "clang", "--version", "apt install clang", "as gcc; one of the two is enough"),
    Program(
        "Graphviz", "dot", "-V", "apt install graphviz", "pictures of graphs: rewrite --picture"
    ),
)


def packages() -> list[Finding]:
    """A finding for each of the packages."""
    return [_of_package(each) for each in PACKAGES]


def programs() -> list[Finding]:
    """A finding for each of the programs, and one for the C compiler that the knob names."""
    chosen = base.knobs.C_COMPILER.get()
    purpose = "the C back end, by the knob c_compiler"
    remedy = "install gcc or clang, or name a compiler by the knob c_compiler"
    used = Program("C compiler", chosen, "--version", remedy, purpose)
    return [_of_program(each) for each in (used, *PROGRAMS)]


def portable_opencl() -> list[Finding]:
    """Whether OpenCL runs on this processor, by PoCL."""
    purpose = "OpenCL on this processor"
    if importlib.util.find_spec("pyopencl") is None:
        remedy = "pip install 'tensorwright[opencl,pocl]'"
        return [Finding("PoCL", f"pyopencl is not installed (for {purpose})", remedy)]
    lines = output_of([sys.executable, "-c", _PLATFORMS]).splitlines()
    platforms = dict(line.split("\t", 1) for line in lines if "\t" in line)
    if _PORTABLE not in platforms:
        others = f", but {', '.join(platforms)}" if platforms else ""
        text = f"pyopencl finds no platform of this name{others} (for {purpose})"
        remedy = "apt install pocl-opencl-icd, or pip install 'tensorwright[opencl,pocl]'"
        return [Finding("PoCL", text, remedy)]
    return [Finding("PoCL", f"{platforms[_PORTABLE]} (for {purpose})")]


def version_of(distribution: str) -> str:
    """The version of a package by pip; "" if the package is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _of_package(package: Package) -> Finding:
    if importlib.util.find_spec(package.module) is None:
        text = f"not installed (for {package.purpose})"
        return Finding(package.name, text, f"pip install {package.install}")
    version = version_of(package.distribution) or "installed"
    return Finding(package.name, f"{version} (for {package.purpose})")


def _of_program(program: Program) -> Finding:
    path = shutil.which(program.file)
    if path is None:
        text = f"not installed (for {program.purpose})"
        return Finding(program.name, text, program.install)
    first = (output_of([path, program.option]).splitlines() or [path])[0]
    return Finding(program.name, f"{first}\nfor {program.purpose}")


def output_of(command: Sequence[str]) -> str:
    """The output of a program, or else what it prints to the error stream; "" if it fails."""
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout or done.stderr


_MEASURING = "tensorwright.profiling.devices"
_CUDA = "tensorwright.codegen.cuda"
_DEVICE = "tensorwright.runtime.cards.cuda_cards"


def devices() -> list[Finding]:
    """A finding for each device, with its measured rates, and one for NVIDIA's compiler.

    Another process measures the devices, because a driver may end the process that uses it.
    """
    return [*_opencl(), *_cuda(), _nvrtc()]


def _opencl() -> list[Finding]:
    if not version_of("pyopencl"):
        remedy = "pip install 'tensorwright[opencl]', and with PoCL 'tensorwright[opencl,pocl]'"
        return [Finding("OpenCL", "pyopencl is not installed (for --target opencl)", remedy)]
    remedy = "install the driver of your card, or pip install 'tensorwright[opencl,pocl]'"
    return _measured("OpenCL", base.GpuApi.OPENCL, remedy)


def _cuda() -> list[Finding]:
    lack = importlib.import_module(_DEVICE).why_no_card()
    if lack is not None:
        return [Finding("CUDA", f"{lack.reason} (for --target cuda)", lack.remedy)]
    return _measured(
        "CUDA", base.GpuApi.CUDA, "run nvidia-smi: its memory may be full, or the card at fault"
    )


def _measured(name: str, api: base.GpuApi, remedy: str) -> list[Finding]:
    """A finding for each device of a driver; if there is none, a finding with the remedy."""
    printed = output_of([sys.executable, "-m", _MEASURING, api])
    devices = json.loads(printed) if printed.startswith("[") else []
    if not devices:
        return [Finding(name, f"no device (for --target {api})", remedy)]
    return [Finding(name, _text(each["facts"], each["rates"], each["speed"])) for each in devices]


def _text(facts: dict[str, object], rates: dict[str, float], speed: dict[str, float]) -> str:
    """A device in three lines: what its driver says, how it copies, and how fast kernels run."""
    memory, shared = (int(str(facts[key])) for key in ("memory_bytes", "shared_bytes"))
    to, on, back = (rates[key] / 1e9 for key in ("to_device", "on_device", "from_device"))
    return (
        f"{facts['name']} ({facts['platform']}, {facts['version']}): "
        f"{facts['compute_units']} units, {memory / 2**30:.1f} GiB, "
        f"{shared // 1024} KiB shared, {facts['threads_per_block']} threads a block\n"
        f"copies: {to:.1f} GB/s to it, {on:.1f} on it, {back:.1f} from it; "
        f"a short one takes {rates['round_trip_s'] * 1e6:.0f} us\n"
        f"kernels: {speed['flops_per_s'] / 1e9:.0f} GFLOP/s of f32, memory "
        f"{speed['bytes_per_s'] / 1e9:.0f} GB/s; a launch takes {speed['launch_s'] * 1e6:.1f} us"
    )


def _nvrtc() -> Finding:
    purpose = "code for NVIDIA's cards: --target cuda:sm_90a"
    nvrtc = importlib.import_module(_CUDA).find_nvrtc()
    if nvrtc is None:
        remedy = "pip install 'tensorwright[cuda]'"
        return Finding("NVRTC", f"not installed (for {purpose})", remedy)
    first, last = nvrtc.architectures[0], nvrtc.architectures[-1]
    version = ".".join(map(str, nvrtc.version))
    return Finding("NVRTC", f"{version}, sm_{first} to sm_{last} (for {purpose})")


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
    if measure and not base.knobs.ASSUME.get():
        checks += [_measured_ceilings, _short_products, _core]
    else:
        checks.append(_kept)
    checks += [_settings, _home, _cache, _store]
    checks += [packages, programs, portable_opencl]
    if measure:
        checks.append(devices)
    is_lacking = False
    for check in checks:
        try:
            findings = check()
        except base.TensorwrightError as error:
            findings = [Finding(error.where, error.reason, error.remedy or "-", is_needed=True)]
        for finding in findings:
            is_lacking = is_lacking or (finding.is_needed and bool(finding.remedy))
            finding.print()
    if is_lacking:
        sys.exit(base.MachineError.exit_code)
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
    target, hardware = base.detect_target(), machine.detect_hardware()
    threads = f"{target.threads_per_core} thread{'s' if target.threads_per_core > 1 else ''}"
    cores = f"{target.cores} cores, {threads} on each"
    assumed = base.knobs.ASSUME.get()
    vectors = f"{target.vector_registers} vectors of {target.vector_bytes} bytes"
    choices = f"{assumed}, for which all choices are made (knob assume)"
    return [
        *([Finding("assumed", choices)] if assumed else []),
        Finding("target", f"{target.arch}, {vectors}, {cores}\n{' '.join(target.features)}"),
        Finding("caches", "\n".join(map(str, hardware.caches)) or "not told"),
        Finding("fingerprint", hardware.fingerprint),
        Finding(
            "threads", f"{base.knobs.THREADS.get()}, calls share {base.knobs.CORES.get()} cores"
        ),
    ]


def _measured_ceilings() -> list[Finding]:
    """Measure and keep the ceilings; on a busy machine, a kept rate stays if it is higher."""
    target = base.cpu_target("native")
    findings = []
    with hold_turn():
        watch = machine.LoadWatch()
        measured = [measure_ceilings(target, count) for count in _thread_counts()]
        load = watch.load()
    for now in measured:
        before = machine.kept_ceilings(target, now.threads)
        best = machine.refine_ceilings(target, now) if load.is_busy else now
        machine.keep_ceilings(target, best)
        previous = f"\nkept: {before}, of {before.day}" if before is not None else ""
        stays = "; the higher of each rate is kept" if load.is_busy and before else ""
        findings.append(Finding(_peak_name(now.threads), f"{now}{previous}{stays}"))
    advice = (
        "\nthe rates are too low: measure again when the machine is idle" if load.is_busy else ""
    )
    return [*findings, Finding("load", f"{load}{advice}")]


def _kept() -> list[Finding]:
    """The ceilings that were kept; nothing is measured."""
    kept = [machine.kept_ceilings(base.cpu_target("native"), count) for count in _thread_counts()]
    return [
        Finding(_peak_name(each.threads), f"{each}, of {each.day}" if each.day else str(each))
        for each in kept
        if each is not None
    ]


def _core() -> list[Finding]:
    """The rates of one core; they are measured if none are kept."""
    rates = this_machine(base.cpu_target("native"), 1).rates
    return [Finding("one core", f"{rates}, in estimates of time")]


_SIDE = 512  # of the matrices
_LEAST_S = 0.05


def _short_products() -> list[Finding]:
    """What products of short numbers reach, of the types for which there are instructions."""
    target = base.cpu_target("native")
    had = [p for p in base.SHORT_PRODUCTS if set(p.features) <= set(target.instructions)]
    kinds = {f"{p.data} x {p.weights}": p for p in had}
    speeds = dict(this_machine(target, 1).target.speeds)
    findings = []
    with hold_turn():
        for name, product in kinds.items():
            rates = (f"{_rate(product, count):.0f}" for count in _thread_counts())
            counts = " and ".join(map(str, _thread_counts()))
            text = f"{' and '.join(rates)} Gop/s, products of {_SIDE} rows, threads: {counts}"
            if product.intrinsic in speeds:
                speed, usual = speeds[product.intrinsic], product.speed
                text += f"\nits instruction: {speed:g} times as fast as f32, {usual:g} elsewhere"
            findings.append(Finding(name, text))
    return findings


def _rate(product: base.ShortProduct, threads: int) -> float:
    """Billions of operations per second of a product of matrices."""
    fold = expr.reduce_axis("k", _SIDE)
    x, w = (
        expr.placeholder(name, (_SIDE, _SIDE), dtype)
        for name, dtype in (("x", product.data), ("w", product.weights))
    )

    def summed(row: expr.Index, column: expr.Index) -> expr.Reduce:
        one, other = (expr.cast(each, product.sums) for each in (x[row, fold], w[fold, column]))
        return expr.sum_over(one * other, fold)

    ones = {each.name: np.ones((_SIDE, _SIDE), each.dtype.numpy) for each in (x, w)}
    compiling = importlib.import_module("tensorwright.compiling")
    made = expr.compute("y", (_SIDE, _SIDE), summed)
    call = compiling.compile(made, constants={"w": ones["w"]}, threads=threads)
    best_s, end = math.inf, time.perf_counter() + _LEAST_S
    while time.perf_counter() < end or best_s == math.inf:
        start = time.perf_counter()
        call.run({"x": ones["x"]})
        best_s = min(best_s, time.perf_counter() - start)
    return 2e-9 * _SIDE**3 / best_s


def _thread_counts() -> tuple[int, ...]:
    return tuple(dict.fromkeys((1, base.knobs.THREADS.get())))


def _peak_name(threads: int) -> str:
    return f"peak, {threads} thread{'s' if threads > 1 else ''}"


def _settings() -> list[Finding]:
    """A finding for each setting whose value cannot be read, and for each that sets nothing."""
    findings = [
        Finding("setting", f"{name} sets nothing", f"did you mean {variable}?", is_needed=True)
        for name, variable in base.knobs.misspelt_variables().items()
    ]
    for knob in base.KNOBS:
        try:
            knob.get()
        except base.UsageError as error:
            text = f"{knob.variable}: {error.reason}"
            findings.append(Finding("setting", text, error.remedy, is_needed=True))
    return findings


def _home() -> list[Finding]:
    """A finding if the folder of caches and records cannot be used; otherwise nothing."""
    try:
        base.make_home()
    except base.OutputError as error:
        text = f"{base.knobs.HOME.get()}: {error.reason}"
        return [Finding("home", text, error.remedy, is_needed=True)]
    return []


def _cache() -> list[Finding]:
    if not base.knobs.KERNEL_CACHE.get():
        return [Finding("kernel cache", "switched off")]
    cache = default_cache()
    return [Finding("kernel cache", f"{cache.folder}, {cache.size_bytes() / 2**20:.1f} MiB")]


def _store() -> list[Finding]:
    with open_store(create=False) as store:
        return [Finding("record store", f"{default_path()}, {store.count()} records")]
