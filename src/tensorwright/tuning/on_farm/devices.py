"""The devices that a session measures on: which there are, and which are set aside.

All devices of one kind run a program equally fast.  One that disagrees with the others of its kind
is set aside, with the reason; it measures nothing more for this session, and says so to others.

A builder whose candidates the workers of a farm build.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tensorwright import processes
from tensorwright.artifacts import BuildRequest, unpack_kernel
from tensorwright.base import MachineError, Target
from tensorwright.farm import (
    Device,
    Farm,
    FarmOutcome,
    FarmWorker,
    Lost,
    Payload,
    Unit,
    raise_if_refused,
)
from tensorwright.machine import detect_hardware
from tensorwright.records import Status
from tensorwright.tuning import measuring
from tensorwright.tuning.on_farm.worker_functions import is_near, read, request_data

_WAITED_S = 60.0
_REFRESH_S = 2.0
_TELL_S = 10.0
_STRIKES = 3


def kind_for(farm: Farm, target: Target) -> Device:
    """A device on which a session for a target measures: of this machine's kind, else of the most
    numerous.  Waits for a while until there is one.

    Raises:  MachineError if no worker has one.
    """
    deadline = time.monotonic() + _WAITED_S
    while True:
        devices = [worker.device for worker in farm.workers() if worker.device is not None]
        able = [each for each in devices if not target.missing_on(read(json.loads(each.target)))]
        if able:
            here = detect_hardware().fingerprint
            kinds = [each.kind for each in able]
            chosen = here if here in kinds else statistics.mode(kinds)
            return next(each for each in able if each.kind == chosen)
        if time.monotonic() > deadline:
            raise no_device(str(target), devices)
        time.sleep(1.0)


def no_device(wanted: str, devices: Iterable[Device]) -> MachineError:
    """The error that no worker has a device."""
    kinds = sorted({each.kind for each in devices})
    there = ", ".join(kinds) if kinds else "no device at all"
    return MachineError(
        stage="farm",
        where=f"device for {wanted}",
        reason=f"no worker has one that runs its programs; the farm has {there}",
        remedy="start `tensorwright worker ADDRESS` on such a machine",
    )


class DevicePool:
    """The devices of one kind, as a session sees them; mutable."""

    def __init__(self, farm: Farm, kind: str) -> None:
        self._farm = farm
        self._kind = kind
        self._aside: dict[str, str] = {}
        self._references: dict[str, float] = {}
        self._expected_s: float | None = None
        self._strikes: dict[str, int] = {}
        self._workers: tuple[FarmWorker, ...] = ()
        self._looked_at = 0.0

    @property
    def set_aside(self) -> dict[str, str]:
        """Why devices are set aside, by the names of their workers."""
        return dict(self._aside)

    def names(self) -> tuple[str, ...]:
        """The workers whose devices may measure; none while scheduler or workers are away.

        Raises:  MachineError if all are set aside.
        """
        if time.monotonic() - self._looked_at > _REFRESH_S:
            self._workers = self._farm.workers()
            self._looked_at = time.monotonic()
        ours = {
            worker.name: worker.device.set_aside
            for worker in self._workers
            if worker.device is not None and worker.device.kind == self._kind
        }
        good = tuple(name for name, why in ours.items() if not why and name not in self._aside)
        if self._aside and ours and not good:
            reasons = "; ".join(f"{name}: {why}" for name, why in sorted(self._aside.items()))
            raise MachineError(
                stage="farm",
                where=f"devices of kind {self._kind}",
                reason=f"all are set aside: {reasons}",
                remedy="see to them, start their workers again, and repeat the command",
            )
        return good

    def expected_reference_s(self) -> float:
        """The expected time of the reference kernel: the median of the devices; 0 if unknown.

        Where there are several devices, one alone is not believed, nor a median that most are not
        near: a false device may be the first to answer, and the right ones would be set aside.
        """
        if self._expected_s is None:
            fit = [its_s for name, its_s in self._references.items() if name not in self._aside]
            median_s = statistics.median(fit) if fit else 0.0
            is_alone = len(fit) == 1 and len(self.names()) > 1
            is_known = not is_alone and 2 * sum(is_near(each, median_s) for each in fit) > len(fit)
            self._expected_s = median_s if is_known else 0.0
        return self._expected_s

    def note_reference(self, name: str, time_s: float) -> None:
        """Remember what the reference kernel took on a device, the first time.

        With three devices or more, one that is far from the median of all is set aside.
        """
        if not time_s or name in self._references:
            return
        self._references[name] = time_s
        self._expected_s = None
        expected_s = self.expected_reference_s()
        if len(self._references) < 3 or not expected_s:
            return
        for worker, its_s in self._references.items():
            if worker not in self._aside and not is_near(its_s, expected_s):
                self.put_aside(
                    worker,
                    f"the reference kernel takes {its_s * 1e3:.3g} ms there, and "
                    f"{expected_s * 1e3:.3g} ms on most devices of its kind",
                )

    def note_drift(self, name: str, reason: str) -> None:
        """A device measured nothing because it has drifted: the third time it is set aside."""
        self._strikes[name] = self._strikes.get(name, 0) + 1
        if self._strikes[name] >= _STRIKES:
            self.put_aside(name, reason)

    def put_aside(self, name: str, reason: str) -> None:
        """Measure no more on the device of a worker, and let the worker say why."""
        if name in self._aside:
            return
        self._aside[name] = reason
        self._expected_s = None
        unit = Unit("farm.set_aside", Payload({"reason": reason}), workers=(name,))
        deadline = time.monotonic() + _TELL_S
        for _ in self._farm.results([unit], lambda: time.monotonic() > deadline):
            pass


_LIMIT_S = 60.0


class FarmBuilder:
    """Builds on any worker of a farm; other jobs are done here meanwhile.  See `Builder`."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._here = measuring.PoolBuilder()
        self._thread = ThreadPoolExecutor(1, "background jobs")

    def build(
        self,
        requests: Sequence[BuildRequest],
        should_stop: Callable[[], bool] = processes.never,
        background_jobs: Sequence[measuring.BackgroundJob] = (),
    ) -> list[measuring.BuildResult]:
        """As `Builder.build`."""
        beside = self._thread.submit(self._here.build, (), should_stop, background_jobs)
        units = [Unit("tune.build", Payload(request_data(each)), _LIMIT_S) for each in requests]
        outcomes = self._farm.run(units, should_stop)
        beside.result()
        return [_result(*pair) for pair in zip(requests, outcomes, strict=True)]

    def close(self) -> None:
        """End the processes here; the farm stays."""
        self._thread.shutdown()
        self._here.close()


def _result(request: BuildRequest, outcome: FarmOutcome) -> measuring.BuildResult:
    raise_if_refused(outcome)
    match outcome:
        case processes.Done(Payload(data, blobs)) if blobs:
            return unpack_kernel(blobs[0], request.target)
        case processes.Done(Payload(data, _)):
            return measuring.BuildFailed(Status(data["status"]), data["error"])
        case processes.Stopped():
            return measuring.BuildStopped()
        case Lost():
            return measuring.BuildFailed(Status.LOST, str(outcome))
        case processes.TimedOut():
            return measuring.BuildFailed(Status.BUILD_TIMEOUT, str(outcome))
        case processes.Done() | processes.Raised() | processes.Died():
            return measuring.BuildFailed(Status.BUILD_ERROR, str(outcome))
