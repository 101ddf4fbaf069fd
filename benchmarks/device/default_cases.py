"""Products, convolutions and windows with the schedules that they get untuned, and with others.

The convolutions are those of ResNet-50, and C7 and C12 of AutoTVM; the depthwise ones are
MobileNet-V2's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorwright import expr
from tensorwright.base import GpuTarget
from tensorwright.graph import program
from tensorwright.records import Setting
from tensorwright.schedule import ScheduleState, Trace, state_of
from tensorwright.tuning.selection import Chooser
from tensorwright.tuning.space import Sketch
from tensorwright.tuning.space.defaults.pointwise import grid_sketches
from tensorwright.tuning.space.derived import batched_winograd_sketches, tiled_sketches

Array = np.ndarray[Any, Any]
CONSTANTS = frozenset({"w", "bias"})


@dataclass(frozen=True)
class Layer:
    """A convolution with bias and ReLU, of one image.

    filters   0 where each channel has a filter of its own
    """

    channels: int
    filters: int
    size: int
    taps: int
    stride: int = 1

    @property
    def name(self) -> str:
        kind = f"{self.channels} > {self.filters}" if self.filters else f"depthwise {self.channels}"
        stride = f" stride {self.stride}" if self.stride > 1 else ""
        return f"{kind} {self.taps}x{self.taps} at {self.size}{stride}"

    @property
    def out(self) -> int:
        return (self.size + 2 * (self.taps // 2) - self.taps) // self.stride + 1

    @property
    def flops(self) -> float:
        outputs = (self.filters or self.channels) * self.out**2
        return 2.0 * outputs * self.taps**2 * (self.channels if self.filters else 1)

    @property
    def output(self) -> expr.Compute:
        """Its meaning."""
        pad, size = self.taps // 2, self.size
        wide, shape = size + 2 * pad, (1, self.filters or self.channels, self.out, self.out)
        x = expr.placeholder("x", (1, self.channels, size, size))

        def padded(n: expr.Value, c: expr.Value, h: expr.Value, v: expr.Value) -> expr.Value:
            inside = expr.all_of(h >= pad, h < size + pad, v >= pad, v < size + pad)
            return expr.select(inside, x[n, c, h - pad, v - pad], 0.0)

        data = expr.compute("pad", (1, self.channels, wide, wide), padded) if pad else x
        p, q, s = expr.reduce_axis("p", self.taps), expr.reduce_axis("q", self.taps), self.stride
        bias = expr.placeholder("bias", shape[1:2])
        if self.filters:
            c = expr.reduce_axis("c", self.channels)
            w = expr.placeholder("w", (self.filters, self.channels, self.taps, self.taps))
            y = expr.compute(
                "y",
                shape,
                lambda n, o, h, v: expr.sum_over(
                    data[n, c, h * s + p, v * s + q] * w[o, c, p, q], c, p, q
                ),
            )
        else:
            w = expr.placeholder("w", (self.channels, self.taps, self.taps))
            y = expr.compute(
                "y",
                shape,
                lambda n, o, h, v: expr.sum_over(
                    data[n, o, h * s + p, v * s + q] * w[o, p, q], p, q
                ),
            )
        return expr.compute(
            "relu", shape, lambda n, o, h, v: expr.max_of(y[n, o, h, v] + bias[o], 0.0)
        )

    @property
    def inputs(self) -> dict[str, Array]:
        random_source = np.random.default_rng(0)
        own = (self.filters, self.channels) if self.filters else (self.channels,)
        shapes = {
            "x": (1, self.channels, self.size, self.size),
            "w": (*own, self.taps, self.taps),
            "bias": own[:1],
        }
        return {
            name: random_source.standard_normal(shape).astype(np.float32)
            for name, shape in shapes.items()
        }

    def wanted(self, arrays: dict[str, Array]) -> Array:
        """The result, by NumPy."""
        pad, s = self.taps // 2, self.stride
        data = np.pad(arrays["x"][0], ((0, 0), (pad, pad), (pad, pad)))
        view = np.lib.stride_tricks.sliding_window_view(data, (self.taps, self.taps), (1, 2))
        windows = view[:, ::s, ::s]
        if self.filters:
            columns = windows.transpose(0, 3, 4, 1, 2).reshape(-1, self.out**2)
            flat = arrays["w"].reshape(self.filters, -1) @ columns
            y = flat.reshape(1, self.filters, self.out, self.out)
        else:
            y = np.einsum("chvpq,cpq->chv", windows, arrays["w"])[None]
        return np.maximum(y + arrays["bias"][None, :, None, None], 0)


FORMS: dict[str, Callable[[ScheduleState, GpuTarget], Iterator[Sketch]]] = {
    "tiles": tiled_sketches,
    "winograd": batched_winograd_sketches,
    "plain": grid_sketches,
}
"""Ways to compute a layer by rule; "default" is the one that is chosen untuned."""

_SQUARES = ((64, 56), (128, 28), (256, 14), (512, 7))
LAYERS: tuple[tuple[Layer, tuple[str, ...]], ...] = (
    *((Layer(c, c, size, 3), ("default", "tiles", "winograd")) for c, size in _SQUARES),
    (Layer(256, 128, 28, 3, 2), ("default", "plain")),
    *((Layer(4 * c, c, size, 1), ("default",)) for c, size in _SQUARES),
    *((Layer(c, 4 * c, size, 1), ("default",)) for c, size in _SQUARES),
    (Layer(512, 512, 7, 3), ("plain",)),
    (Layer(3, 64, 224, 7, 2), ("default",)),
    *(
        (Layer(c, 0, size, 3, stride), ("default", "plain"))
        for c, size, stride in ((32, 112, 1), (96, 112, 2), (192, 28, 1), (960, 7, 1))
    ),
)
SMALL_LAYERS = (
    (Layer(16, 16, 7, 3), ("default", "tiles", "winograd", "plain")),
    (Layer(8, 0, 7, 3), ("default",)),
)


def trace_of(output: expr.Compute, form: str, target: GpuTarget) -> Trace:
    """The schedule of a form: by rule, or the one that an untuned network gets."""
    workload = program([output], CONSTANTS & _names(output))
    state = state_of(workload)
    if form == "default":
        return Chooser(Setting(target, 1)).unmeasured(workload).trace
    sketch = next(FORMS[form](state, target))
    return sketch.bound(sketch.defaults)


def _names(output: expr.Compute) -> frozenset[str]:
    return frozenset(each.name for each in program([output]).inputs)
