"""The meaning of the operator suite's families, as tensor expressions and in ONNX.

Where an operator of ours exists, our tensor expression is that of the first form, with its tensors
laid out as the suite states; a capsule convolution is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tensorwright.base import unknown_name
from tensorwright.expr import Index, Reduce, compute, placeholder, reduce_axis, sum_over
from tensorwright.graph import GraphBuilder, build_workload, program
from tensorwright.ops import operator
from tensorwright_lab.zoo.operator_suite import (
    Arrangement,
    BuildForm,
    Form,
    OperatorCase,
    OperatorProgram,
    Shape,
)

CAPSULE = 4
"""Rows and columns of the matrices that a capsule convolution sums products of."""


def operator_program(case: OperatorCase) -> OperatorProgram:
    """The meaning of a case.

    Raises:  UsageError for a family that is not known.
    """
    if case.family not in FAMILIES:
        reason = f"there is no family {case.family}"
        raise unknown_name("zoo", f"case {case.name}", reason, case.family, FAMILIES)
    return FAMILIES[case.family](case)


def _from_form(
    case: OperatorCase,
    operands: Sequence[tuple[str, Shape]],
    constants: Sequence[str],
    forms: tuple[Form, ...],
) -> OperatorProgram:
    """A program whose tensor expression is that of its first form, laid out as stated."""
    form = forms[0]
    builder = GraphBuilder(case.family)
    names = []
    for (name, _), arrangement in zip(operands, form.operands, strict=True):
        shape = arrangement.arranged
        if name in constants:
            names.append(builder.constant(np.broadcast_to(np.float32(2), shape), name))
        else:
            names.append(builder.input(name, shape))
        builder.set_layout(name, arrangement.layout)
    output = form.build(builder, names)
    graph = builder.finish([output])
    for node in graph.nodes:
        for name in node.outputs:
            if graph.types[name].shape == form.output.arranged:
                builder.set_layout(name, form.output.layout)
    graph = builder.finish([output])
    bound = build_workload(graph, graph.nodes)
    return OperatorProgram(
        case, tuple(operands), frozenset(constants), bound.workload, bound.inputs, forms
    )


# Convolutions

_SPACE = ("depth", "height", "width", "length")


def _space(case: OperatorCase) -> Shape:
    return tuple(number for field, number in case.fields if field in _SPACE)


def _channels_first(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def _channels_last(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank), 1)


def _convolution(case: OperatorCase) -> OperatorProgram:
    """x (n, *space, ci), w (*kernel, ci / groups, co): C1D, C2D, C3D, GRP, DIL; and DEP, whose
    w is (*kernel, c, 1).
    """
    count = len(_space(case))
    rank = count + 2
    channels = case.get("channels", 0)
    inputs, outputs = case.get("in_channels", channels), case.get("out_channels", channels)
    groups = channels or case.get("groups", 1)
    kernel = (case["kernel"],) * count
    folded = (channels, 1) if channels else (inputs // groups, outputs)
    operands = (("x", (case.batch, *_space(case), inputs)), ("w", (*kernel, *folded)))
    to_weight = (rank - 2, rank - 1) if channels else (rank - 1, rank - 2)
    weight = Arrangement.moved(operands[1][1], (*to_weight, *range(count)))
    spaced = _window_output(case)
    result = (case.batch, *spaced, outputs)

    def add(builder: GraphBuilder, names: Sequence[str]) -> str:
        return builder.add("conv", *names, groups=groups, **_window(case))

    return _from_form(case, operands, ("w",), _image_forms(operands, (weight,), result, add))


def _conv_layer(case: OperatorCase) -> OperatorProgram:
    """relu((conv(x, w) + bias) * scale + offset)."""
    inputs, outputs, kernel = case["in_channels"], case["out_channels"], case["kernel"]
    vectors = tuple((name, (outputs,)) for name in ("bias", "scale", "offset"))
    operands = (
        ("x", (case.batch, *_space(case), inputs)),
        ("w", (kernel, kernel, inputs, outputs)),
        *vectors,
    )
    arrangements = (
        Arrangement.moved(operands[1][1], (3, 2, 0, 1)),
        Arrangement.same((outputs,)),
        *(Arrangement.same((outputs,), (outputs, 1, 1)) for _ in range(2)),
    )
    result = (case.batch, *_window_output(case), outputs)

    def add(builder: GraphBuilder, names: Sequence[str]) -> str:
        x, w, bias, scale, offset = names
        y = builder.add("conv", x, w, bias, **_window(case))
        y = builder.add("add", builder.add("mul", y, scale), offset)
        return builder.add("relu", y)

    constants = ("w", "bias", "scale", "offset")
    return _from_form(case, operands, constants, _image_forms(operands, arrangements, result, add))


def _transposed(case: OperatorCase) -> OperatorProgram:
    """T2D: x (n, h, w, ci), w (kh, kw, ci, co)."""
    inputs, outputs, kernel = case["in_channels"], case["out_channels"], case["kernel"]
    operands = (
        ("x", (case.batch, *_space(case), inputs)),
        ("w", (kernel, kernel, inputs, outputs)),
    )
    weight = Arrangement.moved(operands[1][1], (2, 3, 0, 1))
    shift = kernel - 2 * case["padding"]
    spaced = tuple((extent - 1) * case["stride"] + shift for extent in _space(case))

    def add(builder: GraphBuilder, names: Sequence[str]) -> str:
        return builder.add("conv_transpose", *names, **_window(case))

    result = (case.batch, *spaced, outputs)
    return _from_form(case, operands, ("w",), _image_forms(operands, (weight,), result, add))


def _window(case: OperatorCase) -> dict[str, Any]:
    count = len(_space(case))
    return {
        "strides": (case["stride"],) * count,
        "pads": (case["padding"],) * (2 * count),
        "dilations": (case.get("dilation", 1),) * count,
    }


def _window_output(case: OperatorCase) -> Shape:
    reach = case.get("dilation", 1) * (case["kernel"] - 1) + 1
    return tuple(
        (extent + 2 * case["padding"] - reach) // case["stride"] + 1 for extent in _space(case)
    )


def _image_forms(
    operands: Sequence[tuple[str, Shape]],
    weights: tuple[Arrangement, ...],
    result: Shape,
    add: BuildForm,
) -> tuple[Form, ...]:
    """Channels first, as ONNX has it; and the stated layout with transpositions around, which a
    runtime may take away.
    """
    shape = operands[0][1]
    first, last = _channels_first(len(shape)), _channels_last(len(shape))

    def between(builder: GraphBuilder, names: Sequence[str]) -> str:
        x = builder.add("transpose", names[0], perm=first)
        return builder.add("transpose", add(builder, [x, *names[1:]]), perm=last)

    x, y = Arrangement.moved(shape, first), Arrangement.moved(result, first)
    plain = Arrangement.same(shape), Arrangement.same(result)
    return (
        Form("channels_first", (x, *weights), y, add),
        Form("channels_last", (plain[0], *weights), plain[1], between),
    )


def _capsule(case: OperatorCase) -> OperatorProgram:
    """CAP: x (n, h, w, i, k, ci), w (kh, kw, k, j, ci, co) -> (n, h, w, i, j, co)."""
    size, batch = CAPSULE, case.batch
    inputs, outputs, kernel = case["in_channels"], case["out_channels"], case["kernel"]
    rows, columns = _window_output(case)
    stride, pad = case["stride"], case["padding"]
    x_shape = (batch, *_space(case), size, size, inputs)
    w_shape = (kernel, kernel, size, size, inputs, outputs)
    x, w = placeholder("x", x_shape), placeholder("w", w_shape)
    meaning = operator("pad").meaning
    assert meaning is not None, "padding is a tensor expression"
    amounts = (0, pad, pad, 0, 0, 0)
    complete = operator("pad").complete({"pads": (*amounts, *amounts)})
    (data,) = meaning((x,), complete) if pad else (x,)
    rh, rw = reduce_axis("rh", kernel), reduce_axis("rw", kernel)
    rk, rc = reduce_axis("rk", size), reduce_axis("rc", inputs)

    def body(n: Index, h: Index, v: Index, i: Index, j: Index, co: Index) -> Reduce:
        read = data[n, h * stride + rh, v * stride + rw, i, rk, rc]
        return sum_over(read * w[rh, rw, rk, j, rc, co], rh, rw, rk, rc)

    result = (batch, rows, columns, size, size, outputs)
    made = program((compute("capsule", result, body),), frozenset({"w"}), "capsule_conv2d")
    operands = (("x", x_shape), ("w", w_shape))
    forms = _capsule_forms(case, operands, result)
    names = tuple(tensor.name for tensor in made.inputs)
    return OperatorProgram(case, operands, frozenset({"w"}), made, names, forms)


def _capsule_forms(
    case: OperatorCase, operands: Sequence[tuple[str, Shape]], result: Shape
) -> tuple[Form, ...]:
    """The rows of the capsules as images of their own, or as a third dimension of space."""
    size, batch = CAPSULE, case.batch
    (_, x), (_, w) = operands
    kernel, inputs, outputs = w[0], w[4], w[5]
    images = (0, 3, 4, 5, 1, 2)
    volumes = (0, 4, 5, 3, 1, 2)
    flat = (size * outputs, size * inputs, kernel, kernel)
    weight = Arrangement(w, w, (3, 5, 2, 4, 0, 1), flat)
    deep = Arrangement(w, w, (3, 5, 2, 4, 0, 1), (*flat[:2], 1, kernel, kernel))
    strides, pads = (case["stride"],) * 2, (case["padding"],) * 2

    def as_images(builder: GraphBuilder, names: Sequence[str]) -> str:
        return builder.add("conv", *names, strides=strides, pads=(*pads, *pads))

    def as_volumes(builder: GraphBuilder, names: Sequence[str]) -> str:
        return builder.add("conv", *names, strides=(1, *strides), pads=(0, *pads, 0, *pads))

    def images_of(shape: Shape, channels: int) -> Arrangement:
        arranged = (batch * size, size * channels, *shape[1:3])
        return Arrangement(shape, shape, images, arranged)

    def volumes_of(shape: Shape, channels: int) -> Arrangement:
        arranged = (batch, size * channels, size, *shape[1:3])
        return Arrangement(shape, shape, volumes, arranged)

    return (
        Form("images", (images_of(x, inputs), weight), images_of(result, outputs), as_images),
        Form("volumes", (volumes_of(x, inputs), deep), volumes_of(result, outputs), as_volumes),
    )


# Matrices


def _product(case: OperatorCase) -> OperatorProgram:
    """GMM: a (b, n, k) and b (b, k, m), both activations."""
    rows, columns, inner = case["rows"], case["columns"], case["inner"]
    operands = (("a", (case.batch, rows, inner)), ("b", (case.batch, inner, columns)))
    form = Form(
        "matmul",
        tuple(Arrangement.same(shape) for _, shape in operands),
        Arrangement.same((case.batch, rows, columns)),
        lambda builder, names: builder.add("matmul", *names),
    )
    return _from_form(case, operands, (), (form,))


def _norm(case: OperatorCase) -> OperatorProgram:
    """NRM: x (b, m, n) -> (b)."""
    shape = (case.batch, case["rows"], case["columns"])
    count = prod(shape[1:])
    result = Arrangement.same((case.batch,))
    square = (Arrangement.same(shape),)

    def as_norm(builder: GraphBuilder, names: Sequence[str]) -> str:
        return builder.add("reduce_l2", names[0], axes=(1, 2), keepdims=False)

    def as_squares(builder: GraphBuilder, names: Sequence[str]) -> str:
        total = builder.add("reduce_sum_square", names[0], axes=(1, 2), keepdims=False)
        return builder.add("sqrt", total)

    def as_product(builder: GraphBuilder, names: Sequence[str]) -> str:
        row = builder.add("reshape", names[0], shape=(case.batch, 1, count))
        column = builder.add("reshape", names[0], shape=(case.batch, count, 1))
        total = builder.add("sqrt", builder.add("matmul", row, column))
        return builder.add("reshape", total, shape=(case.batch,))

    forms = (
        Form("norm", square, result, as_norm),
        Form("squares", square, result, as_squares),
        Form("product", square, result, as_product),
    )
    return _from_form(case, (("x", shape),), (), forms)


def _attention_scores(case: OperatorCase) -> OperatorProgram:
    """TBS: softmax over keys of the products of queries and keys, both (b, length, head, d)."""
    length, heads = case["length"], case["heads"]
    shape = (case.batch, length, heads, case["features"])
    same = (Arrangement.same(shape),) * 2
    result = Arrangement.same((case.batch, heads, length, length))

    def as_product(builder: GraphBuilder, names: Sequence[str]) -> str:
        queries = builder.add("transpose", names[0], perm=(0, 2, 1, 3))
        keys = builder.add("transpose", names[1], perm=(0, 2, 3, 1))
        return builder.add("softmax", builder.add("matmul", queries, keys), axis=-1)

    def as_einsum(builder: GraphBuilder, names: Sequence[str]) -> str:
        product = builder.add("einsum", *names, equation="bqhd,bkhd->bhqk")
        return builder.add("softmax", product, axis=-1)

    forms = (
        Form("product", same, result, as_product),
        Form("einsum", same, result, as_einsum),
    )
    return _from_form(case, (("q", shape), ("k", shape)), (), forms)


FAMILIES: Mapping[str, Callable[[OperatorCase], OperatorProgram]] = {
    "C1D": _convolution,
    "C2D": _convolution,
    "C3D": _convolution,
    "GMM": _product,
    "GRP": _convolution,
    "DIL": _convolution,
    "DEP": _convolution,
    "T2D": _transposed,
    "CAP": _capsule,
    "NRM": _norm,
    "ConvLayer": _conv_layer,
    "TBS": _attention_scores,
}
