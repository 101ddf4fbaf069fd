"""The operators and subgraphs that tuners are compared on: shapes as facts, from `ansor.json`.

`operator_families.py` has the meaning of the families.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tensorwright.base import unknown_name

_FILE = Path(__file__).with_name("ansor.json")


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """One operator, or a subgraph of a few, with one shape.

    family   C1D C2D C3D GMM GRP DIL DEP T2D CAP NRM, or the subgraphs ConvLayer and TBS
    number   of the shape in its family, from 1
    fields   what the numbers of the shape mean, in order: (("batch", 1), ("height", 56), ...)
    gflop    nominal, 10^9 operations: a transposed convolution counts the zeros between its inputs
    """

    family: str
    number: int
    fields: tuple[tuple[str, int], ...]
    gflop: float
    is_subgraph: bool = False

    @property
    def name(self) -> str:
        """Without the batch: C2D.3."""
        return f"{self.family}.{self.number}"

    @property
    def batch(self) -> int:
        """How many images, sentences or matrices at once."""
        return self["batch"]

    def __getitem__(self, field: str) -> int:
        return dict(self.fields)[field]

    def get(self, field: str, default: int) -> int:
        """The number of a field that not every family has."""
        return dict(self.fields).get(field, default)

    def to_json(self) -> dict[str, Any]:
        """The case as JSON knows values; `from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> OperatorCase:
        """The case that `to_json` wrote."""
        fields = tuple((str(name), int(number)) for name, number in values["fields"])
        return cls(**{**values, "fields": fields})

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(str(number) for _, number in self.fields)})"


def operator_cases(batch: int | None = None) -> tuple[OperatorCase, ...]:
    """Every case of the suite, operators first; those of one batch (1 or 16) if it is given."""
    return tuple(case for case in _read_cases() if batch is None or case.batch == batch)


def find_cases(texts: Sequence[str], batch: int | None = None) -> tuple[OperatorCase, ...]:
    """The cases that are named: "C2D" is a family, "C2D.3" a case; all where nothing is named.

    Raises:  UsageError for a name that there is not.
    """
    cases = operator_cases(batch)
    for text in texts:
        if not any(text in (case.family, case.name) for case in cases):
            families = dict.fromkeys(case.family for case in cases)
            reason = "the suite has no such case"
            raise unknown_name("zoo", f"case {text!r}", reason, text, families)
    return tuple(case for case in cases if not texts or {case.family, case.name} & set(texts))


@lru_cache(maxsize=1)
def _read_file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_FILE.read_text())
    return content


@lru_cache(maxsize=1)
def _read_cases() -> tuple[OperatorCase, ...]:
    cases: list[OperatorCase] = []
    for family in _read_file()["families"]:
        numbers: dict[int, int] = {}
        for case in family["cases"]:
            batch = case["shape"][0]
            numbers[batch] = numbers.get(batch, 0) + 1
            fields = tuple(zip(family["fields"], case["shape"], strict=True))
            cases.append(
                OperatorCase(
                    family["family"], numbers[batch], fields, case["gflop"], family["is_subgraph"]
                )
            )
    return tuple(cases)
