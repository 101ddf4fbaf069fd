"""Cases of the operator suite with few numbers, for tests."""

from __future__ import annotations

from tensorwright.zoo import OperatorCase, find_cases

SMALL = {
    "length": 8,
    "height": 8,
    "width": 7,
    "depth": 4,
    "in_channels": 8,
    "out_channels": 12,
    "channels": 16,
    "rows": 8,
    "columns": 12,
    "inner": 16,
    "heads": 3,
    "features": 16,
}


def small_case(name: str, batch: int = 1) -> OperatorCase:
    """A case with the extents of its tensors cut down; windows stay."""
    case = find_cases([name], batch)[0]
    fields = tuple(
        (field, min(number, SMALL.get(field, 3 if field == "batch" else number)))
        for field, number in case.fields
    )
    return OperatorCase(case.family, case.number, fields, 1e-5, case.is_subgraph)
