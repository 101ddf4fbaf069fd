"""Six kernels for graphics processors, each with a schedule by hand.

No rule and no search chooses them, so they stay as they are when those change: texts, machine code
and faults are looked at with them. A schedule holds for all sizes of its kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorwright import expr
from tensorwright.graph import program
from tensorwright.loop import LoopProgram, lower, run_passes
from tensorwright.schedule import parse_trace, replay, state_of

Arrays = dict[str, np.ndarray[Any, Any]]
TAPS = 3
"""Rows and columns of the windows of convolutions."""


@dataclass(frozen=True, slots=True)
class CardKernel:
    """A tensor expression, and the steps of its schedule."""

    name: str
    output: expr.Compute
    trace: str

    @property
    def program(self) -> LoopProgram:
        """Its loops after the passes, with the barriers that lowering places."""
        state = replay(state_of(program([self.output])), parse_trace(self.trace))
        return run_passes(lower(state))

    def arrays(self, seed: int = 0) -> Arrays:
        """Small whole numbers for its inputs: every order of additions gives the same floats."""
        source = np.random.default_rng(seed)
        return {
            each.name: source.integers(-3, 4, each.shape).astype(np.float32)
            for each in self._inputs
        }

    def answer(self, arrays: Arrays) -> np.ndarray[Any, Any]:
        """The result of the expression by NumPy."""
        given = {each: arrays[each.name] for each in self._inputs}
        (result,) = expr.evaluate([self.output], given)
        return result

    @property
    def _inputs(self) -> list[expr.Placeholder]:
        order = expr.topological_order(self.output)
        return [each for each in order if isinstance(each, expr.Placeholder)]


def shared_tiles(
    threads: tuple[int, int], each: tuple[int, int], step: int, vectors: tuple[int, int]
) -> str:
    """A product c = a b: a block has `threads` both ways, and a thread `each` sums both ways.

    step      terms that a block fetches into shared memory at once
    vectors   elements of a and of b that a thread fetches at once
    """
    (rows, columns), (own_rows, own_columns) = threads, each
    return f"""cache_write(c)
split(c, i, [{rows}, {own_rows}])
split(c, j, [{columns}, {own_columns}])
reorder(c, [i_0, j_0, i_1, j_1, i_2, j_2])
bind(c, i_0, block.y)
bind(c, j_0, block.x)
bind(c, i_1, thread.y)
bind(c, j_1, thread.x)
compute_at(c_cache, c, j_1)
split(c_cache, k, [{step}])
reorder(c_cache, [k_o, k_i, i, j])
cache_read(a, c_cache, shared)
cache_read(b, c_cache, shared)
compute_at(a_c_cache_cache, c_cache, k_o)
compute_at(b_c_cache_cache, c_cache, k_o)
cooperate(a_c_cache_cache, [{rows}, {columns}], {vectors[0]})
cooperate(b_c_cache_cache, [{rows}, {columns}], {vectors[1]})
"""


def product_tiles(step: int = 8) -> str:
    """Blocks of 128x128 by 256 threads, each with 8x8 sums; steps of the depth in shared memory."""
    return f"""{shared_tiles((16, 16), (8, 8), step, (4, 4))}split(c, j_2, [4])
vectorize(c, j_2_i)
split(c_cache, j, [4])
unroll(c_cache, k_i)
vectorize(c_cache, j_i)
"""


SMALL_TILES = shared_tiles((4, 2), (2, 4), 4, (4, 4))
"""Blocks of 8x8 by 8 threads, each with 2x4 sums, to be read and interpreted."""


def product(
    rows: int,
    columns: int,
    depth: int,
    tiles: str = "",
    more: str = "pipeline(c_cache, k_o, 2, registers)",
) -> CardKernel:
    """A product by shared tiles; while one step is computed, registers hold the next.

    tiles   other tiles than `product_tiles()`
    more    other steps after them
    """
    return CardKernel("product", _product(rows, columns, depth), (tiles or product_tiles()) + more)


def split_product(rows: int, columns: int, depth: int) -> CardKernel:
    """A product with few elements and long sums: blocks fold 8 parts, a second launch adds them."""
    trace = """split_reduction(c, k, 8)
split(c_rf, i, [8, 4])
split(c_rf, j, [8, 4])
split(c_rf, k_i, [16])
reorder(c_rf, [k_o, i_0, j_0, i_1, j_1, k_i_o, k_i_i, i_2, j_2])
bind(c_rf, i_0, block.y)
bind(c_rf, j_0, block.x)
bind(c_rf, i_1, thread.y)
bind(c_rf, j_1, thread.x)
unroll(c_rf, k_i_i)
unroll(c_rf, i_2)
vectorize(c_rf, j_2)
cache_read(a, c_rf, shared)
cache_read(b, c_rf, shared)
compute_at(a_c_rf_cache, c_rf, k_i_o)
compute_at(b_c_rf_cache, c_rf, k_i_o)
cooperate(a_c_rf_cache, [8, 8], 4)
cooperate(b_c_rf_cache, [8, 8], 4)
split(c, j, [64])
bind(c, i, block.y)
bind(c, j_o, block.x)
bind(c, j_i, thread.x)
unroll(c, k_o)"""
    return CardKernel("split_product", _product(rows, columns, depth), trace)


def convolution(channels: int, filters: int, size: int) -> CardKernel:
    """A 3x3 convolution of one small image: each thread has a row of pixels of 2 filters."""
    trace = f"""cache_write(y)
split(y, f, [16, 2])
reorder(y, [f_0, f_1, i, f_2, j])
bind(y, f_0, block.x)
bind(y, f_1, thread.y)
bind(y, i, thread.x)
compute_at(y_cache, y, i)
split(y_cache, ic, [8])
reorder(y_cache, [ic_o, ic_i, kh, kw, f, i, j])
unroll(y_cache, ic_i)
unroll(y_cache, kh)
unroll(y_cache, kw)
unroll(y_cache, f)
unroll(y_cache, j)
compute_at(pad, y_cache, ic_o)
set_scope(pad, shared)
cooperate(pad, [16, {size}])
cache_read(w, y_cache, shared)
compute_at(w_y_cache_cache, y_cache, ic_o)
cooperate(w_y_cache_cache, [16, {size}], 4)"""
    return CardKernel("convolution", _convolution(channels, filters, size), trace)


def winograd(channels: int, filters: int, size: int) -> CardKernel:
    """The same by Winograd's algorithm on tiles of 2x2: transforms, and 16 products at once."""
    trace = """use_algorithm(y, winograd2)
compute_inline(pad)
compute_inline(y_data)
fuse(y_columns, [d0, i_t, j_t])
split(y_columns, d0_i_t_j_t, [64])
reorder(y_columns, [d0_i_t_j_t_o, d0_i_t_j_t_i, u, v])
bind(y_columns, d0_i_t_j_t_o, block.x)
bind(y_columns, d0_i_t_j_t_i, thread.x)
unroll(y_columns, u)
unroll(y_columns, v)
compute_at(y_rows, y_columns, d0_i_t_j_t_i)
unroll(y_rows, u)
unroll(y_rows, j)
fuse(y_kernel, [d0, d1])
split(y_kernel, d0_d1, [64])
reorder(y_kernel, [d0_d1_o, d0_d1_i, u, v])
bind(y_kernel, d0_d1_o, block.x)
bind(y_kernel, d0_d1_i, thread.x)
compute_at(y_kernel_f64, y_kernel, v)
cache_write(y_product)
fuse(y_product, [u, v])
split(y_product, f, [16, 4])
reorder(y_product, [u_v, f_0, f_1, i_t, f_2, j_t])
bind(y_product, u_v, block.y)
bind(y_product, f_0, block.x)
bind(y_product, f_1, thread.y)
bind(y_product, i_t, thread.x)
vectorize(y_product, j_t)
compute_at(y_product_cache, y_product, i_t)
split(y_product_cache, ic, [8])
reorder(y_product_cache, [ic_o, ic_i, u, v, f, i_t, j_t])
unroll(y_product_cache, ic_i)
vectorize(y_product_cache, j_t)
cache_read(y_columns, y_product_cache, shared)
compute_at(y_columns_y_product_cache_cache, y_product_cache, ic_o)
cooperate(y_columns_y_product_cache_cache, [16, 4], 4)
cache_read(y_kernel, y_product_cache, shared)
compute_at(y_kernel_y_product_cache_cache, y_product_cache, ic_o)
cooperate(y_kernel_y_product_cache_cache, [16, 4], 4)
compute_inline(y_sums)
fuse(y, [f, i, j])
split(y, f_i_j, [64])
bind(y, f_i_j_o, block.x)
bind(y, f_i_j_i, thread.x)"""
    return CardKernel("winograd", _convolution(channels, filters, size), trace)


def depthwise(channels: int, size: int) -> CardKernel:
    """A 3x3 window over each channel by itself: a block has a channel, a thread 7 pixels."""
    x, w = (
        expr.placeholder("x", (channels, size, size)),
        expr.placeholder("w", (channels, TAPS, TAPS)),
    )
    padded, kh, kw = _padded(x), expr.reduce_axis("kh", TAPS), expr.reduce_axis("kw", TAPS)

    y = expr.compute(
        "y",
        (channels, size, size),
        lambda c, i, j: expr.sum_over(padded[c, i + kh, j + kw] * w[c, kh, kw], kh, kw),
    )
    trace = f"""cache_write(y)
split(y, j, [7])
bind(y, c, block.x)
bind(y, i, thread.y)
bind(y, j_o, thread.x)
compute_at(y_cache, y, j_o)
reorder(y_cache, [kh, kw, c, i, j])
unroll(y_cache, kh)
unroll(y_cache, kw)
unroll(y_cache, j)
compute_at(pad, y, c)
set_scope(pad, shared)
cooperate(pad, [{size}, {-(-size // 7)}])"""
    return CardKernel("depthwise", y, trace)


def softmax(rows: int, columns: int) -> CardKernel:
    """A block for each row: 64 threads have a part of its maximum and of its sum each."""
    x = expr.placeholder("x", (rows, columns))
    j, k = expr.reduce_axis("j", columns), expr.reduce_axis("k", columns)
    top = expr.compute("top", (rows,), lambda i: expr.max_over(x[i, j], j))
    e = expr.compute("e", (rows, columns), lambda i, j: expr.exp(x[i, j] - top[i]))
    total = expr.compute("total", (rows,), lambda i: expr.sum_over(e[i, k], k))
    out = expr.compute("out", (rows, columns), lambda i, j: e[i, j] / total[i])
    trace = """compute_inline(e)
split(top, j, [64])
rfactor(top, j_i)
split(total, k, [64])
rfactor(total, k_i)
split(out, j, [64])
bind(out, i, block.x)
bind(out, j_i, thread.x)
compute_at(total, out, i)
compute_at(total_rf, out, i)
bind(total_rf, k_i, thread.x)
compute_at(top, out, i)
compute_at(top_rf, out, i)
bind(top_rf, j_i, thread.x)"""
    return CardKernel("softmax", out, trace)


Sizes: TypeAlias = tuple[tuple[Callable[..., CardKernel], tuple[int, ...]], ...]
"""Makers of kernels, each with its sizes."""
SMALL: Sizes = (
    (product, (12, 20, 20)),
    (split_product, (9, 12, 140)),
    (convolution, (5, 33, 3)),
    (winograd, (3, 9, 7)),
    (depthwise, (3, 9)),
    (softmax, (3, 200)),
)
"""Sizes that tests compute: with rests, and of few operations."""
LARGE: Sizes = (
    (product, (1024, 1024, 1024)),
    (split_product, (64, 64, 16384)),
    (convolution, (512, 512, 7)),
    (winograd, (512, 512, 7)),
    (depthwise, (384, 14)),
    (softmax, (4096, 1024)),
)
"""Sizes of networks; the convolutions are C12, the last one of ResNet-18."""


def kernels(
    sizes: tuple[tuple[Callable[..., CardKernel], tuple[int, ...]], ...],
) -> list[CardKernel]:
    """The six kernels of these sizes: `SMALL` or `LARGE`."""
    return [make(*numbers) for make, numbers in sizes]


def _product(rows: int, columns: int, depth: int) -> expr.Compute:
    k = expr.reduce_axis("k", depth)
    a, b = expr.placeholder("a", (rows, depth)), expr.placeholder("b", (depth, columns))
    return expr.compute("c", (rows, columns), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))


def _padded(x: expr.Placeholder) -> expr.Compute:
    """An image with a border of zeros."""
    channels, height, width = x.shape
    return expr.compute(
        "pad",
        (channels, height + 2, width + 2),
        lambda c, i, j: expr.select(
            expr.all_of(i >= 1, i <= height, j >= 1, j <= width), x[c, i - 1, j - 1], 0.0
        ),
    )


def _convolution(channels: int, filters: int, size: int) -> expr.Compute:
    x = expr.placeholder("x", (channels, size, size))
    w = expr.placeholder("w", (filters, channels, TAPS, TAPS))
    padded, c = _padded(x), expr.reduce_axis("ic", channels)
    kh, kw = expr.reduce_axis("kh", TAPS), expr.reduce_axis("kw", TAPS)
    return expr.compute(
        "y",
        (filters, size, size),
        lambda f, i, j: expr.sum_over(padded[c, i + kh, j + kw] * w[f, c, kh, kw], c, kh, kw),
    )
