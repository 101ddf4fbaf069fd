"""Pooling, resizing and recurrent layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorwright.expr import Index, floor_div
from tensorwright.graph.aten_import.call import Call, Converter, Results, Table, Tensor, tensors
from tensorwright.ops import number_of


def _batched(count: int, convert: Callable[[Call, str], str]) -> Converter:
    """A converter for images (n, c, ...) that accepts a single image (c, ...), too."""

    def whole(call: Call) -> Results:
        x = call.tensor("self" if call.has("self") else "input")
        if call.rank(x) != count + 1:
            return (Tensor(convert(call, x)), None)
        y = convert(call, call.add("unsqueeze", x, axes=(0,)))
        return (Tensor(call.add("squeeze", y, axes=(0,))), None)

    return whole


def _pool(operator: str, count: int) -> Converter:
    def convert(call: Call, x: str) -> str:
        kernel = call.per_dimension("kernel_size", count, (1,))
        pads = call.per_dimension("padding", count, (0,))
        more: dict[str, bool] = {"ceil_mode": call.flag("ceil_mode")}
        if operator == "average_pool":
            more["count_include_pad"] = call.flag("count_include_pad", default=True)
            if call.has("divisor_override"):
                raise call.unsupported("its divisor_override is not supported")
        return call.add(
            operator,
            x,
            kernel=kernel,
            strides=call.per_dimension("stride", count, kernel),
            pads=pads * 2,
            dilations=call.per_dimension("dilation", count, (1,)),
            **more,
        )

    return _batched(count, convert)


def _adaptive(fold: str, operator: str, count: int) -> Converter:
    def convert(call: Call, x: str) -> str:
        """Windows between i * n // wanted and ceil((i + 1) * n / wanted)."""
        given = call.indices("output_size")
        given = given * count if len(given) == 1 else given
        extents = call.sizes(x)[-count:]
        if all(each == 1 for each in given):
            axes = tuple(range(-count, 0))
            return call.add(fold, x, axes=axes, keepdims=True)
        numbers = [(number_of(n), number_of(each)) for n, each in zip(extents, given, strict=True)]
        if all(n % each == 0 for n, each in numbers):
            kernel = tuple(n // each for n, each in numbers)
            return call.add(operator, x, kernel=kernel, strides=kernel)
        if operator != "average_pool":
            raise call.unsupported(f"its windows over {extents} have different sizes")
        return _averaged(call, x, numbers)

    return _batched(count, convert)


def _averaged(call: Call, x: str, numbers: list[tuple[int, int]]) -> str:
    """Means over windows, one dimension after the other: a product with a matrix of shares."""
    rank = call.rank(x)
    for at, (n, wanted) in enumerate(numbers):
        shares = np.zeros((n, wanted), call.dtype_of(x).numpy)
        for window in range(wanted):
            start, end = window * n // wanted, -((-(window + 1) * n) // wanted)
            shares[start:end, window] = 1 / (end - start)
        axis = rank - len(numbers) + at
        perm = [each for each in range(rank) if each != axis] + [axis]
        back = tuple(perm.index(each) for each in range(rank))
        product = call.add(
            "matmul", call.add("transpose", x, perm=tuple(perm)), call.builder.constant(shares)
        )
        x = call.add("transpose", product, perm=back)
    return x


def _wanted_sizes(call: Call, x: str, count: int) -> tuple[tuple[Index, ...], tuple[float, ...]]:
    """The sizes of a resized image, and the scales if the call gives scales."""
    shape = call.sizes(x)
    named = [call.get(f"scales_{each}") for each in ("d", "h", "w")[-count:]]
    if count == 1:
        named = [call.get("scales")]
    factors = call.get("scale_factors") or (tuple(named) if all(named) else None)
    scales: tuple[float, ...] = ()
    if isinstance(factors, tuple):
        scales = (1.0, 1.0, *(float(each) for each in factors))  # type: ignore[arg-type]
    if call.has("output_size"):
        return (*shape[:2], *call.indices("output_size")), scales
    pairs = zip(shape[2:], scales[2:], strict=True)
    return (*shape[:2], *(_scaled(call, n, scale) for n, scale in pairs)), scales


def _scaled(call: Call, extent: Index, scale: float) -> Index:
    if isinstance(extent, int):
        return int(extent * scale)
    numerator, denominator = scale.as_integer_ratio()
    if denominator > 1 << 12:
        raise call.unsupported(f"its scale {scale} of the size {extent} is rounded")
    return floor_div(extent * numerator, denominator)


def _resize(mode: str, count: int) -> Converter:
    def convert(call: Call, x: str) -> str:
        sizes, scales = _wanted_sizes(call, x, count)
        more: dict[str, str | float] = {"mode": mode}
        if mode == "nearest":
            more |= {"coordinates": "asymmetric", "nearest_mode": "floor"}
        else:
            aligned = call.flag("align_corners")
            more |= {"coordinates": "align_corners" if aligned else "pytorch_half_pixel"}
            scales = () if aligned else scales
            more |= {"cubic_a": -0.75} if mode == "cubic" else {}
        return call.add("resize", x, sizes=sizes, scales=scales, **more)

    return _batched(count, convert)


_SAMPLING = ("linear", "nearest", "cubic")
_OUTSIDE = ("zeros", "border", "reflection")


def _grid_sampler(call: Call) -> Results:
    return tensors(
        call.add(
            "grid_sample",
            call.tensor("input"),
            call.tensor("grid"),
            mode=_SAMPLING[call.integer("interpolation_mode")],
            padding=_OUTSIDE[call.integer("padding_mode")],
            align_corners=call.flag("align_corners"),
        )
    )


_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""For each gate in ONNX's order, its index in PyTorch's order."""


def _recurrent(kind: str, activation: str = "") -> Converter:
    def convert(call: Call) -> Results:
        """Layers of cells, each in one direction or both.

        Shapes:  input (steps, batch, width) -> (steps, batch, directions * hidden), and the states
                 (layers * directions, batch, hidden) after the last step
        """
        if not call.has("params") or not call.has("input"):
            raise call.unsupported("packed sequences are not supported")
        if call.flag("train") and call.real("dropout", 0.0) > 0:
            raise call.unsupported("it is in training mode", "call eval() on the module")
        x = call.tensor("input")
        if call.flag("batch_first"):
            x = call.add("transpose", x, perm=(1, 0, 2))
        states = call.tensors("hx")
        directions = 2 if call.flag("bidirectional") else 1
        last: list[list[str]] = [[] for _ in states]
        for layer in range(call.integer("num_layers")):
            begins = [_rows(call, each, layer * directions, directions) for each in states]
            x, *ends = _layer(call, kind, activation, x, begins, layer, directions)
            for kept, end in zip(last, ends, strict=True):
                kept.append(end)
        if call.flag("batch_first"):
            x = call.add("transpose", x, perm=(1, 0, 2))
        joined = (each[0] if len(each) == 1 else call.add("concat", *each, axis=0) for each in last)
        return tensors(x, *joined)

    return convert


def _rows(call: Call, tensor: str, start: int, count: int) -> str:
    return call.add("slice", tensor, starts=(start,), ends=(start + count,), axes=(0,), steps=(1,))


def _layer(
    call: Call, kind: str, activation: str, x: str, begins: list[str], layer: int, directions: int
) -> tuple[str, ...]:
    """One layer, by ONNX's operator."""
    has_biases = call.flag("has_biases")
    count = 4 if has_biases else 2
    params = call.tensors("params")
    first = layer * directions * count
    sets = [params[first + at * count : first + (at + 1) * count] for at in range(directions)]
    if call.rank(sets[0][0]) != 2 or len(sets[-1]) != count:
        raise call.unsupported("its weights are not those of plain cells")
    hidden = call.extents(sets[0][1])[1]
    w, r = (_stacked(call, [_in_order(call, kind, each[at]) for each in sets]) for at in range(2))
    bias = None
    if has_biases:
        rows = [
            call.add("concat", *(_in_order(call, kind, each[at]) for at in (2, 3)), axis=0)
            for each in sets
        ]
        bias = _stacked(call, rows)
    more: dict[str, int | str | tuple[str, ...]] = {
        "hidden_size": hidden,
        "direction": "bidirectional" if directions == 2 else "forward",
    }
    if kind == "GRU":
        more["linear_before_reset"] = 1
    if activation:
        more["activations"] = (activation,) * directions
    y, *ends = call.onnx(kind, (x, w, r, bias, None, *begins), 1 + len(begins), **more)
    steps, _, batch, _ = call.sizes(y)
    y = call.add("transpose", y, perm=(0, 2, 1, 3))
    return call.add("reshape", y, shape=(steps, batch, directions * hidden)), *ends


def _stacked(call: Call, tensors: list[str]) -> str:
    rows = [call.add("unsqueeze", each, axes=(0,)) for each in tensors]
    return rows[0] if len(rows) == 1 else call.add("concat", *rows, axis=0)


def _in_order(call: Call, kind: str, tensor: str) -> str:
    """The gates of a weight or a bias in ONNX's order."""
    order = _GATES[kind]
    if len(order) == 1:
        return tensor
    size = call.extents(tensor)[0] // len(order)
    parts = call.apply("split", tensor, sizes=(size,) * len(order), axis=0)
    return call.add("concat", *(parts[at] for at in order), axis=0)


WINDOWS: Table = (
    *((f"max_pool{n}d", _pool("max_pool", n)) for n in (1, 2, 3)),
    *((f"max_pool{n}d_with_indices", _pool("max_pool", n)) for n in (2, 3)),
    *((f"avg_pool{n}d", _pool("average_pool", n)) for n in (1, 2, 3)),
    *(
        (f"{mark}adaptive_avg_pool{n}d", _adaptive("reduce_mean", "average_pool", n))
        for n in (1, 2, 3)
        for mark in ("", "_")
    ),
    *((f"adaptive_max_pool{n}d", _adaptive("reduce_max", "max_pool", n)) for n in (1, 2, 3)),
    *((f"upsample_nearest{n}d", _resize("nearest", n)) for n in (1, 2, 3)),
    ("upsample_linear1d", _resize("linear", 1)),
    ("upsample_bilinear2d", _resize("linear", 2)),
    ("upsample_trilinear3d", _resize("linear", 3)),
    ("upsample_bicubic2d", _resize("cubic", 2)),
    ("grid_sampler", _grid_sampler),
    ("grid_sampler_2d", _grid_sampler),
    ("lstm", _recurrent("LSTM")),
    ("gru", _recurrent("GRU")),
    ("rnn_tanh", _recurrent("RNN", "Tanh")),
    ("rnn_relu", _recurrent("RNN", "Relu")),
)
