"""Tables of text: a row a line; one that is indented goes on with the row above. Transcripts.

A row that ends with a line `for ...` is a row for each of its values:

    softmax(f32(3, 4), axis={axis}) = torch.softmax(A, {axis})
        for axis in (0, 1, -1)
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest


def rows_of(table: str, names: Mapping[str, Any] | None = None) -> list[str]:
    """The rows, each on one line; `names` are those that a `for` may use."""
    rows = []
    for text in re.split(r"\n(?=\S)", table.strip()):
        row, _, loops = text.partition("\n    for ")
        row = re.sub(r"\n *", " ", row)
        if not loops:
            rows.append(row)
            continue
        bound = ", ".join(re.findall(r"(?:^|\bfor )([\w, ]+?) in ", loops)).split(", ")
        listed = ", ".join(f"{name}={name}" for name in bound)
        values = eval(f"[dict({listed}) for {loops}]", dict(names or {}))
        rows += [row.format(**each) for each in values]
    return rows


def check_transcript(
    request: pytest.FixtureRequest, page: Path, prompt: str, answer: Callable[[str], str]
) -> None:
    """Compare a page of lines behind a prompt, each with its answer; --golden-update writes it."""
    before, pieces = page.read_text(), []
    for line in before.splitlines():
        if line.startswith(prompt):
            text = answer(line.removeprefix(prompt))
            pieces += [line, textwrap.indent(text, "    ") + "\n"]
        elif line.startswith("# "):
            pieces.append(f"{line}\n")
    now = "\n".join(pieces)
    if request.config.getoption("--golden-update"):
        page.write_text(now)
    else:
        assert now == before
