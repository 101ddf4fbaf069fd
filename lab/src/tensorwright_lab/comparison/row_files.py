"""Files of rows, with which a later run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tensorwright.base import InputError

Row = TypeVar("Row")


def read_file_of(
    command: str, path: str | os.PathLike[str], read_row: Callable[[dict[str, Any]], Row]
) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """The head and the rows of a file that a command wrote; nothing where there is no file.

    read_row   makes a row of the fields of one
    Raises:    InputError for a file of another kind.
    """
    if not Path(path).exists():
        return {}, ()
    try:
        head = json.loads(Path(path).read_text())
        return head, tuple(map(read_row, head.pop("rows")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            stage="bench",
            where=f"file {path}",
            reason=f"it has no rows of {command}: {error}",
            remedy="name another file, or leave --resume out",
        ) from error
