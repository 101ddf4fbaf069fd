"""Where the time of a network goes, as data: a row for each step, and sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tensorwright.build import View
from tensorwright.machine import Ceilings, MachineState
from tensorwright.profiling.roofline import Bottleneck, Bounds
from tensorwright.runtime.measuring import CallCosts

_NOISE_SHARE = 0.05  # of a run, by which medians of steps may differ from the median of the run
FEWER = "takes fewer operations than the counted ones of the plain sum"
_TOO_LOW = "the machine's rates were measured too low, or its operands lay in a nearer cache"
_SURELY_ABOVE = 1.15  # times the roofline, because peak and bandwidths have errors, too


class StepKind(Enum):
    """What a step runs."""

    KERNEL = "kernel"
    HOST = "host"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class StepProfile:
    """A step in the running network, or all steps of one workload.

    number       its position in the plan; for several steps, that of the first
    label        the operators        outputs   the tensors that it writes, if their names are kept
    workload     the key; "" if there is none
    time_s       seconds in one run, without the reading of the clock
    share        of the time of the whole network
    flops, bytes_moved   the least work
    bounds       the least time on this machine
    is_tuned     whether its schedule was measured; None if that is unknown, or there is no kernel
    count        how many steps this row contains
    saves_by     why it needs fewer operations than flops, which counts those of the plain sum:
                 "Winograd's algorithm", "skipping zeros", or "" if it needs all of them
    """

    number: int
    label: str
    kind: StepKind
    outputs: tuple[str, ...]
    workload: str
    time_s: float
    share: float
    flops: int
    bytes_moved: int
    bounds: Bounds
    bottleneck: Bottleneck
    is_tuned: bool | None = None
    count: int = 1
    saves_by: str = ""

    @property
    def is_above_roofline(self) -> bool:
        """Whether it is faster than the machine seems to allow, and `saves_by` does not explain it.

        Then peak or bandwidths were measured too low, or operands lay in a nearer cache.
        """
        is_counted = self.kind is not StepKind.HOST and not self.saves_by
        return is_counted and self.estimate_share > _SURELY_ABOVE

    @property
    def flops_per_s(self) -> float:
        """Operations per second."""
        return self.flops / self.time_s if self.time_s > 0 else 0.0

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second, of the bytes that must be moved."""
        return self.bytes_moved / self.time_s if self.time_s > 0 else 0.0

    @property
    def estimate_share(self) -> float:
        """The estimate of its least time over its time; above 1 the estimate is too large."""
        return self.bounds.roofline_s / self.time_s if self.time_s > 0 else 0.0

    @property
    def least_s(self) -> float:
        """The least time by the roofline: the estimate, or its own time if that is less."""
        return min(self.bounds.roofline_s, self.time_s)

    @property
    def roofline_share(self) -> float:
        """The least time by the roofline over the time; 1 is as fast as the machine can."""
        return min(1.0, self.estimate_share)

    @property
    def why_above(self) -> str:
        """Why it is faster than the estimate of its least time; "" if it is not."""
        if self.kind is StepKind.HOST or self.estimate_share <= 1:
            return ""
        return f"{self.saves_by} {FEWER}" if self.saves_by else _TOO_LOW


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of a network goes.

    runs         the number of runs that were timed as a whole; as many were timed step by step
    network_s    median seconds of a whole run, in which no clock is read
    fluctuation_s   the median time of all steps together minus the sum of the steps' medians; in
                 every run some steps are slower than their median
    steps        in the order in which they run
    views        tensors that need no work
    ceilings     of this machine: for each, the higher of the kept and the present value
    costs        of a clock, a call, and threads
    at           the sizes for which an open network ran: (name, number)
    state        of the machine meanwhile; None if nothing was measured
    """

    name: str
    target: str
    threads: int
    runs: int
    network_s: float
    fluctuation_s: float
    steps: tuple[StepProfile, ...]
    views: tuple[View, ...]
    ceilings: Ceilings
    costs: CallCosts
    at: tuple[tuple[str, int], ...] = ()
    state: MachineState | None = None

    @property
    def above_roofline(self) -> tuple[StepProfile, ...]:
        """The steps that are faster than the machine seems to allow."""
        return tuple(step for step in self.steps if step.is_above_roofline)

    @property
    def steps_s(self) -> float:
        """Seconds of all steps."""
        return sum(step.time_s for step in self.steps)

    @property
    def outside_s(self) -> float:
        """The time of the whole network minus the medians of its steps; it may be below 0."""
        return self.network_s - self.steps_s

    @property
    def entering_s(self) -> float:
        """The time in which Python enters native code, once for each group of compiled steps."""
        kinds = [step.kind for step in self.steps]
        begun = [
            kind
            for before, kind in zip([StepKind.HOST, *kinds], kinds, strict=False)
            if kind is not StepKind.HOST and before is StepKind.HOST
        ]
        return len(begun) * self.costs.enter_s

    @property
    def unexplained_s(self) -> float:
        """The rest of `outside_s`: Python around host steps, and the effect of timing the steps."""
        return self.outside_s - self.entering_s - self.fluctuation_s

    @property
    def adds_up(self) -> bool:
        """Whether the parts explain the time of a run, up to noise.

        On an unsteady machine steps may take longer than the whole runs in turn with them.
        """
        noise_s = _NOISE_SHARE * self.network_s + self.costs.clock_s * len(self.steps)
        rests = (self.outside_s, self.fluctuation_s, self.unexplained_s)
        return min(rests) >= -noise_s

    @property
    def roofline_share(self) -> float:
        """The least times of all steps by the roofline over the time of the network."""
        least_s = sum(step.least_s for step in self.steps)
        return min(1.0, least_s / self.network_s) if self.network_s > 0 else 0.0

    def share_by_bottleneck(self) -> tuple[tuple[Bottleneck, float], ...]:
        """The share of the network's time of the steps under each bottleneck, the largest first."""
        shares: dict[Bottleneck, float] = {}
        for step in self.steps:
            shares[step.bottleneck] = shares.get(step.bottleneck, 0.0) + step.share
        return tuple(sorted(shares.items(), key=lambda pair: -pair[1]))

    def by_time(self) -> tuple[StepProfile, ...]:
        """The steps, the slowest first."""
        return tuple(sorted(self.steps, key=lambda step: -step.time_s))

    def by_workload(self) -> tuple[StepProfile, ...]:
        """One row for each workload, or operator on the host; the slowest first."""
        groups: dict[tuple[StepKind, str], list[StepProfile]] = {}
        for step in self.steps:
            groups.setdefault((step.kind, step.workload or step.label), []).append(step)
        sums = [_together(group) for group in groups.values()]
        return tuple(sorted(sums, key=lambda step: -step.time_s))


def _together(steps: Sequence[StepProfile]) -> StepProfile:
    """Several steps as one row; its bottleneck is that of the slowest step."""
    slowest = max(steps, key=lambda step: step.time_s)
    return replace(
        steps[0],
        outputs=tuple(name for step in steps for name in step.outputs),
        time_s=sum(step.time_s for step in steps),
        share=sum(step.share for step in steps),
        flops=sum(step.flops for step in steps),
        bytes_moved=sum(step.bytes_moved for step in steps),
        bounds=sum((step.bounds for step in steps), Bounds()),
        bottleneck=slowest.bottleneck,
        count=sum(step.count for step in steps),
        saves_by=slowest.saves_by,
    )
