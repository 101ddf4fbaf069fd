"""NVIDIA's compiler library NVRTC by ctypes: CUDA C++ to machine code, without a card."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import re
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright.base import InternalError, MachineError

_REMEDY = "install it with its extra: pip install 'tensorwright[cuda]'"
_OPTIONS = ("--std=c++17", "--fmad=true")
_VERBOSE = "--ptxas-options=-v"
_LIBRARY, _BUILTINS = "libnvrtc.so.*", "libnvrtc-builtins.so.*"


_FUNCTION = re.compile(r"Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that a thread of a function takes.

    stack_bytes     of arrays that are not in registers
    spilled_bytes   of stores and loads of values that did not fit into registers
    """

    function: str
    registers: int
    stack_bytes: int
    spilled_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.function}: {self.registers} registers, {self.stack_bytes} bytes on the stack, "
            f"{self.spilled_bytes} bytes spilled"
        )


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """The library, its version, and the numbers of the architectures that it knows."""

    library: Any
    version: tuple[int, int]
    architectures: tuple[int, ...]

    def machine_code(self, text: str, architecture: str, name: str) -> bytes:
        """The cubin of a file for an architecture, "sm_90a".

        Raises:  MachineError for an architecture that it does not know; InternalError if it
                 refuses the text.
        """
        self._check(architecture)
        return self._compiled(text, architecture, name, "CUBIN")[0]

    def resources(self, text: str, architecture: str, name: str) -> tuple[Resources, ...]:
        """The resources of each function of a file.  Raises: as `machine_code`."""
        return self.code_and_resources(text, architecture, name)[1]

    def code_and_resources(
        self, text: str, architecture: str, name: str
    ) -> tuple[bytes, tuple[Resources, ...]]:
        """The cubin, and the resources of each function.  Raises: as `machine_code`."""
        self._check(architecture)
        code, log = self._compiled(text, architecture, name, "CUBIN", _VERBOSE)
        return code, _resources(log)

    def assembly(self, text: str, architecture: str, name: str) -> str:
        """The PTX of a file, which people read.  Raises: as `machine_code`."""
        self._check(architecture)
        virtual = architecture.replace("sm_", "compute_")
        return self._compiled(text, virtual, name, "PTX")[0].rstrip(b"\0").decode()

    def _check(self, architecture: str) -> None:
        number = architecture.removeprefix("sm_").rstrip("af")
        if not number.isdigit() or int(number) not in self.architectures:
            listed = ", ".join(f"sm_{each}" for each in self.architectures)
            is_newer = number.isdigit() and int(number) > self.architectures[-1]
            raise MachineError(
                stage="codegen",
                where=f"architecture {architecture}",
                reason=f"NVRTC {self.version[0]}.{self.version[1]} does not know it: it knows "
                f"{listed}",
                remedy="upgrade it: pip install -U nvidia-cuda-nvrtc-cu12"
                if is_newer
                else "install another version of the package nvidia-cuda-nvrtc-cu12",
            )

    def _compiled(
        self, text: str, architecture: str, name: str, kind: str, *more: str
    ) -> tuple[bytes, str]:
        """The code of a kind, and the messages of the compiler; `more` options."""
        library, program = self.library, ctypes.c_void_p()
        made = library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None
        )
        _check_status(library, made, name)
        try:
            options = [f"--gpu-architecture={architecture}", *_OPTIONS, *more]
            given = (ctypes.c_char_p * len(options))(*(each.encode() for each in options))
            status = library.nvrtcCompileProgram(program, len(options), given)
            log = _read(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            _check_status(library, status, name, log)
            return _read(library, program, kind), log
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def find_nvrtc() -> Nvrtc | None:
    """The library of the package, else that of the system; None if there is none."""
    for path in _paths():
        try:
            for builtins in sorted(Path(path).parent.glob(_BUILTINS)):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)  # NVRTC looks for it by name
            return _opened(ctypes.CDLL(path))
        except OSError:
            continue
    return None


def require_nvrtc() -> Nvrtc:
    """As `find_nvrtc`.  Raises: MachineError if there is none."""
    nvrtc = find_nvrtc()
    if nvrtc is None:
        raise MachineError(
            stage="codegen",
            where="CUDA",
            reason="NVIDIA's compiler library NVRTC is not installed",
            remedy=_REMEDY,
        )
    return nvrtc


def _paths() -> Iterator[str]:
    folders = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    for folder in dict.fromkeys(folders):
        for path in sorted(Path(folder, "nvidia").glob(f"*/lib/{_LIBRARY}")):
            if ".alt." not in path.name:
                yield str(path)
    system = ctypes.util.find_library("nvrtc")
    if system is not None:
        yield system


def _opened(library: Any) -> Nvrtc:
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(numbers)
    return Nvrtc(library, (major.value, minor.value), tuple(numbers))


def _resources(log: str) -> tuple[Resources, ...]:
    """The assembler's report on each function, in the order in which it compiles them."""
    resources: list[Resources] = []
    for part in log.split("Compiling entry function")[1:]:
        function = _FUNCTION.search(f"Compiling entry function{part}")
        spills, registers = _SPILLS.search(part), _REGISTERS.search(part)
        if function is not None and spills is not None and registers is not None:
            stack, stores, loads = map(int, spills.groups())
            resources.append(Resources(function[1], int(registers[1]), stack, stores + loads))
    return tuple(resources)


def _read(library: Any, program: ctypes.c_void_p, kind: str) -> bytes:
    """One kind of output of a compiled program."""
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    data = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvrtcGet{kind}")(program, data)
    return data.raw[: size.value]


def _check_status(library: Any, status: int, name: str, log: str = "") -> None:
    if not status:
        return
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    error = library.nvrtcGetErrorString(status).decode()
    raise InternalError(
        stage="codegen",
        where=f"kernel {name}",
        reason=f"NVRTC refuses it: {error}\n{log[:4000]}",
    )
