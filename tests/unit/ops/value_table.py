"""The table of `test_values`: applications of operators and their right values."""

from __future__ import annotations

from tensorwright.base import DType

TABLE = """
neg(f32(3, 5)) = -a
abs(f32(3, 5)) = abs(a)
sign(f32(3, 5)) = np.sign(a)
floor(f32(3, 5)) = np.floor(a)
ceil(f32(3, 5)) = np.ceil(a)
round(f32(3, 5, low=-4, high=4)) = np.rint(a)
trunc(f32(3, 5)) = np.trunc(a)
sqrt(f32(3, 5, low=0, high=4)) = np.sqrt(a)
rsqrt(f32(3, 5, low=0.1, high=4)) = 1 / np.sqrt(a)
reciprocal(f32(3, 5, low=0.1, high=4)) = 1 / a
exp(f32(3, 5, low=-3, high=3)) = np.exp(a)
expm1(f32(3, 5, low=-1, high=1)) = np.expm1(a)
log(f32(3, 5, low=0.1, high=4)) = np.log(a)
log1p(f32(3, 5, low=-0.5, high=4)) = np.log1p(a)
erf(f32(3, 5, low=-3, high=3)) = torch.erf(A)
sin(f32(3, 5, low=-4, high=4)) = np.sin(a)
cos(f32(3, 5, low=-4, high=4)) = np.cos(a)
tan(f32(3, 5, low=-1, high=1)) = np.tan(a)
asin(f32(3, 5, low=-1, high=1)) = np.arcsin(a)
acos(f32(3, 5, low=-1, high=1)) = np.arccos(a)
atan(f32(3, 5, low=-4, high=4)) = np.arctan(a)
sinh(f32(3, 5, low=-3, high=3)) = np.sinh(a)
cosh(f32(3, 5, low=-3, high=3)) = np.cosh(a)
tanh(f32(3, 5, low=-3, high=3)) = np.tanh(a)
asinh(f32(3, 5, low=-3, high=3)) = np.arcsinh(a)
acosh(f32(3, 5, low=1, high=4)) = np.arccosh(a)
atanh(f32(3, 5, low=-0.9, high=0.9)) = np.arctanh(a)
identity(f32(3, 5)) = a
equal(i64(4, 5, low=0, high=3), i64(4, 5, low=0, high=3)) = a == b
not_equal(i64(4, 5, low=0, high=3), i64(4, 5, low=0, high=3)) = a != b
less(i64(4, 5, low=0, high=3), i64(4, 5, low=0, high=3)) = a < b
less_or_equal(i64(4, 5, low=0, high=3), i64(4, 5, low=0, high=3)) = a <= b
greater(i64(4, 5, low=0, high=3), i64(4, 5, low=0, high=3)) = a > b
greater_or_equal(i64(4, 5, low=0, high=3), i64(4, 5, low=0, high=3)) = a >= b
equal(at([True, False]), at([True, True])) = [True, False]
div(at([7, -7, 7, -7]), at([2, 2, -2, -2])) = [3, -3, -3, 3]
fmod(at([7, -7, 7, -7]), at([2, 2, -2, -2])) = [1, -1, 1, -1]
floormod(at([7, -7, 7, -7]), at([2, 2, -2, -2])) = [1, 1, -1, -1]
pow(f32(3, 4, low=0.5), f32(4)) = a**b
pow(at([2.0, 3.0]), at([2, 2])) = [4.0, 9.0]
pow(at([1, 2]), np.float32([3, 3])) = [1, 8]
min(f32(2, 3), f32(3), f32(2, 1)) = np.minimum(np.minimum(a, b), c)
max(f32(2, 3), f32(3), f32(2, 1)) = np.maximum(np.maximum(a, b), c)
sum(f32(2, 3), f32(3), f32(2, 1)) = a + b + c
mean(f32(2, 3), f32(3), f32(2, 1)) = (a + b + c) / 3
min(f32(2, 3)) = a
max(f32(2, 3)) = a
sum(f32(2, 3)) = a
mean(f32(2, 3)) = a
not(bool(4, 4)) = ~a
and(bool(4, 4), bool(4)) = a & b
or(bool(4, 4), bool(4)) = a | b
xor(bool(4, 4), bool(4)) = a ^ b
bitwise_not(i32(3, 4)) = ~a
bitwise_and(i32(3, 4), i32(4)) = a & b
bitwise_or(i32(3, 4), i32(4)) = a | b
bitwise_xor(i32(3, 4), i32(4)) = a ^ b
shift_left(u8(3, 4, high=99), u8(4, high=7)) = a << b
shift_right(u8(3, 4, high=99), u8(4, high=7)) = a >> b
isnan(np.float32([1, -inf, inf, nan, 0])) = np.isnan(a)
isinf(np.float32([1, -inf, inf, nan, 0])) = np.isinf(a)
isinf(np.float32([1, -inf, inf, nan, 0]), detect_negative=False) = np.isposinf(a)
isinf(np.float32([1, -inf, inf, nan, 0]), detect_positive=False) = np.isneginf(a)
isinf(np.float32([-inf, inf, 0]), detect_positive=False, detect_negative=False) = [False] * 3
where(bool(2, 1), f32(3), f32(1, 1)) = np.where(a, b, c)
mul(f16(4), f16(4)) ~~ a * b
add(bf16(4), bf16(4)) ~~ a + b
clip(f32(20), min=-0.5, max=1.0) = np.clip(a, -0.5, 1)
clip(f32(20), min=0.0) = np.maximum(a, 0)
clip(i64(20), min=-3, max=4.0) = np.clip(a, -3, 4)
clip(i64(20)) = a
clip(np.float32([nan]), min=0.0, max=6.0) = [nan]
relu(f32(3, 40, low=-6, high=6)) = nn.relu(A)
leaky_relu(f32(3, 40, low=-6, high=6), alpha=0.1) = nn.leaky_relu(A, 0.1)
leaky_relu(f32(3, 40, low=-6, high=6)) = nn.leaky_relu(A)
elu(f32(3, 40, low=-6, high=6), alpha=1.5) = nn.elu(A, 1.5)
celu(f32(3, 40, low=-6, high=6), alpha=1.5) = nn.celu(A, 1.5)
selu(f32(3, 40, low=-6, high=6)) = nn.selu(A)
thresholded_relu(f32(3, 40, low=-6, high=6), alpha=0.5) = nn.threshold(A, 0.5, 0.0)
sigmoid(f32(3, 40, low=-6, high=6)) = torch.sigmoid(A)
softplus(f32(3, 40, low=-6, high=6)) = nn.softplus(A)
softplus(np.float32([-200, 0, 200])) = [0, np.log(2), 200]
softsign(f32(3, 40, low=-6, high=6)) = nn.softsign(A)
mish(f32(3, 40, low=-6, high=6)) = nn.mish(A)
hard_sigmoid(f32(3, 40, low=-6, high=6), alpha=1 / 6) = nn.hardsigmoid(A)
hard_swish(f32(3, 40, low=-6, high=6)) = nn.hardswish(A)
swish(f32(3, 40, low=-6, high=6)) = nn.silu(A)
swish(f32(3, 40, low=-6, high=6), alpha=0.3) = A * torch.sigmoid(0.3 * A)
gelu(f32(3, 40, low=-6, high=6)) = nn.gelu(A)
gelu(f32(3, 40, low=-6, high=6), approximate="tanh") = nn.gelu(A, approximate="tanh")
shrink(f32(3, 40, low=-6, high=6), lambd=0.7) = nn.hardshrink(A, 0.7)
shrink(f32(3, 40, low=-6, high=6), lambd=0.7, bias=0.7) = nn.softshrink(A, 0.7)
prelu(f32(2, 3, 4, 5), f32(3, 1, 1)) = nn.prelu(A, B.reshape(3))
{name}(f32{one}, f32(*{other}, low=0.5)) = {value}
    for name, value in PAIRS for one, other in SHAPES
cast(f32(4, 5, low=0, high=100), to=DType.{to}) = a.astype(DType.{to}.numpy)
    for to in TYPES
cast(i64(4, low=0), to=DType.{to}) = a.astype(DType.{to}.numpy)
    for to in TYPES
transpose(f32(2, 3, 4)) = a.T
transpose(f32(2, 3, 4), perm=(1, 2, 0)) = a.transpose(1, 2, 0)
expand(f32(3, 1), shape=(2, 1, 6)) = np.broadcast_to(a, (2, 3, 6))
expand(f32(3, 4), shape=(1, 1)) = a
expand(f32(), shape=(2, 2)) = np.broadcast_to(a, (2, 2))
expand(f32(1), shape=(0,)) = a[:0]
squeeze(f32(1, 3, 1, 4)) = a.squeeze()
squeeze(f32(1, 3, 1, 4), axes=(0,)) = a.squeeze(0)
squeeze(f32(1, 3, 1, 4), axes=(-2,)) = a.squeeze(2)
unsqueeze(f32(1, 3, 1, 4), axes=(1, -1)) = a[:, None, ..., None]
unsqueeze(np.float32(2), axes=(0, 1)) = [[2]]
tile(f32(2, 3), repeats=(3, 2)) = np.tile(a, (3, 2))
tile(f32(2, 3), repeats=(1, 0)) = np.tile(a, (1, 0))
depth_to_space(f32(2, 12, 3, 4), blocksize=2, mode="CRD") = nn.pixel_shuffle(A, 2)
depth_to_space(f32(2, 12, 3, 4), blocksize=2) = blocks(a)
space_to_depth(f32(2, 3, 6, 8), blocksize=2) = nn.pixel_unshuffle(A, 2)[:, [
    4 * (at % 3) + at // 3 for at in range(12)]]
concat(f32(1, 5, 6), f32(0, 5, 6), f32(3, 5, 6), axis=0) = np.concatenate(x, 0)
concat(f32(4, 0, 6), f32(4, 1, 6), f32(4, 4, 6), axis=1) = np.concatenate(x, 1)
concat(f32(4, 5, 2), f32(4, 5, 4), f32(4, 5, 0), axis=-1) = np.concatenate(x, 2)
concat(f32(4, 5, 6), axis=1) = a
split(f32(4, 5, 6), sizes=(1, 1, 2), axis=0) = np.split(a, [1, 2], 0)
split(f32(4, 5, 6), sizes=(1, 2, 2), axis=1) = np.split(a, [1, 3], 1)
split(f32(4, 5, 6), sizes=(1, 3, 2), axis=-1) = np.split(a, [1, 4], 2)
slice(f32(4, 5, 6), starts=(1,), ends=(3,)) = a[1:3]
slice(f32(4, 5, 6), starts=(1, 0, 2), ends=(2, 3, 4)) = a[1:2, :3, 2:4]
slice(f32(4, 5, 6), starts=(0, 1), ends=(9, -1), axes=(0, 2)) = a[0:9, :, 1:-1]
slice(f32(4, 5, 6), starts=(-1,), ends=(-(2**63),), axes=(1,), steps=(-1,)) = a[:, ::-1]
slice(f32(4, 5, 6), starts=(20,), ends=(1,), axes=(-1,), steps=(-2,)) = a[:, :, 20:1:-2]
slice(f32(4, 5, 6), starts=(0,), ends=(2**62,), axes=(2,), steps=(3,)) = a[:, :, ::3]
slice(f32(4, 5, 6), starts=(3,), ends=(1,), axes=(0,)) = a[3:1]
pad(f32(3, 4), pads=(-1, 2, 1, -2), value=1.5) = np.pad(
    a[1:, :-2], ((0, 1), (2, 0)), constant_values=1.5)
pad(f32(3, 4), pads=(-1, 0, 0, 0)) = a[1:]
pad(i32(3), pads=(1, 1), value=7) = np.pad(a, (1, 1), constant_values=7)
pad(at([False]), pads=(1, 0), value=True) = [True, False]
gather(np.float32([0, 1, 2, 3]), at([3, 4, -5])) = [3, 0, 3]
gather_nd(f32(2, 3, 4, 5), positions(2, 3, within=(2, 3))) = a[b[..., 0], b[..., 1]]
gather_nd(f32(2, 3, 4, 5), positions(2, 6, within=(3, 4)), batch_dims=1) = np.stack(
    [a[i, b[i, :, 0], b[i, :, 1]] for i in range(2)])
full(shape=(2, 3), value=1.5) = np.full((2, 3), 1.5)
full(shape=(), value=7, dtype=DType.I64) = 7
range(size=5, start=3, step=-2) = np.arange(3, -7, -2)
range(size=4, start=1.0, step=0.5, dtype=DType.F32) = np.arange(4) * 0.5 + 1
reverse_sequence(f32(4, 4, 2), at([1, 4, 0, 3]), batch_axis=1, time_axis=0) = reversed_(
    a.swapaxes(0, 1), b).swapaxes(0, 1)
reverse_sequence(f32(4, 4, 2), at([1, 4, 0, 3]), batch_axis=0, time_axis=1) = reversed_(a, b)
bitcast(f32(2, 3), to=DType.I32) = a.view(np.int32)
topk(at([1, 3, 3, 1, 3]), k=4) = [3, 3, 3, 1], [1, 2, 4, 0]
topk(at([1, 3, 3, 1, 3]), k=3, largest=False) = [1, 1, 3], [0, 3, 1]
topk(np.float32([1, nan, 3, nan, 2]), k=3) = [nan, nan, 3], [1, 3, 2]
topk(np.float32([1, nan, 3, nan, 2]), k=2, largest=False) = [1, 2], [0, 4]
scatter_elements(f32(4, 3), at([[0, 1, 2], [-1, 0, 1]]), f32(2, 3)) = A.scatter(0, B % 4, C)
scatter_nd(f32(4, 3), at([[2], [-4]]), f32(2, 3)) = scattered(a, b, c, lambda old, new: new)
scatter_nd(f32(4, 3), at([[1], [1]]), f32(2, 3), reduction="add") = scattered(a, b, c, np.add)
reshape(f32{before}, shape={after}) = a.reshape({after})
    for before, after in RESHAPED
pad(f32(3, 4), pads={pads}, mode="{mode}") = np.pad(a, {each}, "{mode}")
    for mode in ("constant", "reflect", "edge", "wrap") for pads, each in PADS
gather(f32(4, 5, 6), i{bits}(2, 3, low=-{n}, high={n}), axis={axis}) = np.take(a, b, {axis})
    for bits in (32, 64) for axis, n in ((0, 4), (1, 5), (-1, 6))
gather(f32(4, 5, 6), np.int{bits}(1), axis={axis}) = np.take(a, 1, {axis})
    for bits in (32, 64) for axis in (0, 1, -1)
gather_elements(f32(4, 5, 6), i{bits}(4, 5, 6, low=-{n}, high={n}), axis={axis}) = (
    np.take_along_axis(a, np.where(b < 0, b + {n}, b), {axis}))
    for bits in (32, 64) for axis, n in ((0, 4), (1, 5), (-1, 6))
one_hot(np.{kind}([[0, 3, -1], [2, -4, 9]]), np.float32([-1, 2]), depth=4, axis={axis}) = (
    hot(a, b, {axis}))
    for kind in ("int64", "float32") for axis in (0, 1, -1)
trilu(f32(2, 4, 5), k={k}) = np.triu(a, {k})
    for k in (-1, 0, 2)
trilu(f32(2, 4, 5), k={k}, upper=False) = np.tril(a, {k})
    for k in (-1, 0, 2)
eye_like(f32(4, 5), k={k}) = np.eye(4, 5, {k})
    for k in (-1, 0, 2)
topk(f32(5, 6), k=3, axis={axis}, largest={largest}) = torch.topk(A, 3, {axis}, {largest})
    for axis in (0, -1) for largest in BOTH
topk(at(RANDOM.integers(-4, 5, (7, 50)), "{kind}"), k={k}, largest={largest}) = (
    top(a, {k}, largest={largest}))
    for kind in ("f4", "i8") for k in (1, 3, 40, 50) for largest in BOTH
scatter_elements(f32(4, 5), i64(3, 5, low=0, high=4), f32(3, 5), axis={axis},
    reduction="{ours}") = A.scatter_reduce({axis}, B, C, "{theirs}")
    for axis in (0, 1) for ours, theirs in zip(UPDATES, ("sum", "prod", "amax", "amin"))
scatter_nd(f32(3, 4, 2), i64(9, {count}, low=-3, high=3), f32(9, *(3, 4, 2)[{count}:]),
    reduction="{ours}") = scattered(a, b, c, np.{theirs})
    for count in (0, 1, 2)
    for ours, theirs in zip(UPDATES, ("add", "multiply", "maximum", "minimum"))
reduce_sum(i32(3, 4), axes=(1,), keepdims=False) = a.sum(1)
reduce_max(i32(3, 4), keepdims=False) = a.max()
reduce_sum(np.float32(3)) = 3
reduce_log_sum_exp(np.float32(3)) = 3
reduce_log_sum_exp(np.float32([[1000, 1000], [-inf, -inf]]), axes=(1,), keepdims=False) = [
    1000 + np.log(2), -inf]
reduce_any(bool(4, 5), axes=(0,), keepdims=False) = a.any(0)
reduce_all(bool(4, 5), axes=(1,), keepdims=False) = a.all(1)
reduce_max(bool(4, 5), axes=(0,), keepdims=False) = a.max(0)
reduce_min(bool(4, 5), axes=(0,), keepdims=False) = a.min(0)
matmul(f32(3, 4), f32(4, 5)) = a @ b
matmul(f32(2, 3, 4), f32(4, 5)) = a @ b
matmul(f32(2, 1, 3, 4), f32(6, 4, 5)) = a @ b
matmul(f32(4), f32(4)) = a @ b
matmul(f32(4), f32(2, 4, 5)) = a @ b
matmul(f32(2, 3, 4), f32(4)) = a @ b
matmul(f32(1, 1), f32(1, 1)) = a @ b
matmul(f32(2, 3, 0), f32(2, 0, 4)) = a @ b
matmul_integer(u8(2, 3, 4, high=255), i8(4, 5)) = wide(a) @ wide(b)
matmul_integer(u8(2, 3, 4, high=255), i8(4, 5), np.uint8(7), np.int8([1, 2, 3, -4, 5])) = (
    wide(a) - 7) @ (wide(b) - wide(d))
matmul_integer(u8(2, 3, 4, high=255), i8(4, 5), np.uint8([1, 2, 3])) = (
    wide(a) - wide(c)[:, None]) @ wide(b)
cumsum(i64(100), axis=0) = np.cumsum(a)
conv(f32(1, 2, 5, 6), f32(3, 2, 3, 3), pads=(2, 1, 0, 3)) ~ nn.conv2d(nn.pad(A, (1, 3, 2, 0)), B)
conv_integer(u8(1, 2, 6, 6, high=255), i8(3, 2, 3, 3), pads=(1, 1, 1, 1)) = integer_conv(a, b)
conv_integer(u8(1, 2, 6, 6, high=255), i8(3, 2, 3, 3), np.uint8(9), pads=(1, 1, 1, 1)) = (
    integer_conv(a, b, 9))
conv_integer(u8(1, 2, 6, 6, high=255), i8(3, 2, 3, 3), np.uint8([9]), np.int8([1, -2, 3]),
    pads=(1, 1, 1, 1)) = integer_conv(a, b, 9, wide(d)[:, None, None, None])
max_pool(f32(1, 2, 9, 9), kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), dilations=(2, 2)) = (
    nn.max_pool2d(A, 3, 2, 1, 2))
max_pool(i8(1, 2, 9, 9), kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), dilations=(2, 2)) = (
    nn.max_pool2d(A.float(), 3, 2, 1, 2))
softmax(np.float32([1e4, 1e4, -1e4])) = [0.5, 0.5, 0]
attention(f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 3)) = attended(A, B, C)
attention(f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 3), causal=True) = attended(
    A, B, C, is_causal=True)
attention(f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 3), causal=True, continues=True) = (
    attended(A, B, C, attn_mask=torch.ones(5, 6, dtype=torch.bool).tril(1)))
attention(f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 3), scale=0.3) = attended(
    A, B, C, scale=0.3)
attention(f32(2, 4, 5, 8), f32(2, 2, 6, 8), f32(2, 2, 6, 3)) = attended(A, B, C, enable_gqa=True)
attention(f32(2, 4, 5, 8), f32(2, 2, 6, 8), f32(2, 2, 6, 3), softcap=2.0) = torch.softmax(
    2 * torch.tanh(A @ B.repeat_interleave(2, 1).mT / 8**0.5 / 2), -1
    ) @ C.repeat_interleave(2, 1)
attention(f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 3), hiding(5, 6), softcap=2.0) = (
    torch.softmax(2 * torch.tanh(A @ B.mT / 8**0.5 / 2) + D, -1) @ C)
resize(f32(1, 1, 5), sizes=(1, 1, 3), scales=(1.0, 1.0, narrow(0.6)), mode="linear") ~ (
    nn.interpolate(A, scale_factor=narrow(0.6), mode="linear"))
resize(f32(1, 1, 5), sizes=(1, 1, 6), scales=(1.0, 1.0, narrow(1.3)), mode="linear") ~ (
    nn.interpolate(A, scale_factor=narrow(1.3), mode="linear", recompute_scale_factor=False))
resize(f32(2, 3), sizes=(2, 3)) = a
resize(f32(1, 4), sizes=(1, 1), coordinates="pytorch_half_pixel") = a[:, :1]
quantize_linear(f32(6, low=-3, high=3), np.float32([0.5]), dtype=DType.I8) = codes(a, b, np.int8(0))
dequantize_linear(i32(6), np.float32([0.5])) = a * b
tree_leaves(np.float32([[1, 0.5], [2, 0.6], [3, 9], [nan, nan]]), np.int32([1, 0, 0, 0, 0, 0]),
    np.float32([0.5, inf, inf, 2, inf, inf]), np.int32([2, 1, 2, 4, 4, 5]), np.int32([0, 1]),
    depth=2) = [[2, 1], [4, 1], [5, 1], [2, 1]]
{name}(f32(3, 4, 5, low=0.5, high=1.5), axes={axes}, keepdims={keep}) = (
    fold(a, lambda x, **how: {value}, {axes}, {keep}))
    for name, value in FOLDS for axes in ((), (1,), (-1, 0), (0, 1, 2)) for keep in BOTH
{name}(i64(4, 5, 6, low=0, high=3), axis={axis}) = np.{name}(a, {axis}, keepdims=True)
    for name in ("argmax", "argmin") for axis in (0, 1, -1)
{name}(i64(4, 5, 6, low=0, high=3), axis={axis}, keepdims=False, select_last_index=True) = (
    a.shape[{axis}] - 1 - np.{name}(np.flip(a, {axis}), {axis}))
    for name in ("argmax", "argmin") for axis in (0, 1, -1)
gemm({a}, {b}, alpha={alpha}, {how}) = {alpha} * ({product})
    for a, b, how, product in GEMMS for alpha in (1.0, 0.5)
gemm({a}, {b}, f32{c}, alpha={alpha}, beta={beta}, {how}) = {alpha} * ({product}) + {beta} * c
    for a, b, how, product in GEMMS for c in ((), (5,), (3, 1), (3, 5))
    for alpha, beta in ((1.0, 1.0), (2.0, 0.5))
einsum({types}, equation="{equation}") = torch.einsum("{equation}", *X)
    for equation, types in PRODUCTS
cumsum(f32{shape}, axis={axis}) ~ np.cumsum(a, {axis})
    for axis, shape in RUNNING
cumsum(f32{shape}, axis={axis}, reverse=True) ~ backwards(np.cumsum, a, {axis})
    for axis, shape in RUNNING
cumsum(f32{shape}, axis={axis}, exclusive=True) ~ np.cumsum(a, {axis}) - a
    for axis, shape in RUNNING
cumsum(f32{shape}, axis={axis}, exclusive=True, reverse=True) ~ backwards(np.cumsum, a, {axis}) - a
    for axis, shape in RUNNING
cumprod(f32(3, {n}, low=0.9, high=1.1), axis=1) = np.cumprod(a, 1)
    for n in EXTENTS
cumprod(f32(3, {n}, low=0.9, high=1.1), axis=1, reverse=True) = backwards(np.cumprod, a, 1)
    for n in EXTENTS
cumprod(f32(3, {n}, low=0.9, high=1.1), axis=1, exclusive=True) = (
    np.cumprod(np.concatenate([np.ones((3, 1)), a[:, :-1]], 1), 1))
    for n in EXTENTS
conv(f32{x}, f32{w}{ours}) ~ nn.conv{rank}d(A, B, None, {theirs})
    for rank, x, w, ours, theirs in CONVOLUTIONS
conv(f32{x}, f32{w}, f32({w[0]}){ours}) ~ nn.conv{rank}d(A, B, C, {theirs})
    for rank, x, w, ours, theirs in CONVOLUTIONS
max_pool(f32{x}, {ours}) = nn.max_pool{rank}d(A, {theirs}, 1, {up})
    for rank, x, ours, theirs, up in WINDOWS
average_pool(f32{x}, {ours}, count_include_pad={counts}) = (
    nn.avg_pool{rank}d(A, {theirs}, {up}, {counts}))
    for rank, x, ours, theirs, up in WINDOWS for counts in BOTH
average_pool(f32(1, 1, 9), kernel=(3,), strides=({stride},), dilations=({dilation},), pads={pads},
    count_include_pad={counts}) = averages(a, {stride}, {dilation}, {pads}, counts={counts})
    for stride, dilation, pads in ((1, 2, (2, 1)), (2, 3, (3, 0)), (3, 2, (1, 4)))
    for counts in BOTH
lp_pool(f32(1, 2, 8, 8, low=0.1), kernel=(3, 2), strides=(2, 2), p={p}) = (
    nn.lp_pool2d(A, {p}, (3, 2), (2, 2)))
    for p in (1.0, 2.0, 3.0)
global_lp_pool(f32(1, 2, 8, 8, low=0.1), p={p}) = (abs(a) ** {p}).sum((2, 3), keepdims=True) ** (
    1 / {p})
    for p in (1.0, 2.0, 3.0)
global_max_pool(f32{shape}) = a.max(tuple(range(2, a.ndim)), keepdims=True)
    for shape in ((2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5))
global_average_pool(f32{shape}) = a.mean(tuple(range(2, a.ndim)), keepdims=True)
    for shape in ((2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5))
batch_norm(f32{shape}, f32(3), f32(3), f32(3), f32(3, low=0.5), epsilon=0.001) = (
    nn.batch_norm(A, D, E, B, C, eps=0.001))
    for shape in ((4, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 3, 4))
instance_norm(f32{shape}, f32(6), f32(6)) ~ nn.instance_norm(A, None, None, B, C)
    for shape in ((2, 6, 5), (2, 6, 4, 5), (1, 6, 2, 3, 4))
group_norm(f32{shape}, f32(6), f32(6), groups=3) ~ nn.group_norm(A, 3, B, C)
    for shape in ((2, 6, 5), (2, 6, 4, 5), (1, 6, 2, 3, 4))
layer_norm(f32(3, 4, 5), f32{inner}, f32{inner}, axis={axis}) ~ nn.layer_norm(A, {inner}, B, C)
    for axis, inner in ((-1, (5,)), (1, (4, 5)), (0, (3, 4, 5)))
layer_norm(f32(3, 4, 5), f32{inner}, axis={axis}) ~ nn.layer_norm(A, {inner}, B)
    for axis, inner in ((-1, (5,)), (1, (4, 5)), (0, (3, 4, 5)))
rms_norm(f32(3, 4, 5), f32{inner}, axis={axis}) = nn.rms_norm(A, {inner}, B, eps=1e-5)
    for axis, inner in ((-1, (5,)), (1, (4, 5)), (0, (3, 4, 5)))
lrn(f32(2, 7, 3, 4), size={size}, alpha=0.01, beta=0.6, bias=1.5) = (
    a / (1.5 + 0.01 / {size} * neighbours(a * a, {size})) ** 0.6)
    for size in (1, 3, 4, 5)
lp_normalization(f32(3, 4), p={p}, axis={axis}) = nn.normalize(A, {p}, {axis})
    for p in (1, 2) for axis in (0, -1)
lp_normalization(np.zeros((3, 4)), p={p}, axis={axis}) = a
    for p in (1, 2) for axis in (0, -1)
softmax(f32(3, 4, 5, low=-5, high=5), axis={axis}) = torch.softmax(A, {axis})
    for axis in (0, 1, -1)
log_softmax(f32(3, 4, 5, low=-5, high=5), axis={axis}) = torch.log_softmax(A, {axis})
    for axis in (0, 1, -1)
hardmax(np.float32(RANDOM.integers(0, 2, (3, 4, 5))), axis={axis}) = first(a, {axis})
    for axis in (0, 1, -1)
attention(f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 3), {mask}{shape}) = attended(A, B, C, D)
    for mask in ("f32", "allowed") for shape in ((5, 6), (2, 1, 5, 6), (1, 4, 1, 6))
reduce_mean({kind}(4, 3000, low=50, high=150), axes=(1,)) ~~ (
    single(a).mean(1, keepdims=True).astype(a.dtype))
    for kind in ("f16", "bf16")
softmax({kind}(4, 3000, low=50, high=150)) ~~ torch.softmax(S, -1).numpy().astype(a.dtype)
    for kind in ("f16", "bf16")
matmul({kind}(3, 64), {kind}(64, 5)) ~~ (single(a) @ single(b)).astype(a.dtype)
    for kind in ("f16", "bf16")
argmax({kind}(4, 3000, low=50, high=150), axis=1, keepdims=False) = a.argmax(1)
    for kind in ("f16", "bf16")
gelu({kind}(4, 30)) ~~ nn.gelu(S).numpy().astype(a.dtype)
    for kind in ("f16", "bf16")
resize(f32{x}, sizes={sizes}, mode="{ours}", coordinates="{coordinates}") ~ (
    nn.interpolate(A, {sizes}[2:], mode="{theirs}", align_corners={aligned}))
    for x, sizes in RESIZED for ours, theirs in (("linear", "bilinear"), ("cubic", "bicubic"))
    for coordinates, aligned in (("align_corners", True), ("pytorch_half_pixel", False))
resize(f32{x}, sizes={sizes}, coordinates="asymmetric", nearest_mode="floor") = (
    nn.interpolate(A, {sizes}[2:]))
    for x, sizes in RESIZED
resize(f32{x}, sizes={sizes}, nearest_mode="round_prefer_ceil") = (
    nn.interpolate(A, {sizes}[2:], mode="nearest-exact"))
    for x, sizes in RESIZED
resize(f32{x}, sizes={sizes}, coordinates="{coordinates}", {how}) ~ (
    resized(a, {sizes}, "{coordinates}", {how}))
    for x, sizes in RESIZED for how in RESIZES
    for coordinates in ("half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric")
grid_sample(f32(2, 3, 5, 6), f32(2, 4, 3, 2, low=-1.6, high=1.6), mode="{ours}",
    padding="{padding}", align_corners={aligned}) ~ (
    nn.grid_sample(A, B, "{theirs}", "{padding}", {aligned}))
    for ours, theirs in (("linear", "bilinear"), ("nearest", "nearest"), ("cubic", "bicubic"))
    for padding in ("zeros", "border", "reflection") for aligned in BOTH
grid_sample(f32(1, 2, 3, 4, 5), f32(1, 2, 3, 2, 3, low=-1.6, high=1.6), mode="{ours}") ~ (
    nn.grid_sample(A, B, "{theirs}", align_corners=False))
    for ours, theirs in (("linear", "bilinear"), ("nearest", "nearest"))
quantize_linear(f32(5, 6, low=-50, high=50), np.float32(0.25), at(3, "{kind}")) = codes(a, b, c)
    for kind in ("u1", "i1", "i2", "u2")
quantize_linear(f32(3, 4, 5, low=-50, high=50), f32({n}, low=0.3, high=1), i8({n}), axis={axis}) = (
    codes(a, b{stretched}, c{stretched}))
    for axis, n, stretched in STRETCHED
dequantize_linear(i8(3, 4, 5), f32({n}, low=0.3, high=1), i8({n}), axis={axis}) = (
    (single(a) - c{stretched}) * b{stretched})
    for axis, n, stretched in STRETCHED
"""
BOTH = (True, False)
UPDATES = ("add", "mul", "max", "min")
TYPES = [each.name for each in DType if each is not DType.BF16]
SHAPES = (
    *(((4,), (4,)), ((2, 3, 4), (3, 1)), ((1, 5), (2, 1)), ((), (2, 2))),
    ((2, 1, 3, 4), (5, 1, 4)),
)
EXTENTS = (1, 5, 16, 17, 64, 300)  # less than a block of a running fold, one, several levels
RUNNING = [
    *((0, (n, 3, 2)) for n in EXTENTS),
    *((1, (2, n, 2)) for n in EXTENTS),
    *((-1, (2, 3, n)) for n in EXTENTS),
]
PAIRS = (
    *(("add", "a + b"), ("sub", "a - b"), ("mul", "a * b"), ("div", "a / b")),
    *(("fmod", "np.fmod(a, b)"), ("floormod", "np.mod(a, b)"), ("atan2", "np.arctan2(a, b)")),
    *(("equal", "a == b"), ("not_equal", "a != b"), ("less", "a < b"), ("greater", "a > b")),
    *(("less_or_equal", "a <= b"), ("greater_or_equal", "a >= b")),
)
RESHAPED = (
    *(((2, 3, 4), (6, 4)), ((6, 4), (2, 3, 4)), ((2, 3, 4), (4, 3, 2)), ((2, 3, 4), (24,))),
    *(((1, 5), (5, 1, 1)), ((), (1, 1)), ((1, 1), ()), ((2, 6, 5), (2, 3, 2, 5))),
    *(((3, 4, 5), (2, 6, 5)), ((2, 0, 3), (0, 7)), ((4, 6), (6, 4))),
)
PADS = (
    *(((1, 0, 2, 3), ((1, 2), (0, 3))), ((0, 0, 0, 0), ((0, 0), (0, 0)))),
    ((5, 0, 0, 7), ((5, 0), (0, 7))),
)
FOLDS = (
    *(("reduce_sum", "np.sum(x, **how)"), ("reduce_mean", "np.mean(x, **how)")),
    *(("reduce_prod", "np.prod(x, **how)"), ("reduce_max", "np.max(x, **how)")),
    *(("reduce_min", "np.min(x, **how)"), ("reduce_l1", "np.sum(abs(x), **how)")),
    *(
        ("reduce_l2", "np.sqrt(np.sum(x * x, **how))"),
        ("reduce_sum_square", "np.sum(x * x, **how)"),
    ),
    ("reduce_log_sum", "np.log(np.sum(x, **how))"),
    ("reduce_log_sum_exp", "np.log(np.sum(np.exp(x), **how))"),
)
GEMMS = (
    ("f32(3, 4)", "f32(4, 5)", "trans_a=False, trans_b=False", "a @ b"),
    ("f32(4, 3)", "f32(4, 5)", "trans_a=True, trans_b=False", "a.T @ b"),
    ("f32(3, 4)", "f32(5, 4)", "trans_a=False, trans_b=True", "a @ b.T"),
    ("f32(4, 3)", "f32(5, 4)", "trans_a=True, trans_b=True", "a.T @ b.T"),
)
PRODUCTS = (
    *(("ij,jk->ik", "f32(3, 4), f32(4, 5)"), ("bij, bjk -> bik", "f32(2, 3, 4), f32(2, 4, 5)")),
    *(("ij->ji", "f32(3, 4)"), ("ii->i", "f32(4, 4)"), ("ii", "f32(4, 4)")),
    *(("ij,jk", "f32(3, 4), f32(4, 5)"), ("...ij,...jk->...ik", "f32(2, 1, 3, 4), f32(6, 4, 5)")),
    *(("i,j,k->kij", "f32(2), f32(3), f32(4)"), ("...i->...", "f32(2, 3)")),
    *(
        ("bhqd,bhkd->bhqk", "f32(2, 3, 4, 5), f32(2, 3, 6, 5)"),
        ("i...,i->...", "f32(2, 3), f32(2)"),
    ),
)
CONVOLUTIONS = (
    (1, (2, 3, 10), (4, 3, 3), "", "1, 0, 1, 1"),
    (2, (2, 3, 8, 9), (4, 3, 3, 3), ", pads=(1, 1, 1, 1)", "1, 1, 1, 1"),
    (2, (1, 3, 9, 9), (5, 3, 1, 1), ", strides=(2, 2)", "2, 0, 1, 1"),
    (2, (1, 4, 9, 8), (6, 2, 3, 2), ", groups=2, dilations=(1, 2)", "1, 0, (1, 2), 2"),
    (2, (1, 4, 7, 7), (4, 1, 3, 3), ", groups=4, pads=(1, 1, 1, 1)", "1, 1, 1, 4"),
    (2, (1, 4, 7, 7), (8, 1, 3, 3), ", groups=4", "1, 0, 1, 4"),
    (2, (1, 4, 5, 5), (4, 1, 1, 1), ", groups=4", "1, 0, 1, 4"),
    (
        *(3, (1, 2, 5, 6, 7), (3, 2, 2, 3, 2)),
        *(", pads=(1, 0, 1, 1, 0, 1), strides=(1, 2, 2)", "(1, 2, 2), (1, 0, 1), 1, 1"),
    ),
)
CEIL = "strides=(2, 2), ceil_mode=True"
WINDOWS = (
    (1, (2, 3, 10), "kernel=(3,)", "3, 1, 0", False),
    (2, (1, 3, 8, 9), "kernel=(3, 2), strides=(2, 1), pads=(1,) * 4", "(3, 2), (2, 1), 1", False),
    (2, (1, 2, 7, 7), f"kernel=(3, 3), {CEIL}", "3, 2, 0", True),
    (2, (1, 2, 8, 8), f"kernel=(3, 3), {CEIL}, pads=(1,) * 4", "3, 2, 1", True),
    # The last window would begin right behind the input, and on its last element.
    (1, (1, 2, 4), "kernel=(2,), strides=(5,), ceil_mode=True, pads=(1, 1)", "2, 5, 1", True),
    (1, (1, 2, 5), "kernel=(2,), strides=(5,), ceil_mode=True, pads=(1, 1)", "2, 5, 1", True),
    (2, (1, 2, 6, 6), "kernel=(1, 1), strides=(2, 2)", "1, 2, 0", False),
    (3, (1, 2, 6, 7, 5), "kernel=(2, 3, 2), strides=(2, 2, 1)", "(2, 3, 2), (2, 2, 1), 0", False),
)
RESIZED = (
    *(((1, 2, 4, 5), (1, 2, 8, 10)), ((1, 2, 7, 6), (1, 2, 3, 4))),
    ((1, 1, 3, 3), (1, 1, 5, 8)),
)
RESIZES = (
    *('mode="nearest", nearest_mode="round_prefer_floor"', 'mode="nearest", nearest_mode="ceil"'),
    *('mode="linear"', 'mode="cubic", exclude_outside=True', 'mode="cubic", cubic_a=-0.5'),
)
STRETCHED = ((0, 3, "[:, None, None]"), (1, 4, "[:, None]"), (-1, 5, ""))
