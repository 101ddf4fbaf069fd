"""Tables of text: a row a line; one that is indented goes on with the row above.

A row that ends with a line `for ...` is a row for each of its values:

    softmax(f32(3, 4), axis={axis}) = torch.softmax(A, {axis})
        for axis in (0, 1, -1)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


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
