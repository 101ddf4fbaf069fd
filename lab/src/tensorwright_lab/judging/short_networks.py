"""Random networks of short numbers, and what they mean in numbers that are exact.

Products and convolutions of bytes are sums of integers.  Those of bf16 are within two units of its
last place of the exact sum of the rounded operands.  The codes of a quantised network are those of
its numbers in f64: all of them where each scale is a power of two, because f32 has no rounding
there; otherwise those of each layer, for the codes that it was given, but for numbers that lie
between two codes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import tensorwright
from tensorwright.base import CPU_TARGETS, CpuTarget, cpu_target, detect_target

Numbers = NDArray[Any]
Sum = Callable[[Numbers, Numbers], Numbers]

_LAST_PLACES = 2 * 2.0**-8
_OF_TERMS = 2.0**-19
_NEAR_A_TIE = 1e-3
_EXTRA = {"x86-64-avx2": ("avxvnni",), "x86-64-amx": ("amx-fp16",)}


class WrongNumbersError(AssertionError):
    """An answer is not what the network means."""


def targets() -> tuple[CpuTarget, ...]:
    """This processor, and others of its kind: what it lacks of them, code does without."""
    here = detect_target()
    processors = [here]
    for each in CPU_TARGETS:
        if each.arch != here.arch:
            continue
        for features in {each.name: None, "+".join((each.name, *_EXTRA.get(each.name, ()))): None}:
            named = cpu_target(features)
            lacking = tuple(name for name in named.features if name not in here.features)
            processors.append(replace(named, emulated=lacking))
    return tuple(processors)


def check_product(seed: int) -> str:
    """Check one product or convolution of bytes or of bf16; what it was."""
    draws, numbers = random.Random(f"product {seed}"), np.random.default_rng(seed)
    target = draws.choice(targets())
    is_image, is_float = draws.random() < 0.5, draws.random() < 0.3
    x_shape, w_shape, attributes, meaning = (_image if is_image else _matrices)(draws)
    if is_float:
        x, w = (numbers.standard_normal(shape).astype(np.float32) for shape in (x_shape, w_shape))
        kind, extra = ("Conv" if is_image else "MatMul"), {}
    else:
        x, x_zero = _bytes(numbers, draws, x_shape)
        w, w_zero = _bytes(numbers, draws, w_shape)
        if draws.random() < 0.5:
            w_zero = np.zeros_like(w_zero)
        kind, extra = ("ConvInteger" if is_image else "MatMulInteger"), {"x0": x_zero, "w0": w_zero}
    node = helper.make_node(kind, ["x", "w", *extra], ["y"], **attributes)
    result = TensorProto.FLOAT if is_float else TensorProto.INT32
    model = _model([node], {"x": x}, {"w": w, **extra}, {"y": result})
    precision = "bf16" if is_float else "f32"
    threads = draws.choice((1, 2))
    made = tensorwright.compile(model, target=target, precision=precision, threads=threads)
    given = made.run({"x": x})["y"]
    if is_float:
        rounded = [each.astype(bfloat16).astype(np.float64) for each in (x, w)]
        is_right = _is_near(given, meaning, rounded)
        if not is_right.all():  # a product that is not worth rounding stays f32
            is_right = _is_near(given, meaning, [each.astype(np.float64) for each in (x, w)])
    else:
        x, w = (c.astype(np.int64) - zero for c, zero in ((x, x_zero), (w, w_zero)))
        is_right = given == meaning(x, w)
    what = f"{kind} {x_shape} by {w_shape} {attributes} for {target}"
    if given.shape != is_right.shape or not is_right.all():
        raise WrongNumbersError(f"{what}: {np.count_nonzero(~is_right)} wrong sums")
    return kind


def _is_near(given: Numbers, meaning: Sum, operands: list[Numbers]) -> Numbers:
    """Whether each sum is that of the operands within two units of the last place of bf16."""
    exact, terms = meaning(*operands), meaning(*(np.abs(each) for each in operands))
    near: Numbers = np.abs(given - exact) <= _LAST_PLACES * np.abs(exact) + _OF_TERMS * terms
    return near


def check_quantised(seed: int) -> str:
    """Check one quantised network; what it was."""
    draws = random.Random(f"quantised {seed}")
    is_exact, target = draws.random() < 0.5, draws.choice(targets())
    network = Quantised(draws, np.random.default_rng(seed), is_exact)
    model = network.finish()
    made = tensorwright.compile(model, target=target, threads=draws.choice((1, 2)))
    given = made.run({"x": network.values["x"].astype(np.float32)})
    network.compare(given)
    return "exact network" if is_exact else "network by layers"


def _matrices(draws: random.Random) -> tuple[Any, Any, dict[str, Any], Sum]:
    batch = draws.choice(((), (), (2,), (2, 3)))
    m, k, n = (draws.choice((1, 2, 3, 7, 16, 33, 64, 70)) for _ in range(3))
    right = batch if draws.random() < 0.3 else ()
    return (*batch, m, k), (*right, k, n), {}, np.matmul


def _image(draws: random.Random) -> tuple[Any, Any, dict[str, Any], Sum]:
    groups = draws.choice((1, 1, 1, 2, 4))
    channels, filters = (groups * draws.choice((1, 3, 4, 8, 16, 20)) for _ in range(2))
    taps, stride, dilation = draws.choice((1, 3, 3, 5)), draws.choice((1, 1, 2)), 1
    size = draws.randint(taps, 17)
    if 2 * taps <= size:
        dilation = draws.choice((1, 1, 2))
    pad = draws.randint(0, taps // 2)
    how = {"pads": [pad] * 4, "strides": [stride] * 2, "dilations": [dilation] * 2, "group": groups}
    x_shape = (draws.choice((1, 1, 2)), channels, size, size)
    w_shape = (filters, channels // groups, taps, taps)
    return x_shape, w_shape, how, lambda x, w: _convolve(x, w, groups, stride, dilation, pad)


def _convolve(
    x: Numbers, w: Numbers, groups: int, stride: int = 1, dilation: int = 1, pad: int = 0
) -> Numbers:
    """A convolution of images that are padded with 0, in the type of its operands."""
    filters, of, height, width = w.shape
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    reach = (dilation * (height - 1) + 1, dilation * (width - 1) + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    parts = windows.reshape(x.shape[0], groups, of, *windows.shape[2:])
    kernels = w.reshape(groups, filters // groups, of, height, width)
    sums: Numbers = np.einsum("ngchwij,gocij->ngohw", parts, kernels)
    return sums.reshape(x.shape[0], filters, *sums.shape[3:])


def _bytes(
    numbers: np.random.Generator, draws: random.Random, shape: tuple[int, ...]
) -> tuple[Numbers, Numbers]:
    """Bytes, and the code of zero."""
    kind = np.dtype(draws.choice((np.int8, np.uint8)))
    held = np.iinfo(kind)
    ends = numbers.choice((held.min, held.max), shape)
    drawn = np.where(numbers.random(shape) < 0.2, ends, numbers.integers(-128, 128, shape) % 256)
    zero = np.array(draws.randint(held.min, held.max), kind)
    return drawn.astype(kind), zero


def _model(
    nodes: Iterable[NodeProto],
    inputs: Mapping[str, Numbers],
    constants: Mapping[str, Numbers],
    outputs: Mapping[str, int],
) -> ModelProto:
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in inputs.items()
    ]
    held = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph([*nodes], "short", given, results, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@dataclass(slots=True)
class _Layer:
    """A tensor of codes: the numbers that are rounded to it, from codes that were made before."""

    name: str
    inputs: tuple[str, ...]
    meaning: Callable[..., Numbers]
    scale: float
    zero: Numbers


@dataclass
class Quantised:
    """A network under construction; mutable.

    values   of each tensor of codes in f64, without rounding in between; codes and scales as drawn
    """

    draws: random.Random
    numbers: np.random.Generator
    is_exact: bool
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, Numbers] = field(default_factory=dict)
    layers: list[_Layer] = field(default_factory=list)
    values: dict[str, Numbers] = field(default_factory=dict)

    def finish(self) -> ModelProto:
        """Draw the layers."""
        channels, size = self.draws.choice((3, 8, 16, 20)), self.draws.randint(4, 11)
        x = self.numbers.standard_normal((self.draws.choice((1, 2)), channels, size, size))
        self.values["x"] = x = x.astype(np.float32).astype(np.float64)
        self._round("x", (), lambda: x, x)
        for _ in range(self.draws.randint(1, 5)):
            self.draws.choice((self._convolution, self._convolution, self._sum, self._pool))()
        if self.draws.random() < 0.4:
            self._product()
        names = [f"{each.name}_codes" for each in self.layers]
        kinds = {
            name: helper.np_dtype_to_tensor_dtype(each.zero.dtype)
            for name, each in zip(names, self.layers, strict=True)
        }
        shown = names[-1:] if self.is_exact else names
        x = x.astype(np.float32)
        return _model(self.nodes, {"x": x}, self.constants, {each: kinds[each] for each in shown})

    def compare(self, given: Mapping[str, Numbers]) -> None:
        """Compare the codes that were computed.

        Raises:  WrongNumbersError
        """
        computed = dict(self.values)
        for layer in self.layers:
            rounded = given.get(f"{layer.name}_codes")
            if rounded is None:
                continue
            numbers = layer.meaning(*(computed[each] for each in layer.inputs))
            steps = numbers / layer.scale + layer.zero
            held = np.iinfo(layer.zero.dtype)
            wanted = np.clip(np.round(steps - layer.zero) + layer.zero, held.min, held.max)
            is_tie = np.abs(steps - np.floor(steps) - 0.5) < _NEAR_A_TIE
            is_right = rounded == wanted
            if not self.is_exact:
                is_right |= is_tie & (np.abs(rounded - wanted) <= 1)
            if not is_right.all():
                count = f"{np.count_nonzero(~is_right)} of {rounded.size}"
                raise WrongNumbersError(f"{layer.name} of {len(self.layers)}: {count} wrong codes")
            computed[layer.name] = (rounded.astype(np.float64) - layer.zero) * layer.scale

    def _convolution(self) -> None:
        """With a bias, padding and perhaps a bound below."""
        x = self.layers[-1].name
        channels = self.values[x].shape[1]
        groups = self.draws.choice((1, 1, channels, 2 if channels % 2 == 0 else 1))
        filters, taps = groups * self.draws.choice((1, 2, 4, 16)), self.draws.choice((1, 1, 3))
        filters = min(filters, 64 // groups * groups)
        scales = self._scales(filters, 2.0**-9)
        rounded = self.numbers.integers(-127, 128, (filters, channels // groups, taps, taps))
        weights, w = self._weights(rounded.astype(np.int8), scales, 0)
        of = np.float32(self.layers[-1].scale) * scales
        held = self.numbers.integers(-900, 900, filters).astype(np.int32)
        added, bias = self._weights(held, of, 0)
        pad, name = taps // 2, f"t{len(self.nodes)}"
        how: dict[str, Any] = {"pads": [pad] * 4, "group": groups}
        self.nodes.append(helper.make_node("Conv", [x, weights, added], [name], **how))
        is_bounded = self.draws.random() < 0.5
        if is_bounded:
            name = self._then("Relu", name)

        def meaning(x: Numbers) -> Numbers:
            sums = _convolve(x, w, groups, pad=pad) + bias[:, None, None]
            return np.maximum(sums, 0) if is_bounded else sums

        self._round(name, (x,), meaning, meaning(self.values[x]))

    def _sum(self) -> None:
        """Of the last tensor and one before it of the same shape."""
        x = self.layers[-1].name
        alike = [y.name for y in self.layers if self.values[y.name].shape == self.values[x].shape]
        y, name = self.draws.choice(alike), f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node("Add", [x, y], [name]))
        self._round(name, (x, y), np.add, self.values[x] + self.values[y])

    def _pool(self) -> None:
        """The greatest, or the mean, of squares of two by two."""
        x, kind = self.layers[-1].name, self.draws.choice(("MaxPool", "AveragePool"))
        if min(self.values[x].shape[2:]) < 2:
            return
        name = self._then(kind, x, kernel_shape=[2, 2], strides=[2, 2])

        def meaning(x: Numbers) -> Numbers:
            windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2]
            pooled: Numbers = windows.max((4, 5)) if kind == "MaxPool" else windows.mean((4, 5))
            return pooled

        self._round(name, (x,), meaning, meaning(self.values[x]))

    def _product(self) -> None:
        """Of what is left, as a row for each image, and a matrix."""
        x = self.layers[-1].name
        flat = self._then("Flatten", x)
        terms, columns = int(np.prod(self.values[x].shape[1:])), self.draws.choice((1, 10, 33))
        rounded = self.numbers.integers(-127, 128, (terms, columns)).astype(np.int8)
        weights, w = self._weights(rounded, self._scales(columns, 2.0**-10), 1)
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node("MatMul", [flat, weights], [name]))

        def meaning(x: Numbers) -> Numbers:
            sums: Numbers = x.reshape(len(x), -1) @ w
            return sums

        self._round(name, (x,), meaning, meaning(self.values[x]))

    def _then(self, kind: str, x: str, **how: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [x], [name], **how))
        return name

    def _scales(self, count: int, about: float) -> Numbers:
        """Of channels: powers of two where a network is exact."""
        drawn = about * 2.0 ** self.numbers.uniform(-1, 1, count)
        return (2.0 ** np.round(np.log2(drawn)) if self.is_exact else drawn).astype(np.float32)

    def _weights(self, rounded: Numbers, scales: Numbers, axis: int) -> tuple[str, Numbers]:
        """The name of constants that are codes with scales, and their numbers."""
        name = f"w{len(self.constants)}"
        self.constants |= {f"{name}_codes": rounded, f"{name}_scales": scales.astype(np.float32)}
        given = [f"{name}_codes", f"{name}_scales"]
        self.nodes.append(helper.make_node("DequantizeLinear", given, [name], axis=axis))
        shape = [-1 if at == axis else 1 for at in range(rounded.ndim)]
        return name, rounded.astype(np.float64) * scales.astype(np.float64).reshape(shape)

    def _round(
        self, x: str, inputs: tuple[str, ...], meaning: Callable[..., Numbers], values: Numbers
    ) -> None:
        """Round a tensor to codes, and take these as numbers again."""
        kind = self.draws.choice((np.uint8, np.uint8, np.int8))
        held, name = np.iinfo(kind), f"q{len(self.layers)}"
        scale = float(np.abs(values).max()) / 127 or 1.0
        scale = 2.0 ** np.ceil(np.log2(scale)) if self.is_exact else float(np.float32(scale))
        zero = np.array(self.draws.choice((0, int(held.min) + 128, held.max // 3)), kind)
        given = {f"{name}_scale": np.float32(scale), f"{name}_zero": zero}
        self.constants |= {each: np.asarray(value) for each, value in given.items()}
        rounded = f"{name}_codes"
        self.nodes.append(helper.make_node("QuantizeLinear", [x, *given], [rounded]))
        self.nodes.append(helper.make_node("DequantizeLinear", [rounded, *given], [name]))
        self.layers.append(_Layer(name, inputs, meaning, scale, zero))
        nearest = np.clip(np.round(values / scale) + zero, held.min, held.max)
        self.values[name] = (nearest - zero) * scale
