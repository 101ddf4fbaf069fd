"""Certificates as files: JSON, one line for each term, step and rule.

    {"format": "tensorwright rewriting certificate 1",
    "terms": [["?", ["x"], []], ["slice", [0, 0, {"size": "2*n"}], [0]], ...],
    "steps": [["relu-slice", {"x1": 0}, {"_axis": [0]}], ...], "rules": ..., "outputs": ...,
    "sizes": [["n", "n <= 512"]]}

`Certificate.to_json` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorwright.base import UsageError
from tensorwright.expr import Index, parse_named_size, parse_size
from tensorwright.rewriting.networks.certificates.certificate import (
    FORMAT,
    Certificate,
    CertifiedParam,
    CertifiedStep,
    CertifiedTerm,
)


def read_certificate(path: Path) -> Certificate:
    """Read a file.  Raises: UsageError where it cannot be read, or is not a certificate."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _fault(
            f"file {path}", getattr(error, "strerror", None) or "it is not text"
        ) from error
    return parse_certificate(text, f"file {path}")


def _fault(where: str, reason: str) -> UsageError:
    remedy = "give a certificate; `tensorwright rewrite` writes one beside each model"
    return UsageError(stage="rewrite", where=where, reason=reason, remedy=remedy)


def parse_certificate(text: str, where: str) -> Certificate:
    """Read `Certificate.to_json`.  Raises: UsageError for other text."""
    try:
        data: Any = json.loads(text)
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}")
        sizes = {str(name): str(line) for name, line in data.get("sizes", ())}
        atoms = {name: parse_named_size(name, line) for name, line in sizes.items()}
        return Certificate(
            tuple(
                CertifiedTerm(str(o), _params(p, atoms), _numbers(a)) for o, p, a in data["terms"]
            ),
            tuple(
                CertifiedStep(
                    str(rule),
                    {str(name): _number(number) for name, number in tensors.items()},
                    {str(name): _params(value, atoms) for name, value in params.items()},
                )
                for rule, tensors, params in data["steps"]
            ),
            {str(name): str(line) for name, line in data["rules"]},
            _numbers(data["outputs"]),
            sizes,
        )
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise _fault(where, f"it is not a certificate: {error}") from None


def _params(values: Any, sizes: Mapping[str, Index]) -> tuple[CertifiedParam, ...]:
    def param(value: Any) -> CertifiedParam:
        if isinstance(value, dict):
            return parse_size(str(value["size"]), sizes.get)
        return value if isinstance(value, str) else _number(value)

    return tuple(map(param, values))


def _numbers(values: Any) -> tuple[int, ...]:
    return tuple(map(_number, values))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return value
