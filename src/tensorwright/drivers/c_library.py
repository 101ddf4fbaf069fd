"""Compile a network to a C library.

Import this file only to write a library: it needs the back end `c`, and compiling to an executable
does not.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tensorwright.artifacts import c_library, plan_sizes
from tensorwright.base import CpuTarget, MachineError, knobs, missing_here
from tensorwright.graph import Partition, bind_sizes, random_inputs, require_uncounted
from tensorwright.pipeline import finish, setting_of
from tensorwright.records import RecordStore
from tensorwright.runtime import usable_threads
from tensorwright.tuning.selection import Chooser


def export_c(
    parts: Partition,
    target: CpuTarget,
    threads: int | None,
    store: RecordStore,
    folder: Path,
    name: str,
    seed: int = 0,
) -> tuple[str, ...]:
    """Write a network as a C library into a folder, and return the names of the files.

    The schedules are those of `pipeline.finish`.

    name      names files and functions, which begin with `tw_` and its ASCII letters and digits
    seed      the seed of the example program's inputs
    Raises:   UnsupportedError for a named size without a greatest number, or one that a loop
              decides.
    """
    graph, count = require_uncounted(parts.graph, "compile"), usable_threads(threads)
    named = c_library.example_sizes(c_library.bounded(plan_sizes(graph.sizes)))
    chosen = Chooser(setting_of(target, threads), store, is_cold=True).of_network(parts)
    traces = {each.workload.key: each.schedule for each in chosen}
    run = None if missing_here(target) else finish(parts, target, threads, store).run
    examples = []
    for values in named:
        inputs = random_inputs(bind_sizes(graph, values), seed)
        examples.append(c_library.Example(values, inputs, run(inputs) if run else {}))
    library = c_library.CLibrary(name, parts, traces, target, count, tuple(examples))
    return c_library.write_c_library(library, folder)


def build_shared(folder: Path, name: str) -> Path:
    """Build the shared library of what `export_c` wrote; the knob `c_compiler` names the compiler.

    Raises:  MachineError if make or the compiler is missing, or fails.
    """
    compiler, library = knobs.C_COMPILER.get(), f"lib{c_library.prefix_of(name)}.so"
    lacking = [each for each in ("make", compiler) if shutil.which(each.split()[0]) is None]
    if lacking:
        remedy = "install make and a C compiler, or name one: knob c_compiler"
        raise _not_built(library, f"there is no {lacking[0]}", remedy)
    command = ["make", "-s", "-C", str(folder), f"CC={compiler}", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        remedy = "another or a newer compiler: knob c_compiler"
        raise _not_built(library, done.stderr.strip() or "make failed", remedy)
    return folder / library


def _not_built(library: str, reason: str, remedy: str) -> MachineError:
    return MachineError(
        stage="compile",
        where=library,
        reason=f"it cannot be built: {reason}",
        remedy=remedy,
    )
