"""Show that rotation measures what it claims: each competitor as fast in rotation as alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from tensorwright.base import MachineError
from tensorwright.peers.comparison.rotation import (
    Competitor,
    Result,
    Timing,
    rotate,
    summarise,
)

_LEAST_S = 10e-3  # of a sample
LIMIT = 0.05

Opener = Callable[[], AbstractContextManager[Competitor]]
"""Starts a competitor, loaded and with inputs bound; the end of the context ends it."""


@dataclass(frozen=True, slots=True)
class SelfTestRow:
    """One competitor: seconds per call alone and in rotation, and rotation / alone."""

    name: str
    alone_s: float
    rotation_s: float
    ratio: float

    @property
    def is_good(self) -> bool:
        """Whether the two times are within 5 % of each other."""
        return abs(self.ratio - 1) <= LIMIT


def self_test(openers: Sequence[Opener], rounds: int = 11) -> tuple[SelfTestRow, ...]:
    """Time each competitor alone, all in rotation, and each alone again.

    Alone means that no other competitor's process exists. The time alone is taken before and after,
    so that a slow drift of the machine does not look like a disturbance.
    Raises:  MachineError if a competitor fails.
    """
    before = [_time_alone(opener, rounds) for opener in openers]
    with ExitStack() as stack:
        competitors = [stack.enter_context(opener()) for opener in openers]
        together = [_expect_timing(t) for t in rotate(competitors, rounds, _LEAST_S)]
    after = [_time_alone(opener, rounds) for opener in openers]
    rows = []
    for first, timing, last in zip(before, together, after, strict=True):
        alone = summarise(timing.name, first.samples_s + last.samples_s)
        ratio = timing.median_s / alone.median_s
        rows.append(SelfTestRow(timing.name, alone.median_s, timing.median_s, ratio))
    return tuple(rows)


def _time_alone(opener: Opener, rounds: int) -> Timing:
    with opener() as competitor:
        return _expect_timing(rotate([competitor], rounds, _LEAST_S)[0])


def _expect_timing(result: Result) -> Timing:
    if isinstance(result, Timing):
        return result
    raise MachineError(
        stage="peers",
        where=f"peer {result.name}",
        reason=f"{result.kind.value}: {result.reason}",
        remedy="leave this competitor out",
    )
