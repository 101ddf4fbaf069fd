"""Matrix products, convolutions and attention."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.expr import Index
from tensorwright.graph.aten_import.call import Call, Converter, Results, Table, tensors
from tensorwright.graph.aten_import.promotion import scaled
from tensorwright.ops import AttributeValue, product_of


def _linear(call: Call) -> Results:
    """input weight^T + bias"""
    x, weight = call.tensor("input"), call.tensor("weight")
    if _is_gemm(call, x, weight):
        return tensors(call.add("gemm", x, weight, *call.optional("bias"), trans_b=True))
    turned = call.add("transpose", weight, perm=(1, 0)) if call.rank(weight) == 2 else weight
    product = call.add("matmul", x, turned)
    if call.has("bias"):
        product = call.add("add", product, call.tensor("bias"))
    return tensors(product)


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
            return tensors(call.add("gemm", *operands, **factors))
        product = scaled(call, call.add("matmul", a, b), "alpha")
        if beta == 0:
            return tensors(product)
        return tensors(call.add("add", product, scaled(call, call.tensor("self"), "beta")))

    return convert


def _einsum(call: Call) -> Results:
    operands = call.tensors("tensors")
    return tensors(call.add("einsum", *operands, equation=call.text("equation").replace(" ", "")))


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
            return tensors(call.add("squeeze", call.add("matmul", x, own), axes=(1,)))
        products = call.add("matmul", call.add("unsqueeze", x, axes=(0,)), weight)
        at = call.add("reshape", group, shape=(1, count, 1))
        at = call.add("expand", at, shape=(1, count, width))
        chosen = call.add("gather_elements", products, at, axis=0)
        return tensors(call.add("squeeze", chosen, axes=(0,)))

    return convert


def _outer(call: Call) -> Results:
    left = call.add("unsqueeze", call.tensor("self"), axes=(1,))
    return tensors(call.add("mul", left, call.tensor("vec2")))


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
    return tensors(call.add("squeeze", y, axes=(0,)) if is_single else y)


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
    return tensors(y)


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


def _first_attention(outputs: int) -> Converter:
    def convert(call: Call) -> Results:
        """As `_attention`, with the further outputs that only training reads."""
        return (*_attention(call), *(None,) * (outputs - 1))

    return convert


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
    ("_scaled_dot_product_flash_attention_for_cpu", _first_attention(2)),
)
