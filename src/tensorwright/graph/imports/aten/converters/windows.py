"""Pooling, resizing and recurrent layers.

Matrix products, convolutions and attention.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Index, floor_div
from tensorwright.graph.imports.call import Call, Converter, Results, Table
from tensorwright.graph.imports.converters.recurrent import recurrent
from tensorwright.graph.imports.promotion import scaled
from tensorwright.ops import AttributeValue, number_of, product_of


def _batched(count: int, convert: Callable[[Call, str], str]) -> Converter:
    """A converter for images (n, c, ...) that accepts a single image (c, ...), too."""

    def whole(call: Call) -> Results:
        x = call.tensor("self" if call.has("self") else "input")
        if call.rank(x) != count + 1:
            return (convert(call, x),)
        y = convert(call, call.add("unsqueeze", x, axes=(0,)))
        return (call.add("squeeze", y, axes=(0,)),)

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
        return (*shape[:2], *call.shape("output_size")), scales
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
    return (
        call.add(
            "grid_sample",
            call.tensor("input"),
            call.tensor("grid"),
            mode=_SAMPLING[call.integer("interpolation_mode")],
            padding=_OUTSIDE[call.integer("padding_mode")],
            align_corners=call.flag("align_corners"),
        ),
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
        return (x, *joined)

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
    outputs = (True,) * (1 + len(begins))
    cells = Call(kind, call.label, more, call.builder, (x, w, r, bias, None, *begins), outputs)
    y, *ends = map(call.as_tensor, recurrent(cells) or ())
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


def _linear(call: Call) -> Results:
    """input weight^T + bias"""
    x, weight = call.tensor("input"), call.tensor("weight")
    if _is_gemm(call, x, weight):
        return (call.add("gemm", x, weight, *call.optional("bias"), trans_b=True),)
    turned = call.add("transpose", weight, perm=(1, 0)) if call.rank(weight) == 2 else weight
    product = call.add("matmul", x, turned)
    if call.has("bias"):
        product = call.add("add", product, call.tensor("bias"))
    return (product,)


def _is_gemm(call: Call, left: str, right: str) -> bool:
    """Whether both are matrices of floats: then `gemm` computes the scales and the bias, too."""
    return call.rank(left) == call.rank(right) == 2 and call.dtype_of(left).is_float


def _product_and_sum(left: str, right: str) -> Converter:
    def convert(call: Call) -> Results:
        """beta * self + alpha * left right"""
        a, b, beta = call.tensor(left), call.tensor(right), call.get("beta", 1)
        if _is_gemm(call, a, b):
            operands = (a, b, *((call.tensor("self"),) if beta else ()))
            factors = {"alpha": call.real("alpha", 1.0), "beta": call.real("beta", 1.0)}
            return (call.add("gemm", *operands, **factors),)
        product = scaled(call, call.add("matmul", a, b), "alpha")
        if beta == 0:
            return (product,)
        return (call.add("add", product, scaled(call, call.tensor("self"), "beta")),)

    return convert


def _einsum(call: Call) -> Results:
    operands = call.tensors("tensors")
    return (call.add("einsum", *operands, equation=call.text("equation").replace(" ", "")),)


def _grouped_product(rows: str, weights: str) -> Converter:
    def convert(call: Call) -> Results:
        """Each row times the matrix of its group: of experts, between which rows are sorted.

        Shapes:  rows (m, k), weights (groups, k, n), offs (groups,) the end of each group's rows
                 -> (m, n)
        """
        x, weight, ends = call.tensor(rows), call.tensor(weights), call.tensor("offs")
        if (call.rank(x), call.rank(weight)) != (2, 3) or call.has("bias"):
            raise call.unsupported("it multiplies other than rows by a matrix for each group")
        (count, _), (groups, _, width) = call.sizes(x), call.sizes(weight)
        row = call.add("range", size=count, start=0, step=1, dtype=call.dtype_of(ends))
        row = call.add("reshape", row, shape=(count, 1))
        is_behind = call.cast(call.add("less_or_equal", ends, row), DType.I32)
        group = call.add("reduce_sum", is_behind, axes=(1,), keepdims=False)
        group = call.add("min", group, call.full((), groups - 1, DType.I32))  # rows of no group
        if isinstance(count, int) and isinstance(groups, int) and count <= groups:
            x = call.add("unsqueeze", x, axes=(1,))
            own = call.add("gather", weight, group, axis=0)
            return (call.add("squeeze", call.add("matmul", x, own), axes=(1,)),)
        products = call.add("matmul", call.add("unsqueeze", x, axes=(0,)), weight)
        at = call.add("reshape", group, shape=(1, count, 1))
        at = call.add("expand", at, shape=(1, count, width))
        chosen = call.add("gather_elements", products, at, axis=0)
        return (call.add("squeeze", chosen, axes=(0,)),)

    return convert


def _outer(call: Call) -> Results:
    left = call.add("unsqueeze", call.tensor("self"), axes=(1,))
    return (call.add("mul", left, call.tensor("vec2")),)


def _convolve(call: Call, *, transposed: bool) -> Results:
    x, w = call.tensor("input"), call.tensor("weight")
    count = call.rank(w) - 2
    is_single = call.rank(x) == count + 1
    if is_single:
        x = call.add("unsqueeze", x, axes=(0,))
    kernel = list(call.extents(w)[2:])
    dilations = call.per_dimension("dilation", count, (1,))
    begins, ends = _pads(call, kernel, dilations)
    window: dict[str, AttributeValue] = {
        "strides": call.per_dimension("stride", count, (1,)),
        "pads": (*begins, *ends),
        "dilations": dilations,
        "groups": call.integer("groups", 1),
    }
    operands = (x, w, *call.optional("bias"))
    if transposed:
        extra = call.per_dimension("output_padding", count, (0,))
        y = call.add("conv_transpose", *operands, output_padding=extra, **window)
    else:
        y = call.add("conv", *operands, **window)
    return (call.add("squeeze", y, axes=(0,)) if is_single else y,)


def _pads(
    call: Call, kernel: list[int], dilations: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and after each dimension; "same" puts the odd element after it."""
    given = call.get("padding", 0)
    if given == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if given == "same":
        totals = [(k - 1) * dilation for k, dilation in zip(kernel, dilations, strict=True)]
        begins = tuple(total // 2 for total in totals)
        return begins, tuple(t - b for t, b in zip(totals, begins, strict=True))
    pads = call.per_dimension("padding", len(kernel), (0,))
    return pads, pads


def _conv(call: Call) -> Results:
    return _convolve(call, transposed=call.flag("transposed"))


def _conv_transpose(call: Call) -> Results:
    return _convolve(call, transposed=True)


def _attention(call: Call) -> Results:
    """softmax(scale * query key^T + mask) value; a row whose keys are all masked is 0.

    Shapes:  query (..., l, e), key (..., s, e), value (..., s, f) -> (..., l, f)
    """
    if call.real("dropout_p", 0.0) > 0:
        raise call.unsupported("it drops weights at random", "call eval() on the module")
    q, k, v = (call.tensor(name) for name in ("query", "key", "value"))
    lead = call.sizes(q)[:-2]
    if len(lead) != 2:
        q, k, v = (_of_four(call, each) for each in (q, k, v))
    mask = _mask(call, q, k)
    y = call.add(
        "attention",
        q,
        k,
        v,
        *mask,
        scale=call.real("scale", 0.0),
        causal=call.flag("is_causal"),
        nan_weights="zero_without_keys" if mask else "kept",
    )
    if len(lead) != 2:
        y = call.add("reshape", y, shape=(*lead, *call.sizes(y)[-2:]))
    return (y,)


def _of_four(call: Call, tensor: str) -> str:
    """A tensor of four dimensions: further leading dimensions are joined to the first one."""
    *lead, rows, width = call.sizes(tensor)
    return call.add("reshape", tensor, shape=(product_of(lead), 1, rows, width))


def _mask(call: Call, q: str, k: str) -> tuple[str, ...]:
    """The tensor that is added to the scores."""
    if not call.has("attn_mask"):
        return ()
    mask = call.tensor("attn_mask")
    wanted: tuple[Index, ...] = (*call.sizes(q)[:3], call.sizes(k)[2])
    if call.rank(mask) > 4 or (call.rank(mask) > 2 and call.rank(call.tensor("query")) != 4):
        lead = call.sizes(call.tensor("query"))[:-2]
        mask = call.add("expand", mask, shape=(*lead, *wanted[2:]))
        mask = call.add("reshape", mask, shape=wanted)
    dtype = call.dtype_of(q)
    return (mask if call.dtype_of(mask) is DType.BOOL else call.cast(mask, dtype),)


LINEAR: Table = (
    ("linear", _linear),
    ("addmm", _product_and_sum("mat1", "mat2")),
    ("addmv", _product_and_sum("mat", "vec")),
    ("baddbmm", _product_and_sum("batch1", "batch2")),
    ("einsum", _einsum),
    ("_grouped_mm", _grouped_product("self", "mat2")),
    ("grouped_mm_fallback", _grouped_product("input", "weight")),
    ("outer", _outer),
    *((f"conv{n}d", _conv) for n in (1, 2, 3)),
    ("convolution", _conv),
    ("_convolution", _conv),
    *((f"conv_transpose{n}d", _conv_transpose) for n in (1, 2, 3)),
    ("scaled_dot_product_attention", _attention),
    ("_scaled_dot_product_flash_attention_for_cpu", _attention),
)
