"""Convolutions, pools and their reverse, of ONNX and of ATen.

The attributes of windows become explicit numbers: ONNX has defaults and `auto_pad`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from tensorwright.expr import Index
from tensorwright.graph.imports.call import Call, Converter, Operand, Results, Table
from tensorwright.graph.imports.counterparts import MAX_POOL, POOLS, Counterpart
from tensorwright.ops import AttributeValue, automatic_pads, number_of, shape_text


@dataclass(frozen=True, slots=True)
class Window:
    """A window over the spatial dimensions; `pads` holds all begins, then all ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def attributes(self) -> dict[str, tuple[int, ...]]:
        """The attributes of our operators, without the kernel."""
        return {"strides": self.strides, "pads": self.pads, "dilations": self.dilations}


def auto_pad_of(call: Call) -> str:
    """NOTSET, VALID, SAME_UPPER or SAME_LOWER."""
    mode = call.text("auto_pad", "NOTSET") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.unsupported(f"its auto_pad is {mode}")
    return mode


def per_dimension(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    """A list attribute with one number per spatial dimension."""
    values = call.integers(name, (default,) * count) or (default,) * count
    if len(values) != count:
        raise call.unsupported(
            f"its attribute {name} {values} has {len(values)} values, not {count}"
        )
    return values


def window_of(call: Call, kernel: tuple[int, ...]) -> Window:
    """The window of a convolution or a pooling whose data is input 0.

    Raises:  UnsupportedError where a size decides how much `auto_pad` pads.
    """
    window, pads = _window_and_pads(call, kernel)
    return replace(window, pads=tuple(map(number_of, pads)))


def padded_window(call: Call, kernel: tuple[int, ...], fill: float) -> tuple[str, Window]:
    """The data, padded by the fill where sizes decide how much `auto_pad` pads, and the window."""
    window, pads = _window_and_pads(call, kernel)
    numbers = tuple(pad for pad in pads if isinstance(pad, int))
    if len(numbers) == len(pads):
        return call.tensor(0), replace(window, pads=numbers)
    count = len(kernel)
    around = (0, 0, *pads[:count], 0, 0, *pads[count:])
    return call.add("pad", call.tensor(0), pads=around, value=fill), window


def _window_and_pads(call: Call, kernel: tuple[int, ...]) -> tuple[Window, tuple[Index, ...]]:
    """The window without its pads, and these."""
    count = call.rank(0) - 2
    if count < 1 or len(kernel) != count:
        shape = shape_text(call.sizes(0))
        raise call.unsupported(f"a window of {len(kernel)} dimensions does not fit data of {shape}")
    strides = per_dimension(call, "strides", count, 1)
    dilations = per_dimension(call, "dilations", count, 1)
    mode = auto_pad_of(call)
    pads = automatic_pads(mode, call.sizes(0)[2:], kernel, strides, dilations)
    if mode == "NOTSET":
        pads = call.integers("pads", ()) or pads
    return Window(kernel, strides, (0,) * 2 * count, dilations), pads


def convolve(
    call: Call,
    operator: str,
    inputs: tuple[Operand, ...],
    window: Window,
    **more: AttributeValue,
) -> str:
    """A convolution of that kind, with the groups that the node says."""
    groups = call.integer("group", 1)
    return call.add(operator, *inputs, **window.attributes, groups=groups, **more)


def _kernel(call: Call) -> tuple[int, ...]:
    kernel = tuple(map(number_of, call.sizes(1)[2:]))
    declared = call.integers("kernel_shape", kernel)
    if declared != kernel:
        raise call.unsupported(f"its kernel_shape {declared} is not that of its weights {kernel}")
    return kernel


def _conv(call: Call) -> Results:
    x, window = padded_window(call, _kernel(call), 0.0)
    return (convolve(call, "conv", (x, *call.tensors()[1:]), window),)


def _zero_points(call: Call, first: int) -> tuple[Operand, ...]:
    """The zero points that are given; one that is left out before another is a zero."""
    if not call.has(first + 1):
        return (call.operand(first),) if call.has(first) else ()
    left: Operand = np.zeros((), call.dtype_of(0).numpy)
    if call.has(first):
        left = call.operand(first)
    return left, call.operand(first + 1)


def _conv_integer(call: Call) -> Results:
    inputs = (call.tensor(0), call.tensor(1), *_zero_points(call, 2))
    return (convolve(call, "conv_integer", inputs, window_of(call, _kernel(call))),)


def _transposed_pads(
    call: Call,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    extra: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pads and output padding; `output_shape` and SAME_* say how large the result is and so what is
    cut off.
    """
    count = call.rank(0) - 2
    mode = auto_pad_of(call)
    if not call.has("output_shape") and mode not in ("SAME_UPPER", "SAME_LOWER"):
        pads = call.integers("pads", ()) if mode == "NOTSET" else ()
        return pads or (0,) * (2 * count), extra
    extents = call.extents(0)[2:]
    if call.has("output_shape"):
        wanted = call.integers("output_shape")[-count:]
    else:
        wanted = tuple(n * stride for n, stride in zip(extents, strides, strict=True))
    begins, ends, more = [], [], []
    for n, k, s, d, e, size in zip(extents, kernel, strides, dilations, extra, wanted, strict=True):
        total = s * (n - 1) + e + (k - 1) * d + 1 - size
        more.append(e + max(-total, 0))
        total = max(total, 0)
        begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
        begins.append(begin)
        ends.append(total - begin)
    return (*begins, *ends), tuple(more)


def _conv_transpose(call: Call) -> Results:
    kernel = _kernel(call)
    count = len(kernel)
    strides = per_dimension(call, "strides", count, 1)
    dilations = per_dimension(call, "dilations", count, 1)
    extra = per_dimension(call, "output_padding", count, 0)
    pads, extra = _transposed_pads(call, kernel, strides, dilations, extra)
    window = Window(kernel, strides, pads, dilations)
    return (convolve(call, "conv_transpose", call.tensors(), window, output_padding=extra),)


def _matmul_integer(call: Call) -> Results:
    inputs = (call.tensor(0), call.tensor(1), *_zero_points(call, 2))
    return (call.add("matmul_integer", *inputs),)


CONVOLUTION: Table = (
    ("Conv", _conv),
    ("ConvInteger", _conv_integer),
    ("ConvTranspose", _conv_transpose),
    ("MatMulInteger", _matmul_integer),
)


def _pool(counterpart: Counterpart, call: Call) -> Results:
    window = window_of(call, call.integers("kernel_shape"))
    return counterpart.convert(call, kernel=window.kernel, **window.attributes)


def _max_pool(counterpart: Counterpart, call: Call) -> Results:
    if not call.wants(1):
        lowest = float(call.dtype_of(0).lowest)
        x, window = padded_window(call, call.integers("kernel_shape"), lowest)
        alone = replace(call, operands=(x,))
        return counterpart.convert(alone, kernel=window.kernel, **window.attributes)
    pooled = _pool(counterpart, call)
    window = window_of(call, call.integers("kernel_shape"))
    return (*pooled, _places_of_maxima(call, window, call.type_of(pooled[0]).extents[2:]))


def _places_of_maxima(call: Call, window: Window, slots: tuple[int, ...]) -> str:
    """Where the first maximum of each window is, counted through the whole input in its order."""
    shape = call.extents(0)
    rank = len(slots)
    call.check_iterations(math.prod(window.kernel))
    call.check_elements(math.prod(slots) * math.prod(shape[:2]))
    begins = window.pads[:rank]
    sizes = [  # of the input with its padding, as far as windows reach
        (n - 1) * stride + (k - 1) * dilation + 1
        for n, stride, k, dilation in zip(
            slots, window.strides, window.kernel, window.dilations, strict=True
        )
    ]
    ends = [size - n - begin for size, n, begin in zip(sizes, shape[2:], begins, strict=True)]
    lowest = call.dtype_of(0).lowest
    x = call.add("pad", call.tensor(0), pads=(0, 0, *begins, 0, 0, *ends), value=float(lowest))
    offsets, taps = [], []
    for tap in product(*map(range, window.kernel)):
        starts = tuple(k * dilation for k, dilation in zip(tap, window.dilations, strict=True))
        stops = tuple(
            start + (n - 1) * stride + 1
            for start, n, stride in zip(starts, slots, window.strides, strict=True)
        )
        axes = tuple(range(2, 2 + rank))
        taps.append(
            call.add("slice", x, starts=starts, ends=stops, axes=axes, steps=window.strides)
        )
        offsets.append(starts)
    chosen = call.add("argmax", call.stack(taps, 2 + rank), axis=2 + rank, keepdims=False)
    order = range(rank) if not call.flag("storage_order") else range(rank)[::-1]
    steps = [0] * rank
    step = 1
    for axis in reversed(order):
        steps[axis], step = step, step * shape[2 + axis]
    planes = np.arange(math.prod(shape[:2])).reshape(*shape[:2], *(1,) * rank) * step
    for axis, n in enumerate(slots):
        firsts = np.arange(n) * window.strides[axis] - begins[axis]
        planes = planes + (firsts * steps[axis]).reshape(-1, *(1,) * (rank - 1 - axis))
    places = call.take(np.array(offsets, np.int64) @ np.array(steps), chosen)
    return call.add("add", places, planes)


def _max_unpool(call: Call) -> Results:
    """Maxima at the places where they were, zeros elsewhere."""
    shape = call.extents(0)
    kernel = call.integers("kernel_shape")
    rank = len(kernel)
    if rank != len(shape) - 2:
        raise call.unsupported(f"a window of {rank} dimensions does not fit data of {shape}")
    strides, pads = per_dimension(call, "strides", rank, 1), call.integers("pads", (0,) * 2 * rank)
    spatial = (
        (n - 1) * stride - begin - end + k
        for n, stride, begin, end, k in zip(
            shape[2:], strides, pads[:rank], pads[rank:], kernel, strict=True
        )
    )
    inferred = (*shape[:2], *spatial)
    wanted = call.ints(2, "output_shape") if call.has(2) else inferred
    ends = tuple(large - own for large, own in zip(wanted, inferred, strict=True))
    if min(ends) < 0 or min(inferred) < 0:
        raise call.unsupported(f"its output_shape {wanted} is less than {inferred}")
    count = (math.prod(shape),)
    x, places = (call.add("reshape", call.tensor(at), shape=count) for at in range(2))
    dtype = call.dtype_of(0)
    zeros = call.add("full", shape=(math.prod(inferred),), value=0.0, dtype=dtype)
    spread = call.add("scatter_elements", zeros, places, x, axis=0, reduction="none")
    image = call.add("reshape", spread, shape=inferred)
    if any(ends):
        image = call.add("pad", image, pads=(*(0,) * len(ends), *ends))
    return (image,)


POOLING: Table = (
    *((each.theirs, partial(_pool, each)) for each in POOLS),
    (MAX_POOL.theirs, partial(_max_pool, MAX_POOL)),
    ("MaxUnpool", _max_unpool),
)


# -- ATen


def batched(count: int, convert: Callable[[Call, str], str]) -> Converter:
    """A converter for images (n, c, ...) that accepts a single image (c, ...), too."""

    def whole(call: Call) -> Results:
        x = call.tensor("self" if call.has("self") else "input")
        if call.rank(x) != count + 1:
            return (convert(call, x),)
        y = convert(call, call.add("unsqueeze", x, axes=(0,)))
        return (call.add("squeeze", y, axes=(0,)),)

    return whole


def _aten_pool(operator: str, count: int) -> Converter:
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

    return batched(count, convert)


def _adaptive(fold: str, operator: str, count: int) -> Converter:
    def convert(call: Call, x: str) -> str:
        """Windows between i * n // wanted and ceil((i + 1) * n / wanted)."""
        given = call.shape("output_size")
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

    return batched(count, convert)


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


def _aten_conv(call: Call) -> Results:
    x, w = call.tensor("input"), call.tensor("weight")
    count = call.rank(w) - 2
    is_single = call.rank(x) == count + 1
    if is_single:
        x = call.add("unsqueeze", x, axes=(0,))
    kernel, dilations = call.extents(w)[2:], call.per_dimension("dilation", count, (1,))
    strides = call.per_dimension("stride", count, (1,))
    window = Window(kernel, strides, _pads(call, kernel, dilations), dilations)
    more: dict[str, AttributeValue] = {"groups": call.integer("groups", 1)}
    operator = "conv"
    if call.flag("transposed") or call.operator.startswith("conv_transpose"):
        operator = "conv_transpose"
        more["output_padding"] = call.per_dimension("output_padding", count, (0,))
    y = call.add(operator, x, w, *call.optional("bias"), **window.attributes, **more)
    return (call.add("squeeze", y, axes=(0,)) if is_single else y,)


def _pads(call: Call, kernel: tuple[int, ...], dilations: tuple[int, ...]) -> tuple[int, ...]:
    """Padding before, then after each dimension; "same" puts the odd element after it."""
    given = call.get("padding", 0)
    if given == "valid":
        return (0,) * 2 * len(kernel)
    if given == "same":
        totals = [(k - 1) * dilation for k, dilation in zip(kernel, dilations, strict=True)]
        return (*(total // 2 for total in totals), *(total - total // 2 for total in totals))
    return call.per_dimension("padding", len(kernel), (0,)) * 2


ATEN_WINDOWS: Table = (
    *((f"max_pool{n}d max_pool{n}d_with_indices", _aten_pool("max_pool", n)) for n in (1, 2, 3)),
    *((f"avg_pool{n}d", _aten_pool("average_pool", n)) for n in (1, 2, 3)),
    *(
        (
            f"adaptive_avg_pool{n}d _adaptive_avg_pool{n}d",
            _adaptive("reduce_mean", "average_pool", n),
        )
        for n in (1, 2, 3)
    ),
    *((f"adaptive_max_pool{n}d", _adaptive("reduce_max", "max_pool", n)) for n in (1, 2, 3)),
    ("conv1d conv2d conv3d convolution _convolution", _aten_conv),
    ("conv_transpose1d conv_transpose2d conv_transpose3d", _aten_conv),
)
