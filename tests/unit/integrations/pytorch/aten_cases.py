"""Operators of ATen with arguments: functions of tensors, compared with PyTorch itself.

name: x, k = their tensors
    the results of the function
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional  # noqa: F401 - of the table

Case = tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]
_GENERATOR = torch.Generator().manual_seed(0)


def f(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_GENERATOR)


def i(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=_GENERATOR)


def edges(columns: int = 1) -> torch.Tensor:
    """NaN, infinities, zeros, ties and large numbers; all pairs of them with two columns."""
    some = torch.tensor([math.nan, -math.inf, math.inf, 0.0, 1.0, 1.0, -2.5, 0.5, 1e30])
    return torch.cartesian_prod(*[some] * columns)


def ends() -> torch.Tensor:
    return torch.tensor([3, 3, 9, 16]).int()


def written(x: torch.Tensor) -> Any:
    y = x + 1
    z = y[:, 1:3]
    z.mul_(2.0)
    y[0].add_(1.0)
    y.t()[3].zero_()
    return y, z, y.view(-1)


def written_as_itself(x: torch.Tensor) -> Any:
    y = x + 1
    torch.positive(y).mul_(2.0)
    return y


def put(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[at] = 3.0
    y[:, 0] = 1.0
    y[y > 1] = 0.5
    return y


_RNN = {
    "lstm": torch.nn.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True),
    "gru": torch.nn.GRU(5, 4),
    "rnn": torch.nn.RNN(5, 4, nonlinearity="relu", bias=False),
}

TABLE = """
promotion: x, k = f(3, 4), i(5, 4)
    x + k, k + 2, k * 1.5, k / 2, x == k, x + True
scalars: x = f(3, 4)
    2 - x, x**3, 2.0**x, x // 0.3, x % 0.7, 1 / x
whole: k = i(9, 6) - 4
    k // 2, k % 3, k**2, -k, abs(k), k / k.float()
division: x, y = f(5), f(5)
    torch.div(x, y, rounding_mode="trunc"), torch.floor_divide(x, y)
bits: k = i(9, 6)
    k & 3, k | 4, k ^ 1, ~k, (k > 2) & (k < 5), ~(k > 2), torch.logical_not(k)
clamps: x = f(3, 4)
    x.clamp(-0.5, 0.5), x.clamp_min(0.1), torch.clamp(x, max=x.mean()), functional.hardtanh(x),
    functional.relu6(x * 9)
activations: x = f(3, 4)
    functional.gelu(x), functional.gelu(x, approximate="tanh"), functional.silu(x),
    functional.mish(x), functional.elu(x), functional.celu(x), functional.selu(x),
    functional.softplus(x, beta=2.0), functional.leaky_relu(x, 0.1), functional.hardswish(x),
    functional.hardsigmoid(x), functional.softsign(x), functional.logsigmoid(x),
    functional.threshold(x, 0.1, 2.0), functional.glu(x, 1), functional.hardshrink(x),
    functional.tanhshrink(x)
functions: x = f(3, 4)
    x.exp(), x.expm1(), x.abs().sqrt(), x.abs().rsqrt(), x.abs().log1p(), x.erf(), x.sin(), x.cos(),
    x.tanh(), x.atan(), x.sinh(), x.sign(), x.floor(), x.ceil(), x.trunc(), x.round(),
    torch.round(x, decimals=1), x.square(), x.reciprocal()
choices: x, y = f(3, 4), f(3, 4)
    torch.where(x > 0, x, y), torch.where(x > 0, x, 0.0), x.masked_fill(y > 0, -1.0),
    torch.maximum(x, y), torch.nan_to_num(x), torch.isfinite(x), torch.lerp(x, y, 0.3),
    torch.addcmul(x, x, y, value=2)
products: a, b, v = f(3, 4), f(4, 5), f(4)
    a @ b, torch.mm(a, b), torch.mv(a, v), torch.addmm(a.sum(), a, b, beta=0.5),
    torch.addmm(a.sum(), a, b, beta=0, alpha=2), torch.outer(v, v), torch.einsum("ij,jk->ik", a, b),
    functional.linear(a, b.t()), torch.dot(v, v)
batches: a, b = f(2, 3, 4), f(2, 4, 5)
    torch.bmm(a, b), a @ b[0], torch.baddbmm(a @ b, a, b, alpha=0.5)
conv: x, w = f(2, 4, 9, 8), f(6, 4, 3, 3)
    functional.conv2d(x, w, padding="same"),
    functional.conv2d(x, w, stride=2, padding=1, dilation=2), functional.conv2d(x[0], w)
groups: x, w, b = f(2, 4, 9), f(6, 2, 3), f(6)
    functional.conv1d(x, w, b, groups=2),
    functional.conv_transpose1d(x, b.view(1, 6, 1).expand(4, 6, 3) + 0, stride=2, output_padding=1)
attention: q, k, v, m = f(2, 3, 5, 8), f(2, 3, 5, 8), f(2, 3, 5, 6), f(5, 5)
    functional.scaled_dot_product_attention(q, k, v),
    functional.scaled_dot_product_attention(q, k, v, is_causal=True),
    functional.scaled_dot_product_attention(q, k, v, m),
    functional.scaled_dot_product_attention(q, k, v, m > 0, scale=0.3),
    functional.scaled_dot_product_attention(q, k, v, torch.where(m[:, :1] > 0, m, float("-inf"))),
    functional.scaled_dot_product_attention(q[0], k[0], v[0])
grouped_attention: q, k, v = f(2, 4, 5, 8), f(2, 2, 7, 8), f(2, 2, 7, 8)
    functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
norms: x, w, b = f(2, 3, 4), f(4), f(4)
    functional.layer_norm(x, (4,), w, b), functional.layer_norm(x, (3, 4)),
    functional.rms_norm(x, (4,), w), functional.group_norm(x.view(2, 4, 3), 2, w, b),
    functional.instance_norm(x.view(2, 4, 3)), functional.normalize(x, dim=-1)
batch_norm: x, m, v = f(2, 3, 4), f(3), f(3)
    functional.batch_norm(x, m, v.abs(), eps=1e-3)
softmaxes: x = f(3, 4)
    x.softmax(1), x.log_softmax(-1), torch.logsumexp(x, 1),
    functional.softmax(x, 0, dtype=torch.float64),
    torch.ops.aten._safe_softmax(torch.where(x[:, :1] > 0, x, float("-inf")), -1)
sums: x, k = f(2, 3, 4), i(9, 3)
    x.mean(), x.mean((0, 2)), x.sum(1, keepdim=True), k.sum(), (x > 0).sum(0), x.amax(2),
    x.amin((0, 1)), x.prod(1), (x > 0).any(1), (x > 0).all(), x.norm(),
    torch.linalg.vector_norm(x, 1, dim=2)
searches: x = f(2, 3, 4)
    x.max(), x.max(1), x.min(2, keepdim=True), x.argmax(1), x.argmin(), x.topk(2),
    x.sort(1, descending=True), x.argsort(-1)
searches among nan: x = edges().view(3, 3)
    x.max(0), x.min(1), x.argmax(1), x.argmin(0, keepdim=True), x.flip(0).argmax(), x[1:3].argmin(),
    x.aminmax(dim=1), x.aminmax(), x.sort(stable=True, dim=1), x.topk(2, 0)
functions of nan and infinities: x = edges()
    x.sign(), x.nan_to_num(), x.nan_to_num(1.0, 2.0, 3.0), x.round(), x.clamp(-1, 2), x.relu(),
    functional.relu6(x), functional.hardtanh(x), functional.hardshrink(x),
    functional.threshold(x, 0.5, 9.0), functional.leaky_relu(x), functional.elu(x),
    functional.hardsigmoid(x), functional.silu(x), functional.softplus(x),
    x.masked_fill(x > 0, -math.inf).softmax(0),
    x[3:8].masked_fill(x[3:8] > 0, -math.inf).softmax(0), functional.max_pool1d(x[None], 2),
    x.isfinite()
functions of two of them: x = edges(2)
    x[:, 0] // x[:, 1], x[:, 0] % x[:, 1], torch.div(x[:, 0], x[:, 1], rounding_mode="trunc"),
    torch.lerp(x[:, 0], x[:, 1], 0.7), torch.lerp(x[:, 0], x[:, 1], x[:, 1]),
    torch.maximum(x[:, 0], x[:, 1]), torch.minimum(x[:, 0], x[:, 1]), x[:, 0] <= x[:, 1],
    x[:, 0] != x[:, 1], torch.where(x[:, 0] > x[:, 1], *x.unbind(1)), x[:, 0].clamp(min=x[:, 1])
floors: x = i(9, 30) / 10
    x // 0.1, x // -0.3, torch.div(x, 0.7, rounding_mode="floor")
differences: x = f(4, 5)
    x.diff(), x.diff(2, 0), x.diff(dim=1, prepend=x[:, :1], append=x[:, -2:]), (x > 0).diff(),
    (x * 9).long().diff(dim=-2)
norms of weights: v, rows, columns = f(4, 3, 5), f(4, 1, 1), f(1, 1, 5)
    torch._weight_norm(v, rows, 0), torch._weight_norm(v, columns, 2),
    torch._weight_norm(v, rows[0, 0, 0], -1), torch._weight_norm_interface(v, columns, 2),
    torch._weight_norm_interface(v, rows, 0)
products of groups of rows: x, w, ends = f(16, 8).bfloat16(), f(4, 8, 16).bfloat16(), ends()
    torch._grouped_mm(x, w, offs=ends), torch._grouped_mm(x[:3], w, offs=ends.clamp(max=3))
histograms: x, k = edges().nan_to_num(0.3), i(4, 3, 5)
    x.histc(5, -1.0, 1.0), k.float().histc(4, 0, 3), torch.histc(x.view(-1)[:0], 3, 0, 1)
spreads: x = f(2, 3, 4)
    x.var(1), x.std(), torch.var_mean(x, 2, correction=0), x.cumsum(1), x.cumprod(2)
views: x = f(2, 3, 4)
    x.view(6, -1), x.reshape(2, 2, 6), x.permute(2, 0, 1), x.transpose(0, 2), x.flatten(1),
    x.unflatten(2, (2, 2)), x.unsqueeze(1).squeeze(), x[:, 1:, ::2], x[..., -1], x.movedim(0, -1),
    x[0].t(), x.expand(3, 2, 3, 4), x.mT
joins: x = f(2, 3, 4)
    torch.cat([x, x * 2], 1), torch.stack([x, x], -1), torch.cat([x, x > 0]), *x.split(2, 2),
    *x.split([1, 2], 1), *x.chunk(3, 2), *x.unbind(1), x.repeat(2, 1, 3), x.repeat_interleave(2, 1),
    x.tile(2)
moves: x = f(2, 3, 4)
    x.roll(1, 1), x.roll((1, -1), (0, 2)), x.flip(0, 2), functional.pad(x, (1, 2)),
    functional.pad(x, (1, -1, 0, 1), value=3.0), functional.pad(x, (2, 1), mode="reflect"),
    functional.pad(x, (2, 1), mode="replicate"), functional.pad(x, (1, 1), mode="circular"),
    x.triu(1), x.tril(), x.diagonal(0, 1, 2), x.unfold(2, 2, 1)
reads: x, k = f(2, 3, 4), i(2, 2)
    x[k], x[:, k[:2] % 3], x[k % 2, k % 3], x[k % 2, :, k % 4], x.index_select(1, k % 3),
    functional.embedding(k, x[0]), torch.gather(x, 2, k.view(1, 1, 2) % 4),
    functional.one_hot(k, 3), x[-1, [0, 2]]
writes: x, at = f(4, 3), i(4, 2)
    put(x, at)
scatters: x, k = f(3, 4), i(3, 3, 4)
    x.scatter(1, k, 2.0), x.scatter_add(1, k, x), x.scatter_reduce(1, k, x, "amax"),
    torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 3), torch.select_scatter(x, x[0] * 3, 0, 1),
    x.index_put((k[0, :2],), x[:2, 0, None], accumulate=True)
in_place: x = f(4, 5)
    written(x)
in_place_of_itself: x = f(4, 5)
    written_as_itself(x)
made: x = f(2, 3)
    torch.arange(5) + x[0, 0], torch.arange(1, 9, 3), torch.arange(0.0, 1.0, 0.3),
    torch.full((2, 2), 7), torch.zeros_like(x), torch.ones(2, dtype=torch.int64), torch.eye(3),
    torch.linspace(0, 1, 5), x.new_full((2,), 3), torch.tensor([1.0, 2.0]) + x[0, 0],
    *torch.meshgrid(x[0], x[1], indexing="xy")
pools: x = f(1, 2, 9, 8)
    functional.max_pool2d(x, 3, 2, 1), functional.max_pool2d(x, 2, ceil_mode=True),
    functional.avg_pool2d(x, 3, 2, 1), functional.avg_pool2d(x, 2, count_include_pad=False),
    functional.adaptive_avg_pool2d(x, (3, 4)), functional.adaptive_avg_pool2d(x, 1),
    functional.adaptive_max_pool2d(x, 1), functional.adaptive_avg_pool2d(x, 5),
    functional.avg_pool1d(x[0], 2), functional.max_pool1d(x[0], 3)
resizes: x = f(1, 4, 6, 4)
    functional.interpolate(x, scale_factor=2), functional.interpolate(x, (9, 5)),
    functional.interpolate(x, scale_factor=1.5, mode="bilinear"),
    functional.interpolate(x, (3, 7), mode="bilinear", align_corners=True),
    functional.interpolate(x, scale_factor=2, mode="bicubic"), functional.pixel_shuffle(x, 2)
grid: x, g = f(1, 2, 5, 4), f(1, 3, 3, 2) / 2
    functional.grid_sample(x, g, align_corners=False),
    functional.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True)
casts: x = f(3, 4)
    x.to(torch.float64), x.half().float(), x.bfloat16(), x.long(), x.bool(), x.type_as(x.double())
halves: x = f(3, 4).bfloat16()
    x * 2, x @ x.t(), functional.layer_norm(x, (4,)), x.sum(1)
"""


def _read(text: str) -> Case:
    first, body = text.split("\n", 1)
    name, signature = first.split(": ")
    names, arguments = signature.split(" = ")
    function = eval(f"lambda {names}: ({body})", globals())
    return name, function, eval(f"({arguments},)", globals())


CASES: tuple[Case, ...] = (
    *(_read(text) for text in re.split(r"\n(?=\S)", TABLE.strip())),
    *((name, module, (f(3, 2, 5),)) for name, module in _RNN.items()),
)
