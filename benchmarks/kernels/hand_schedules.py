"""What the code generator can do: five operators with schedules written by hand, on one thread.

For each: its share of the peak of a target (a loop of FMAs on registers), its speed relative to
PyTorch's best layout, the time to compile it, and its error against the NumPy meaning of the same
expression. What misses its target is marked.

Peak and kernel are measured in turns, so that what else the machine does lowers both; ours and
PyTorch's variants take turns in processes of their own. The sizes of tiles are written for vectors
of 16 floats and 32 registers (AVX-512), and for 8 and 16 (AVX2); without AVX-512 PyTorch and the
libraries that it brings are held to AVX2, too, by their environment variables.

Run: python benchmarks/kernels/hand_schedules.py [--target T ...] [--json FILE] [--rounds N]
         [case ...]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from statistics import median

import numpy as np

from tensorwright import expr
from tensorwright.artifacts import BuildRequest, Kernel, build, load_kernel
from tensorwright.base import CpuTarget, DType, UsageError, cpu_target
from tensorwright.loop import Role, pack
from tensorwright.peers.process import PeerProcess, Timing, rotate
from tensorwright.runtime.buffers import address_of, empty_bytes
from tensorwright.runtime.measuring import measure_peak

COMPILE_LIMIT_MS = 80.0
MOST_ERROR = 1e-5  # relative to the largest output; sums of a thousand floats in another order
BUILDS = 5
SAMPLE_S = 5e-3
ARENA_BYTES = 16 << 20  # as in an executable, all operands in one piece, on huge pages
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Tiles:
    """The sizes in the schedules, for vectors of so many lanes.

    conv_columns, conv_rows    blocks of filters and columns of the image in a tile of a convolution
    conv_channels              how the channels of a block are split, the last unrolled
    matmul_rows                rows of a tile of two vectors
    window_columns             outputs of a depthwise convolution that share their inputs
    """

    lanes: int
    conv_columns: int
    conv_rows: str
    conv_channels: str
    matmul_rows: int
    window_columns: int


WIDE = Tiles(16, 2, "[14]", "8, 2", 12, 8)
NARROW = Tiles(8, 2, "[6], shift", "4, 2", 6, 4)
"""Sixteen registers: twelve sums, two vectors of weights, and one element spread over the lanes."""


def tiles_of(target: CpuTarget) -> Tiles:
    """The sizes for a target.

    Raises:  UsageError for vectors of other lengths.
    """
    for tiles in (WIDE, NARROW):
        if target.lanes(DType.F32) == tiles.lanes:
            return tiles
    raise UsageError(
        stage="benchmark",
        where=f"target {target}",
        reason="there are no schedules for its vectors",
        remedy="name a target with AVX2 or AVX-512",
    )


def convolution(channels: int, filters: int, size: int, kernel: int, lanes: int) -> expr.Compute:
    """Activations and weights in blocks of channels, stride 1, as much padding as needed."""
    x = expr.placeholder("x", (channels // lanes, size, size, lanes))
    shape = (filters // lanes, channels // lanes, kernel, kernel, lanes, lanes)
    w = expr.placeholder("w", shape)
    source = padded(x, kernel // 2) if kernel > 1 else x
    ic, kh, kw = (
        expr.reduce_axis("ic", channels),
        expr.reduce_axis("kh", kernel),
        expr.reduce_axis("kw", kernel),
    )
    block, lane = ic.var // lanes, ic.var % lanes
    return expr.compute(
        "conv",
        (filters // lanes, size, size, lanes),
        lambda oc, oh, ow, v: expr.sum_over(
            source[block, oh + kh.var, ow + kw.var, lane] * w[oc, block, kh, kw, lane, v],
            *(ic, kh, kw),
        ),
    )


def depthwise(channels: int, size: int, kernel: int, lanes: int) -> expr.Compute:
    x = expr.placeholder("x", (channels // lanes, size, size, lanes))
    w = expr.placeholder("w", (channels // lanes, kernel, kernel, lanes))
    source = padded(x, kernel // 2)
    kh, kw = expr.reduce_axis("kh", kernel), expr.reduce_axis("kw", kernel)
    return expr.compute(
        "conv",
        (channels // lanes, size, size, lanes),
        lambda c, oh, ow, v: expr.sum_over(
            source[c, oh + kh.var, ow + kw.var, v] * w[c, kh, kw, v], kh, kw
        ),
    )


def padded(x: expr.Placeholder, border: int) -> expr.Compute:
    blocks, height, width, lanes = x.shape
    zero = expr.constant(0, DType.F32)
    return expr.compute(
        "pad",
        (blocks, height + 2 * border, width + 2 * border, lanes),
        lambda c, ph, pw, pv: expr.select(
            expr.all_of(
                *(ph >= border, ph < height + border, pw >= border, pw < width + border),
            ),
            x[c, ph - border, pw - border, pv],
            zero,
        ),
    )


def matmul(size: int) -> expr.Compute:
    a, w = expr.placeholder("a", (size, size)), expr.placeholder("w", (size, size))
    k = expr.reduce_axis("k", size)
    return expr.compute("mm", (size, size), lambda i, j: expr.sum_over(a[i, k] * w[k, j], k))


def softmax(rows: int, columns: int) -> expr.Compute:
    """Row softmax, with a multiplication by the reciprocal of the sum."""
    x = expr.placeholder("x", (rows, columns))
    j, k = expr.reduce_axis("j", columns), expr.reduce_axis("k", columns)
    m = expr.compute("m", (rows,), lambda i: expr.max_over(x[i, j], j))
    e = expr.compute("e", (rows, columns), lambda i, n: expr.exp(x[i, n] - m[i]))
    s = expr.compute("s", (rows,), lambda i: expr.sum_over(e[i, k], k))
    r = expr.compute("r", (rows,), lambda i: expr.constant(1, DType.F32) / s[i])
    return expr.compute("softmax", (rows, columns), lambda i, n: e[i, n] * r[i])


# Bands of 7 rows: what they read of the padded input stays in the second cache. A tile is, with 32
# registers, 14 columns by 2 blocks of filters: 28 sums, 2 vectors of weights, a broadcast input.
CONVOLUTION_3X3 = """
    cache_write(conv)
    split(conv, oc, [{conv_columns}])
    split(conv, oh, [7])
    split(conv, ow, {conv_rows})
    reorder(conv, [oh_o, oc_o, oh_i, ow_o, oc_i, ow_i, v])
    unroll(conv, oc_i)
    unroll(conv, ow_i)
    vectorize(conv, v)
    compute_at(conv_cache, conv, ow_o)
    compute_at(pad, conv, oh_o)
    vectorize(pad, pv)
    split(conv_cache, ic, [{conv_channels}], exact)
    reorder(conv_cache, [ic_0, kh, kw, ic_1, ic_2, oh, ow, oc, v])
    unroll(conv_cache, ic_2)
    unroll(conv_cache, ow)
    unroll(conv_cache, oc)
    vectorize(conv_cache, v)
    pack_constant(w, conv_cache)
"""

CONVOLUTION_1X1 = """
    cache_write(conv)
    split(conv, oc, [{conv_columns}])
    split(conv, ow, {conv_rows})
    reorder(conv, [oh, ow_o, oc_o, oc_i, ow_i, v])
    unroll(conv, oc_i)
    unroll(conv, ow_i)
    vectorize(conv, v)
    compute_at(conv_cache, conv, oc_o)
    split(conv_cache, ic, [{conv_channels}], exact)
    reorder(conv_cache, [ic_0, ic_1, ic_2, oh, ow, oc, v])
    unroll(conv_cache, ic_2)
    unroll(conv_cache, ow)
    unroll(conv_cache, oc)
    vectorize(conv_cache, v)
    pack_constant(w, conv_cache)
"""

# A few rows of the first operand stay in the first cache while all of the second one passes by.
MATMUL = """
    cache_write(mm)
    split(mm, j, [2, {lanes}])
    split(mm, i, [{matmul_rows}], shift)
    reorder(mm, [i_o, j_0, j_1, i_i, j_2])
    unroll(mm, j_1)
    unroll(mm, i_i)
    vectorize(mm, j_2)
    compute_at(mm_cache, mm, j_0)
    split(mm_cache, j, [{lanes}])
    split(mm_cache, k, [4], exact)
    reorder(mm_cache, [k_o, k_i, i, j_o, j_i])
    unroll(mm_cache, k_i)
    unroll(mm_cache, i)
    unroll(mm_cache, j_o)
    vectorize(mm_cache, j_i)
    pack_constant(w, mm_cache)
"""

# Few outputs at a time: with more, the inputs that neighbours share no longer fit in registers.
DEPTHWISE = """
    cache_write(conv)
    split(conv, oh, [28])
    split(conv, ow, [{window_columns}])
    reorder(conv, [c, oh_o, oh_i, ow_o, ow_i, v])
    unroll(conv, ow_i)
    vectorize(conv, v)
    compute_at(conv_cache, conv, ow_o)
    compute_at(pad, conv, oh_o)
    vectorize(pad, pv)
    reorder(conv_cache, [c, kh, kw, oh, ow, v])
    unroll(conv_cache, kh)
    unroll(conv_cache, kw)
    unroll(conv_cache, ow)
    vectorize(conv_cache, v)
    pack_constant(w, conv_cache)
"""

# The greatest and the sum of a row run through four vectors of partial results, because one
# would wait for each comparison and addition.
SOFTMAX = """
    split(m, j, [4, {lanes}])
    rfactor(m, j_2)
    rfactor(m_rf, j_1)
    split(s, k, [4, {lanes}])
    rfactor(s, k_2)
    rfactor(s_rf, k_1)
    compute_at(r, softmax, i)
    compute_at(s, softmax, i)
    compute_at(s_rf, softmax, i)
    compute_at(s_rf_rf, softmax, i)
    compute_at(e, softmax, i)
    compute_at(m, softmax, i)
    compute_at(m_rf, softmax, i)
    compute_at(m_rf_rf, softmax, i)
    reorder(m_rf_rf, [i, j_0, j_1, j_2])
    unroll(m_rf_rf, j_1)
    vectorize(m_rf_rf, j_2)
    reorder(m_rf, [i, j_1, j_2])
    unroll(m_rf, j_1)
    vectorize(m_rf, j_2)
    split(e, n, [64])
    vectorize(e, n_i)
    reorder(s_rf_rf, [i, k_0, k_1, k_2])
    unroll(s_rf_rf, k_1)
    vectorize(s_rf_rf, k_2)
    reorder(s_rf, [i, k_1, k_2])
    unroll(s_rf, k_1)
    vectorize(s_rf, k_2)
    split(softmax, n, [64])
    vectorize(softmax, n_i)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """An operator, its schedule and what is asked of it.

    make        its expression, from the lanes of a vector
    schedule    its trace, with the fields of `Tiles` in braces
    flops       0 where a share of peak says nothing
    share       least share of peak             ratio  least speed relative to PyTorch's best
    theirs      the operator of torch_functions.py, its sizes
    """

    name: str
    make: Callable[[int], expr.Compute]
    schedule: str
    flops: float
    share: float
    ratio: float
    theirs: tuple[str, dict[str, int]]

    def trace(self, target: CpuTarget) -> str:
        """The schedule for a target."""
        return self.schedule.format(**asdict(tiles_of(target)))

    def output(self, target: CpuTarget) -> expr.Compute:
        """The expression for a target."""
        return self.make(tiles_of(target).lanes)


def _sizes(channels: int, filters: int, size: int, kernel: int, groups: int) -> dict[str, int]:
    shape = {"channels": channels, "filters": filters, "size": size}
    return {**shape, "kernel": kernel, "groups": groups}


CASES = (
    Case(
        "conv 3x3 56x56 64->64",
        lambda lanes: convolution(64, 64, 56, 3, lanes),
        CONVOLUTION_3X3,
        2.0 * 64 * 64 * 56 * 56 * 9,
        0.75,
        1.0,
        ("conv2d", _sizes(64, 64, 56, 3, 1)),
    ),
    Case(
        "matmul 512x512x512",
        lambda _: matmul(512),
        MATMUL,
        2.0 * 512**3,
        0.75,
        1.0,
        ("matmul", {"m": 512, "k": 512, "n": 512}),
    ),
    Case(
        "conv 1x1 56x56 64->256",
        lambda lanes: convolution(64, 256, 56, 1, lanes),
        CONVOLUTION_1X1,
        2.0 * 64 * 256 * 56 * 56,
        0.65,
        1.0,
        ("conv2d", _sizes(64, 256, 56, 1, 1)),
    ),
    Case(
        "depthwise 3x3 112x112x32",
        lambda lanes: depthwise(32, 112, 3, lanes),
        DEPTHWISE,
        2.0 * 32 * 112 * 112 * 9,
        0.0,
        1.0,
        ("conv2d", _sizes(32, 32, 112, 3, 32)),
    ),
    Case(
        "row softmax 1024x1024",
        lambda _: softmax(1024, 1024),
        SOFTMAX,
        0.0,
        0.0,
        1.0,
        ("softmax", {"rows": 1024, "columns": 1024}),
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured; ratio is PyTorch's time over ours."""

    target: str
    case: str
    share: float | None
    needed_share: float
    ours_us: float
    torch_us: float
    torch_variant: str
    ratio: float
    compile_ms: float
    compile_share: float
    max_rel_error: float
    missed: tuple[str, ...]


class LoadedCase:
    """A case built, with buffers of its own; `call` runs it once on one thread.

    object_code   of the same text, made in another way
    """

    def __init__(self, case: Case, target: CpuTarget, object_code: bytes = b"") -> None:
        self.output = case.output(target)
        self.inputs = _draw(self.output)
        built = build_case(self.output, case.trace(target), target)
        self._built = replace(built, object_code=object_code or built.object_code)
        self._kernel = load_kernel(self._built)
        self._arena = empty_bytes(ARENA_BYTES)
        self._used_bytes = 0
        self._arrays = [self._array(place) for place in range(len(self._built.parameters))]
        self._workspace = empty_bytes(max(64, self._built.spec.scratch_bytes(1)))
        pointers = (ctypes.c_void_p * len(self._arrays))(*map(address_of, self._arrays))
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
        ((function, _),) = self._kernel.functions
        run = kind(function)
        workspace = address_of(self._workspace)
        self.call = lambda: run(pointers, workspace, 1)

    def _array(self, place: int) -> expr.Array:
        parameter, name = self._built.parameters[place], self._built.parameters[place].name
        if parameter.role is Role.OUTPUT:
            shape = tuple(int(str(extent)) for extent in parameter.buffer.shape)
            self.result = self._place(shape)
            return self.result
        source = next(array for tensor, array in self.inputs.items() if tensor.name == name)
        if parameter.packing is not None:
            source = pack(source, parameter.packing)
        array = self._place(source.shape)
        array[...] = source
        return array

    def _place(self, shape: tuple[int, ...]) -> expr.Array:
        """The next floats of the arena, on a cache line of their own."""
        size = 4 * prod(shape)
        start, self._used_bytes = self._used_bytes, self._used_bytes + -(-size // 64) * 64
        array: expr.Array = self._arena[start : start + size].view(np.float32).reshape(shape)
        return array

    def error(self) -> float:
        """The largest difference from the NumPy meaning, over the largest element of that."""
        self.result.fill(np.nan)
        self.call()
        (answer,) = expr.evaluate([self.output], self.inputs)
        return float(np.max(np.abs(self.result - answer)) / np.max(np.abs(answer)))

    def time_s(self) -> float:
        """The median of some calls in a row."""
        times: list[float] = []
        while sum(times) < SAMPLE_S or len(times) < 3:
            start = time.perf_counter()
            self.call()
            times.append(time.perf_counter() - start)
        return median(times)


def _draw(output: expr.Compute) -> dict[expr.Placeholder, expr.Array]:
    source = np.random.default_rng(0)
    return {
        tensor: source.standard_normal(tensor.shape).astype(np.float32)
        for tensor in expr.topological_order(output)
        if isinstance(tensor, expr.Placeholder)
    }


def request_of(output: expr.Compute, trace: str, target: CpuTarget) -> BuildRequest:
    """An expression and a trace; weights named w are constants."""
    tensors = expr.topological_order(output)
    constants = frozenset(t.name for t in tensors if t.name == "w")
    return BuildRequest("kernel", tensors, (output,), constants, trace, target)


def build_case(output: expr.Compute, trace: str, target: CpuTarget) -> Kernel:
    """From expression and trace to object code."""
    return build(request_of(output, trace, target))


def ours(
    inputs: Mapping[str, expr.Array], threads: int, case: str, target: str
) -> Callable[[], object]:
    """The kernel of a case as a competitor of kind "function"."""
    del inputs, threads
    kernel = LoadedCase(next(each for each in CASES if each.name == case), cpu_target(target))
    return lambda: kernel.call() or kernel.result


def compile_ms(case: Case, target: CpuTarget) -> float:
    """The median time to build the kernel, from its trace to object code."""
    output, trace = case.output(target), case.trace(target)
    return 1e3 * median(build_case(output, trace, target).seconds for _ in range(BUILDS))


def share_of_peak(kernel: LoadedCase, flops: float, target: CpuTarget, rounds: int) -> float:
    """Kernel and peak in turns: the median of their ratios."""
    shares: list[float] = []
    for number in range(rounds):
        first = measure_peak(target) if number % 2 == 0 else 0.0
        rate = flops / kernel.time_s()
        shares.append(rate / (first or measure_peak(target)))
    return median(shares)


def race(case: Case, target: CpuTarget, rounds: int) -> tuple[float, dict[str, float]]:
    """Seconds per call: ours, and PyTorch's variants; each in a process of its own."""
    # imported by path in the other processes; PyTorch is never loaded in this one
    kind, sizes = case.theirs
    with ExitStack() as stack:
        competitors = [stack.enter_context(PeerProcess("ours", "function"))]
        options: dict[str, object] = {"case": case.name, "target": target.name}
        competitors[0].load(f"{HERE / 'hand_schedules.py'}:ours", 1, options)
        for variant in VARIANTS[kind]:
            peer = stack.enter_context(PeerProcess(variant, "function", target=target))
            options = {"kind": kind, "variant": variant, "sizes": sizes}
            peer.load(f"{HERE / 'torch_functions.py'}:operator", 1, options)
            competitors.append(peer)
        for competitor in competitors:
            competitor.bind({})
        results = rotate(competitors, rounds)
    times = {r.name: r.median_s for r in results if isinstance(r, Timing)}
    return times.pop("ours"), times


VARIANTS = {
    "conv2d": ("contiguous", "channels_last", "frozen", "frozen channels_last", "mkldnn"),
    "matmul": ("contiguous", "transposed weight", "out", "frozen", "mkldnn"),
    "softmax": ("contiguous", "out"),
}
"""The layouts and packings that PyTorch is tried in, see torch_functions.py."""


def measure(case: Case, target: CpuTarget, rounds: int) -> Row:
    kernel = LoadedCase(case, target)
    error = kernel.error()
    built_ms = compile_ms(case, target)
    share = share_of_peak(kernel, case.flops, target, rounds) if case.flops else None
    ours_s, theirs = race(case, target, rounds)
    variant = min(theirs, key=lambda name: theirs[name])
    ratio = theirs[variant] / ours_s
    missed = (
        *(["share of peak"] if share is not None and share < case.share else []),
        *(["ratio"] if ratio < case.ratio else []),
        *(["compile time"] if built_ms > COMPILE_LIMIT_MS else []),
        *(["error"] if error > MOST_ERROR else []),
    )
    return Row(
        *(
            target.name,
            case.name,
            share,
            case.share,
            1e6 * ours_s,
            1e6 * theirs[variant],
            variant,
            ratio,
        ),
        *(built_ms, built_ms / COMPILE_LIMIT_MS, error, missed),
    )


HEAD = (
    f"{'case':26}{'of peak':>9}{'needed':>8}{'ours us':>10}{'torch us':>10}{'ratio':>7}"
    f"{'compile':>9}{'of 80 ms':>10}{'error':>9}  PyTorch's best"
)


def row_text(row: Row) -> str:
    share = "-" if row.share is None else f"{row.share:.1%}"
    needed = f"{row.needed_share:.0%}" if row.needed_share else "-"
    text = (
        f"{row.case:26}{share:>9}{needed:>8}{row.ours_us:>10.1f}{row.torch_us:>10.1f}"
        f"{row.ratio:>7.2f}{row.compile_ms:>6.1f} ms{row.compile_share:>10.2f}"
        f"{row.max_rel_error:>9.1e}  {row.torch_variant}"
    )
    return text + (f"   MISSED: {', '.join(row.missed)}" if row.missed else "")


def measure_target(target: CpuTarget, chosen: list[Case], rounds: int) -> list[Row]:
    """Measure and print the cases for one target."""
    # what is only done once: LLVM's tables
    build_case(CASES[1].output(target), CASES[1].trace(target), target)
    print(f"{target}, one thread, peak {measure_peak(target) / 1e9:.0f} GFLOP/s\n{HEAD}")
    rows = []
    for case in chosen:
        rows.append(measure(case, target, rounds))
        print(row_text(rows[-1]), flush=True)
    missed = [row.case for row in rows if row.missed]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} reach every target\n")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", help="parts of names; all where none is given")
    parser.add_argument(
        "--target", action="append", help="may be repeated; native and x86-64-avx2 if not given"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    parser.add_argument("--rounds", type=int, default=11, help="turns of each competitor")
    arguments = parser.parse_args()
    names = arguments.target or ["native", "x86-64-avx2"]
    chosen = [c for c in CASES if not arguments.cases or any(a in c.name for a in arguments.cases)]
    rows = [
        row for name in names for row in measure_target(cpu_target(name), chosen, arguments.rounds)
    ]
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
