"""Compile a network to a C library.

Import this file only to write a library: it needs the back end `c`, which compiling does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tensorwright.base import CpuTarget, missing_here
from tensorwright.build.c_library import CLibrary, write_c_library
from tensorwright.graph import Partition, require_numbers
from tensorwright.ops import Array
from tensorwright.pipeline import finish
from tensorwright.records import RecordStore
from tensorwright.runtime import usable_threads
from tensorwright.tuning.selection import choose_all


def export_c(
    parts: Partition,
    target: CpuTarget,
    threads: int | None,
    store: RecordStore,
    folder: Path,
    name: str,
    example: Mapping[str, Array],
) -> tuple[str, ...]:
    """As `pipeline.finish`, but write a C library into a folder, and return the names of its files.

    name      the name of its files and functions
    example   the inputs of its example program
    Raises:   UnsupportedError for named sizes.
    """
    require_numbers(parts.graph, "schedule")
    traces = {
        each.workload.key: each.trace
        for each in choose_all(parts, target, usable_threads(threads), store)
    }
    expected: Mapping[str, Array] = {}
    if not missing_here(target):
        expected = finish(parts, target, threads, store).run(example)
    count = usable_threads(threads)
    library = CLibrary(name, parts, traces, target, count, example, expected)
    return write_c_library(library, folder)
