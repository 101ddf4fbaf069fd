"""Lists by kind of machine: what each kind brings, in one mapping for each question.

PASSES: ByKind[Pass] = {TargetKind.CPU: (...), TargetKind.GPU: (...)}
of_kind(PASSES, target, "passes of loops")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from tensorwright.base.errors import MachineError
from tensorwright.base.targets.protocol import TargetKind, TargetProtocol

Entry = TypeVar("Entry")
ByKind: TypeAlias = Mapping[TargetKind, tuple[Entry, ...]]


def of_kind(lists: ByKind[Entry], target: TargetProtocol, what: str) -> tuple[Entry, ...]:
    """The list of a target's kind.

    what   its entries are, in the plural
    Raises:  MachineError where the kind has no list.
    """
    if target.kind in lists:
        return lists[target.kind]
    raise MachineError(
        stage="target",
        where=f"target {target}",
        reason=f"there are no {what} for machines of the kind {target.kind}",
        remedy="name a target of another kind: " + ", ".join(sorted(lists)),
    )
