"""A runner whose candidates the devices of a farm measure.

One measurement at a time runs on a device, and several devices of a kind share the candidates of a
round.  Where there are several, none is believed alone: of what each has measured, two results and
all failures are measured again on another device.  If two disagree, all devices measure. Those in
the minority are set aside, and their measurements of this round are repeated.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass
from itertools import count, islice

from tensorwright import farm
from tensorwright.artifacts import Kernel, pack_kernel
from tensorwright.base import Target
from tensorwright.processes import Done, never
from tensorwright.records import Status, workload_data
from tensorwright.schedule import Workload
from tensorwright.tuning import measuring
from tensorwright.tuning.on_farm.devices import DevicePool
from tensorwright.tuning.on_farm.worker_functions import Race, read, write

AGREES = 1.4
"""Devices of one kind take times for one program that differ by at most this ratio."""

_PREPARE_S = 300.0
_REFERENCE_EVERY_S = 60.0
_MOST_TRIES = 6
_MOST_ASKED = 4
_UNIT_S = 1.0
_UNITS_PER_S = 15
_MOST_TRIALS = 16
_SHARES = 4


@dataclass(frozen=True, slots=True)
class _Answer:
    """A worker's measurement of a trial."""

    trial: measuring.Trial
    worker: str
    measured: measuring.Measurement


@dataclass(slots=True)
class _Pace:
    """How many trials make a unit; mutable.

    A unit lasts a second, so that a session can end; with many devices longer, so that the client
    need not hand out more than `_UNITS_PER_S`.  All devices get a share of the trials there are.
    trial_s   what a trial takes, as far as devices have said; 0 before
    """

    trial_s: float = 0.0

    def note(self, trial_s: float) -> None:
        self.trial_s = trial_s if not self.trial_s else (3 * self.trial_s + trial_s) / 4

    def trials(self, devices: int, count: int) -> int:
        """The trials of a unit, from the numbers of devices and of trials."""
        unit_s = max(_UNIT_S, devices / _UNITS_PER_S)
        by_time = unit_s / self.trial_s if self.trial_s else 1.0
        share = count / (_SHARES * max(1, devices))
        return max(1, min(_MOST_TRIALS, int(by_time), int(share)))


def _finite(best_s: float) -> float | None:
    return best_s if math.isfinite(best_s) else None


class FarmRunner(measuring.Runner):
    """Measures on the devices of one kind.  See `Runner`.

    kind   of the devices          options, seed   as of `ChildRunner`
    """

    def __init__(
        self,
        farm: farm.Farm,
        kind: str,
        target: Target,
        options: measuring.MeasureOptions | None = None,
        seed: int = 0,
        reference_every_s: float = _REFERENCE_EVERY_S,
    ) -> None:
        self._farm = farm
        self._kind = kind
        self._options = options or measuring.MeasureOptions()
        self._common = {
            "target": write(target),
            "options": write(self._options),
            "seed": seed,
            "reference_every_s": reference_every_s,
        }
        self._turns = count()
        self._workloads: dict[str, bytes] = {}
        self._pace = _Pace()
        self.devices = DevicePool(farm, kind)

    def measure(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = never,
    ) -> list[measuring.Measurement] | None:
        """As `Runner.measure`, on one device."""
        for _ in range(_MOST_TRIES):
            race = Race(0, len(kernels), threads, _finite(best_s))
            unit = self._unit([workload], [race], kernels, self._fit())
            for _, outcome in self._farm.results([unit], should_stop):
                _, measured = self._read(outcome, len(kernels))
                if measured:
                    return measured
            if should_stop():
                return None
        return [measuring.Measurement(Status.LOST, error="no device measured it")] * len(kernels)

    def measure_each(
        self,
        trials: Iterable[measuring.Trial],
        should_stop: Callable[[], bool] = never,
        most: int = 1,
    ) -> Iterator[tuple[measuring.Trial, measuring.Measurement]]:
        """As `Runner.measure_each`; several at once where there are several devices."""
        if len(self.devices.names()) < 2:
            for answer in self._asked(trials, should_stop, most):
                yield answer.trial, answer.measured
            return
        answers = list(self._asked(trials, should_stop, most))
        while answers and not should_stop():
            self._audit(answers, self.devices.names(), should_stop)
            aside = self.devices.set_aside
            fallen = [each.trial for each in answers if each.worker in aside]
            if not fallen:
                break
            answers = [each for each in answers if each.worker not in aside]
            answers += self._asked(fallen, should_stop, len(fallen))
        for answer in answers:
            yield answer.trial, answer.measured

    def turn(self, should_stop: Callable[[], bool] = never) -> AbstractContextManager[bool]:
        """The workers hold their machines themselves."""
        return nullcontext(not should_stop())

    def close(self) -> None:
        """The farm stays."""

    # Asking

    def _asked(
        self, trials: Iterable[measuring.Trial], should_stop: Callable[[], bool], most: int
    ) -> Iterator[_Answer]:
        """Measure trials, until each has an answer; those of a unit that failed one by one."""
        waiting: Iterable[measuring.Trial] = trials
        for attempt in range(_MOST_TRIES):
            taken: list[list[measuring.Trial]] = []
            rejected: list[measuring.Trial] = []
            devices = len(self.devices.names())
            units = self._units(waiting, taken, most if not attempt else 0)
            for index, outcome in self._farm.results(
                units, should_stop, (devices + 1 + devices // 4)
            ):
                batch, taken[index] = taken[index], []
                if len(batch) > 1 and not isinstance(outcome, Done):
                    farm.raise_if_refused(outcome)
                    rejected += batch
                    continue
                worker, measured = self._read(outcome, len(batch))
                if not measured:
                    rejected += batch
                for trial, one in zip(batch, measured, strict=False):
                    yield _Answer(trial, worker, one)
            if should_stop() or not rejected:
                return
            waiting = rejected
        for trial in rejected:
            yield _Answer(
                trial, "", measuring.Measurement(Status.LOST, error="no device measured it")
            )

    def _units(
        self, trials: Iterable[measuring.Trial], taken: list[list[measuring.Trial]], most: int
    ) -> Iterator[farm.Unit]:
        """Trials in units, each taken when it can begin; notes in `taken` which has which."""
        waiting = iter(trials)
        while True:
            devices = len(self.devices.names())
            batch = list(islice(waiting, self._pace.trials(devices, most)))
            if not batch:
                return
            taken.append(batch)
            yield self._batch(batch, self._fit())

    def _batch(
        self, trials: Sequence[measuring.Trial], names: tuple[str, ...], *, races: bool = True
    ) -> farm.Unit:
        """The unit that measures trials, one after the other."""
        workloads = list({trial.workload.key: trial.workload for trial in trials}.values())
        numbers = {workload.key: number for number, workload in enumerate(workloads)}
        entries = [
            Race(
                numbers[trial.workload.key],
                1,
                trial.threads,
                _finite(trial.best_s) if races else None,
            )
            for trial in trials
        ]
        return self._unit(workloads, entries, [trial.kernel for trial in trials], names)

    def _fit(self) -> tuple[str, ...]:
        """The workers that may measure, if not every device of the kind may."""
        names = self.devices.names()
        return names if self.devices.set_aside else ()

    def _unit(
        self,
        workloads: Sequence[Workload],
        races: Sequence[Race],
        kernels: Sequence[Kernel],
        names: tuple[str, ...],
    ) -> farm.Unit:
        data = {
            **self._common,
            "workloads": len(workloads),
            "races": [astuple(race) for race in races],
            "reference_s": self.devices.expected_reference_s(),
        }
        return farm.Unit(
            "tune.measure",
            farm.Payload(data, (*map(self._written, workloads), *map(pack_kernel, kernels))),
            _PREPARE_S + self._options.limit_s * len(kernels),
            self._kind,
            names,
            str(next(self._turns)),
        )

    def _written(self, workload: Workload) -> bytes:
        if workload.key not in self._workloads:
            text = json.dumps(workload_data(workload))
            self._workloads[workload.key] = text.encode()
        return self._workloads[workload.key]

    def _read(
        self, outcome: farm.FarmOutcome, count: int
    ) -> tuple[str, list[measuring.Measurement]]:
        """The worker and its measurements; none if the device has drifted."""
        farm.raise_if_refused(outcome)
        if isinstance(outcome, farm.Lost):
            return "", [measuring.Measurement(Status.LOST, error=str(outcome))] * count
        if not isinstance(outcome, Done):
            return "", measuring.measurements_of(outcome, count)
        data = outcome.value.data
        worker = data["worker"]
        if "drift" in data:
            self.devices.note_drift(worker, data["drift"])
            return worker, []
        self.devices.note_reference(worker, data["reference_s"])
        self._pace.note(data["seconds"] / count)
        if worker in self.devices.set_aside:
            return worker, []
        return worker, list(read(data["measured"]))

    # Doubting

    def _audit(
        self,
        answers: Sequence[_Answer],
        names: tuple[str, ...],
        should_stop: Callable[[], bool],
    ) -> None:
        """Ask a second device about some answers of each; set aside devices in the minority."""
        if len(names) < 2:
            return
        following = dict(zip(names, (*names[1:], names[0]), strict=True))
        doubted = [own for name, own in _doubted(answers).items() if name in following]
        units = [self._again(own, following[own[0].worker]) for own in doubted]
        for index, outcome in self._farm.results(units, should_stop):
            worker, measured = self._read(outcome, len(doubted[index]))
            for first, second in zip(doubted[index], measured, strict=False):
                aside = self.devices.set_aside
                if (
                    not worker
                    or agree(first.measured, second)
                    or {first.worker, worker} & aside.keys()
                ):
                    continue
                self._settle(first, _Answer(first.trial, worker, second), names, should_stop)

    def _settle(
        self,
        first: _Answer,
        second: _Answer,
        names: tuple[str, ...],
        should_stop: Callable[[], bool],
    ) -> None:
        """Two devices disagree: ask them again, and others, and set aside the minority."""
        others = [name for name in names if name not in (first.worker, second.worker)]
        asked = [first.worker, second.worker, *others[:_MOST_ASKED]]
        units = [self._again([first], name) for name in asked]
        opinions: dict[str, measuring.Measurement] = {}
        for _, outcome in self._farm.results(units, should_stop):
            worker, measured = self._read(outcome, 1)
            if worker and measured:
                opinions[worker] = measured[0]
        if should_stop():
            return
        for answer in (first, second):
            again = opinions.get(answer.worker, answer.measured)
            opinions[answer.worker] = _faster(again, answer.measured)
        if agree(opinions[first.worker], opinions[second.worker]):
            return
        supporters = {
            name: sum(agree(own, other) for other in opinions.values())
            for name, own in opinions.items()
        }
        most = max(supporters.values())
        if 2 * most <= len(opinions):  # no majority
            for name in (first.worker, second.worker):
                self.devices.put_aside(name, _reason(name, opinions, "no third device says who"))
            return
        for name, number in supporters.items():
            if number < most:
                self.devices.put_aside(name, _reason(name, opinions, f"{most} agree"))

    def _again(self, answers: Sequence[_Answer], name: str) -> farm.Unit:
        """The unit that asks a device about programs again."""
        return self._batch([each.trial for each in answers], (name,), races=False)


def agree(one: measuring.Measurement, other: measuring.Measurement) -> bool:
    """Whether two devices of a kind say the same of a program."""
    if one.status.is_timed != other.status.is_timed:
        return False
    if not one.status.is_timed:
        return True
    ratio = min(one.times_s) / min(other.times_s)
    return 1 / AGREES < ratio < AGREES


def _doubted(answers: Sequence[_Answer]) -> dict[str, list[_Answer]]:
    """The answers of each worker to check: all failures, the fastest program and the last.

    A false time is most harmful for the fastest; the last shows whether the device has become
    unreliable in this round.
    """
    timed: dict[str, list[_Answer]] = defaultdict(list)
    doubted: dict[str, list[_Answer]] = defaultdict(list)
    for answer in answers:
        kinds = timed if answer.measured.status.is_timed else doubted
        kinds[answer.worker].append(answer)
    for worker, own in timed.items():
        fastest = min(own, key=lambda one: min(one.measured.times_s))
        doubted[worker] += [fastest] if fastest is own[-1] else [fastest, own[-1]]
    return doubted


def _faster(one: measuring.Measurement, other: measuring.Measurement) -> measuring.Measurement:
    """The faster of two measurements on one device, because other processes only add time."""
    if one.status.is_timed and other.status.is_timed:
        return min(one, other, key=lambda each: min(each.times_s))
    return one


def _reason(name: str, opinions: dict[str, measuring.Measurement], why: str) -> str:
    others = ", ".join(_text(own) for worker, own in sorted(opinions.items()) if worker != name)
    return f"it says {_text(opinions[name])} of a program, others say {others}: {why}"


def _text(measured: measuring.Measurement) -> str:
    if measured.status.is_timed:
        return f"{min(measured.times_s) * 1e3:.3g} ms"
    return measured.status.value
