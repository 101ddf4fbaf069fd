"""Meanings over named sizes: with numbers put in, they compute what they do for the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from tests.draws import random_source
from tests.unit.ops.test_named_sizes import CASES as SHAPES
from tests.unit.ops.test_named_sizes import at, k, m, n, one, positions, typed, types_of

from tensorwright import expr
from tensorwright.base import Array, AttributeValue, DType, TensorType
from tensorwright.ops import Pattern, infer_types, operator, sizes_of
from tensorwright.ops.registry import OPERATORS

h = expr.named_size("h", least=4, greatest=12, divisor=2)
w = expr.named_size("w", least=3, greatest=9)
long = expr.named_size("long", greatest=70)
endless = expr.named_size("endless")
REDUCTIONS = ("all", "any", "l1", "l2", "log_sum", "max", "min", "prod", "sum_square")
LENGTHS = typed((n,), DType.I64)
BYTES = typed((n, m), DType.U8)

CASES: Mapping[str, tuple[str, list[object], dict[str, object]]] = {
    **SHAPES,
    "attention, causal": (
        "attention",
        [(n, 4, k, 8), (n, 2, k, 8), (n, 2, k, 5), typed((k, k), DType.BOOL)],
        {"causal": True, "softcap": 5.0},
    ),
    "average_pool": (
        "average_pool",
        [(n, 3, h, w)],
        {"kernel": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)},
    ),
    "average_pool, ceil": (
        "average_pool",
        [(n, 2, h, w)],
        {"kernel": (2, 3), "strides": (2, 1), "pads": (0, 1, 0, 1), "ceil_mode": True},
    ),
    "batch_norm of pixels": ("batch_norm", [(n, 4, h, w), (4,), (4,), (4,), (4,)], {}),
    "conv_integer": (
        "conv_integer",
        [
            typed((n, 4, h, w), DType.U8),
            typed((6, 4, 3, 3), DType.I8),
            typed((), DType.U8),
            typed((6,), DType.I8),
        ],
        {"pads": (1, 1, 1, 1)},
    ),
    "conv_transpose": ("conv_transpose", [(n, 4, h, w), (4, 3, 2, 2)], {"strides": (2, 2)}),
    "conv_transpose, padded": (
        "conv_transpose",
        [(n, 4, h, w), (4, 2, 3, 4), (4,)],
        {"strides": (2, 3), "pads": (1, 1, 1, 0), "groups": 2, "output_padding": (1, 0)},
    ),
    "concat with what may be empty": ("concat", [(n, endless - 1), (n, m)], {"axis": 1}),
    "cumprod, reversed": ("cumprod", [(long, 2)], {"axis": 0, "reverse": True}),
    "cumsum, exclusive": ("cumsum", [(n, endless)], {"axis": 1, "exclusive": True}),
    "cumsum, long": ("cumsum", [(long,)], {"axis": 0}),
    "einsum": ("einsum", [(n, h, w), (h, w), (1, w, k)], {"equation": "bij,ij,...jk->bk"}),
    "eye_like": ("eye_like", [(n, m)], {"k": 1}),
    "full": ("full", [], {"shape": (n, 3), "value": 2.5}),
    "full of a size": ("full", [], {"shape": (2,), "value": 2 * n + 1, "dtype": DType.I64}),
    "gather from a size": ("gather", [(n, m), positions(h, 2)], {"axis": 1}),
    "global norm pooling": ("global_lp_pool", [(n, 2, h, w)], {"p": 2.0}),
    "global_max_pool": ("global_max_pool", [(n, 2, h, w)], {}),
    "grid_sample": ("grid_sample", [(n, 2, 5, 6), (n, h, w, 2)], {}),
    "hardmax": ("hardmax", [(n, m)], {"axis": 0}),
    "instance_norm": ("instance_norm", [(n, 3, h, w), (3,), (3,)], {}),
    "layer_norm over sizes": ("layer_norm", [(n, h, w), (h, w), (w,)], {"axis": 1}),
    "last argmin": ("argmin", [(n, m)], {"axis": 1, "select_last_index": True}),
    "log_softmax": ("log_softmax", [(n, m)], {"axis": 0}),
    "lp_normalization": ("lp_normalization", [(n, m)], {"p": 1}),
    "lp_pool": ("lp_pool", [(n, 2, h)], {"kernel": (2,), "p": 3.0}),
    "lrn": ("lrn", [(n, 6, h, w)], {"size": 3}),
    "matmul_integer": (
        "matmul_integer",
        [BYTES, typed((m, 5), DType.I8), typed((n,), DType.U8), typed((), DType.I8)],
        {},
    ),
    "max_pool, ceil": (
        "max_pool",
        [(n, 2, h, h)],
        {"kernel": (2, 2), "strides": (2, 2), "ceil_mode": True},
    ),
    "mean": ("mean", [(n, m), (n, 1), (m,)], {}),
    "one_hot of a depth": ("one_hot", [positions(n), (2,)], {"depth": h, "axis": 0}),
    "pad, wrapped": ("pad", [(n, h)], {"pads": (1, 2, 3, 1), "mode": "wrap"}),
    "pad, edge": ("pad", [(n, h)], {"pads": (1, 2, 3, 1), "mode": "edge"}),
    "pad, one may be all": ("pad", [(one, n)], {"pads": (2, 1, 2, 0), "mode": "reflect"}),
    "pad by a size": ("pad", [(n, h)], {"pads": (0, 1, 0, w - 1), "value": 3.0}),
    "range": ("range", [], {"size": n, "start": 2, "step": 3}),
    "range from a size": ("range", [], {"size": n, "start": m}),
    "range of floats": ("range", [], {"size": n, "start": 0.5, "step": 2, "dtype": DType.F32}),
    "reduce_log_sum_exp": ("reduce_log_sum_exp", [(n, h, w)], {"axes": (0, 2), "keepdims": False}),
    "reduce_mean": ("reduce_mean", [(n, 3, m)], {"axes": (0, 2)}),
    "reduce_mean of halves": ("reduce_mean", [typed((n, m), DType.F16)], {}),
    "resize, cubic": (
        "resize",
        [(n, 2, h, w)],
        {"sizes": (n, 2, 3 * h, w), "mode": "cubic", "exclude_outside": True},
    ),
    "resize, corners": (
        "resize",
        [(n, 2, h, w)],
        {"sizes": (n, 2, 2 * h, 7), "mode": "linear", "coordinates": "align_corners"},
    ),
    "resize, halved": (
        "resize",
        [(n, 2, h, w)],
        {"sizes": (n, 2, h // 2, w), "coordinates": "asymmetric", "nearest_mode": "floor"},
    ),
    "resize, linear": ("resize", [(n, 2, h, w)], {"sizes": (n, 2, 2 * h, 2 * w), "mode": "linear"}),
    "resize, to a number": ("resize", [(n, 2, h, w)], {"sizes": (n, 2, 8, 5), "mode": "linear"}),
    "resize, by a scale": (
        "resize",
        [(n, w)],
        {"sizes": (n, 3 * w // 2), "scales": (1.0, 1.5), "mode": "linear"},
    ),
    "reshape of several": ("reshape", [(n, h, 6, w)], {"shape": (n * h, 2, 3 * w)}),
    "reshape back": ("reshape", [(n * h, 3 * w)], {"shape": (n, h, 3, w)}),
    "reshape, mixed": ("reshape", [(n, w)], {"shape": (w, n)}),
    "reverse_sequence": ("reverse_sequence", [(m, n, 2), LENGTHS], {}),
    "rms_norm": ("rms_norm", [(n, h, w), (w,)], {"axis": 1}),
    "slice from a size": ("slice", [(n, m)], {"starts": (n - 2,), "ends": (n,)}),
    "space and depth": ("depth_to_space", [(n, 8, h, w)], {"blocksize": 2, "mode": "CRD"}),
    "split by a size": ("split", [(n, h + 3)], {"sizes": (h, 3), "axis": 1}),
    "squeeze nothing": ("squeeze", [(n, 1, m, 1)], {"axes": (3,)}),
    "tile by a size": ("tile", [(n, m)], {"repeats": (h, 1)}),
    "trilu": ("trilu", [(n, h, w)], {"upper": False, "k": 1}),
    "trilu at a size": ("trilu", [(h, w)], {"k": h - 2}),
    "dequantize_linear": ("dequantize_linear", [BYTES, (m,), typed((m,), DType.U8)], {"axis": 1}),
}


def numbers_of(value: AttributeValue, values: Mapping[str, int]) -> AttributeValue:
    if isinstance(value, tuple):
        return tuple(numbers_of(each, values) for each in value)
    return expr.with_sizes(value, values) if isinstance(value, expr.IndexExpr) else value


def arrays_of(types: list[TensorType], seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    found: list[Array] = []
    for type_ in types:
        if type_.dtype.is_float:
            drawn: Array = generator.uniform(0.1, 1.0, type_.extents)
        else:
            drawn = generator.integers(0, 2, type_.extents)
        found.append(np.asarray(drawn, type_.dtype.numpy))
    return found


def read_by(outputs: Sequence[expr.Compute]) -> list[expr.Placeholder]:
    return [t for t in expr.topological_order(*outputs) if isinstance(t, expr.Placeholder)]


def listed(given: Mapping[str, object]) -> list[expr.Index]:
    """The sizes in attributes."""
    values = [each if isinstance(each, tuple) else (each,) for each in given.values()]
    return [item for each in values for item in each if isinstance(item, expr.IndexExpr)]


def test_every_operator_with_a_meaning_has_a_case() -> None:
    pointwise = {each.name for each in OPERATORS if each.pattern is Pattern.ELEMENTWISE}
    tried = {kind for kind, _, _ in CASES.values()}
    like_others = {"reduce_" + each for each in REDUCTIONS}
    missing = {each.name for each in OPERATORS if each.meaning is not None} - tried
    assert missing - pointwise - like_others == set()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.drawn
def test_a_meaning_agrees_with_that_of_the_numbers(name: str) -> None:
    kind, inputs, given = CASES[name]
    meaning = operator(kind).meaning
    if meaning is None:
        return
    types = types_of(inputs)
    _, complete = infer_types(kind, types, given)  # type: ignore[arg-type]
    tensors = [expr.Placeholder(f"x{i}", sizes_of(t), t.dtype) for i, t in enumerate(types)]
    results = meaning(tuple(tensors), complete)
    extents: list[expr.Index] = [
        extent for tensor in (*tensors, *results) for extent in tensor.shape
    ]
    sizes = expr.named_sizes_of(*extents, *listed(given))
    chance = random_source(name)
    room = 60 if all(len(tensor.shape) <= 2 for tensor in (*tensors, *results)) else 4
    for trial in range(5):
        values = {}
        for size in sizes:
            most = size.least + room if size.most is None else min(size.most, size.least + room)
            ends = (size.least, most, chance.randint(size.least, most))
            values[size.name] = ends[trial % 3] * size.divisor
        bound = expr.bind_tensors(results, {s: s.checked(values[s.name]) for s in sizes})
        plain = [TensorType(t.dtype, at(sizes_of(t), values)) for t in types]
        arrays = arrays_of(plain, trial)
        read = {t.name: a for t, a in zip(tensors, arrays, strict=True)}
        given_ = {key: numbers_of(value, values) for key, value in complete.items()}
        static = [
            expr.Placeholder(t.name, p.shape, p.dtype) for t, p in zip(tensors, plain, strict=True)
        ]
        wanted = meaning(tuple(static), given_)
        expected = expr.evaluate(wanted, {t: read[t.name] for t in read_by(wanted)})
        found = expr.evaluate(bound, {t: read[t.name] for t in read_by(bound)})
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=str(values))
