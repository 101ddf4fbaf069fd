"""Names, attribute values and constants in the text form of graphs."""

from __future__ import annotations

import hashlib
import json
import math
import re

import numpy as np

from tensorwright.base import DType, OpenSize
from tensorwright.ops import Array, AttributeValue

PLAIN_NAME = re.compile(r"[A-Za-z0-9_./]+")
_DIGEST_DIGITS = 16


def digest(array: Array) -> str:
    """A short SHA-256 of the element type, the shape and the bytes, as the text form shows it."""
    head = f"{DType.from_numpy(array.dtype)}{array.shape}".encode()
    state = hashlib.sha256(head)
    state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return "sha256:" + state.hexdigest()[:_DIGEST_DIGITS]


def format_name(name: str) -> str:
    """A tensor name, quoted where it holds more than letters, digits, "_", "." and "/"."""
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)


def format_value(value: AttributeValue) -> str:
    """An attribute value as the text form writes it."""
    if isinstance(value, tuple):
        inner = ", ".join(map(format_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return str(value) if isinstance(value, DType | OpenSize) else repr(value)
