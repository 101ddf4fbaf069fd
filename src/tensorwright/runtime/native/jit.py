"""Load object code into this process and give the addresses of its functions.

All objects live in one LLVM ORC session, linked by JITLink, which puts an object's code and
constants into one block, so that the small code model is always valid. Sixty objects load in 8 ms;
MCJIT, one engine for each, takes eight times that. An object may refer to other objects' symbols
only if `runtime_symbols` lists them (the C mathematical library, and the memory functions that LLVM
calls implicitly), the OpenMP functions, which are those of `pool/team.py`, and the others of the
pool. The pool's functions are loaded once: its threads run them until the process ends.

The functions that this package writes by itself (the driver, the loop of calls, the measurement
of the machine's peak) become native code here, too: `load_function`, `load_ir`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from tensorwright.base import CpuTarget, InternalError, detect_target
from tensorwright.machine_code import (
    LIBM_SYMBOLS,
    Kind,
    NativeFunction,
    compile_module,
    create_machine,
)
from tensorwright.runtime.native.pool import (
    EXPORTS,
    POOL_SYMBOL,
    POSIX_SYMBOLS,
    STAND_INS,
    pool_ir,
    pool_memory,
)

_MEMORY_SYMBOLS = ("memcpy", "memmove", "memset", "memcmp")
_ELF_MACHINE = slice(18, 20)
_ELF_MACHINES = {"x86-64": 62, "aarch64": 183}
_SYMBOLS_LIBRARY = "symbols"
_LOADS_PER_SESSION = 1000
_CTYPES: dict[str, Any] = {
    Kind.POINTER: ctypes.c_void_p,
    Kind.I64: ctypes.c_int64,
    Kind.I32: ctypes.c_int32,
}


class LoadedObject:
    """Object code in executable memory, which is freed with the last reference.

    Code that keeps an address must also keep this object. Safe to use from several threads.
    """

    __slots__ = ("_session", "_tracker", "symbols")

    def __init__(
        self, session: Session, tracker: llvm.orcjit.ResourceTracker, symbols: tuple[str, ...]
    ) -> None:
        self._session = session
        self._tracker = tracker
        self.symbols = symbols

    def address(self, symbol: str) -> int:
        """The address of one of `symbols`."""
        return int(self._tracker[symbol])

    def __del__(self) -> None:
        del self._tracker  # before the session, which would leave it dangling


class Session:
    """An ORC session with one library for each source of symbols.

    Unloaded objects leave about 8 kB behind (the name of their library, which LLVM keeps
    until the session ends), so `load_object` starts a new session after some thousand loads;
    an old session ends with its last object.
    """

    __slots__ = ("_imports", "_jit", "_libraries", "arch", "loads")

    def __init__(self, imports: Sequence[tuple[str, int]] = ()) -> None:
        """Make a session; its objects may call what the imports name."""
        native = detect_target()
        machine = create_machine(native)
        self.arch = native.arch
        self.loads = itertools.count()
        self._jit = llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)
        # Imports are defined in a library, and a library is made of object code.
        anchor = compile_module("@tw.anchor = constant i8 0\n", native)
        self._imports = tuple(imports)
        self._libraries = [self._define(_SYMBOLS_LIBRARY, anchor, runtime_symbols(), "tw.anchor")]

    def load(self, data: bytes, symbols: Sequence[str]) -> LoadedObject:
        """As `load_object`, into this session."""
        _check_machine(data, self.arch)
        builder = llvm.JITLibraryBuilder().add_object_img(data)
        builder.add_jit_library(_SYMBOLS_LIBRARY)
        for name, address in self._imports:  # in a library, the process's would go first
            builder.import_symbol(name, address)
        for symbol in symbols:
            builder.export_symbol(symbol)
        tracker = self._link(builder, f"object{next(self.loads)}")
        return LoadedObject(self, tracker, tuple(symbols))

    def _define(
        self, name: str, code: bytes, imports: Sequence[tuple[str, int]], *exports: str
    ) -> llvm.orcjit.ResourceTracker:
        builder = llvm.JITLibraryBuilder().add_object_img(code)
        for symbol, address in imports:
            builder.import_symbol(symbol, address)
        for symbol in exports:
            builder.export_symbol(symbol)
        return self._link(builder, name)

    def _link(
        self, builder: llvm.orcjit.JITLibraryBuilder, name: str
    ) -> llvm.orcjit.ResourceTracker:
        try:
            return builder.link(self._jit, name)
        except RuntimeError as error:
            raise InternalError(
                stage="runtime",
                where=f"object code {name}",
                reason=f"cannot be linked into this process: {error}",
                remedy="compile it again for this machine",
            ) from error

    def __del__(self) -> None:
        if hasattr(self, "_libraries"):
            del self._libraries  # before the session that they belong to
        if hasattr(self, "_jit"):
            del self._jit


class _Current:
    """The session that `load_object` fills; guarded by the lock."""

    lock = threading.Lock()
    session: Session | None = None
    loads = 0


def load_object(data: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Link an object file, and look up the addresses of `symbols`, which it must define.

    Raises:  InternalError if it is not an object for this machine, or if a symbol is missing.
    """
    with _Current.lock:
        if _Current.session is None or _Current.loads >= _LOADS_PER_SESSION:
            _Current.session = Session(pool_symbols())
            _Current.loads = 0
        _Current.loads += 1
        session = _Current.session
    return session.load(data, symbols)


def load_ir(ir_text: str, symbols: Sequence[str], target: CpuTarget | None = None) -> LoadedObject:
    """Compile LLVM IR for this machine, or a target that it can run, and load it."""
    return load_object(compile_module(ir_text, target or detect_target()), symbols)


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A native function that Python calls, without the interpreter's lock.

    Keep this object while the function runs: `code` goes with it.
    """

    code: LoadedObject
    run: Callable[..., None]


def load_function(function: NativeFunction, target: CpuTarget | None = None) -> LoadedFunction:
    """As `load_ir`, one function of a module; it takes pointers and integers and gives nothing."""
    code = load_ir(function.module.text(), (function.symbol,), target)
    kind = ctypes.CFUNCTYPE(None, *(_CTYPES[each.kind] for each in function.parameters))
    return LoadedFunction(code, kind(code.address(function.symbol)))


def runtime_symbols() -> tuple[tuple[str, int], ...]:
    """Names and addresses of the existing functions that object code may call, without OpenMP."""
    libm = _load_libm()
    process = ctypes.CDLL(None)
    functions = [(name, _address(libm, name)) for name in LIBM_SYMBOLS]
    functions += [(name, _address(process, name)) for name in _MEMORY_SYMBOLS]
    return tuple((name, address) for name, address in functions if address)


@lru_cache(maxsize=1)
def pool_symbols() -> tuple[tuple[str, int], ...]:
    """Names and addresses of the pool's functions, loaded on their first use and never freed."""
    process, native = ctypes.CDLL(None), detect_target()
    posix = [(name, _address(process, name)) for name in POSIX_SYMBOLS]
    session = Session([*posix, (POOL_SYMBOL, pool_memory().address)])
    code = session.load(compile_module(pool_ir(native.arch), native), EXPORTS)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    functions = {name: code.address(name) for name in EXPORTS}
    stand_ins = [(name, functions[symbol]) for name, symbol in STAND_INS.items()]
    return (*functions.items(), *stand_ins)


def _check_machine(data: bytes, arch: str) -> None:
    """Refuse an ELF object of another processor, which the linker would accept silently."""
    if data[:4] != b"\x7fELF":
        return
    machine = int.from_bytes(data[_ELF_MACHINE], "little")
    wanted = _ELF_MACHINES[arch]
    if machine != wanted:
        raise InternalError(
            stage="runtime",
            where="object code",
            reason=f"it is for ELF machine {machine}, but this one is {wanted}",
            remedy="compile it again for this machine",
        )


def _load_libm() -> ctypes.CDLL:
    """The C mathematical library; the C library if there is no separate one."""
    try:
        return ctypes.CDLL("libm.so.6")  # glibc; find_library would start a compiler
    except OSError:
        return ctypes.CDLL(ctypes.util.find_library("m"))


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0
