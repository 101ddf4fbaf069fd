"""Frozen dataclasses and enums as plain data: what JSON can say, and back.

A dataclass is an object that names its class under "_", an enum its value.  Lists are tuples, and
floats that JSON lacks (nan, inf) are objects, too.  Where two references to one object matter (a
class that compares by identity: tensors), the second and later ones are its number under "#".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeAlias

Kinds: TypeAlias = Mapping[str, Any]


def now_utc() -> str:
    """This moment as text, "2026-01-31T12:00:00.000000Z": of fixed width, so that texts sort as
    times do.
    """
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def kinds_of(*classes: type, **renamed: type) -> Kinds:
    """The classes by their names, for `from_data`; `renamed` gives classes by earlier names."""
    return {**{kind.__name__: kind for kind in classes}, **renamed}


def to_data(value: object) -> object:
    """The value as `json.dumps` takes it: objects, lists, texts and numbers."""
    return _encode(value, {})


def from_data(data: object, kinds: Kinds) -> Any:
    """The inverse of `to_data`.

    kinds   all classes that may occur
    Raises:  ValueError for data that is not of that form.
    """
    try:
        return _decode(data, kinds, [])
    except (KeyError, TypeError, IndexError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from error


def _encode(value: object, numbers: dict[object, int]) -> object:
    if isinstance(value, Enum):
        return {"_": type(value).__name__, "value": _encode(value.value, numbers)}
    if isinstance(value, tuple):
        return [_encode(part, numbers) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"_": "float", "value": str(value)}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if _is_by_identity(type(value)):
        if value in numbers:
            return {"#": numbers[value]}
        parts = _encoded_fields(value, numbers)
        numbers[value] = len(numbers)
        return parts
    return _encoded_fields(value, numbers)


def _encoded_fields(value: Any, numbers: dict[object, int]) -> dict[str, object]:
    names = [field.name for field in fields(value) if field.init]
    parts = {name: _encode(getattr(value, name), numbers) for name in names}
    return {"_": type(value).__name__, **parts}


def _decode(data: Any, kinds: Kinds, numbered: list[Any]) -> Any:
    if isinstance(data, list):
        return tuple([_decode(part, kinds, numbered) for part in data])
    if not isinstance(data, dict):
        return data
    if "#" in data:
        return numbered[data["#"]]
    name = data["_"]
    values = {key: _decode(part, kinds, numbered) for key, part in data.items() if key != "_"}
    if name == "float":
        return float(values["value"])
    kind = kinds[name]
    value = kind(**values)
    if is_dataclass(kind) and _is_by_identity(kind):
        numbered.append(value)
    return value


def _is_by_identity(kind: Any) -> bool:
    return bool(kind.__hash__ is object.__hash__)
