"""Load compiled code for a processor: an object file, or a shared object."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tensorwright.base import MachineError
from tensorwright.runtime.native.jit import load_object

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
