"""A GGUF file: its metadata, and where its tensors lie.

    file    ::= "GGUF" version:u32 tensors:u64 pairs:u64 pair* tensor* padding data
    pair    ::= key:text type:u32 value
    tensor  ::= name:text rank:u32 dims:u64* type:u32 at:u64

The first dimension of a tensor is the one along which elements are neighbours.
Source:  github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorwright.base import Array
from tensorwright.graph.imports import refusals
from tensorwright.graph.imports.gguf.blocks import KINDS, NAMES, Kind

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))  # of struct
_TEXT, _ARRAY = 8, 9
_ALIGNMENT = "general.alignment"
_MOST_DIMENSIONS = 4
_AGAIN = "download or convert the file again"

Buffer: TypeAlias = Any  # bytes, or a mapped file


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a file: its shape, the rows first, its kind of numbers, and its first byte."""

    name: str
    shape: tuple[int, ...]
    kind: Kind
    start: int

    @property
    def size_bytes(self) -> int:
        """Its bytes in the file."""
        return math.prod(self.shape) // self.kind.elements * self.kind.size_bytes


@dataclass(frozen=True, slots=True)
class GgufFile:
    """What a file says, and its bytes."""

    data: Buffer
    label: str
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def raw(self, name: str) -> Array:
        """The bytes of a tensor, (rows, blocks, bytes of a block); a view of the file."""
        tensor = self.tensors[name]
        flat = np.frombuffer(self.data, np.uint8, tensor.size_bytes, tensor.start)
        return flat.reshape(-1, tensor.shape[-1] // tensor.kind.elements, tensor.kind.size_bytes)


def read_gguf(data: Buffer, label: str) -> GgufFile:
    """Read all but the weights.

    Raises:  ModelError for a file that is cut or damaged; UnsupportedError for versions and kinds
             of numbers that are not read.
    """
    cursor = _Cursor(data, label)
    cursor.take(len(MAGIC))
    version, tensors, pairs = cursor.number("I"), cursor.number("Q"), cursor.number("Q")
    if version not in _VERSIONS:
        reason = f"it is of version {version} of the format, or of another order of bytes"
        raise refusals.unsupported(label, "", reason, "convert it with a newer llama.cpp")
    metadata = dict(cursor.pair() for _ in range(pairs))
    infos = [cursor.tensor() for _ in range(tensors)]
    alignment = metadata.get(_ALIGNMENT, 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise cursor.damaged(f"its alignment is {alignment}")
    first = -(-cursor.at // alignment) * alignment
    held: dict[str, Tensor] = {}
    for name, shape, code, at in infos:
        tensor = Tensor(name, shape, _kind_of(name, code, shape), first + at)
        end = tensor.start + tensor.size_bytes
        if end > len(data):
            reason = f"it is cut: tensor {name} ends at byte {end}, the file at {len(data)}"
            raise refusals.model_error(label, reason, _AGAIN)
        if held.setdefault(name, tensor) is not tensor:
            raise cursor.damaged(f"it has two tensors {name}")
    return GgufFile(data, label, metadata, held)


def _kind_of(name: str, code: int, shape: tuple[int, ...]) -> Kind:
    """Raises:  UnsupportedError for numbers that are not read."""
    kind = KINDS.get(code)
    if kind is None:
        own = NAMES.get(code, f"number {code}")
        remedy = f"convert the file to one of {', '.join(each.name for each in KINDS.values())}"
        raise refusals.unsupported(f"tensor {name}", "", f"its type {own} is not read", remedy)
    if not shape or shape[-1] % kind.elements:
        reason = f"its rows are not whole blocks of {kind.elements} numbers of type {kind.name}"
        raise refusals.model_error(f"tensor {name}", reason, _AGAIN)
    return kind


class _Cursor:
    """A position in a file, which moves while the file is read; mutable."""

    def __init__(self, data: Buffer, label: str) -> None:
        self._data, self._label = data, label
        self.at = 0

    def damaged(self, reason: str) -> Exception:
        """The error for such a file."""
        return refusals.model_error(self._label, f"it is damaged: {reason}", _AGAIN)

    def ended(self) -> Exception:
        """The error for a file that ends too soon."""
        return self.damaged(f"it ends at byte {len(self._data)}, within its description")

    def take(self, count: int) -> int:
        """Pass over some bytes; where they began."""
        begin = self.at
        if count > len(self._data) - begin:
            raise self.ended()
        self.at = begin + count
        return begin

    def number(self, code: str) -> Any:
        """A number of a type of `struct`."""
        return self.numbers(code, 1)[0]

    def numbers(self, code: str, count: int) -> tuple[Any, ...]:
        """Some numbers."""
        begin = self.take(count * struct.calcsize(f"<{code}"))
        return struct.unpack_from(f"<{count}{code}", self._data, begin)

    def text(self) -> str:
        """A text with its length before it."""
        return self.texts(1)[0]

    def texts(self, count: int) -> tuple[str, ...]:
        """Many texts, as `text`."""
        data, at, texts = self._data, self.at, []
        length = struct.Struct("<Q")
        for _ in range(count):
            begin = at + length.size
            if begin > len(data):
                raise self.ended()
            at = begin + length.unpack_from(data, at)[0]
            if at > len(data):
                raise self.ended()
            texts.append(data[begin:at].decode("utf-8", errors="replace"))
        self.at = at
        return tuple(texts)

    def pair(self) -> tuple[str, Any]:
        """A key and its value."""
        key = self.text()
        return key, self.value(key, self.number("I"))

    def value(self, key: str, code: int) -> Any:
        """A value of a type: a number, a text, or a tuple of them."""
        if code == _TEXT:
            return self.text()
        if code in _NUMBERS:
            return self.number(_NUMBERS[code])
        if code != _ARRAY:
            raise self.damaged(f"{key} has a value of type {code}")
        inner, count = self.number("I"), self.number("Q")
        if inner in _NUMBERS:
            return self.numbers(_NUMBERS[inner], count)
        if inner != _TEXT:
            raise self.damaged(f"{key} has a list of type {inner}")
        return self.texts(count)

    def tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        """The name, shape and type of a tensor, and its first byte among the data."""
        name = self.text()
        rank = self.number("I")
        if not 1 <= rank <= _MOST_DIMENSIONS:
            raise self.damaged(f"tensor {name} has {rank} dimensions")
        shape = self.numbers("Q", rank)[::-1]
        return name, shape, self.number("I"), self.number("Q")
