"""Cases of the operator suite with few numbers, for tests."""

from __future__ import annotations

from tensorwright_lab.zoo import OperatorCase, find_cases

_SMALL = {
    "batch": 3,
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


def shrink(case: OperatorCase) -> OperatorCase:
    """The case with the extents of its tensors cut down; windows stay."""
    fields = tuple((name, min(number, _SMALL.get(name, number))) for name, number in case.fields)
    return OperatorCase(case.family, case.number, fields, 1e-5, case.is_subgraph)


def small_case(name: str, batch: int = 1) -> OperatorCase:
    """The case of that name, cut down; batch 16 becomes 3."""
    return shrink(find_cases([name], batch)[0])
