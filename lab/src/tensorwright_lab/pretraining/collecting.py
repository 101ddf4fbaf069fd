"""Measure programs of all sorts for workloads of random networks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tensorwright.base import CpuTarget
from tensorwright.farm import Farm
from tensorwright.machine import Machine, detect_hardware
from tensorwright.records import Record, RecordStore, open_store
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning.features import STATEMENT
from tensorwright.tuning.measuring import MeasureOptions, Runner
from tensorwright.tuning.models import CostModel, RooflineModel
from tensorwright.tuning.space import space_of
from tensorwright.tuning.strategies.sources import ModelGuides
from tensorwright.tuning.task import Task
from tensorwright_lab.judging import builder_of, runner_of
from tensorwright_lab.pretraining import measured_candidates
from tensorwright_lab.pretraining.conditions import Conditions, MeasuringMachine

_WORKLOADS = 3  # of a network; the others are left out
_BUILD_LIMIT_S = 30.0

MakeModel = Callable[[Machine], CostModel]


class Collector:
    """Measures, and keeps a record store for each of the conditions in a folder.

    programs     of each workload           shares   what the programs consist of
    make_model   for a machine: whose belief the programs follow in part
    farm         whose workers build and measure; this machine if None
    """

    def __init__(
        self,
        folder: Path,
        programs: int = 24,
        make_model: MakeModel = RooflineModel,
        shares: measured_candidates.Shares | None = None,
        farm: Farm | None = None,
    ) -> None:
        self._folder = folder
        self._farm = farm
        self._machine = MeasuringMachine.this()
        self._machine.write(folder)
        self._programs = programs
        self._make_model = make_model
        self._shares = shares or measured_candidates.Shares()
        self._owned = ExitStack()
        self._builder = builder_of(farm, self._owned, _BUILD_LIMIT_S)
        self._runners: dict[tuple[CpuTarget, int], Runner] = {}
        self._stores: dict[Conditions, RecordStore] = {}

    def collect(
        self, seed: int, workloads: Sequence[Workload], conditions: Conditions
    ) -> list[Record]:
        """Programs for some of the workloads of a network, those on record left out."""
        chosen = list(workloads)
        random.Random(f"workloads {seed}").shuffle(chosen)
        target, store = conditions.target, self._store(conditions)
        hardware = detect_hardware().fingerprint
        setting = measured_candidates.CollectSetting(target, hardware, conditions.threads, seed)
        records: list[Record] = []
        for workload in chosen[:_WORKLOADS]:
            if measured_candidates.known_records(store, setting, workload):
                continue
            model = self._make_model(self._machine.under(conditions))
            measured = self._measure(workload, target, setting, model, conditions)
            store.append(measured)
            records += measured
        return records

    def close(self) -> None:
        """End the processes, close the stores."""
        self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _measure(
        self,
        workload: Workload,
        target: CpuTarget,
        setting: measured_candidates.CollectSetting,
        model: CostModel,
        conditions: Conditions,
    ) -> list[Record]:
        task = Task(workload)
        space = space_of(state_of(workload), target)
        guide = ModelGuides(lambda: model, STATEMENT.open, target)(task, space, setting.seed)
        candidates = measured_candidates.varied_candidates(
            task, space, guide, self._programs, setting.seed, self._shares
        )
        tools = (self._builder, self._runner(conditions))
        return measured_candidates.measure_candidates(
            workload, candidates, setting, tools, races=True
        )

    def _store(self, conditions: Conditions) -> RecordStore:
        if conditions not in self._stores:
            path = self._folder / f"{conditions}.sqlite"
            store = self._owned.enter_context(open_store(path, create=True))
            self._stores[conditions] = store
        return self._stores[conditions]

    def _runner(self, conditions: Conditions) -> Runner:
        about = conditions.target, conditions.cold_bytes
        if about not in self._runners:
            options = MeasureOptions(
                repeats=4,
                min_sample_s=0.002,
                most_s=0.1,
                drop_ratio=3.0,
                limit_s=8.0,
                cold_bytes=conditions.cold_bytes,
            )
            runner = runner_of(self._farm, self._owned, conditions.target, options)
            self._runners[about] = runner
        return self._runners[about]
