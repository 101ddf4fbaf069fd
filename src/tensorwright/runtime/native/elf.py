"""Read object files of ELF: sections, symbols, relocations.

Source: System V ABI, chapters 4 and 5.  LLVM writes such files for the processors that this
package compiles for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_OBJECT_TYPE = 1
_SYMBOL_TABLE, _RELOCATIONS, _NO_BYTES = 2, 4, 8
_WRITABLE, _IN_MEMORY, _EXECUTABLE = 1, 2, 4
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the file that is loaded into memory; `data` is None for zeros."""

    number: int
    size: int
    alignment: int
    is_writable: bool
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name with a position in a section; section 0 is for names that other objects define."""

    name: str
    section: int
    value: int

    @property
    def is_import(self) -> bool:
        """Whether another object or library defines it."""
        return self.section == _UNDEFINED

    @property
    def is_absolute(self) -> bool:
        """Whether its value is a number, not a position."""
        return self.section == _ABSOLUTE


@dataclass(frozen=True, slots=True)
class Relocation:
    """A position in a section at which the address of a symbol is written, in the form `kind`."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """The parts of an object file that loading needs.

    machine   the number of the processor (62 is x86-64, 183 is AArch64)
    """

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def read_object(data: bytes) -> ObjectFile:
    """Read a relocatable object file.

    Raises:  ValueError for another kind of file, and for a damaged one.
    """
    try:
        return _read(data)
    except (struct.error, LookupError, UnicodeDecodeError) as error:
        raise ValueError(f"it is damaged ({error})") from None


def _read(data: bytes) -> ObjectFile:
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is not an ELF object of 64 bits")
    _, kind, machine, *_, table, _, _, _, _, size, count, _ = _HEADER.unpack_from(data)
    if kind != _OBJECT_TYPE or size != _SECTION.size:
        raise ValueError("it is not a relocatable ELF object")
    rows = [_SECTION.unpack_from(data, table + number * size) for number in range(count)]
    if any(row[1] != _NO_BYTES and row[4] + row[5] > len(data) for row in rows):
        raise ValueError("it is cut short")
    symbols: tuple[Symbol, ...] = ()
    for row in rows:
        if row[1] == _SYMBOL_TABLE:
            symbols = tuple(_symbols(_content(data, row), _content(data, rows[row[6]])))
    sections = tuple(_sections(data, rows))
    loaded = {section.number for section in sections}
    relocations = tuple(
        Relocation(row[7], *fields)
        for row in rows
        if row[1] == _RELOCATIONS and row[7] in loaded
        for fields in _RELOCATION.iter_unpack(_content(data, row))
    )
    return ObjectFile(machine, sections, symbols, relocations)


def _content(data: bytes, row: tuple[int, ...]) -> bytes:
    return data[row[4] : row[4] + row[5]]


def _sections(data: bytes, rows: list[tuple[int, ...]]) -> Iterator[Section]:
    for number, row in enumerate(rows):
        _, kind, flags, _, _, size, _, _, alignment, _ = row
        if flags & _IN_MEMORY and size:
            content = None if kind == _NO_BYTES else _content(data, row)
            is_writable = bool(flags & _WRITABLE)
            if is_writable and flags & _EXECUTABLE:
                raise ValueError("a section is writable and executable")
            yield Section(number, size, max(1, alignment), is_writable, content)


def _symbols(table: bytes, names: bytes) -> Iterator[Symbol]:
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(table):
        text = names[name : names.index(b"\0", name)].decode()
        yield Symbol(text, section, value)
