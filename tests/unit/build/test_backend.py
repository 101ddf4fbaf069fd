"""Back ends are records, and nobody else knows their folders."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import tensorwright
from tensorwright.base import MachineError, Target
from tensorwright.build import BACKENDS, LLVM, backend, backend_of

SOURCE = Path(tensorwright.__file__).parent
TARGET = Target.parse("x86-64-avx2")


def test_a_target_is_built_by_the_first_that_supports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend_of(TARGET) is LLVM
    refusing = replace(LLVM, name="other", supports=lambda target: "it has no transistors")
    monkeypatch.setattr(backend, "BACKENDS", (refusing, *BACKENDS))
    assert backend_of(TARGET) is LLVM
    monkeypatch.setattr(backend, "BACKENDS", (refusing,))
    with pytest.raises(MachineError, match=r"no back end has code for it \(other: it has no"):
        backend_of(TARGET)


def test_names_tell_back_ends_apart() -> None:
    assert len({each.name for each in BACKENDS}) == len({each.key() for each in BACKENDS})


def test_only_their_records_import_code_generators() -> None:
    importers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"^from tensorwright\.codegen\.(llvm|c)\b", path.read_text(), re.MULTILINE)
        and "codegen" not in path.relative_to(SOURCE).parts
    }
    assert {name for name in importers if not name.startswith("build/")} == {
        "tuning/features/loops/native_text.py",  # it writes loops by hand: their literals
    }
