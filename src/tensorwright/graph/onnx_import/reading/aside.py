"""Decode an ONNX file without its weights, which stay in the file until they are needed.

protobuf copies each weight when it decodes a file, and again when it hands the weight out.  So the
bytes of large initialisers are left out of what it decodes, and are read from the file itself.

    model = field*                      field = tag length bytes | tag number
    model.graph (7) .initializer (5) .raw_data (9) is what stays; all else is decoded

A file that is unusual in any way is decoded as a whole, so that protobuf and the importer judge it.
Source:  protobuf.dev/programming-guides/encoding; onnx.proto.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
from onnx import TensorProto

from tensorwright.base import DType, empty
from tensorwright.ops import Array

_LEAST_BYTES = 4096  # smaller ones are decoded as they are
_GRAPH, _INITIALIZER = 7, 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _DOC_STRING = 1, 2, 8, 9, 12
_PLAIN_FIELDS = frozenset((_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _DOC_STRING))
_BYTES = 2  # the kind of a field that has a length
_MOST_BITS = 70

Buffer: TypeAlias = bytes | mmap.mmap


@dataclass(frozen=True, slots=True)
class Weights:
    """Initialisers that were not decoded, by name: where their bytes lie in a file's (start, end).

    A file is mapped, so it is the same one, whatever takes its name meanwhile.
    """

    data: Buffer
    spans: Mapping[str, tuple[int, int]]

    def array(self, tensor: TensorProto, dtype: DType) -> Array | None:
        """A copy of the elements of an initialiser; None where it was decoded.

        One that does not have as many bytes as its shape needs gets them back, to be refused.
        """
        if tensor.name not in self.spans:
            return None
        start, end = self.spans[tensor.name]
        shape = tuple(tensor.dims)
        count = math.prod(shape)
        if end - start != count * dtype.size_bytes:
            tensor.raw_data = self.data[start:end]
            return None
        array = empty(shape, dtype)  # where kernels may read it, too
        flat = np.frombuffer(self.data, dtype.numpy.newbyteorder("<"), count, start)
        np.copyto(array, flat.reshape(shape))
        return array


NO_WEIGHTS = Weights(b"", MappingProxyType({}))


class _Field(NamedTuple):
    """A field of a message: where it begins, and where its content does and ends."""

    number: int
    begin: int
    start: int
    end: int


def set_aside(data: Buffer) -> tuple[bytes, Weights]:
    """The bytes of a model without its large weights, and these."""
    with memoryview(data) as view:
        try:
            return _without_weights(data, view)
        except (ValueError, LookupError):
            return bytes(view), NO_WEIGHTS


def _without_weights(data: Buffer, view: memoryview) -> tuple[bytes, Weights]:
    """Raises:  ValueError, LookupError for a file that is unusual."""
    (graph,) = (each for each in _fields(view, 0, len(view)) if each.number == _GRAPH)
    spans: dict[str, tuple[int, int]] = {}
    names: set[str] = set()
    pieces: list[memoryview | bytes] = []
    begin = graph.start
    for field in _fields(view, graph.start, graph.end):
        if field.number != _INITIALIZER:
            continue
        parts = {each.number: each for each in _fields(view, field.start, field.end)}
        name = str(view[parts[_NAME].start : parts[_NAME].end], "utf-8")
        if name in names:
            raise ValueError("two initialisers of one name, which the importer compares")
        names.add(name)
        raw = parts.get(_RAW_DATA)
        if raw is None or raw.end - raw.start < _LEAST_BYTES or not parts.keys() <= _PLAIN_FIELDS:
            continue
        tensor = view[field.start : raw.begin], view[raw.end : field.end]
        pieces += view[begin : field.begin], *_message(_INITIALIZER, tensor)
        spans[name] = raw.start, raw.end
        begin = field.end
    if not spans:
        return bytes(view), NO_WEIGHTS
    pieces.append(view[begin : graph.end])
    whole = view[: graph.begin], *_message(_GRAPH, pieces), view[graph.end :]
    return b"".join(whole), Weights(data, spans)


def _message(number: int, pieces: Sequence[memoryview | bytes]) -> tuple[memoryview | bytes, ...]:
    """A field of a message that consists of some pieces."""
    head = bytearray()
    for each in (number << 3 | _BYTES, sum(map(len, pieces))):
        while each > 0x7F:
            head.append(each & 0x7F | 0x80)
            each >>= 7
        head.append(each)
    return bytes(head), *pieces


def _fields(view: memoryview, at: int, end: int) -> Iterator[_Field]:
    """The fields of a message, in order.

    Raises:  ValueError, IndexError where it is damaged, or has kinds of fields that ONNX has not.
    """
    while at < end:
        begin = at
        tag, at = _varint(view, at)
        size = 0
        match tag & 7:
            case 0:
                _, at = _varint(view, at)
            case 1:
                size = 8
            case 2:
                size, at = _varint(view, at)
            case 5:
                size = 4
            case _:
                raise ValueError("a group, or no field")
        if at + size > end:
            raise ValueError("a field is longer than its message")
        yield _Field(tag >> 3, begin, at, at + size)
        at += size


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    byte = view[at]
    number = byte & 0x7F
    shift = 7
    while byte & 0x80:
        at += 1
        byte = view[at]
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _MOST_BITS:
            raise ValueError("a number of more than 64 bits")
    return number, at + 1
