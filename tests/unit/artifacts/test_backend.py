"""Back ends are found by name, and nobody else knows their folders."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.backends import CPU_BACKENDS, LLVM

import tensorwright
from tensorwright.artifacts import backend_of, kernel
from tensorwright.base import CpuTarget, MachineError, TargetKind, cpu_target, parse_target
from tensorwright.codegen.llvm.backend import LlvmBackend

SOURCE = Path(tensorwright.__file__).parent
TARGET = cpu_target("x86-64-avx2")


@dataclass(frozen=True, slots=True)
class Refusing(LlvmBackend):
    name: str = "other"

    def supports(self, target: CpuTarget) -> str:
        return "it has no transistors"


def test_a_target_is_built_by_the_first_that_supports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend_of(TARGET) is LLVM
    known = {"other": Refusing(), "llvm": LLVM}
    monkeypatch.setattr(kernel, "load_backend", known.__getitem__)
    monkeypatch.setattr(kernel, "BACKENDS", {TargetKind.CPU: ("other", "llvm")})
    assert backend_of(TARGET) is LLVM
    monkeypatch.setattr(kernel, "BACKENDS", {TargetKind.CPU: ("other",)})
    with pytest.raises(MachineError, match=r"no back end has code for it \(other: it has no"):
        backend_of(TARGET)


def test_a_kind_without_back_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "BACKENDS", {TargetKind.GPU: ()})
    with pytest.raises(MachineError, match="target cuda:sm_90: no back end has code for it"):
        backend_of(parse_target("cuda:sm_90"))


def test_drivers_tell_the_back_ends_of_graphics_processors_apart() -> None:
    assert backend_of(parse_target("opencl:generic")).name == "opencl"
    assert backend_of(parse_target("cuda:sm_80")).name == "cuda"


def test_names_tell_back_ends_apart() -> None:
    assert len({each.name for each in CPU_BACKENDS}) == len({each.key() for each in CPU_BACKENDS})
    assert [each.name for each in CPU_BACKENDS] == list(kernel.BACKENDS[TargetKind.CPU])
    assert kernel.BACKENDS.keys() == set(TargetKind)


def test_nobody_else_imports_code_generators() -> None:
    importers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(
            r"^from tensorwright\.codegen(?:\.| import )(llvm|c)\b", path.read_text(), re.MULTILINE
        )
        and "codegen" not in path.relative_to(SOURCE).parts
    }
    assert importers == {
        # a C library is written with the flags of the back end `c`
        "artifacts/c_library/library.py",
        # and the names of its sizes as that back end makes them
        "artifacts/c_library/open_sizes.py",
    }


COMPILING = """
import sys
import tensorwright
from tensorwright.cli import compile
from tensorwright.expr import compute, placeholder
x = placeholder("x", (64,))
tensorwright.compile([compute("y", (64,), lambda i: x[i] * 2.0)], threads=1)
assert "tensorwright.codegen.llvm" in sys.modules
print([name for name in sys.modules if name.startswith("tensorwright.codegen.c")])
"""


def test_compiling_imports_no_other_back_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path))
    command = [sys.executable, "-c", COMPILING]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
