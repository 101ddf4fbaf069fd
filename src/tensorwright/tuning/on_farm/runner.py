"""A runner whose candidates the devices of a farm measure.

One measurement at a time runs on a device, and several devices of a kind share the candidates of a
round.  Where there are several, none is believed alone: of what each has measured, two results and
all failures are measured again on another device.  Where two disagree, all are asked; who is not
with the majority is set aside, and what it measured in this round is measured anew.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tensorwright.base import Target
from tensorwright.build import Kernel, pack_kernel
from tensorwright.farm import Farm, FarmOutcome, Lost, Payload, Unit, raise_if_refused
from tensorwright.processes import Done, never
from tensorwright.records import Status
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring import (
    Measurement,
    MeasureOptions,
    Runner,
    Trial,
    measurements_of,
)
from tensorwright.tuning.on_farm.devices import DevicePool
from tensorwright.tuning.on_farm.wire import read, workload_data, write

AGREES = 1.4
"""Times of one program on two devices of a kind agree up to this ratio: half of it is a lie."""

_PREPARE_S = 300.0
_REFERENCE_EVERY_S = 60.0
_MOST_TRIES = 6
_MOST_ASKED = 4


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a worker says of a trial."""

    trial: Trial
    worker: str
    measured: Measurement


class FarmRunner(Runner):
    """Measures on the devices of one kind.  See `Runner`.

    kind   of the devices          options, seed   as of `ChildRunner`
    """

    def __init__(
        self,
        farm: Farm,
        kind: str,
        target: Target,
        options: MeasureOptions | None = None,
        seed: int = 0,
        reference_every_s: float = _REFERENCE_EVERY_S,
    ) -> None:
        self._farm = farm
        self._kind = kind
        self._options = options or MeasureOptions()
        self._common = {
            "target": write(target),
            "options": write(self._options),
            "seed": seed,
            "reference_every_s": reference_every_s,
        }
        self._turns = count()
        self._workloads: dict[str, dict[str, Any]] = {}
        self.devices = DevicePool(farm, kind)

    def measure(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = never,
    ) -> list[Measurement] | None:
        """As `Runner.measure`, on one device."""
        for _ in range(_MOST_TRIES):
            unit = self._unit(workload, kernels, threads, best_s, self.devices.names())
            for _, outcome in self._farm.results([unit], should_stop):
                _, measured = self._read(outcome, len(kernels))
                if measured:
                    return measured
            if should_stop():
                return None
        return [Measurement(Status.LOST, error="no device measured it")] * len(kernels)

    def measure_each(
        self, trials: Iterable[Trial], should_stop: Callable[[], bool] = never
    ) -> Iterator[tuple[Trial, Measurement]]:
        """As `Runner.measure_each`; several at once where there are several devices."""
        names = self.devices.names()
        if len(names) < 2:
            for answer in self._asked(trials, should_stop, names):
                yield answer.trial, answer.measured
            return
        answers = list(self._asked(trials, should_stop, names))
        while answers and not should_stop():
            good = self.devices.names()
            self._audit(answers, good, should_stop)
            fallen = [each.trial for each in answers if each.worker in self.devices.set_aside]
            if not fallen:
                break
            answers = [each for each in answers if each.worker not in self.devices.set_aside]
            answers += self._asked(fallen, should_stop, self.devices.names())
        for answer in answers:
            yield answer.trial, answer.measured

    def turn(self, should_stop: Callable[[], bool] = never) -> AbstractContextManager[bool]:
        """The workers hold their machines themselves."""
        return nullcontext(not should_stop())

    def close(self) -> None:
        """The farm stays."""

    # Asking

    def _asked(
        self, trials: Iterable[Trial], should_stop: Callable[[], bool], names: tuple[str, ...]
    ) -> Iterator[_Answer]:
        """Measure trials on some devices, until each has an answer."""
        waiting: Iterable[Trial] = trials
        for _ in range(_MOST_TRIES):
            taken: list[Trial] = []
            rejected: list[Trial] = []
            units = self._units(waiting, taken, names)
            ahead = len(names) + 1
            for index, outcome in self._farm.results(units, should_stop, ahead):
                worker, measured = self._read(outcome, 1)
                if measured:
                    yield _Answer(taken[index], worker, measured[0])
                else:
                    rejected.append(taken[index])
            if should_stop() or not rejected:
                return
            waiting, names = rejected, self.devices.names()
        for trial in rejected:
            yield _Answer(trial, "", Measurement(Status.LOST, error="no device measured it"))

    def _units(
        self, trials: Iterable[Trial], taken: list[Trial], names: tuple[str, ...]
    ) -> Iterator[Unit]:
        for trial in trials:
            taken.append(trial)
            yield self._unit(trial.workload, [trial.kernel], trial.threads, trial.best_s, names)

    def _unit(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        names: tuple[str, ...],
    ) -> Unit:
        if workload.key not in self._workloads:
            self._workloads[workload.key] = workload_data(workload)
        data = {
            **self._common,
            "workload": self._workloads[workload.key],
            "threads": threads,
            "best_s": write(best_s),
            "reference_s": self.devices.expected_reference_s(),
        }
        return Unit(
            "tune.measure",
            Payload(data, tuple(map(pack_kernel, kernels))),
            _PREPARE_S + self._options.limit_s * len(kernels),
            self._kind,
            names if self.devices.set_aside else (),
            str(next(self._turns)),
        )

    def _read(self, outcome: FarmOutcome, count: int) -> tuple[str, list[Measurement]]:
        """Who measured, and what; no measurements where the device has drifted."""
        raise_if_refused(outcome)
        if isinstance(outcome, Lost):
            return "", [Measurement(Status.LOST, error=str(outcome))] * count
        if not isinstance(outcome, Done):
            return "", measurements_of(outcome, count)
        data = outcome.value.data
        worker = data["worker"]
        if "drift" in data:
            self.devices.note_drift(worker, data["drift"])
            return worker, []
        self.devices.note_reference(worker, data["reference_s"])
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
        """Ask a second device about some answers of each; set aside who is in the minority."""
        if len(names) < 2:
            return
        doubted = [each for each in _doubted(answers) if each.worker in names]
        seconds = [self._again(each, _next_to(each.worker, names)) for each in doubted]
        for index, outcome in self._farm.results(seconds, should_stop):
            worker, measured = self._read(outcome, 1)
            first = doubted[index]
            if not worker or not measured or agree(first.measured, measured[0]):
                continue
            if first.worker in self.devices.set_aside or worker in self.devices.set_aside:
                continue
            self._settle(first, _Answer(first.trial, worker, measured[0]), names, should_stop)

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
        units = [self._again(first, name) for name in asked]
        opinions: dict[str, Measurement] = {}
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

    def _again(self, answer: _Answer, name: str) -> Unit:
        """The unit that asks a device about a program again."""
        trial = answer.trial
        unit = self._unit(trial.workload, [trial.kernel], trial.threads, math.inf, ())
        return replace(unit, workers=(name,))


def agree(one: Measurement, other: Measurement) -> bool:
    """Whether two devices of a kind say the same of a program."""
    if one.status.is_timed != other.status.is_timed:
        return False
    if not one.status.is_timed:
        return True
    ratio = min(one.times_s) / min(other.times_s)
    return 1 / AGREES < ratio < AGREES


def _doubted(answers: Sequence[_Answer]) -> list[_Answer]:
    """All failures, and of each worker two programs: the fastest, which a lie would pay most for,
    and the last, which is false where the device began to lie at any time in this round.
    """
    timed: dict[str, list[_Answer]] = defaultdict(list)
    doubted = []
    for answer in answers:
        if answer.measured.status.is_timed:
            timed[answer.worker].append(answer)
        elif answer.worker:
            doubted.append(answer)
    for own in timed.values():
        fastest = min(own, key=lambda one: min(one.measured.times_s))
        doubted += [fastest] if fastest is own[-1] else [fastest, own[-1]]
    return doubted


def _next_to(name: str, names: tuple[str, ...]) -> str:
    return names[(names.index(name) + 1) % len(names)]


def _faster(one: Measurement, other: Measurement) -> Measurement:
    """Of two measurements on one device, the faster: other processes only ever add time."""
    if one.status.is_timed and other.status.is_timed:
        return min(one, other, key=lambda each: min(each.times_s))
    return one


def _reason(name: str, opinions: dict[str, Measurement], why: str) -> str:
    others = ", ".join(_text(own) for worker, own in sorted(opinions.items()) if worker != name)
    return f"it says {_text(opinions[name])} of a program, others say {others}: {why}"


def _text(measured: Measurement) -> str:
    if measured.status.is_timed:
        return f"{min(measured.times_s) * 1e3:.3g} ms"
    return measured.status.value
