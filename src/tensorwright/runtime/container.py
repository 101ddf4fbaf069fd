"""Executables as one file: plan, object code, constants, sources; no pickle.

    magic (8 bytes)  version (u32)  header size (u64)  sha256 of the header (32 bytes)
    header           JSON: tool, plan, sections [name, offset, size, sha256] ...
    sections         each on a multiple of 64 bytes; the first on a multiple of 4096

Numbers are little-endian, and offsets count from the first section. The sections are object/0..,
one for each kernel; constant/0..; and source/NAME, texts from which the program can be built again
for another processor. Constants are mapped into memory, not read: loading is fast, and processes
that load the same file share them. All other sections are copied before their digests are compared,
so the code that runs is the code that was checked, even if the file is written to later. Constants
follow the file: it must be neither written to nor truncated while it is in use. (A private mapping
would not help: on Linux it shows later writes, too.) Replacing the file by a new one is safe,
because files are written whole.

The digest of a section is its SHA-256. The digest of a constant, which may be large, is "sums:" and
the SHA-256 of three things: the sums of its pages of 512 words of 64 bits, the bytes after the last
page, and its size. Computing it takes no longer than reading the memory.  Files of versions 1 to 3
have SHA-256 for all sections.

A file holds machine code. The digests detect damage, not malice: load only files that you trust.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tensorwright import base
from tensorwright.runtime.buffers import ALIGNMENT, byte_view
from tensorwright.runtime.plan.plan import Plan, TensorSpec
from tensorwright.runtime.plan.plan_verify import plan_from_data, plan_to_data, verify_plan
from tensorwright.version import __version__

MAGIC = base.EXECUTABLE_MAGIC
FORMAT_VERSION = 4
_READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)
_PREFIX = struct.Struct("<8sIQ32s")
_PAGE = 4096
_SUMS = "sums:"
_REMEDY = "compile it from the model:\n  tensorwright compile MODEL -o FILE"


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The content of a file; objects and constants are in the order of the plan's tables.

    sources   texts by name: traces, graphs, kernel IR; their writer interprets them
    sessions  plans of calls that extend their state in place, on the same objects and constants:
              with all outputs, and with the state alone
    """

    plan: Plan
    objects: tuple[bytes, ...]
    constants: tuple[base.Array, ...]
    sources: tuple[tuple[str, str], ...] = ()
    sessions: tuple[Plan, ...] = ()


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    offset: int
    size: int
    digest: str


def write_container(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write the whole file or nothing.

    Raises:  OutputError for a full disk, a missing folder or permission and the like.
    """
    with base.atomic_writer(path) as file:
        write_contents(file, contents)


def write_contents(file: BinaryIO, contents: Contents) -> str:
    """Write to an open file, and return the digest of the header, which covers all sections."""
    sections, data = _lay_out(contents)
    sessions = [plan_to_data(plan) for plan in contents.sessions]
    header = json.dumps(
        {
            **({"sessions": sessions} if sessions else {}),
            "tool": f"tensorwright {__version__}",
            "target": contents.plan.target.key,
            "features": contents.plan.target.instructions,
            "plan": plan_to_data(contents.plan),
            "sections": [[s.name, s.offset, s.size, s.digest] for s in sections],
        }
    ).encode()
    digest = hashlib.sha256(header)
    prefix = _PREFIX.pack(MAGIC, FORMAT_VERSION, len(header), digest.digest())
    start = _aligned(len(prefix) + len(header), _PAGE)
    file.write((prefix + header).ljust(start, b"\0"))
    end = 0
    for section, part in zip(sections, data, strict=True):
        if section.offset >= end:  # not the same bytes as an earlier section
            file.write(b"\0" * (section.offset - end))
            file.write(part)
            end = section.offset + section.size
    return digest.hexdigest()


def container_digest(memory: base.Array) -> str:
    """The digest of the header that the file holds: the one that `write_contents` returned."""
    *_, digest = _PREFIX.unpack(memory[: _PREFIX.size].tobytes())
    return str(digest.hex())


def is_executable(path: str | os.PathLike[str]) -> bool:
    """Whether `write_container` wrote a file, by its first bytes."""
    return base.kind_of_file(path) is base.EXECUTABLE


def read_container(path: str | os.PathLike[str], check_constants: bool = True) -> Contents:
    """Read a file of `write_container`; constants are read-only views of the file.

    The digests of header, object code and sources are always checked; those of constants only if
    `check_constants`.
    Raises:  ModelError if the file is unreadable, foreign, of another version or damaged.
    """
    return parse_container(_map(Path(path)), f"file {os.fspath(path)}", check_constants)


def parse_container(memory: base.Array, where: str, check_constants: bool = True) -> Contents:
    """As `read_container`, from the bytes of a file; `where` is their name in errors."""
    header, start = _read_header(where, memory)
    try:
        plan = plan_from_data(header["plan"])
        sessions = tuple(map(plan_from_data, header.get("sessions", ())))
        sections = tuple(_Section(*row) for row in header["sections"])
        parts = {section.name: section for section in sections}
        objects = tuple(parts[f"object/{i}"] for i in range(len(plan.kernels)))
        constants = tuple(parts[f"constant/{i}"] for i in range(len(plan.constants)))
        end = max((section.offset + section.size for section in sections), default=0)
        verify_plan(plan)
        for session in sessions:
            verify_plan(session)
            if (session.kernels, session.constants) != (plan.kernels, plan.constants):
                raise ValueError("the plan of sessions has other kernels or constants")
    except base.InternalError as error:
        raise _damaged(where, f"the header is inconsistent ({error.reason})") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _damaged(where, f"the header is inconsistent ({error})") from error
    if len(memory) != start + end:
        cut = len(memory) < start + end
        raise _damaged(
            where,
            f"it is {'cut short' if cut else 'too long'}: "
            f"{len(memory)} bytes instead of {start + end}",
        )
    body = memory[start:]
    copies = {each.name: _part(body, each).tobytes() for each in sections if each not in constants}
    checked = [each for each in sections if check_constants or each not in constants]
    size_bytes = sum(section.size for section in checked)

    def digest(section: _Section) -> str:
        copy = copies.get(section.name)
        data = _part(body, section).data if copy is None else memoryview(copy)
        return _digest(data, section.digest)

    digests = base.on_all_cores(digest, checked, size_bytes)
    for section, actual in zip(checked, digests, strict=True):
        if actual != section.digest:
            raise _damaged(where, f"the digest of section {section.name} is wrong")
    return Contents(
        plan,
        tuple(copies[section.name] for section in objects),
        tuple(
            _constant(where, body, section, spec)
            for section, spec in zip(constants, plan.constants, strict=True)
        ),
        tuple(
            (section.name.removeprefix("source/"), copies[section.name].decode())
            for section in sections
            if section.name.startswith("source/")
        ),
        sessions,
    )


def _lay_out(contents: Contents) -> tuple[tuple[_Section, ...], tuple[memoryview, ...]]:
    """The sections in order, each with its bytes; kernels with the same code lie in one place."""
    parts = [(f"object/{i}", memoryview(data)) for i, data in enumerate(contents.objects)]
    parts += [(f"source/{name}", memoryview(text.encode())) for name, text in contents.sources]
    parts += [
        (f"constant/{i}", byte_view(array).data) for i, array in enumerate(contents.constants)
    ]
    digests = base.on_all_cores(
        lambda part: _digest(part[1], _SUMS if part[0].startswith("constant/") else ""),
        parts,
        sum(len(data) for _, data in parts),
    )
    sections: list[_Section] = []
    code: dict[str, _Section] = {}
    offset = 0
    for (name, data), digest in zip(parts, digests, strict=True):
        section = _Section(name, offset, len(data), digest)
        if name.startswith("object/"):
            section = replace(code.setdefault(digest, section), name=name)
        sections.append(section)
        if section.offset == offset:
            offset = _aligned(offset + len(data), ALIGNMENT)
    return tuple(sections), tuple(data for _, data in parts)


def _map(path: Path) -> base.Array:
    """The bytes of a file, mapped read-only."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return np.empty(0, np.uint8)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        where, remedy = f"file {path}", "check the path and its permissions"
        raise _refusal(where, reason, remedy) from error
    return np.frombuffer(mapped, np.uint8)


def _read_header(where: str, memory: base.Array) -> tuple[dict[str, Any], int]:
    """The checked header, and the offset of the first section."""
    prefix = memory[: _PREFIX.size].tobytes()
    if not prefix:
        raise _refusal(where, "it is empty", _REMEDY)
    if prefix[: len(MAGIC)] != MAGIC[: len(prefix)]:
        kind = base.kind_of_bytes(prefix)
        told = f", but {kind.name}" if kind else ""
        model = where.removeprefix("file ")
        remedy = f"if it is a model, compile it:\n  tensorwright compile {model} -o FILE.tw"
        raise _refusal(where, f"it is not an executable of tensorwright{told}", remedy)
    if len(prefix) < _PREFIX.size:
        raise _damaged(where, f"it is cut short: {len(memory)} bytes")
    _, version, size, digest = _PREFIX.unpack(prefix)
    if version not in _READABLE_VERSIONS:
        readable = f"1 to {FORMAT_VERSION}"
        reason = f"its format is version {version}, and this tensorwright reads {readable}"
        remedy = f"{_REMEDY}, or install the version of tensorwright that wrote it"
        raise _refusal(where, reason, remedy)
    text = memory[_PREFIX.size : _PREFIX.size + size].tobytes()
    if len(text) < size:
        raise _damaged(where, f"it is cut short: {len(memory)} bytes")
    if hashlib.sha256(text).digest() != digest:
        raise _damaged(where, "the digest of its header is wrong")
    header: dict[str, Any] = json.loads(text)
    return header, _aligned(_PREFIX.size + size, _PAGE)


def _part(body: base.Array, section: _Section) -> base.Array:
    return body[section.offset : section.offset + section.size]


def _digest(data: memoryview, method: str) -> str:
    """The digest of a section, by the method of another digest: sums of pages, or SHA-256."""
    if not method.startswith(_SUMS):
        return hashlib.sha256(data).hexdigest()
    whole = len(data) // _PAGE * _PAGE
    sums = np.frombuffer(data[:whole], np.uint64).reshape(-1, _PAGE // 8).sum(axis=1)
    digest = hashlib.sha256(sums.data)
    digest.update(data[whole:])
    digest.update(len(data).to_bytes(8, "little"))
    return _SUMS + digest.hexdigest()


def _constant(where: str, body: base.Array, section: _Section, spec: TensorSpec) -> base.Array:
    if section.size != spec.size_bytes or section.offset % ALIGNMENT:
        raise _damaged(where, f"section {section.name} has the wrong size or position")
    return _part(body, section).view(spec.dtype.numpy).reshape(spec.extents)


def _damaged(where: str, reason: str) -> base.ModelError:
    return _refusal(where, f"it is damaged: {reason}", _REMEDY)


def _refusal(where: str, reason: str, remedy: str) -> base.ModelError:
    return base.ModelError(stage="load", where=where, reason=reason, remedy=remedy)


def _aligned(size: int, unit: int) -> int:
    return -(-size // unit) * unit
