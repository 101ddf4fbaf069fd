"""The options that all commands share which compile models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright.base import Target
from tensorwright.cli.arguments.models import Shapes, read_graph
from tensorwright.cli.arguments.options import (
    Command,
    machine_options,
    records_option,
    seed_option,
    shapes_option,
)
from tensorwright.graph import Graph, Partition
from tensorwright.pipeline import Scheduled, cut, finish, import_graph, kept_graph, opened
from tensorwright.records import RecordStore
from tensorwright.runtime import Executable

OnKernel = Callable[[Scheduled, int, int], None]


@dataclass(frozen=True, slots=True)
class Compilation:
    """What commands that compile models are told: for which machine, by which records."""

    target: Target
    threads: int | None
    records: Path | None
    shapes: Shapes | None
    seed: int

    def read(self, model: str) -> Graph:
        """Import a MODEL argument and simplify it."""
        return import_graph(read_graph(model, self.shapes, self.seed))

    def prepare(self, model: str, store: RecordStore | None = None) -> Partition:
        """Import a MODEL argument, simplify it and cut it into workloads.

        store   where a faster graph may have been kept for it
        """
        graph = self.read(model)
        if store is not None:
            graph = kept_graph(store, graph, self.target, self.threads) or graph
        return cut(graph, self.target, self.threads)

    def finish(self, model: str, on_kernel: OnKernel | None = None) -> Executable:
        """Compile a MODEL argument with the schedules on record."""
        with opened(self.records) as store:
            parts = self.prepare(model, store)
            return finish(parts, self.target, self.threads, store, on_kernel)


def compile_options(function: Command) -> Command:
    """--target, --threads, --records, --input-shapes and --seed, as one argument `how`."""

    @functools.wraps(function)
    def given(
        *arguments: Any,
        target: Target,
        threads: int | None,
        records: Path | None,
        input_shapes: Shapes | None,
        seed: int,
        **more: Any,
    ) -> Any:
        how = Compilation(target, threads, records, input_shapes, seed)
        return function(*arguments, how=how, **more)

    command: Command = given
    for option in (seed_option, shapes_option, records_option, machine_options):
        command = option(command)
    return command
