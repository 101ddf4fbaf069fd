"""A call that is prepared once and made many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tensorwright.base import Array, amount_at
from tensorwright.runtime.frame import AnyFrame
from tensorwright.runtime.plan.plan import TensorSpec


class Bound:
    """A prepared call with its arena, for serving and for measurements.

    inputs    the arrays that are read: the caller's if kernels can read them in place, otherwise
              copies. Write new data into these between runs.
    outputs   the arrays that are written, the same ones in every run. If a loop decides the number
              of rows, they have room for the most, and `run` returns the part that was written.
    Either may be in the memory of the device that runs the code.
    It runs one call at a time: each concurrent thread needs a separate `Bound`.
    """

    __slots__ = ("_frame", "_run", "_specs", "inputs", "outputs")

    def __init__(
        self,
        frame: AnyFrame,
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        specs: tuple[TensorSpec, ...] = (),
    ) -> None:
        self._frame = frame
        self._specs = specs
        self._run = frame.run
        self.inputs = inputs
        self.outputs = outputs

    def run(self) -> dict[str, Array]:
        """Compute the outputs from the present content of the inputs."""
        self._run()
        if not self._specs:
            return self.outputs
        parts = written(self._specs, tuple(self.outputs.values()), self._frame.values)
        return dict(zip(self.outputs, parts, strict=True))

    __call__ = run

    def run_seconds(self) -> float:
        """As `run`; returns the seconds that it takes, by the device's clock."""
        return self._frame.device.time(self._run)

    def run_timed(self) -> tuple[float, ...]:
        """As `run`; returns the seconds of each step of the plan.

        Native code reads the clock at the beginning of each step. So the time of a step includes
        one reading and the cost of the call (`measure_call_costs`).
        """
        return self._frame.run_timed()


def written(
    specs: Sequence[TensorSpec], arrays: Sequence[Array], values: Mapping[str, int]
) -> tuple[Array, ...]:
    """The parts of arrays that a call with these sizes has written, as dense tensors."""
    parts: list[Array] = []
    for spec, array in zip(specs, arrays, strict=True):
        shape = tuple(amount_at(extent, values) for extent in spec.shape)
        is_whole = shape == array.shape
        parts.append(array if is_whole else array.reshape(-1)[: prod(shape)].reshape(shape))
    return tuple(parts)
