"""Load object code into this process and give the addresses of its functions.

All objects live in one LLVM ORC session, linked by JITLink, which puts an object's code and
constants into one block (so that the small code model always holds). Sixty objects load in 8 ms;
MCJIT, one engine for each, takes eight times that. An object may refer to other objects' symbols
only through what `runtime_symbols` lists: the OpenMP runtime, the C mathematical library, and the
memory functions that LLVM calls on its own.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from tensorwright.base import InternalError, detect_target
from tensorwright.codegen.llvm import LIBM_SYMBOLS, compile_module, create_machine
from tensorwright.runtime.openmp import OPENMP_SYMBOLS, SERIAL_IR, openmp_runtime

_MEMORY_SYMBOLS = ("memcpy", "memmove", "memset", "memcmp")
_ELF_MACHINE = slice(18, 20)
_ELF_MACHINES = {"x86-64": 62, "aarch64": 183}
_OPENMP_LIBRARY = "openmp"
_SYMBOLS_LIBRARY = "symbols"
_SYMBOLS_IR = "@tw.anchor = constant i8 0\n"


class LoadedObject:
    """Object code in executable memory, which is given back when the last reference goes.

    Whoever keeps an address must keep this object too. Safe to use from several threads.
    """

    __slots__ = ("_session", "_tracker", "symbols")

    def __init__(
        self, session: _Session, tracker: llvm.orcjit.ResourceTracker, symbols: tuple[str, ...]
    ) -> None:
        self._session = session  # the session must outlive the tracker
        self._tracker = tracker
        self.symbols = symbols

    def address(self, symbol: str) -> int:
        """The address of one of `symbols`."""
        return int(self._tracker[symbol])


@dataclass(frozen=True, slots=True)
class _Session:
    """The ORC session with its two libraries of symbols, alive as long as this is."""

    jit: llvm.orcjit.LLJIT
    libraries: tuple[llvm.orcjit.ResourceTracker, ...]


_lock = threading.Lock()
_sessions: list[_Session] = []
_names = itertools.count()


def load_object(data: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Link an object file and find the addresses of `symbols`, which it must define.

    Raises:  InternalError if it is not an object for this machine, or if a symbol is missing.
    """
    session = _session()
    _check_machine(data)
    builder = llvm.JITLibraryBuilder().add_object_img(data)
    builder.add_jit_library(_SYMBOLS_LIBRARY).add_jit_library(_OPENMP_LIBRARY)
    for symbol in symbols:
        builder.export_symbol(symbol)
    return LoadedObject(
        session, _link(session.jit, builder, f"object{next(_names)}"), tuple(symbols)
    )


def runtime_symbols() -> tuple[tuple[str, int], ...]:
    """Names and addresses of what object code may call, OpenMP aside; those that exist here."""
    libm = _load_libm()
    process = ctypes.CDLL(None)
    found = [(name, _address(libm, name)) for name in LIBM_SYMBOLS]
    found += [(name, _address(process, name)) for name in _MEMORY_SYMBOLS]
    return tuple((name, address) for name, address in found if address)


def _session() -> _Session:
    with _lock:
        if not _sessions:
            _sessions.append(_create_session())
        return _sessions[0]


def _create_session() -> _Session:
    native = detect_target()
    machine = create_machine(native)
    jit = llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)
    # A library is made of object code; imports hang on to one that only holds an anchor.
    anchor = llvm.JITLibraryBuilder().add_object_img(compile_module(_SYMBOLS_IR, native))
    for name, address in runtime_symbols():
        anchor.import_symbol(name, address)
    symbols = _link(jit, anchor.export_symbol("tw.anchor"), _SYMBOLS_LIBRARY)
    runtime = openmp_runtime()
    openmp = llvm.JITLibraryBuilder()
    if runtime is None:
        openmp.add_object_img(compile_module(SERIAL_IR, native))
    else:
        openmp.add_object_img(compile_module("@tw.openmp = constant i8 0\n", native))
        for name, address in runtime.symbols:
            openmp.import_symbol(name, address)
    for name in OPENMP_SYMBOLS:
        openmp.export_symbol(name)
    return _Session(jit, (symbols, _link(jit, openmp, _OPENMP_LIBRARY)))


def _check_machine(data: bytes) -> None:
    """Refuse an ELF object of another processor, which the linker would take without a word."""
    if data[:4] != b"\x7fELF":
        return
    found = int.from_bytes(data[_ELF_MACHINE], "little")
    wanted = _ELF_MACHINES[detect_target().arch]
    if found != wanted:
        raise InternalError(
            stage="runtime",
            where="object code",
            reason=f"it is for ELF machine {found}, and this one is {wanted}",
            remedy="compile it again for this machine",
        )


def _link(
    jit: llvm.orcjit.LLJIT, builder: llvm.orcjit.JITLibraryBuilder, name: str
) -> llvm.orcjit.ResourceTracker:
    try:
        return builder.link(jit, name)
    except RuntimeError as error:
        raise InternalError(
            stage="runtime",
            where=f"object code {name}",
            reason=f"cannot be linked into this process: {error}",
            remedy="compile it again for this machine",
        ) from error


def _load_libm() -> ctypes.CDLL:
    """The C mathematical library; in the C library itself where there is no separate one."""
    for name in ("libm.so.6", ctypes.util.find_library("m")):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return ctypes.CDLL(None)


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0
