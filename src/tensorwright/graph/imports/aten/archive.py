"""Read a .pt2 file of torch.export.save: a zip archive of JSON and the raw bytes of weights.

Nothing is unpickled, and PyTorch is not needed.  Layout ("PT2 Archive Spec" of PyTorch):

    NAME/models/model.json                      the graph
    NAME/data/weights/model_weights_config.json name of a parameter -> its file, type and strides
    NAME/data/weights/weight_0                  bytes of a storage, which parameters may share
    NAME/data/constants/...                     the same for tensors that are not parameters
    NAME/byteorder                              "little"
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from tensorwright.base import Array, ModelError, UnsupportedError
from tensorwright.graph.imports.aten.record import EXPORT_AGAIN, PROGRAM, ExportedGraph, dtype_of
from tensorwright.graph.imports.aten.schema import StoredTensor, fail, read_program, stored_tensor
from tensorwright.graph.imports.refusals import model_error, unsupported

_OLD_PROGRAM = "serialized_exported_program.json"  # PyTorch 2.8 and older write it
_MOST_JSON_BYTES = 1 << 30
_MOST_UNPACKED = 64  # bytes of text for each byte that holds it packed; PyTorch does not pack
_LEAST_JSON_BYTES = 1 << 20  # a text so short is read however well it is packed
_MOST_REPEATED = 1 << 28  # elements of a tensor that has more than its storage, by strides of 0
_ARCHIVE_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,  # zipfile raises it for a method of compression that it does not have
    LookupError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    RuntimeError,
    AttributeError,
    OSError,
)


def is_archive(source: object) -> bool:
    """Whether the bytes, or the file of a path, begin like a zip archive."""
    if isinstance(source, bytes):
        return source.startswith(b"PK\x03\x04")
    if not isinstance(source, str | os.PathLike):
        return False
    try:
        with Path(source).open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def read_pt2(source: str | os.PathLike[str] | bytes) -> ExportedGraph:
    """Read an exported program: a path, or the bytes of a file.

    Raises:  ModelError for a damaged file, and for one without an exported program;
             UnsupportedError for another schema, a package of compiled code, and pickled weights.
    """
    label = PROGRAM if isinstance(source, bytes) else f"file {os.fspath(source)}"
    opened: IO[bytes] | Path = io.BytesIO(source) if isinstance(source, bytes) else Path(source)
    with _naming(label), zipfile.ZipFile(opened) as archive:
        return replace(_read(_Archive(archive)), label=label)


@contextmanager
def _naming(label: str) -> Iterator[None]:
    """Turn any error of reading a damaged archive into a ModelError with its name."""
    try:
        yield
    except (ModelError, UnsupportedError) as error:
        raise error.at(f"{label}, {error.where}" if error.where != PROGRAM else label) from None
    except _ARCHIVE_FAULTS as error:
        reason = f"it is damaged: {type(error).__name__}: {str(error)[:200]}"
        raise model_error(label, reason, EXPORT_AGAIN) from error


class _Archive:
    """The members of an archive, under their names below its first folder."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members = {
            info.filename.partition("/")[2] or info.filename: info for info in archive.infolist()
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def info(self, name: str) -> zipfile.ZipInfo:
        """The entry of a member."""
        info = self._members.get(name)
        if info is None:
            fail(f"it has no {name}")
        return info

    def read(self, name: str, most_bytes: int) -> bytes:
        """The bytes of a member; zipfile checks the checksum."""
        info = self.info(name)
        if info.file_size > most_bytes:
            fail(f"{name} has {info.file_size} bytes, but {most_bytes} is the most")
        return self._archive.read(info)

    def read_start(self, name: str, count: int) -> bytes:
        """The first bytes of a member that may have more: of a storage that tensors use in part.

        The others are read for the checksum only, and only if the file holds them as they are: what
        a packed member has beyond its purpose can be any number of bytes.
        """
        info = self.info(name)
        if info.file_size <= count or info.compress_type != zipfile.ZIP_STORED:
            return self.read(name, count)
        with self._archive.open(info) as member:
            start = member.read(count)
            while member.read(1 << 20):
                pass
        return start

    def json(self, name: str) -> Any:
        """A member that is JSON."""
        unpacked = max(_MOST_UNPACKED * self.info(name).compress_size, _LEAST_JSON_BYTES)
        return json.loads(self.read(name, min(unpacked, _MOST_JSON_BYTES)))


def _read(archive: _Archive) -> ExportedGraph:
    name = _model_name(archive)
    if "byteorder" in archive and archive.read("byteorder", 64).strip() not in (b"little", b""):
        reason = "its numbers are big-endian; tensorwright reads little-endian ones"
        remedy = "save it on a little-endian machine, such as x86-64 or AArch64"
        raise unsupported("byteorder", "byteorder", reason, remedy)
    program = read_program(archive.json(f"models/{name}.json"))
    weights = _Weights(archive, name, program.held.values())
    inputs = tuple(
        replace(each, constant=weights.array(program.held[each.name]))
        if each.name in program.held
        else each
        for each in program.inputs
    )
    return ExportedGraph(
        name, inputs, program.nodes, program.outputs, program.ranges, program.changed
    )


def _model_name(archive: _Archive) -> str:
    """The name of the model in an archive."""
    names = [
        each.removeprefix("models/").removesuffix(".json")
        for each in archive.names
        if each.startswith("models/") and each.endswith(".json")
    ]
    if len(names) == 1:
        return names[0]
    if names:
        reason = f"it holds several models: {', '.join(sorted(names))}"
        remedy = "save one program in each file, with torch.export.save"
    elif any("aotinductor" in each for each in archive.names):
        reason = "it is a package of AOTInductor: compiled code without a graph"
        remedy = "save the exported program itself, with torch.export.save"
    elif _OLD_PROGRAM in archive:
        writer = _writer(archive.json(_OLD_PROGRAM))
        reason = f"{writer} wrote it, with pickled weights"
        remedy = "save it again with PyTorch 2.9 or newer, or give the ExportedProgram itself"
    else:
        raise model_error(
            PROGRAM,
            "it is a zip archive without an exported program, as torch.save writes",
            "export a network of PyTorch:\n"
            '  torch.export.save(torch.export.export(module.eval(), (example,)), "model.pt2")',
        )
    raise unsupported(PROGRAM, "archive", reason, remedy)


def _writer(program: object) -> str:
    """The versions of PyTorch and of the schema that wrote an exported program, for a message."""
    told = program if isinstance(program, dict) else {}
    version = told.get("schema_version")
    numbers = version if isinstance(version, dict) else {}
    schema = f"{numbers.get('major', '?')}.{numbers.get('minor', '?')}"
    return f"PyTorch {str(told.get('torch_version', '?'))[:40]} (schema {schema})"


class _Weights:
    """The parameters, buffers and constants of a model; one array for each storage."""

    def __init__(self, archive: _Archive, model: str, owners: Iterable[str]) -> None:
        self._archive = archive
        self._storages: dict[str, Array] = {}
        self._arrays: dict[StoredTensor, Array] = {}
        entries: dict[str, tuple[str, object]] = {}
        for folder in ("weights", "constants"):
            config = f"data/{folder}/{model}_{folder}_config.json"
            held: Mapping[str, object] = archive.json(config)["config"] if config in archive else {}
            entries.update({name: (folder, each) for name, each in held.items()})
        self._stored = {name: _stored(name, entries) for name in dict.fromkeys(owners)}
        self._needed: dict[str, int] = {}
        for owner, stored in self._stored.items():
            needed = _bytes_of(stored, owner)
            self._needed[stored.path] = max(needed, self._needed.get(stored.path, 0))

    def array(self, owner: str) -> Array:
        """The values of a parameter, buffer or constant."""
        stored = self._stored[owner]
        if stored not in self._arrays:
            self._arrays[stored] = self._read(stored, owner)
        return self._arrays[stored]

    def _read(self, stored: StoredTensor, owner: str) -> Array:
        """One array for each storage, of the bytes that tensors use: see `_bytes_of`."""
        dtype = dtype_of(stored.meta.dtype, f"weight {owner}").numpy
        sizes = _sizes(stored, owner)
        if math.prod(sizes) == 0:
            return np.zeros(sizes, dtype)
        if stored.path not in self._storages:
            start = self._archive.read_start(stored.path, self._needed[stored.path])
            self._storages[stored.path] = np.frombuffer(start, np.uint8)
        storage = self._storages[stored.path]
        if math.prod(sizes) > max(storage.size, _MOST_REPEATED):
            fail(f"{owner} has more elements than its storage")
        if _bytes_of(stored, owner) > storage.size:
            fail(f"{owner} reaches beyond the {storage.size} bytes of its storage")
        elements = storage[: storage.size // dtype.itemsize * dtype.itemsize].view(dtype)
        strides = tuple(stride * dtype.itemsize for stride in stored.strides)
        return np.lib.stride_tricks.as_strided(
            elements[stored.offset :], sizes, strides, writeable=False
        )


def _stored(owner: str, entries: Mapping[str, tuple[str, object]]) -> StoredTensor:
    if owner not in entries:
        fail(f"the values of {owner} are missing")
    folder, entry = entries[owner]
    stored = stored_tensor(entry)
    return replace(stored, path=f"data/{folder}/{stored.path}")


def _sizes(stored: StoredTensor, owner: str) -> tuple[int, ...]:
    sizes = tuple(n for n in stored.meta.sizes if isinstance(n, int))
    if len(sizes) != len(stored.meta.sizes) or len(sizes) != len(stored.strides):
        fail(f"the shape of {owner} has no numbers")
    return sizes


def _bytes_of(stored: StoredTensor, owner: str) -> int:
    """How much of a storage a tensor uses: the bytes up to its last element."""
    sizes = _sizes(stored, owner)
    if math.prod(sizes) == 0:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(sizes, stored.strides, strict=True))
    size = dtype_of(stored.meta.dtype, f"weight {owner}").numpy.itemsize
    return (stored.offset + last + 1) * size
