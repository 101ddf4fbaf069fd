"""What all targets have, whatever kind of machine they describe."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class TargetKind(StrEnum):
    """Kinds of machines; back ends and devices are listed by kind."""

    CPU = "cpu"
    GPU = "gpu"


class TargetProtocol(Protocol):
    """A machine to compile for.

    Two targets share a `key` only if they may share programs and timings: the key of a record
    contains it.
    """

    @property
    def name(self) -> str:
        """The target's name for people: "native", "x86-64-avx2", "cuda:sm_90"."""
        ...

    @property
    def kind(self) -> TargetKind:
        """The kind of machine, for tables that are keyed by it."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """Instructions that code may use besides those that its architecture always has."""
        ...

    @property
    def key(self) -> str:
        """A stable text that stands for all that schedules and code depend on."""
        ...

    def missing_on(self, machine: TargetProtocol) -> str:
        """A message about what a machine lacks to run code for this target; "" for nothing."""
        ...
