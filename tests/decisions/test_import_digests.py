"""What models become when they are read and written is what the repository says."""

from __future__ import annotations

import difflib

import pytest
from tests.conftest import GOLDEN

pytest.importorskip("torch")

from tests.decisions.import_digests import page

PAGE = GOLDEN / "decisions" / "imports.txt"


@pytest.mark.golden
@pytest.mark.filterwarnings("ignore")
def test_models_are_read_and_written_as_on_record(request: pytest.FixtureRequest) -> None:
    now, before = page(), PAGE.read_text() if PAGE.exists() else ""
    if request.config.getoption("--golden-update"):
        PAGE.write_text(now)
        return
    changed = [
        line for line in difflib.ndiff(before.splitlines(), now.splitlines()) if line[0] in "+-"
    ]
    told = "\n".join(changed)
    assert not changed, (
        f"imports changed: compare `python -m tests.decisions.import_digests NAME`\n{told}"
    )
