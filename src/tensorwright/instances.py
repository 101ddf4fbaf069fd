"""Executables that compile what a call needs, for sizes that no compiled program takes.

    program     takes all sizes within its bounds; None where a node needs its sizes as numbers
    instance    the network compiled for one combination of sizes, when a call has these

An instance is compiled once, whichever thread asks first, and kept in memory: at most
`MOST_INSTANCES` of them with `MOST_BYTES` of constants and arenas; those go first that were not
used for the longest time.  On the disk it is kept as every compiled network is.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from tensorwright.base import (
    Array,
    InputError,
    ModelError,
    Target,
    UndecidedError,
    UnsupportedError,
    UsageError,
    amount_at,
)
from tensorwright.runtime import (
    Bound,
    Contents,
    Executable,
    PendingRun,
    Plan,
    PlanSize,
    Port,
    StepTime,
    TensorSpec,
    check_inputs,
    check_positional,
    chosen_values,
)

LOG = logging.getLogger("tensorwright.instances")
MOST_INSTANCES = 32
MOST_BYTES = 2 << 30
Shapes: TypeAlias = tuple[tuple[int, ...], ...]
Build: TypeAlias = Callable[[Mapping[str, tuple[int, ...]]], Executable]


@dataclass(frozen=True, slots=True)
class Signature:
    """What an executable is to its callers: tensors, open sizes, and the processor."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    sizes: tuple[PlanSize, ...]
    target: Target

    @classmethod
    def of(cls, executable: Executable) -> Signature:
        """The signature of an executable."""
        return cls(executable.inputs, executable.outputs, executable.sizes, executable.target)


class Instances:
    """The instances of a network, by the shapes of its inputs. Safe to use from several threads."""

    def __init__(self, label: str, build: Build) -> None:
        """Nothing is compiled yet.

        label   the model, for messages
        build   compiles the network for shapes, as numbers, of all inputs
        """
        self._label = label
        self._build = build
        self._kept: OrderedDict[Shapes, Executable] = OrderedDict()
        self._turns: dict[Shapes, threading.Lock] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def kept(self) -> tuple[Executable, ...]:
        """Those that are in memory, the last used one last."""
        return tuple(self._kept.values())

    @property
    def size_bytes(self) -> int:
        """Memory of the constants and arenas of all that are kept."""
        return sum(each.constant_bytes + each.peak_memory_bytes for each in self.kept)

    def get(self, inputs: tuple[TensorSpec, ...], shapes: Shapes) -> Executable:
        """The instance for shapes of the inputs; it is compiled if it is not kept.

        Raises:  the errors of compiling.
        """
        with self._lock:
            kept = self._used(shapes)
            turn = self._turns.setdefault(shapes, threading.Lock())
        if kept is not None:
            return kept
        with turn:
            with self._lock:
                kept = self._used(shapes)  # another thread has compiled it meanwhile
            try:
                if kept is None:
                    kept = self._compiled(inputs, shapes)
                    with self._lock:
                        self._keep(shapes, kept)
            finally:  # refused shapes leave nothing behind, either
                with self._lock:
                    self._turns.pop(shapes, None)
        return kept

    def _used(self, shapes: Shapes) -> Executable | None:
        if shapes in self._kept:
            self._kept.move_to_end(shapes)
        return self._kept.get(shapes)

    def _keep(self, shapes: Shapes, built: Executable) -> None:
        self._kept[shapes] = built
        while len(self._kept) > 1 and (
            len(self._kept) > MOST_INSTANCES or self.size_bytes > MOST_BYTES
        ):
            self._kept.popitem(last=False)

    def _compiled(self, inputs: tuple[TensorSpec, ...], shapes: Shapes) -> Executable:
        start = time.perf_counter()
        named = {spec.name: shape for spec, shape in zip(inputs, shapes, strict=True)}
        built = self._build(named)
        took_s = time.perf_counter() - start
        sizes = ", ".join(f"{name} {shape}" for name, shape in named.items())
        LOG.warning("compiled %s for %s in %.2f s", self._label, sizes, took_s)
        return built


class AnySizes(Executable):
    """A network of open sizes: a program for all sizes within its bounds, instances for others.

    It has the methods of an Executable.  What is of one compiled program (`plan`, `save`, ...) is
    of the program; where there is none, `at` gives an executable for some sizes.
    """

    def __init__(
        self,
        program: Executable | None,
        declared: Callable[[], Signature | None],
        instances: Instances,
        threads: int,
        refusal: UndecidedError | None = None,
    ) -> None:
        """Wrap a program, or stand for one.

        declared   reads what the model declares; None where it says nothing of its inputs
        refusal    why there is no program, where there is none
        """
        self._program = program
        self._read_declared = declared
        self._instances = instances
        self._threads = threads
        self._refusal = refusal
        self._last: Executable | None = None  # the instance that has answered the last call

    @cached_property
    def _declared(self) -> Signature:
        """What calls may give: more than the program takes, if that assumes something of sizes."""
        return self._read_declared() or Signature.of(self._whole)

    @cached_property
    def _declared_ports(self) -> tuple[Port, ...]:
        return tuple(map(Port.of, self._declared.inputs))

    @property
    def _signature(self) -> Signature:
        return self._declared if self._program is None else Signature.of(self._program)

    # -- calls

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """As `Executable.run`; for sizes that nothing takes yet, an instance is compiled first."""
        if self._program is None:
            return self._for(check_inputs(self._declared_ports, inputs)).run(inputs)
        try:
            return self._program.run(inputs)
        except InputError as error:
            return self._for(check_inputs(self._declared_ports, inputs), error).run(inputs)

    def __call__(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """As `run`, with inputs and outputs in order; a single output is not in a tuple."""
        first, refused = self._last or self._program, None
        if first is not None:
            try:
                return first(*inputs)
            except InputError as error:
                refused = error if first is self._program else None
        chosen = self._for(check_positional(self._declared_ports, inputs), refused)
        self._last = None if chosen is self._program else chosen
        return chosen(*inputs)

    def run_async(self, inputs: Mapping[str, Any]) -> PendingRun:
        """As `Executable.run_async`; an instance that it needs is compiled before it returns."""
        return self._for(check_inputs(self._declared_ports, inputs)).run_async(inputs)

    def run_into(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """As `Executable.run_into`."""
        self._for(check_inputs(self._declared_ports, inputs)).run_into(inputs, outputs)

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> Bound:
        """As `Executable.bind`."""
        return self._for(check_inputs(self._declared_ports, inputs)).bind(inputs, outputs)

    def profile(self, inputs: Mapping[str, Any], repeat: int = 10) -> tuple[StepTime, ...]:
        """As `Executable.profile`."""
        return self._for(check_inputs(self._declared_ports, inputs)).profile(inputs, repeat)

    def chosen_sizes(self, **values: int) -> dict[str, int]:
        """As `Executable.chosen_sizes`; a value outside of the bounds is that of an instance."""
        return chosen_values(self.sizes, self.inputs, values)

    def at(self, **values: int) -> Executable:
        """The executable for given values of its named sizes; others are as in `chosen_sizes`.

        It is compiled now, if nothing takes these sizes yet; calls with them use it, too.
        Raises:  UsageError for a name that is not a size, InputError for sizes that do not fit.
        """
        chosen = self.chosen_sizes(**values)
        if self._program is not None:
            with suppress(UsageError):  # outside of its bounds
                return self._program.at(**chosen)
        shapes = tuple(
            tuple(amount_at(extent, chosen) for extent in spec.shape) for spec in self.inputs
        )
        return self._instance(shapes)

    prepare = at

    def trim(self) -> None:
        """Free the memory of idle calls; the next call allocates it again."""
        if self._program is not None:
            self._program.trim()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program: as `Executable.save`.  Raises: UndecidedError where there is none."""
        self._whole.save(path)

    def with_plan(self, plan: Plan, threads: int | None = None) -> Executable:
        """As `Executable.with_plan`, of the program."""
        return self._whole.with_plan(plan, threads)

    def _for(self, given: tuple[Array, ...], error: InputError | None = None) -> Executable:
        """What answers a call with these arrays: the program, or an instance.

        error   with which the program has refused the call
        Raises:  that error, if it is not about sizes; InputError for sizes that do not fit.
        """
        shapes = tuple([array.shape for array in given])
        if self._program is not None:
            try:
                self._program.check_shapes(shapes)
            except InputError as refused:
                return self._instance(shapes, refused)
            if error is not None:
                raise error
            return self._program
        return self._instance(shapes)

    def _instance(self, shapes: Shapes, refused: InputError | None = None) -> Executable:
        """The instance for shapes of the inputs.

        refused   what the program says of them
        Raises:  InputError that names the sizes, if the network cannot be computed for them.
        """
        try:
            return self._instances.get(self._declared.inputs, shapes)
        except (InputError, ModelError, UnsupportedError) as error:
            if refused is not None and isinstance(error, InputError):
                raise refused from None  # the caller's own bounds
            pairs = zip(self._declared.inputs, shapes, strict=True)
            given = ", ".join(f"{spec} of {shape}" for spec, shape in pairs)
            fitting = (
                ", ".join(map(str, self._signature.sizes)) if self._program is not None else ""
            )
            alone = f"the network cannot be computed for {given}: {error.where}: {error.reason}"
            raise InputError(
                stage="run",
                where="inputs" if refused is None else refused.where,
                reason=alone if refused is None else f"{refused.reason}; {alone}",
                remedy=f"sizes that fit: {fitting}" if fitting else error.remedy,
            ) from error

    # -- what it is

    @property
    def _whole(self) -> Executable:
        """The program.  Raises: UndecidedError that says which node has prevented it."""
        if self._program is None:
            assert self._refusal is not None
            raise self._refusal
        return self._program

    @property
    def instances(self) -> Instances:
        """What was compiled for calls."""
        return self._instances

    @property
    def contents(self) -> Contents:
        """The contents of the program's file.  Raises: UndecidedError where there is none."""
        return self._whole.contents

    @property
    def plan(self) -> Plan:
        """The plan of the program.  Raises: UndecidedError where there is none."""
        return self._whole.plan

    @property
    def target(self) -> Target:
        """The processor for which it is compiled."""
        return self._signature.target

    @property
    def threads(self) -> int:
        """The number of threads that each kernel may use."""
        return self._threads

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the inputs, in calling order."""
        return self._signature.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names and types of the outputs, in order."""
        return self._signature.outputs

    @property
    def sizes(self) -> tuple[PlanSize, ...]:
        """The named sizes of its inputs, which each call decides."""
        return self._signature.sizes

    @property
    def constant_bytes(self) -> int:
        """Memory of the constants of the program and of all instances that are kept."""
        own = 0 if self._program is None else self._program.constant_bytes
        return own + sum(each.constant_bytes for each in self._instances.kept)

    def __repr__(self) -> str:
        return f"<AnySizes {self._program!r}, {len(self._instances)} instances>"
