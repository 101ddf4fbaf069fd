"""The text of fixed kernels and the features of fixed programs are what the repository says.

A line of `golden/digests/` has the digests of a case.  `make golden` writes them again.  To see
what changed, let `python -m tests.digests.cases FOLDER` write the texts in both checkouts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from tests.conftest import GOLDEN
from tests.digests.cases import Case, Scheduled, cases, texts


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def text_line(case: Case) -> str:
    return " ".join(f"{printer} {digest(text.encode())}" for printer, text in texts(case))


def features_line(case: Case) -> str:
    """Of the program of the first candidate, and of all candidates at once."""
    if not isinstance(case, Scheduled):
        return ""
    arrays = [case.features(is_open=is_open) for is_open in (False, True)]
    return " ".join(f"{array.shape} {digest(array.tobytes())}" for array in arrays)


@pytest.mark.golden
@pytest.mark.parametrize("line", [text_line, features_line], ids=["text", "features"])
def test_digests_are_those_on_record(
    line: Callable[[Case], str], request: pytest.FixtureRequest
) -> None:
    path = GOLDEN / "digests" / f"{line.__name__}s.txt"
    lines = {f"{case.name}, {case.target}": line(case) for case in cases()}
    after = [f"{name}: {text}" for name, text in lines.items() if text]
    if request.config.getoption("--golden-update"):
        path.write_text("\n".join(after) + "\n")
    before = path.read_text().splitlines()
    changed = [text for text in after if text not in before]
    assert not changed, f"{len(changed)} of {len(after)} changed: write both texts and compare"
    assert len(before) == len(after)
