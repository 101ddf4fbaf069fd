"""The packages and programs that only some commands need: which are installed, and their purpose.

A program prints its own version. The version of a package comes from pip; no package is imported.
OpenCL is queried in a separate process, because its drivers may crash the process.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

from tensorwright.base import knobs
from tensorwright.cli.doctor.finding import Finding

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
    chosen = knobs.C_COMPILER.get()
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
