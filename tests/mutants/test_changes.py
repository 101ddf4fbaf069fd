"""The list of wrong changes fits the sources; `make mutants` makes the changes."""

from __future__ import annotations

import pytest
from tests.mutants.run import PACKAGE, ROOT, Change, read_changes

CHANGES = read_changes()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_can_be_made(change: Change) -> None:
    """If the text no longer stands there, say in `changes.toml` how the same fault is made now."""
    assert change.fault() == ""
    text = (ROOT / PACKAGE / change.file).read_text(encoding="utf-8")
    compile(text.replace(change.old, change.new), change.file, "exec")


def test_changes_have_names_of_their_own() -> None:
    names = [each.name for each in CHANGES]
    assert len(set(names)) == len(names)


def test_a_text_that_does_not_stand_once_is_told() -> None:
    change = Change("x", "version.py", "no such text", "", ("tests/conftest.py",))
    assert change.fault() == "its text stands 0 times in version.py, not once"
    change = Change("x", "no_such.py", "", "", ())
    assert change.fault() == "there is no file no_such.py"
