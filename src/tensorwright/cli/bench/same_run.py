"""Files of rows that a run goes on with: only those that were measured in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tensorwright.base import UsageError


def check_same_run(
    path: str, before: Mapping[str, object], head: Mapping[str, object], names: Iterable[str]
) -> None:
    """Refuse rows of a run that was another in one of these; nothing was kept where `before` is
    empty.

    Raises:  UsageError.
    """
    for name in names if before else ():
        if before.get(name) != head[name]:
            raise UsageError(
                stage="bench",
                where=f"file {path}",
                reason=f"its rows have {name} {before.get(name)}, this run has {head[name]}",
                remedy="name another file, or leave --resume out",
            )
