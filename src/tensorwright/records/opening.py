"""Open a record store by its name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from tensorwright.base import knobs, make_home
from tensorwright.records.json_lines_store import JsonLinesStore
from tensorwright.records.memory_store import MemoryStore
from tensorwright.records.sqlite_store import SqliteStore
from tensorwright.records.store import RecordStore

Records: TypeAlias = RecordStore | str | os.PathLike[str]
"""A record store, or the path of one."""

LINES_SUFFIXES = (".jsonl", ".ndjson")
_SQLITE = b"SQLite format 3\0"


def default_path() -> Path:
    """The default record store: `records.sqlite` in the folder of the knob `home`."""
    return knobs.HOME.get() / knobs.RECORDS_FILE


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a record store, by its name or its first bytes."""
    if Path(path).suffix.lower() in LINES_SUFFIXES:
        return True
    with Path(path).open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def open_store(
    path: str | os.PathLike[str] | None = None, create: bool = True, *, spare: bool = False
) -> RecordStore:
    """Open a store: JSON lines for a name that ends in .jsonl or .ndjson, otherwise SQLite.

    path    None for `default_path()`
    create  False: a missing file is not created; a reader then gets an empty store in memory
    spare   whether the default store goes on in memory, with a warning, when its disk is full
    Raises:  RecordError and OutputError, as the stores do.
    """
    named = Path(path) if path is not None else default_path()
    if not create and not (named.exists() and named.stat().st_size):  # a full disk leaves no byte
        return MemoryStore()
    if path is None and not named.exists():
        make_home()
    if named.suffix.lower() in LINES_SUFFIXES:
        return JsonLinesStore(named)
    return SqliteStore(named, spare=spare and path is None)


@contextlib.contextmanager
def opened(
    records: Records | None, *, create: bool = False, spare: bool = False
) -> Iterator[RecordStore]:
    """An open store, or the store at a path, open inside the block; the default store if None.

    create   whether a missing file is created        spare   as of `open_store`
    """
    if records is None or isinstance(records, (str, os.PathLike)):
        with open_store(records, create=create, spare=spare) as store:
            yield store
    else:
        yield records
