"""What kind of file something is, by its first bytes: for messages about a file given in the wrong
place.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

EXECUTABLE_MAGIC = b"TWEXEC\r\n"
HEAD_BYTES = 32
"""The first bytes of a file that suffice to tell every kind."""

_EXPORT = """export a network of PyTorch:
  torch.export.save(torch.export.export(module.eval(), (example,)), "model.pt2")"""


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that is not an ONNX model.

    name    "an array of NumPy"      remedy  what to do where a model was wanted, of the file FILE
    """

    name: str
    start: bytes
    remedy: str
    offset: int = 0

    def remedy_for(self, path: str) -> str:
        """The remedy for a file of that name; "" where it has none."""
        return self.remedy.replace("FILE", repr(path) if path else "FILE")


EXECUTABLE = FileKind(
    "an executable of tensorwright",
    EXECUTABLE_MAGIC,
    "load what is compiled already:\n  tensorwright.load(FILE)",
)
_KINDS = (
    EXECUTABLE,
    FileKind("a record store or another database", b"SQLite format 3\0", "give a model"),
    FileKind("a zip archive, as torch.save and numpy.savez write", b"PK\x03\x04", _EXPORT),
    FileKind("a pickle, as torch.save wrote", b"\x80\x02", _EXPORT),
    FileKind("an array of NumPy", b"\x93NUMPY", "give a model, and the array as its input"),
    FileKind("an HDF5 file, as Keras writes", b"\x89HDF\r\n\x1a\n", "convert it with tf2onnx"),
    FileKind("a TFLite model", b"TFL3", "convert it with tf2onnx", 4),
    FileKind("a GGUF file", b"GGUF", "give the network as ONNX"),
)


def kind_of_bytes(head: bytes) -> FileKind | None:
    """The kind of a file that begins so; None where nothing tells, as for ONNX models."""
    for kind in _KINDS:
        if head[kind.offset : kind.offset + len(kind.start)] == kind.start:
            return kind
    return None


def kind_of_file(path: str | os.PathLike[str]) -> FileKind | None:
    """The kind of a file; None where nothing tells, or it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return kind_of_bytes(file.read(HEAD_BYTES))
    except OSError:
        return None
