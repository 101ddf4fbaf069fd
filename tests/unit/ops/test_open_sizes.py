"""Named sizes: with numbers put in, rules and meanings give what they give for the numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from tests.draws import random_source
from tests.unit.ops.apply import applications, sizes_in

from tensorwright import expr
from tensorwright.base import Array, DType, TensorType, UnsupportedError
from tensorwright.ops import Pattern, infer_types, operator, sizes_of
from tensorwright.ops.registry import OPERATORS

CASES = """
relu(f32(n, 3, m))
add(f32(n, 1, m), f32(k, 1))
add(f32(one, m), f32(one, m))
where(bool(n, 1), f32(n, m), f32(m))
pow(f32(n, m), f32(m))
matmul(f32(n, 1, m, k), f32(8, k, 5))
matmul(f32(n, m), f32(m))
gemm(f32(m, n), f32(k, m), f32(n, 1), trans_a=True, trans_b=True)
attention(f32(n, m, k, 64), f32(n, 8, m, 64), f32(n, 8, m, 64))
conv(f32(n, 2*m, k, m + 5), f32(32, m, 3, 5), f32(32), groups=2, strides=(2, 3),
    pads=(1, 1, 1, 2), dilations=(2, 1))
max_pool(f32(n, m, k, 2*k), kernel=(3, 2), strides=(2, 2))
global_average_pool(f32(n, m, k, k))
reshape(f32(n, 8, m), shape=(n, 2, m, 4))
reshape(f32(n, m), shape=(4*n, m // 4))
transpose(f32(n, 3, m), perm=(2, 0, 1))
expand(f32(n, 1, 1), shape=(m, 1, k, 4))
squeeze(f32(n, 1, m), axes=(1,))
unsqueeze(f32(n, m), axes=(0, 3))
tile(f32(n, m), repeats=(2, 3))
depth_to_space(f32(n, m, k, k), blocksize=2)
space_to_depth(f32(n, 3, m, 2*k), blocksize=2)
concat(f32(n, m), f32(n, 3), f32(n, k - 1), axis=1)
split(f32(n, 8), sizes=(3, 5), axis=1)
slice(f32(n, m), starts=(1, 0), ends=(2, -1))
slice(f32(n, k), starts=(-5, 3), ends=(100, 60), steps=(2, 7))
slice(f32(n, k), starts=(-1, 9), ends=(-99, 2), steps=(-1, -3))
pad(f32(n, k), pads=(1, -3, 2, 0))
pad(f32(n, k), pads=(1, 2, 1, 3), mode="reflect")
reduce_sum(f32(n, 3, m), axes=(0, 2), keepdims=False)
argmax(f32(n, m), axis=1)
softmax(f32(n, m))
cumsum(f32(n, m), axis=0)
gather(f32(m, k), i64(n, 4), axis=0)
gather_elements(f32(n, m), i64(n, 3), axis=1)
gather_nd(f32(m, 4, k), i64(n, 5, 2))
one_hot(i64(n, m), f32(2), depth=10)
batch_norm(f32(n, m, k), f32(m), f32(m), f32(m), f32(m))
group_norm(f32(n, m, k), f32(m), f32(m), groups=4)
layer_norm(f32(n, k, m), f32(m), f32(m))
quantize_linear(f32(n, m), f32(), u8())
topk(f32(n, k), k=5)
topk(f32(n, k), k=k)
one_hot(i64(n, m), f32(2), depth=k + 1)
split(f32(n, k + m), sizes=(m, k), axis=1)
slice(f32(n, k), starts=(0, m), ends=(n - 1, -m))
pad(f32(n, k), pads=(m, -n, 0, n + 3))
tile(f32(n, 3), repeats=(2, m))
resize(f32(1, n, m), sizes=(1, 2*n, 7))
full(shape=(n, m // 8, 3), value=1.0)
full(shape=(), value=m*n)
range(size=m - 2, start=k, step=-2)
trilu(f32(n, m), k=m - n)
max_pool(f32(1, 3, k), kernel=(3,), strides=(2,), pads=(1, 1), ceil_mode=True)
conv_transpose(f32(n, 4, m), f32(4, 2, 3), strides=(2,), pads=(1, 0), groups=2)
full(shape=(n, 3), value=2.5)
range(size=n, start=2, step=3)
trilu(f32(n, h, w), upper=False, k=1)
conv_transpose(f32(n, 4, h, w), f32(4, 3, 2, 2), strides=(2, 2))
attention(f32(n, 4, k, 8), f32(n, 2, k, 8), f32(n, 2, k, 5), bool(k, k), causal=True, softcap=5.0)
average_pool(f32(n, 3, h, w), kernel=(3, 2), strides=(2, 1), pads=(1, 0, 1, 1))
average_pool(f32(n, 2, h, w), kernel=(2, 3), strides=(2, 1), pads=(0, 1, 0, 1), ceil_mode=True)
batch_norm(f32(n, 4, h, w), f32(4), f32(4), f32(4), f32(4))
conv_integer(u8(n, 4, h, w), i8(6, 4, 3, 3), u8(), i8(6), pads=(1, 1, 1, 1))
conv_transpose(f32(n, 4, h, w), f32(4, 2, 3, 4), f32(4), strides=(2, 3), pads=(1, 1, 1, 0),
    groups=2, output_padding=(1, 0))
concat(f32(n, endless - 1), f32(n, m), axis=1)
cumprod(f32(long, 2), axis=0, reverse=True)
cumsum(f32(n, endless), axis=1, exclusive=True)
cumsum(f32(long), axis=0)
einsum(f32(n, h, w), f32(h, w), f32(1, w, k), equation="bij,ij,...jk->bk")
eye_like(f32(n, m), k=1)
full(shape=(2,), value=2*n + 1, dtype=DType.I64)
gather(f32(n, m), i64(h, 2), axis=1)
global_lp_pool(f32(n, 2, h, w), p=2.0)
global_max_pool(f32(n, 2, h, w))
grid_sample(f32(n, 2, 5, 6), f32(n, h, w, 2))
hardmax(f32(n, m), axis=0)
instance_norm(f32(n, 3, h, w), f32(3), f32(3))
layer_norm(f32(n, h, w), f32(h, w), f32(w), axis=1)
argmin(f32(n, m), axis=1, select_last_index=True)
log_softmax(f32(n, m), axis=0)
lp_normalization(f32(n, m), p=1)
lp_pool(f32(n, 2, h), kernel=(2,), p=3.0)
lrn(f32(n, 6, h, w), size=3)
matmul_integer(u8(n, m), i8(m, 5), u8(n), i8())
max_pool(f32(n, 2, h, h), kernel=(2, 2), strides=(2, 2), ceil_mode=True)
mean(f32(n, m), f32(n, 1), f32(m))
one_hot(i64(n), f32(2), depth=h, axis=0)
pad(f32(n, h), pads=(1, 2, 3, 1), mode="wrap")
pad(f32(n, h), pads=(1, 2, 3, 1), mode="edge")
pad(f32(one, n), pads=(2, 1, 2, 0), mode="reflect")
pad(f32(n, h), pads=(0, 1, 0, w - 1), value=3.0)
range(size=n, start=m)
range(size=n, start=0.5, step=2, dtype=DType.F32)
reduce_log_sum_exp(f32(n, h, w), axes=(0, 2), keepdims=False)
reduce_mean(f32(n, 3, m), axes=(0, 2))
reduce_mean(f16(n, m))
resize(f32(n, 2, h, w), sizes=(n, 2, 3*h, w), mode="cubic", exclude_outside=True)
resize(f32(n, 2, h, w), sizes=(n, 2, 2*h, 7), mode="linear", coordinates="align_corners")
resize(f32(n, 2, h, w), sizes=(n, 2, h // 2, w), coordinates="asymmetric", nearest_mode="floor")
resize(f32(n, 2, h, w), sizes=(n, 2, 2*h, 2*w), mode="linear")
resize(f32(n, 2, h, w), sizes=(n, 2, 8, 5), mode="linear")
resize(f32(n, w), sizes=(n, w + w // 2), scales=(1.0, 1.5), mode="linear")
reshape(f32(n, h, 6, w), shape=(h*n, 2, 3*w))
reshape(f32(h*n, 3*w), shape=(n, h, 3, w))
reshape(f32(n, w), shape=(w, n))
reverse_sequence(f32(m, n, 2), i64(n))
rms_norm(f32(n, h, w), f32(w), axis=1)
slice(f32(n, m), starts=(n - 2,), ends=(n,))
depth_to_space(f32(n, 8, h, w), blocksize=2, mode="CRD")
split(f32(n, h + 3), sizes=(h, 3), axis=1)
squeeze(f32(n, 1, m, 1), axes=(3,))
tile(f32(n, m), repeats=(h, 1))
trilu(f32(h, w), k=h - 2)
dequantize_linear(u8(n, m), f32(m), u8(m), axis=1)
dequantize_blocks(i32(4, 3), f32(2, 3))
matmul_blocks(f32(n, 32), i16(4, 3, 2), f32(2, 3))
"""
REDUCTIONS = ("all", "any", "l1", "l2", "log_sum", "max", "min", "prod", "sum_square")


def with_numbers(value: object, values: Mapping[str, int]) -> object:
    if isinstance(value, tuple):
        return tuple(with_numbers(each, values) for each in value)
    return expr.with_sizes(value, values) if isinstance(value, expr.IndexExpr) else value


def closed(types: Sequence[TensorType], values: Mapping[str, int]) -> list[TensorType]:
    """The types with numbers for sizes."""
    return [TensorType(each.dtype, with_numbers(sizes_of(each), values)) for each in types]


def drawn(
    sizes: Sequence[expr.NamedSize], trial: int, room: int, chance: random.Random
) -> dict[str, int]:
    """The least numbers that sizes may be, then large ones, then any, and so on."""
    values = {}
    for size in sizes:
        most = size.least + room if size.most is None else min(size.most, size.least + room)
        ends = (size.least, most, chance.randint(size.least, most))
        values[size.name] = ends[trial % 3] * size.divisor
    return values


def arrays_of(types: Sequence[TensorType], seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    found: list[Array] = []
    for type_ in types:
        if type_.dtype.is_float:
            numbers: Array = generator.uniform(0.1, 1.0, type_.extents)
        else:
            numbers = generator.integers(0, 2, type_.extents)
        found.append(np.asarray(numbers, type_.dtype.numpy))
    return found


def read_by(outputs: Sequence[expr.Compute]) -> list[expr.Placeholder]:
    return [t for t in expr.topological_order(*outputs) if isinstance(t, expr.Placeholder)]


def test_every_operator_with_a_meaning_has_a_case() -> None:
    pointwise = {each.name for each in OPERATORS if each.pattern is Pattern.ELEMENTWISE}
    tried = {kind for kind, _, _ in applications(CASES).values()}
    like_others = {"reduce_" + each for each in REDUCTIONS}
    missing = {each.name for each in OPERATORS if each.meaning is not None} - tried
    assert missing - pointwise - like_others == set()


@pytest.mark.parametrize("text", applications(CASES))
@pytest.mark.drawn
def test_a_rule_agrees_with_that_of_the_numbers(text: str) -> None:
    kind, types, given = applications(CASES)[text]
    symbolic, _ = infer_types(kind, types, given)
    sizes, chance = sizes_in(types, given), random_source(text)
    for trial in range(20):
        values = drawn(sizes, trial, 100, chance)
        numbers = {key: with_numbers(value, values) for key, value in given.items()}
        expected, _ = infer_types(kind, closed(types, values), numbers)
        assert closed(symbolic, values) == list(expected)


@pytest.mark.parametrize("text", applications(CASES))
@pytest.mark.drawn
def test_a_meaning_agrees_with_that_of_the_numbers(text: str) -> None:
    kind, types, given = applications(CASES)[text]
    meaning = operator(kind).meaning
    if meaning is None:
        return
    _, complete = infer_types(kind, types, given)
    tensors = [expr.Placeholder(f"x{i}", sizes_of(t), t.dtype) for i, t in enumerate(types)]
    results = meaning(tuple(tensors), complete)
    sizes, chance = sizes_in(types, given), random_source(text)
    room = 60 if all(len(tensor.shape) <= 2 for tensor in (*tensors, *results)) else 4
    for trial in range(5):
        values = drawn(sizes, trial, room, chance)
        bound = expr.bind_tensors(results, {s: s.checked(values[s.name]) for s in sizes})
        plain = closed(types, values)
        arrays = arrays_of(plain, trial)
        read = {t.name: a for t, a in zip(tensors, arrays, strict=True)}
        numbers = {key: with_numbers(value, values) for key, value in complete.items()}
        static = [
            expr.Placeholder(t.name, p.shape, p.dtype) for t, p in zip(tensors, plain, strict=True)
        ]
        wanted = meaning(tuple(static), numbers)
        expected = expr.evaluate(wanted, {t: read[t.name] for t in read_by(wanted)})
        found = expr.evaluate(bound, {t: read[t.name] for t in read_by(bound)})
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=str(values))


def test_a_type_says_whether_it_is_open() -> None:
    n, m = expr.named_size("n"), expr.named_size("m")
    some = TensorType(DType.F32, (n, 2 * m + 1))
    assert some.is_open
    assert str(some) == "f32(n, 2*m + 1)"
    assert not TensorType(DType.F32, (2, 3)).is_open
    assert TensorType(DType.F32, (2, 3)).extents == (2, 3)
    with pytest.raises(UnsupportedError, match=r"f32\(n, 3\)") as caught:
        TensorType(DType.F32, (n, 3)).size_bytes  # noqa: B018
    assert caught.value.remedy == "give a number for each named size"
