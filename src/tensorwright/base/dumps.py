"""Show what each stage makes, where the knob `dump` asks for it."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable

from tensorwright.base.files import make_folder, write_atomically
from tensorwright.base.knobs import DUMP, DUMP_DIR

_SUFFIXES = {"rules": "rules", "source": "ll", "asm": "s"}
_numbers = itertools.count(1)


def dump(stage: str, name: str, render: Callable[[], str]) -> None:
    """Write one program as text, if the knob `dump` names its stage; else do nothing.

    `stage` is one of knobs.DUMP_STAGES, `name` says which pass or workload made the program, and
    `render` is called only when needed. With the knob `dump_dir` each text becomes a file
    <number>-<stage>-<name>.txt (.ll, .s), numbered in the order of the passes; else it goes to
    the error stream.
    Raises:  OutputError if the folder cannot be written.
    """
    if stage not in DUMP.get():
        return
    folder = DUMP_DIR.get()
    text = render()
    if folder is None:
        print(f"--- {stage}: {name}\n{text}", file=sys.stderr)
        return
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:80]
    file_name = f"{next(_numbers):03}-{stage}-{plain}.{_SUFFIXES.get(stage, 'txt')}"
    write_atomically(make_folder(folder) / file_name, text + "\n")
