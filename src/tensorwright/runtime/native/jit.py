"""Load object code into this process and give the addresses of its functions.

`linker.py` writes each object into separate memory, whose code and constants are then read-only.
An object may refer to these symbols of others: those of `runtime_symbols` (the C mathematical
library, and the memory functions that LLVM calls implicitly), the OpenMP functions, which
`pool/team.py` defines, and the other functions of the pool.  The pool's functions are loaded once:
its threads run them until the process ends.

The package's own native functions (the driver, the loop of calls, the measurement of the machine's
peak) become native code here, too: `load_function`, `load_ir`.

The object code of the functions that this package writes itself, such as the driver.

It comes from the files that were compiled with the package (`prebuilt/`), then from the kernel
cache, and otherwise from LLVM.  The key is the text of the IR, so another version of a function is
another entry.

Load compiled code for a processor: an object file, or a shared object.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import importlib
import importlib.util
import mmap
import struct
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from tensorwright.base import CpuTarget, InternalError, MachineError, detect_target, knobs
from tensorwright.machine_code import LIBM_SYMBOLS, Kind, NativeFunction
from tensorwright.runtime.caches import default_cache
from tensorwright.runtime.native import pool
from tensorwright.runtime.native.linker import MACHINES, lay_out, read_object, write_image

PREBUILT = Path(__file__).parent / "prebuilt"
_COMPILATION = "tensorwright.machine_code.compilation"


def object_code_of(ir_text: str, target: CpuTarget) -> bytes:
    """The object code of a module for a target.

    Raises:  the errors of `compile_module`; MachineError if there is no LLVM to compile it.
    """
    try:
        return (PREBUILT / prebuilt_name(ir_text, target.arch)).read_bytes()
    except OSError:
        pass
    if not knobs.KERNEL_CACHE.get():
        return _compiled(ir_text, target)
    key = _digest(
        "own code", str(importlib.import_module("llvmlite").__version__), target.key, ir_text
    )
    kept = default_cache().get(key)
    if kept is None:
        kept = _compiled(ir_text, target)
        default_cache().put(key, kept)
    return kept


def prebuilt_name(ir_text: str, arch: str) -> str:
    """The name of the module's file in `prebuilt/`, for any processor of an architecture."""
    return f"{_digest(arch, ir_text)[:32]}.o"


def _compiled(ir_text: str, target: CpuTarget) -> bytes:
    if importlib.util.find_spec("llvmlite") is None:
        raise MachineError(
            stage="runtime",
            where=f"target {target.name}",
            reason="this package has no precompiled code for it, and no LLVM to compile it",
            remedy="install tensorwright, which has LLVM",
        )
    code: bytes = importlib.import_module(_COMPILATION).compile_module(ir_text, target)
    return code


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


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
    """A native function that Python calls, without the interpreter's lock; `run` keeps `code`."""

    code: LoadedObject
    run: Callable[..., None]


def load_function(function: NativeFunction, target: CpuTarget | None = None) -> LoadedFunction:
    """As `load_ir`, for one function, which takes pointers and integers and returns nothing."""
    code = load_ir(function.module.text(), (function.symbol,), target)
    kind = ctypes.CFUNCTYPE(None, *(_CTYPES[each.kind] for each in function.parameters))
    run: Any = kind(code.address(function.symbol))
    run.code = code  # of two threads that make a remembered function at once, one drops it at once
    return LoadedFunction(code, run)


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
    posix = [(name, _address(process, name)) for name in pool.POSIX_SYMBOLS]
    session = Session([*posix, (pool.POOL_SYMBOL, pool.pool_memory().address)])
    code = session.load(object_code_of(pool.pool_ir(native.arch), native), pool.EXPORTS)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    functions = {name: code.address(name) for name in pool.EXPORTS}
    stand_ins = [(name, functions[symbol]) for name, symbol in pool.STAND_INS.items()]
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


_ELF, _ELF_TYPE, _ELF_SHARED = b"\x7fELF", slice(16, 18), 3
_MACH_O, _MACH_O_TYPE, _MACH_O_SHARED = b"\xcf\xfa\xed\xfe", slice(12, 16), 6


class LoadedCode(Protocol):
    """Loaded code; whoever keeps an address must also keep this object."""

    def address(self, symbol: str) -> int:
        """The address of one of its symbols."""
        ...


class SharedObject:
    """A shared object in this process; it stays loaded."""

    def __init__(self, library: ctypes.CDLL, symbols: Sequence[str]) -> None:
        self._library = library
        self.symbols = tuple(symbols)

    def address(self, symbol: str) -> int:
        """The address of one of `symbols`."""
        return ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value or 0


def load_code(code: bytes, symbols: Sequence[str]) -> LoadedCode:
    """Load compiled code into this process, where it can run: load only code that you trust.

    Raises:  MachineError if the system cannot load a shared object; the errors of `load_object`.
    """
    return _load_shared(code, symbols) if _is_shared(code) else load_object(code, symbols)


def _is_shared(code: bytes) -> bool:
    """Whether it is a shared object, by its header."""
    if code[:4] == _ELF:
        return int.from_bytes(code[_ELF_TYPE], "little") == _ELF_SHARED
    return code[:4] == _MACH_O and int.from_bytes(code[_MACH_O_TYPE], "little") == _MACH_O_SHARED


def _load_shared(code: bytes, symbols: Sequence[str]) -> SharedObject:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.so")
        path.write_bytes(code)
        try:
            return SharedObject(ctypes.CDLL(str(path)), symbols)
        except OSError as error:
            raise MachineError(
                stage="load",
                where="a compiled kernel",
                reason=f"it does not load ({error})",
                remedy="set the variable TMPDIR to a folder from which programs may run",
            ) from error
