"""Small tensor expressions to schedule, and the check that a schedule keeps their meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.targets import AVX512

from tensorwright import schedule
from tensorwright.base import DType, GpuTarget, Target, parse_target
from tensorwright.expr import (
    Compute,
    Decision,
    Placeholder,
    all_of,
    argmax_over,
    at_position,
    cast,
    compute,
    constant,
    evaluate,
    exp,
    max_of,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
    topological_order,
)
from tensorwright.loop import (
    For,
    LoopProgram,
    lower,
    run_passes,
    run_target_passes,
    verify,
    walk,
)
from tensorwright_lab.loop_interpreter import bind_decisions, interpret

Arrays = Mapping[str, NDArray[Any]]
NAMED_CARD = parse_target("cuda:sm_90")
assert isinstance(NAMED_CARD, GpuTarget)
LARGE_CARD = replace(NAMED_CARD, threads_per_block=1 << 20)  # groups as large as they are drawn


@dataclass(frozen=True, slots=True)
class Expression:
    """Outputs and the names of constant inputs; `is_exact` where whole numbers stay whole."""

    outputs: tuple[Compute, ...]
    constants: frozenset[str] = frozenset()
    is_exact: bool = True
    largest: dict[str, int] = field(default_factory=dict)

    @property
    def state(self) -> schedule.ScheduleState:
        return schedule.state_of(self)

    @property
    def inputs(self) -> tuple[Placeholder, ...]:
        order = topological_order(*self.outputs)
        return tuple(tensor for tensor in order if isinstance(tensor, Placeholder))

    def arrays(self, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Small whole numbers: every order of additions gives the same floats."""
        generator = np.random.default_rng(seed)
        found = {}
        for each in self.inputs:
            low, high = (0, 4) if each.dtype is DType.U8 or not each.dtype.is_float else (-4, 5)
            numbers = generator.integers(low, self.largest.get(each.name, high), each.shape)
            found[each.name] = numbers.astype(each.dtype.numpy)
        return found

    def answers(self, arrays: Arrays) -> dict[str, NDArray[Any]]:
        known = {tensor: arrays[tensor.name] for tensor in self.inputs}
        results = evaluate(self.outputs, known)
        return {t.name: each for t, each in zip(self.outputs, results, strict=True)}


def check_program(
    expression: Expression,
    program: LoopProgram,
    decisions: Mapping[Decision, int] | None = None,
) -> None:
    """The program, as it is and after all passes, gives what the expression means."""
    verify(program, allow_decisions=bool(decisions))
    arrays = expression.arrays()
    expected = expression.answers(arrays)
    bound = bind_decisions(program, decisions) if decisions else program
    for each in (program, finished(bound)):
        found = interpret(each, arrays, decisions)
        assert found.keys() == expected.keys()
        for name, answer in expected.items():
            if expression.is_exact:
                np.testing.assert_array_equal(found[name], answer, err_msg=str(each))
            else:
                np.testing.assert_allclose(found[name], answer, rtol=2e-6, err_msg=str(each))


def is_for_card(program: LoopProgram) -> bool:
    """Whether some loops are over the blocks or the threads of a card."""
    loops = (part for part in walk(program.body) if isinstance(part, For))
    return any(loop.kind in schedule.BLOCKS | schedule.THREADS for loop in loops)


def finished(program: LoopProgram) -> LoopProgram:
    """The program after all passes, those of its target as well."""
    target: Target = LARGE_CARD if is_for_card(program) else AVX512
    return run_target_passes(run_passes(program), target)


def check(expression: Expression, trace: schedule.Trace) -> LoopProgram:
    """A trace is legal, round-trips as text and keeps the meaning; gives its program."""
    assert schedule.parse_trace(schedule.format_trace(trace)) == trace
    program = lower(schedule.replay(expression.state, trace))
    check_program(expression, program)
    return program


def matmul(m: int = 6, n: int = 7, k: int = 5, *, with_relu: bool = False) -> Expression:
    a, b = placeholder("a", (m, k)), placeholder("b", (k, n))
    r = reduce_axis("k", k)
    c = compute("c", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    outputs = (c,)
    if with_relu:
        outputs = (compute("relu", (m, n), lambda i, j: max_of(c[i, j], 0.0)),)
    return Expression(outputs, frozenset({"b"}))


def chain(n: int = 10) -> Expression:
    """z = (x + 1) * 2 + x[reversed], three stages."""
    x = placeholder("x", (n,))
    p = compute("p", (n,), lambda i: x[i] + 1.0)
    q = compute("q", (n,), lambda i: p[i] * 2.0)
    return Expression((compute("z", (n,), lambda i: q[i] + x[n - 1 - i]),))


def blur(n: int = 9) -> Expression:
    """A stencil over a producer: neighbouring tiles of it overlap."""
    x = placeholder("x", (n + 2, n + 2))
    p = compute("p", (n + 2, n), lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2])
    return Expression((compute("b", (n, n), lambda i, j: p[i, j] + p[i + 1, j] + p[i + 2, j]),))


def conv(size: int = 7, stride: int = 1, channels: int = 3, filters: int = 4) -> Expression:
    """A padded 3x3 convolution of one image, then bias and ReLU."""
    x = placeholder("x", (channels, size, size))
    w = placeholder("w", (filters, channels, 3, 3))
    bias = placeholder("bias", (filters,))
    out = (size - 1) // stride + 1

    def padded(c: Any, h: Any, v: Any) -> Any:
        inside = all_of(h >= 1, h < size + 1, v >= 1, v < size + 1)
        return select(inside, x[c, h - 1, v - 1], 0.0)

    pad = compute("pad", (channels, size + 2, size + 2), padded)
    ic, kh, kw = reduce_axis("ic", channels), reduce_axis("kh", 3), reduce_axis("kw", 3)
    y = compute(
        "y",
        (filters, out, out),
        lambda oc, oh, ow: sum_over(
            pad[ic, oh * stride + kh, ow * stride + kw] * w[oc, ic, kh, kw], ic, kh, kw
        ),
    )
    relu = compute("relu", y.shape, lambda oc, oh, ow: max_of(y[oc, oh, ow] + bias[oc], 0.0))
    return Expression((relu,), frozenset({"w", "bias"}))


def scaled(columns: int = 7) -> Expression:
    """A product with a constant that is doubled first: y = x (2 w)."""
    x, w, k = placeholder("x", (3, 5)), placeholder("w", (5, columns)), reduce_axis("k", 5)
    doubled = compute("doubled", w.shape, lambda i, j: w[i, j] * 2.0)
    y = compute("y", (3, columns), lambda i, j: sum_over(x[i, k] * doubled[k, j], k))
    return Expression((y,), frozenset({"w"}))


def positions() -> Expression:
    """A constant that is used as an index into what was made of it, z[i] = q[w[i]] * x[i]."""
    x, w = placeholder("x", (4,), DType.I64), placeholder("w", (4,), DType.I64)
    p = compute("p", (4,), lambda i: w[i] + 1)
    q = compute("q", (4,), lambda i: p[at_position(p, (i,), 4)])
    return Expression((compute("z", (4,), lambda i: q[i] * x[i]),), frozenset({"w"}))


def softmax(rows: int = 4, columns: int = 9) -> Expression:
    x = placeholder("x", (rows, columns))
    j, k = reduce_axis("j", columns), reduce_axis("k", columns)
    top = compute("top", (rows,), lambda i: max_over(x[i, j], j))
    e = compute("e", (rows, columns), lambda i, j: exp(x[i, j] - top[i]))
    total = compute("total", (rows,), lambda i: sum_over(e[i, k], k))
    out = compute("out", (rows, columns), lambda i, j: e[i, j] / total[i])
    return Expression((out,), is_exact=False)


def causal(rows: int = 7, keys: int = 9, columns: int = 3) -> Expression:
    """Attention whose rows are the last of the positions, and see those before them."""
    x, v = placeholder("x", (rows, keys)), placeholder("v", (keys, columns))
    j, k = reduce_axis("j", keys), reduce_axis("k", keys)
    nothing = constant(-math.inf, DType.F32)
    seen = compute(
        "seen",
        (rows, keys),
        lambda i, j: select(j <= i + (keys - rows), x[i, j] * 0.5, nothing),
    )
    top = compute("top", (rows,), lambda i: max_over(seen[i, j], j))
    e = compute("e", (rows, keys), lambda i, j: exp(seen[i, j] - top[i]))
    y = compute("y", (rows, columns), lambda i, f: sum_over(e[i, k] * v[k, f], k))
    return Expression((y,), is_exact=False)


def weighted(rows: int = 4, columns: int = 3, terms: int = 6) -> Expression:
    """Each term of a row's sums is multiplied by the same number."""
    x, y = placeholder("x", (rows, terms)), placeholder("y", (terms, columns))
    each = placeholder("each", (rows,))
    k = reduce_axis("k", terms)
    return Expression(
        (compute("w", (rows, columns), lambda i, j: sum_over(x[i, k] * each[i] * y[k, j], k)),)
    )


def pool(size: int = 8) -> Expression:
    x = placeholder("x", (2, size, size))
    kh, kw = reduce_axis("kh", 3), reduce_axis("kw", 3)
    out = (size - 3) // 2 + 1
    pooled = compute(
        "y", (2, out, out), lambda c, h, v: max_over(x[c, h * 2 + kh, v * 2 + kw], kh, kw)
    )
    return Expression((pooled,))


def total(n: int = 24) -> Expression:
    """Everything folded into one number."""
    x, k = placeholder("x", (n,)), reduce_axis("k", n)
    return Expression((compute("s", (), lambda: sum_over(x[k], k)),))


def gather(n: int = 6) -> Expression:
    """Rows of a table, each element doubled, by positions that are data."""
    table = placeholder("table", (9, 4))
    place = placeholder("place", (n,), DType.I64)
    moved = compute("moved", (n,), lambda i: place[i] + 1)
    rows = compute("rows", (n, 4), lambda i, j: table[at_position(moved, (i,), 9), j] * 2.0)
    return Expression((rows,), largest={"place": 8})


def arg_max(rows: int = 5, columns: int = 7) -> Expression:
    x, k = placeholder("x", (rows, columns)), reduce_axis("k", columns)
    return Expression((compute("best", (rows,), lambda i: argmax_over(x[i, k], k)),))


def two_outputs(n: int = 8) -> Expression:
    x, k = placeholder("x", (n, n)), reduce_axis("k", n)
    s = compute("s", (n,), lambda i: sum_over(x[i, k], k))
    centred = compute("d", (n, n), lambda i, j: x[i, j] * 8.0 - s[i])
    return Expression((s, centred))


def bytes_product(m: int = 3, columns: int = 32, k: int = 8) -> Expression:
    """A product of bytes, as an instruction computes it."""
    data = placeholder("data", (m, k), DType.U8)
    weights = placeholder("w", (columns, k), DType.I8)
    r = reduce_axis("r", k)
    y = compute(
        "y",
        (m, columns),
        lambda i, j: sum_over(cast(data[i, r], DType.I32) * cast(weights[j, r], DType.I32), r),
    )
    return Expression((y,), frozenset({"w"}))


ALL = {
    "matmul": matmul(),
    "matmul_relu": matmul(with_relu=True),
    "chain": chain(),
    "scaled": scaled(),
    "blur": blur(),
    "conv": conv(5, channels=2, filters=3),
    "conv_strided": conv(6, 2, channels=2, filters=2),
    "softmax": softmax(),
    "causal": causal(),
    "pool": pool(),
    "total": total(),
    "gather": gather(),
    "arg_max": arg_max(),
    "two_outputs": two_outputs(),
    "bytes_product": bytes_product(2, 16, 8),
    "weighted": weighted(),
}
