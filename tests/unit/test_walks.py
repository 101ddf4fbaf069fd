"""Pieces of work go down through the folders, and back up only where something was handed down."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import walks

HANDED_DOWN = {
    "base/knobs.py takes_options.<locals>.taking.<locals>.called": "the function with the options",
    "base/files.py _decode": "the class of a kept value",
    "base/files.py hold_home_lock": "whether to stop",
    "expr/index/traversal.py value_of_node": "the arithmetic of a domain",
    "expr/value.py _Rebuilding._copy": "what a load becomes",
    "loop/packing.py _strided": "how an array is made",
}
"""Who calls a function or an object of a later folder, and what it is."""


LATE = {
    "compile": "runtime/executable.py",
    "trial": "tuning/measuring/timing.py",
    "card": "codegen/cuda.py",
}
"""A file near the end of each walk."""


@pytest.mark.parametrize("name", LATE)
def test_no_step_goes_back_up(name: str, tmp_path: Path, by_rule: None) -> None:
    seen = walks.WALKS[name](tmp_path)
    assert LATE[name] in seen.steps
    assert {caller for caller, _ in seen.up} <= HANDED_DOWN.keys()
