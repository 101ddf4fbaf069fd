"""A builder whose candidates the workers of a farm build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from tensorwright.build import BuildRequest, unpack_kernel
from tensorwright.farm import Farm, FarmOutcome, Lost, Payload, Unit, raise_if_refused
from tensorwright.processes import Died, Done, Raised, Stopped, TimedOut, never
from tensorwright.records import Status
from tensorwright.tuning.measuring import (
    BackgroundJob,
    BuildFailed,
    BuildResult,
    BuildStopped,
    PoolBuilder,
)
from tensorwright.tuning.on_farm.wire import request_data

_LIMIT_S = 60.0


class FarmBuilder:
    """Builds on any worker of a farm; other jobs are done here meanwhile.  See `Builder`."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._here = PoolBuilder()
        self._thread = ThreadPoolExecutor(1, "background jobs")
        self._turns = count()

    def build(
        self,
        requests: Sequence[BuildRequest],
        should_stop: Callable[[], bool] = never,
        background_jobs: Sequence[BackgroundJob] = (),
    ) -> list[BuildResult]:
        """As `Builder.build`."""
        beside = self._thread.submit(self._here.build, (), should_stop, background_jobs)
        outcomes = self._farm.run([self._unit(each) for each in requests], should_stop)
        beside.result()
        return [_result(*pair) for pair in zip(requests, outcomes, strict=True)]

    def close(self) -> None:
        """End the processes here; the farm stays."""
        self._thread.shutdown()
        self._here.close()

    def _unit(self, request: BuildRequest) -> Unit:
        return Unit("tune.build", Payload(request_data(request)), _LIMIT_S)


def _result(request: BuildRequest, outcome: FarmOutcome) -> BuildResult:
    raise_if_refused(outcome)
    match outcome:
        case Done(Payload(data, blobs)) if blobs:
            return unpack_kernel(blobs[0], request.target)
        case Done(Payload(data, _)):
            return BuildFailed(Status(data["status"]), data["error"])
        case Stopped():
            return BuildStopped()
        case Lost():
            return BuildFailed(Status.LOST, str(outcome))
        case TimedOut():
            return BuildFailed(Status.BUILD_TIMEOUT, str(outcome))
        case Done() | Raised() | Died():
            return BuildFailed(Status.BUILD_ERROR, str(outcome))
