"""Link an object file to an address in memory, so that running compiled code needs no compiler.

An image is the object's sections in memory, one after another, and a stub for each function that
another object defines.  A stub is a jump to the address that follows the jump.  Code reads the
address of a symbol from the same word, so there is no table beside the stubs:

    code and constants | stubs of 16 bytes: jump, address | (next page) writable sections

Sources: System V ABI, AMD64 supplement, 4.4; ELF for the Arm 64-bit architecture, 5.7.

Read object files of ELF: sections, symbols, relocations.

Source: System V ABI, chapters 4 and 5.  LLVM writes such files for the processors that this
package compiles for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
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


PAGE_BYTES = 4096
_STUB_BYTES, _STUB_ADDRESS = 16, 8
_STUBS = {
    62: bytes.fromhex("ff2502000000 6690"),  # jmp *2(%rip); nop
    183: bytes.fromhex("50000058 00021fd6"),  # ldr x16, .+8; br x16
}
MACHINES = {"x86-64": 62, "aarch64": 183}
"""The number of each processor in object files."""


@dataclass(frozen=True, slots=True)
class Image:
    """The positions of an object's sections and stubs, relative to the beginning of its memory.

    fixed_bytes   of code and constants, whole pages; the memory after them is writable
    """

    content: ObjectFile
    sections: dict[int, int]
    stubs: dict[str, int]
    fixed_bytes: int
    size_bytes: int


class LinkError(ValueError):
    """An object that cannot be linked; the text says why."""


def lay_out(content: ObjectFile) -> Image:
    """The positions of an object's sections and stubs."""
    sections: dict[int, int] = {}
    end = 0
    for section in content.sections:
        if not section.is_writable:
            sections[section.number] = end = _aligned(end, section.alignment)
            end += section.size
    end = _aligned(end, _STUB_BYTES)
    names = {
        content.symbols[each.symbol].name
        for each in content.relocations
        if _needs_stub(content, each)
    }
    stubs = {name: end + _STUB_BYTES * number for number, name in enumerate(sorted(names))}
    fixed = end = _aligned(end + _STUB_BYTES * len(stubs), PAGE_BYTES)
    for section in content.sections:
        if section.is_writable:
            sections[section.number] = end = _aligned(end, section.alignment)
            end += section.size
    return Image(content, sections, stubs, fixed, _aligned(end, PAGE_BYTES))


def write_image(
    image: Image, memory: memoryview, base: int, addresses: Mapping[str, int]
) -> dict[str, int]:
    """Write an object into memory that begins at the address `base`, a multiple of a page.

    addresses   of the symbols that other objects define
    Returns the addresses of the symbols that the object defines.
    Raises:  LinkError for a symbol without an address, a target that is too far away, and a
             relocation that is not one of the small code model's.
    """
    content = image.content
    for section in content.sections:
        if section.data is not None:
            start = image.sections[section.number]
            memory[start : start + section.size] = section.data
    own = {
        symbol.name: base + image.sections[symbol.section] + symbol.value
        for symbol in content.symbols
        if symbol.name and symbol.section in image.sections
    }
    missing = sorted(name for name in image.stubs if name not in own and name not in addresses)
    if missing:
        raise LinkError(f"Symbols not found: {', '.join(missing)}")
    for name, offset in image.stubs.items():
        address = own[name] if name in own else addresses[name]
        jump = _STUBS[content.machine]
        memory[offset : offset + _STUB_BYTES] = jump + struct.pack("<Q", address)
    writers = _WRITERS[content.machine]
    for each in content.relocations:
        write = writers.get(each.kind)
        if write is None:
            raise LinkError(f"relocation {each.kind} is not supported")
        symbol = content.symbols[each.symbol]
        address = base + image.sections[each.section] + each.offset
        in_table = each.kind in _THROUGH_TABLE[content.machine]
        target = _address_of(image, symbol, base, in_table=in_table)
        write(memory, address - base, target + each.addend, address)
    return own


def _address_of(image: Image, symbol: Symbol, base: int, *, in_table: bool) -> int:
    """The address of a symbol, or of the entry from which code reads it."""
    if symbol.name in image.stubs and (symbol.is_import or in_table):
        return base + image.stubs[symbol.name] + (_STUB_ADDRESS if in_table else 0)
    if symbol.is_absolute:
        return symbol.value
    if symbol.section not in image.sections:
        raise LinkError(f"symbol {symbol.name} lies in no section")
    return base + image.sections[symbol.section] + symbol.value


def _needs_stub(content: ObjectFile, relocation: Relocation) -> bool:
    """Whether a relocation refers to another object's symbol, or to an address that code reads."""
    in_table = relocation.kind in _THROUGH_TABLE.get(content.machine, ())
    return in_table or content.symbols[relocation.symbol].is_import


def _aligned(size: int, unit: int) -> int:
    return -(-size // unit) * unit


# Each kind of relocation has a writer: memory, offset in it, target with addend, own address.

_Write = Callable[[memoryview, int, int, int], None]


def _absolute(memory: memoryview, offset: int, target: int, address: int) -> None:
    del address
    struct.pack_into("<Q", memory, offset, target & (1 << 64) - 1)


def _relative(memory: memoryview, offset: int, target: int, address: int) -> None:
    distance = target - address
    if not -(1 << 31) <= distance < 1 << 31:
        raise LinkError(f"a target is {distance} bytes away")
    struct.pack_into("<i", memory, offset, distance)


def _relative_long(memory: memoryview, offset: int, target: int, address: int) -> None:
    struct.pack_into("<q", memory, offset, target - address)


def _branch(bits: int, shift: int) -> _Write:
    """The distance in instructions, as `bits` bits from bit `shift` on (AArch64)."""

    def write(memory: memoryview, offset: int, target: int, address: int) -> None:
        distance = target - address
        if distance % 4 or not -(1 << bits + 1) <= distance < 1 << bits + 1:
            raise LinkError(f"a target is {distance} bytes away")
        _insert(memory, offset, distance >> 2, bits, shift)

    return write


def _page(memory: memoryview, offset: int, target: int, address: int) -> None:
    """The distance in pages, as ADRP has it: two bits from bit 29 on, 19 from bit 5 on."""
    pages = (target >> 12) - (address >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise LinkError(f"a target is {pages} pages away")
    _insert(memory, offset, pages & 3, 2, 29)
    _insert(memory, offset, pages >> 2, 19, 5)


def _near(memory: memoryview, offset: int, target: int, address: int) -> None:
    """The distance in bytes, as ADR has it."""
    distance = target - address
    if not -(1 << 20) <= distance < 1 << 20:
        raise LinkError(f"a target is {distance} bytes away")
    _insert(memory, offset, distance & 3, 2, 29)
    _insert(memory, offset, distance >> 2, 19, 5)


def _low_bits(scale: int) -> _Write:
    """The position in its page, in units of 1 << scale bytes, as 12 bits from bit 10 on."""

    def write(memory: memoryview, offset: int, target: int, address: int) -> None:
        del address
        position = target & (1 << 12) - 1
        if position & (1 << scale) - 1:
            raise LinkError("an operand is not aligned")
        _insert(memory, offset, position >> scale, 12, 10)

    return write


def _insert(memory: memoryview, offset: int, value: int, bits: int, shift: int) -> None:
    """Put bits into an instruction."""
    mask = (1 << bits) - 1 << shift
    (word,) = struct.unpack_from("<I", memory, offset)
    struct.pack_into("<I", memory, offset, word & ~mask | value << shift & mask)


_WRITERS: dict[int, dict[int, _Write]] = {
    62: {
        1: _absolute,  # R_X86_64_64
        2: _relative,  # PC32
        4: _relative,  # PLT32
        9: _relative,  # GOTPCREL
        24: _relative_long,  # PC64
        41: _relative,  # GOTPCRELX
        42: _relative,  # REX_GOTPCRELX
    },
    183: {
        257: _absolute,  # R_AARCH64_ABS64
        260: _relative_long,  # PREL64
        261: _relative,  # PREL32
        273: _branch(19, 5),  # LD_PREL_LO19
        274: _near,  # ADR_PREL_LO21
        275: _page,  # ADR_PREL_PG_HI21
        277: _low_bits(0),  # ADD_ABS_LO12_NC
        278: _low_bits(0),  # LDST8_ABS_LO12_NC
        279: _branch(14, 5),  # TSTBR14
        280: _branch(19, 5),  # CONDBR19
        282: _branch(26, 0),  # JUMP26
        283: _branch(26, 0),  # CALL26
        284: _low_bits(1),  # LDST16_ABS_LO12_NC
        285: _low_bits(2),  # LDST32_ABS_LO12_NC
        286: _low_bits(3),  # LDST64_ABS_LO12_NC
        299: _low_bits(4),  # LDST128_ABS_LO12_NC
        311: _page,  # ADR_GOT_PAGE
        312: _low_bits(3),  # LD64_GOT_LO12_NC
    },
}
_THROUGH_TABLE = {62: (9, 41, 42), 183: (311, 312)}
"""The kinds of relocation of code that reads the address of a symbol."""
