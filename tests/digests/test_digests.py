"""The text of fixed kernels and the features of fixed programs are what the repository says.

A line of `golden/digests/` has the digests of a case.  `make golden` writes them again.  To see
what changed, let `python -m tests.digests.cases FOLDER` write the texts in both checkouts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import GOLDEN
from tests.digests.cases import PRINTED

PLAIN = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_SKX AVX512_ICL AVX512_SPR"}
"""NumPy's logarithms for AVX-512 differ from others in the last bit."""


@pytest.mark.golden
@pytest.mark.parametrize("what", PRINTED)
def test_digests_are_those_on_record(what: str, request: pytest.FixtureRequest) -> None:
    path = GOLDEN / "digests" / f"{what}_lines.txt"
    command = [sys.executable, "-m", "tests.digests.cases", "--print", what]
    root = Path(__file__).parents[2]
    printed = subprocess.run(
        command, cwd=root, env=os.environ | PLAIN, check=True, capture_output=True, text=True
    )
    after = printed.stdout.splitlines()
    if request.config.getoption("--golden-update"):
        path.write_text("\n".join(after) + "\n")
    before = path.read_text().splitlines()
    changed = [text for text in after if text not in before]
    assert not changed, f"{len(changed)} of {len(after)} changed: write both texts and compare"
    assert len(before) == len(after)
