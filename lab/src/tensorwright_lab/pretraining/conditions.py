"""The conditions under which programs are measured for the time model."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Self

from tensorwright.base import CpuTarget, RecordError, cpu_target

_COLD_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Conditions:
    """A target, a number of threads, and whether constants come from memory or from the caches.

    Example
        >>> Conditions.parse("x86-64-avx2-2t-cold")
        Conditions(target_name='x86-64-avx2', threads=2, is_cold=True)
    """

    target_name: str
    threads: int
    is_cold: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` writes.  Raises: RecordError for anything else."""
        parts = text.rsplit("-", 2)
        is_right = len(parts) == 3 and parts[2] in ("cold", "warm") and parts[1][-1:] == "t"
        if not is_right or not parts[1][:-1].isdecimal():
            raise RecordError(
                stage="time model",
                where=f"file {text!r}",
                reason="its name does not say target, threads and cold or warm",
                remedy="give the folder that `tensorwright pretrain collect` fills",
            )
        return cls(parts[0], int(parts[1][:-1]), parts[2] == "cold")

    def __str__(self) -> str:
        kind = "cold" if self.is_cold else "warm"
        return f"{self.target_name}-{self.threads}t-{kind}"

    @property
    def target(self) -> CpuTarget:
        """The target itself."""
        return cpu_target(self.target_name)

    @property
    def cold_bytes(self) -> int:
        """How much memory the places of constants take, see `MeasureOptions`."""
        return _COLD_BYTES if self.is_cold else 0


CONDITIONS: tuple[tuple[Conditions, float], ...] = (
    (Conditions("native", 2, is_cold=True), 0.36),
    (Conditions("x86-64-avx2", 2, is_cold=True), 0.30),
    (Conditions("native", 1, is_cold=True), 0.10),
    (Conditions("x86-64-avx2", 1, is_cold=True), 0.10),
    (Conditions("native", 2, is_cold=False), 0.07),
    (Conditions("x86-64-avx2", 2, is_cold=False), 0.07),
)
"""What networks are measured under, with the share of each."""


def draw_conditions(seed: int) -> Conditions:
    """The conditions of the network of a seed."""
    drawn = random.Random(f"conditions {seed}").random()
    for conditions, share in CONDITIONS:
        drawn -= share
        if drawn < 0:
            return conditions
    return CONDITIONS[0][0]
