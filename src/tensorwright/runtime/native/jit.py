"""Load object code into this process and give the addresses of its functions.

`linker.py` writes each object into separate memory, whose code and constants are then read-only.
An object may refer to these symbols of others: those of `runtime_symbols` (the C mathematical
library, and the memory functions that LLVM calls implicitly), the OpenMP functions, which
`pool/team.py` defines, and the other functions of the pool.  The pool's functions are loaded once:
its threads run them until the process ends.

The package's own native functions (the driver, the loop of calls, the measurement of the machine's
peak) become native code here, too: `load_function`, `load_ir`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tensorwright.base import CpuTarget, InternalError, MachineError, detect_target
from tensorwright.machine_code import LIBM_SYMBOLS, Kind, NativeFunction
from tensorwright.runtime.native.elf import read_object
from tensorwright.runtime.native.linker import MACHINES, lay_out, write_image
from tensorwright.runtime.native.own_code import object_code_of
from tensorwright.runtime.native.pool import (
    EXPORTS,
    POOL_SYMBOL,
    POSIX_SYMBOLS,
    STAND_INS,
    pool_ir,
    pool_memory,
)

_MEMORY_SYMBOLS = ("memcpy", "memmove", "memset", "memcmp")
_CTYPES: dict[str, Any] = {
    Kind.POINTER: ctypes.c_void_p,
    Kind.I64: ctypes.c_int64,
    Kind.I32: ctypes.c_int32,
}


class LoadedObject:
    """Object code in executable memory, which is freed with this object.

    Code that keeps an address must also keep this object. Safe to use from several threads.
    """

    __slots__ = ("_addresses", "_memory", "symbols")

    def __init__(
        self, memory: mmap.mmap, addresses: Mapping[str, int], symbols: Sequence[str]
    ) -> None:
        self._memory = memory
        self._addresses = {name: addresses[name] for name in symbols}
        self.symbols = tuple(symbols)

    def address(self, symbol: str) -> int:
        """The address of one of `symbols`."""
        return self._addresses[symbol]


class Session:
    """The symbols with which objects are linked: those of libraries and of the pool."""

    __slots__ = ("_addresses", "arch")

    def __init__(self, imports: Sequence[tuple[str, int]] = ()) -> None:
        """Make a session, whose objects may call the imports."""
        native = detect_target()
        self.arch = native.arch
        self._addresses = dict(runtime_symbols()) | dict(imports)

    def load(self, data: bytes, symbols: Sequence[str]) -> LoadedObject:
        """As `load_object`, into this session."""
        return _load(data, symbols, self.arch, self._addresses)


def _load(
    data: bytes, symbols: Sequence[str], arch: str, addresses: Mapping[str, int]
) -> LoadedObject:
    """Link an object into separate memory, and make its code read-only."""
    try:
        content = read_object(data)
        if content.machine != MACHINES[arch]:
            raise InternalError(
                stage="runtime",
                where="object code",
                reason=f"it is for ELF machine {content.machine}, but this one is {MACHINES[arch]}",
                remedy="compile it again for this machine",
            )
        image = lay_out(content)
        memory = mmap.mmap(-1, max(1, image.size_bytes), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        defined = write_image(image, memoryview(memory), base, addresses)
        missing = sorted(name for name in symbols if name not in defined)
        if missing:
            raise ValueError(f"Symbols not found: {', '.join(missing)}")
    except (ValueError, LookupError, OSError, OverflowError, struct.error) as error:
        raise InternalError(
            stage="runtime",
            where="object code",
            reason=f"it cannot be linked into this process: {error}",
            remedy="compile it again for this machine",
        ) from error
    _close(base, image.fixed_bytes)
    return LoadedObject(memory, defined, symbols)


def _close(base: int, size_bytes: int) -> None:
    """Make memory readable and executable, not writable; processors then see the new code, too."""
    if size_bytes and _PROTECT(base, size_bytes, mmap.PROT_READ | mmap.PROT_EXEC):
        raise MachineError(
            stage="load",
            where="compiled code",
            reason=f"the system does not allow it to run (error {ctypes.get_errno()} of mprotect)",
            remedy="allow executable memory for this program",
        )


_PROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_PROTECT.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class _Current:
    """The session of `load_object`; guarded by the lock."""

    lock = threading.Lock()
    session: Session | None = None


def load_object(data: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Link an object file, and look up the addresses of `symbols`, which it must define.

    Raises:  InternalError if it is not an object for this machine, or if a symbol is missing.
    """
    with _Current.lock:
        if _Current.session is None:
            _Current.session = Session(pool_symbols())
        session = _Current.session
    return session.load(data, symbols)


def load_ir(ir_text: str, symbols: Sequence[str], target: CpuTarget | None = None) -> LoadedObject:
    """Compile LLVM IR for this machine, or a target that it can run, and load it."""
    return load_object(object_code_of(ir_text, target or detect_target()), symbols)


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A native function that Python calls, without the interpreter's lock.

    Keep this object while the function runs: `code` goes with it.
    """

    code: LoadedObject
    run: Callable[..., None]


def load_function(function: NativeFunction, target: CpuTarget | None = None) -> LoadedFunction:
    """As `load_ir`, for one function, which takes pointers and integers and returns nothing."""
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
    code = session.load(object_code_of(pool_ir(native.arch), native), EXPORTS)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    functions = {name: code.address(name) for name in EXPORTS}
    stand_ins = [(name, functions[symbol]) for name, symbol in STAND_INS.items()]
    return (*functions.items(), *stand_ins)


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
