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

from tensorwright import base, runtime

LOG = logging.getLogger("tensorwright.instances")
MOST_INSTANCES = 32
MOST_BYTES = 2 << 30
Shapes: TypeAlias = tuple[tuple[int, ...], ...]
Build: TypeAlias = Callable[[Mapping[str, tuple[int, ...]]], runtime.Executable]


@dataclass(frozen=True, slots=True)
class Signature:
    """What an executable is to its callers: tensors, open sizes, and the processor."""

    inputs: tuple[runtime.TensorSpec, ...]
    outputs: tuple[runtime.TensorSpec, ...]
    sizes: tuple[runtime.PlanSize, ...]
    target: base.Target

    @classmethod
    def of(cls, executable: runtime.Executable) -> Signature:
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
        self._kept: OrderedDict[Shapes, runtime.Executable] = OrderedDict()
        self._turns: dict[Shapes, threading.Lock] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def kept(self) -> tuple[runtime.Executable, ...]:
        """Those that are in memory, the last used one last."""
        return tuple(self._kept.values())

    @property
    def size_bytes(self) -> int:
        """Memory of the constants and arenas of all that are kept."""
        return sum(each.constant_bytes + each.peak_memory_bytes for each in self.kept)

    def get(self, inputs: tuple[runtime.TensorSpec, ...], shapes: Shapes) -> runtime.Executable:
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

    def _used(self, shapes: Shapes) -> runtime.Executable | None:
        if shapes in self._kept:
            self._kept.move_to_end(shapes)
        return self._kept.get(shapes)

    def _keep(self, shapes: Shapes, built: runtime.Executable) -> None:
        self._kept[shapes] = built
        while len(self._kept) > 1 and (
            len(self._kept) > MOST_INSTANCES or self.size_bytes > MOST_BYTES
        ):
            self._kept.popitem(last=False)

    def _compiled(
        self, inputs: tuple[runtime.TensorSpec, ...], shapes: Shapes
    ) -> runtime.Executable:
        start = time.perf_counter()
        named = {spec.name: shape for spec, shape in zip(inputs, shapes, strict=True)}
        built = self._build(named)
        took_s = time.perf_counter() - start
        sizes = ", ".join(f"{name} {shape}" for name, shape in named.items())
        LOG.warning("compiled %s for %s in %.2f s", self._label, sizes, took_s)
        return built


class AnySizes(runtime.Executable):
    """A network of open sizes: a program for all sizes within its bounds, instances for others.

    It has the methods of an Executable.  What is of one compiled program (`plan`, `save`, ...) is
    of the program; where there is none, `at` gives an executable for some sizes.
    """

    def __init__(
        self,
        program: runtime.Executable | None,
        declared: Callable[[], Signature],
        instances: Instances,
        threads: int,
        refusal: base.UndecidedError | None = None,
    ) -> None:
        """Wrap a program, or stand for one.

        declared   reads what the model declares
        refusal    why there is no program, where there is none
        """
        self._program = program
        self._read_declared = declared
        self._instances = instances
        self._threads = threads
        self._refusal = refusal
        self._may_be_on_device = program is not None and program._may_be_on_device
        # the shapes of the last call, and what has answered it
        self._last: tuple[Shapes | None, runtime.Executable | None] = (None, None)

    @cached_property
    def _declared(self) -> Signature:
        """What calls may give: more than the program takes, if that assumes something of sizes."""
        return self._read_declared()

    @cached_property
    def _names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(spec.name for spec in self.outputs)

    @cached_property
    def _ports(self) -> tuple[runtime.Port, ...]:  # type: ignore[override]
        return tuple(runtime.Port.of(spec, any_sizes=True) for spec in self._signature.inputs)

    @property
    def _signature(self) -> Signature:
        return self._declared if self._program is None else Signature.of(self._program)

    # -- calls: those of an Executable, which these methods lead to the program or an instance

    def _for(self, given: tuple[base.Array, ...]) -> runtime.Executable:
        """What answers a call with these arrays: the program, or an instance.

        Raises:  InputError for sizes that do not fit.
        """
        shapes = tuple([array.shape for array in given])
        last, chosen = self._last
        if shapes != last:
            chosen = self._choose(given, shapes)
            self._last = shapes, chosen
        assert chosen is not None
        return chosen

    def _choose(self, given: tuple[base.Array, ...], shapes: Shapes) -> runtime.Executable:
        refused: base.InputError | None = None
        if self._program is not None:
            try:
                self._program.check_shapes(shapes)
                return self._program
            except base.InputError as error:
                refused = error
        for spec, array in zip(self._declared.inputs, given, strict=True):
            runtime.check_array("input", spec, array)
        return self._instance(shapes, refused)

    def _is_on_device(self, *given: Mapping[str, Any] | tuple[Any, ...]) -> bool:
        return self._whole._is_on_device(*given)

    def _call_on_device(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None
    ) -> tuple[Any, ...]:
        return self._whole._call_on_device(inputs, outputs)

    def _bind_on_device(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None
    ) -> runtime.Bound:
        return self._whole._bind_on_device(inputs, outputs)

    def chosen_sizes(self, **values: int) -> dict[str, int]:
        """As `Executable.chosen_sizes`; a value outside of the bounds is that of an instance."""
        return runtime.chosen_values(self.sizes, self.inputs, values)

    def at(self, **values: int | tuple[int, ...]) -> runtime.Executable:
        """The executable for given values of its named sizes; others are as in `chosen_sizes`.

        An input whose rank the model leaves open has a shape by its name: x=(2, 3).
        It is compiled now, if nothing takes these sizes yet; calls with them use it, too.
        Raises:  UsageError for a name that is not a size, InputError for sizes that do not fit.
        """
        free = [spec.name for spec in self.inputs if not spec.has_rank]
        numbers: dict[str, Any] = {n: each for n, each in values.items() if n not in free}
        chosen = self.chosen_sizes(**numbers)
        if self._program is not None:
            with suppress(base.UsageError):  # outside of its bounds
                return self._program.at(**chosen)
        shapes = tuple(self._shape(spec, chosen, values) for spec in self.inputs)
        return self._instance(shapes)

    prepare = at

    @staticmethod
    def _shape(
        spec: runtime.TensorSpec,
        chosen: Mapping[str, int],
        given: Mapping[str, int | tuple[int, ...]],
    ) -> tuple[int, ...]:
        if spec.has_rank:
            return tuple(base.amount_at(extent, chosen) for extent in spec.shape)
        shape = given.get(spec.name)
        if not isinstance(shape, tuple):
            raise base.UsageError(
                stage="sizes",
                where=f"input {spec.name}",
                reason="the model leaves its rank open",
                remedy=runtime.shape_advice(spec),
            )
        extents = {f"{spec.name}_{axis}": extent for axis, extent in enumerate(shape)}
        return tuple(base.whole_numbers(extents).values())

    @property
    def in_place(self) -> tuple[runtime.Executable, ...]:
        """As `Executable.in_place`, of the program."""
        return () if self._program is None else self._program.in_place

    def trim(self) -> None:
        """Free the memory of idle calls; the next call allocates it again."""
        if self._program is not None:
            self._program.trim()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program: as `Executable.save`.  Raises: UndecidedError where there is none."""
        self._whole.save(path)

    def with_plan(self, plan: runtime.Plan, threads: int | None = None) -> runtime.Executable:
        """As `Executable.with_plan`, of the program."""
        return self._whole.with_plan(plan, threads)

    def _instance(
        self, shapes: Shapes, refused: base.InputError | None = None
    ) -> runtime.Executable:
        """The instance for shapes of the inputs.

        refused   what the program says of them
        Raises:  InputError that names the sizes, if the network cannot be computed for them.
        """
        try:
            return self._instances.get(self._declared.inputs, shapes)
        except (base.InputError, base.ModelError, base.UnsupportedError) as error:
            if refused is not None and isinstance(error, base.InputError):
                raise refused from None  # the caller's own bounds
            pairs = zip(self._declared.inputs, shapes, strict=True)
            given = ", ".join(f"{spec} of {shape}" for spec, shape in pairs)
            fitting = (
                ", ".join(map(str, self._signature.sizes)) if self._program is not None else ""
            )
            alone = f"the network cannot be computed for {given}: {error.where}: {error.reason}"
            raise base.InputError(
                stage="run",
                where="inputs" if refused is None else refused.where,
                reason=alone if refused is None else f"{refused.reason}; {alone}",
                remedy=f"sizes that fit: {fitting}" if fitting else error.remedy,
            ) from error

    # -- what it is

    @property
    def _whole(self) -> runtime.Executable:
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
    def contents(self) -> runtime.Contents:
        """The contents of the program's file.  Raises: UndecidedError where there is none."""
        return self._whole.contents

    @property
    def plan(self) -> runtime.Plan:
        """The plan of the program.  Raises: UndecidedError where there is none."""
        return self._whole.plan

    @property
    def target(self) -> base.Target:
        """The processor for which it is compiled."""
        return self._signature.target

    @property
    def threads(self) -> int:
        """The number of threads that each kernel may use."""
        return self._threads

    @property
    def inputs(self) -> tuple[runtime.TensorSpec, ...]:
        """Names and types of the inputs, in calling order."""
        return self._signature.inputs

    @property
    def outputs(self) -> tuple[runtime.TensorSpec, ...]:
        """Names and types of the outputs, in order."""
        return self._signature.outputs

    @property
    def sizes(self) -> tuple[runtime.PlanSize, ...]:
        """The named sizes of its inputs, which each call decides."""
        return self._signature.sizes

    @property
    def constant_bytes(self) -> int:
        """Memory of the constants of the program and of all instances that are kept."""
        own = 0 if self._program is None else self._program.constant_bytes
        return own + sum(each.constant_bytes for each in self._instances.kept)

    def __str__(self) -> str:
        return repr(self) if self._program is None else str(self._program)

    def __repr__(self) -> str:
        return f"<AnySizes {self._program!r}, {len(self._instances)} instances>"
