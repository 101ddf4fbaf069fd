"""Files of log lines: the tuner that wrote them, and their content."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

from tensorwright.base import atomic_writer
from tensorwright.records.logs.ansor import AnsorLine, parse_ansor
from tensorwright.records.logs.autotvm import AutoTvmLine, format_autotvm, parse_autotvm
from tensorwright.records.record import record_error

LogLine = AutoTvmLine | AnsorLine


class LogFormat(StrEnum):
    """The tuners that write such lines."""

    OWN = "tensorwright"
    AUTOTVM = "autotvm"
    ANSOR = "ansor"


_PARSERS: dict[LogFormat, Callable[[str, str], LogLine]] = {
    LogFormat.AUTOTVM: parse_autotvm,
    LogFormat.ANSOR: parse_ansor,
}


def format_of(path: str | os.PathLike[str]) -> LogFormat:
    """The tuner that wrote a file, by its first line; tensorwright if the line does not tell.

    Raises:  RecordError for a file that cannot be read.
    """
    first = next((text for _, text in _lines(path)), "")
    try:
        fields = json.loads(first)
    except (ValueError, RecursionError):
        return LogFormat.OWN
    names = set(fields) if isinstance(fields, dict) else set()
    if names & {"input", "config"}:
        return LogFormat.AUTOTVM
    if names >= {"i", "r"}:
        is_ansor = isinstance(fields.get("v"), str) and "v" in fields
        return LogFormat.ANSOR if is_ansor else LogFormat.AUTOTVM
    return LogFormat.OWN


def read_log(path: str | os.PathLike[str], written_by: LogFormat) -> dict[int, LogLine]:
    """The lines of a file of another tuner, by their numbers from 1.

    Empty lines, and lines that start with #, are skipped.
    Raises:  RecordError for a file that cannot be read, or with the first bad line.
    """
    parse = _PARSERS[written_by]
    return {number: parse(text, f"file {path}, line {number}") for number, text in _lines(path)}


def write_autotvm(path: str | os.PathLike[str], lines: Iterable[AutoTvmLine]) -> int:
    """Write lines in AutoTVM's form; return their number.  Raises: OutputError."""
    count = 0
    with atomic_writer(path) as file:
        for line in lines:
            file.write(format_autotvm(line).encode() + b"\n")
            count += 1
    return count


def _lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise record_error(f"file {path}", reason, "check the path") from error
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            text = line.decode().strip()
        except UnicodeDecodeError:
            raise record_error(f"file {path}, line {number}", "not UTF-8 text") from None
        if text and not text.startswith("#"):
            lines.append((number, text))
    return lines
