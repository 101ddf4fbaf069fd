"""Does code for NVIDIA's cards run right on one, and how fast?  Kernels, networks, and errors.

Kernels are compared with NumPy, networks with the answers of the processor's build; a rate is a
share of the peak that the driver's numbers give. Prices of the time model stand beside measured
times of some candidates for convolutions, products and elementwise work (`prices.py`, at most 100
seconds). A case that fails does not stop the others. The machine needs a card, its driver and
NVRTC, and no network and no compiler. Without the package llvmlite, which only code for processors
needs, the answers come from a file that another machine has made, and NumPy computes the prices.

Run: python benchmarks/device/on_card.py [--make-answers FILE] [--answers FILE] [--json FILE]
     [--only TEXT] [--small] [--limit-s S]

`--make-answers` needs no card and ends after it. `--small` is for checks of this script.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import os
import statistics
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

HERE = Path(__file__).parents[2]
sys.path[:0] = [str(HERE / "src"), str(HERE / "lab" / "src")]
os.environ.setdefault("TENSORWRIGHT_HOME", tempfile.mkdtemp(prefix="tensorwright-on-card-"))


HAS_NO_LLVM = importlib.util.find_spec("llvmlite") is None


def _without_llvm() -> None:
    """Let the package be imported where llvmlite is missing; what uses it fails there."""
    if HAS_NO_LLVM:
        package, binding = types.ModuleType("llvmlite"), types.ModuleType("llvmlite.binding")
        vars(binding).update(dict.fromkeys(("ModuleRef", "TargetMachine", "ExecutionEngine"), Any))
        vars(package)["binding"] = binding
        sys.modules.update({"llvmlite": package, "llvmlite.binding": binding})


_without_llvm()
sys.path.insert(0, str(Path(__file__).parent))

# ruff: noqa: E402
import prices
from default_cases import CONSTANTS, LAYERS, SMALL_LAYERS, Layer, trace_of
from numpy_columns import use_numpy

import tensorwright
from tensorwright import base, expr
from tensorwright.artifacts import build_kernel, load_backend, load_kernel
from tensorwright.artifacts.kernel import LoadedKernel
from tensorwright.codegen.cuda import find_nvrtc
from tensorwright.graph import program
from tensorwright.loop import Parameter, pack
from tensorwright.profiling.devices import DeviceSpeed, measure_speed
from tensorwright.runtime import Device, Memory, device_of, named_target, random_array
from tensorwright.runtime.cards.cuda_cards import cuda_devices
from tensorwright.runtime.measuring.call_costs import measure_rates
from tensorwright.schedule import format_trace, parse_trace
from tensorwright_lab.cards import product as product_by_tiles
from tensorwright_lab.cards import product_tiles
from tensorwright_lab.cards.kernels import softmax as softmax_by_threads
from tensorwright_lab.zoo import load_light

NETWORKS = ("squeezenet", "resnet50")
REPEATS, CALLS = 5, 50
PRICES_S = 100.0  # for all candidates together
F32 = base.DType.F32
Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Row:
    """The result of a case.

    difference   the largest, over the largest magnitude wanted
    """

    name: str
    is_right: bool
    difference: float | None = None
    time_ms: float | None = None
    gflops: float | None = None
    gigabytes: float | None = None
    share: str = ""
    note: str = ""


@dataclass(frozen=True)
class KernelCase:
    """A program with a schedule, and what NumPy makes of its inputs."""

    name: str
    output: expr.Compute
    trace: str
    inputs: Arrays
    wanted: Callable[[Arrays], np.ndarray[Any, Any]]
    flops: float = 0.0
    tolerance: float = 1e-5
    constants: frozenset[str] = frozenset()


@dataclass
class Run:
    """A card, its target, and the results so far.

    end    when no more is begun          pairs   prices and times of candidates
    speed  what was measured of the card: also one of many empty launches in a graph
    """

    target: base.GpuTarget
    device: Device
    is_small: bool
    end: float
    pairs: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    speed: DeviceSpeed | None = None


# kernels


def sample(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def elementwise(is_small: bool) -> KernelCase:
    n = 1 << (12 if is_small else 26)
    x = expr.placeholder("x", (n,))
    y = expr.compute("y", (n,), lambda i: x[i] * 2.0 + 1.0)
    trace = """split(y, i, [256, 4])
bind(y, i_0, block.x)
bind(y, i_1, thread.x)
vectorize(y, i_2)"""
    return KernelCase("elementwise", y, trace, {"x": sample(n)}, lambda a: a["x"] * 2 + 1, 2.0 * n)


def halves(is_small: bool) -> KernelCase:
    n = 1 << (12 if is_small else 24)
    x = expr.placeholder("x", (n,), base.DType.F16)
    y = expr.compute("y", (n,), lambda i: x[i] * x[i])
    array = sample(n).astype(np.float16)
    trace = "split(y, i, [256])\nbind(y, i_o, block.x)\nbind(y, i_i, thread.x)"
    return KernelCase("elementwise f16", y, trace, {"x": array}, lambda a: a["x"] * a["x"], n, 1e-3)


PRODUCTS = {
    "product, shared tiles": (8, ""),
    "product, pipeline by registers": (8, "pipeline(c_cache, k_o, 2, registers)"),
    "product, pipeline by copies": (8, "pipeline(c_cache, k_o, 3, cp_async)"),
    "product, padded tiles, copies": (
        16,
        "layout(a_c_cache_cache, padded, 4)\npipeline(c_cache, k_o, 2, cp_async)",
    ),
    "product, 128 KiB of tiles": (32, "pipeline(c_cache, k_o, 4, cp_async)"),
}


def product(name: str, is_small: bool) -> KernelCase:
    n = 128 if is_small else 2048
    step, more = PRODUCTS[name]
    kernel = product_by_tiles(n, n, n, product_tiles(step), more)
    inputs = {"a": sample(n, n), "b": sample(n, n, seed=1)}
    return KernelCase(
        name, kernel.output, kernel.trace, inputs, lambda v: v["a"] @ v["b"], 2.0 * n**3
    )


def softmax(is_small: bool) -> KernelCase:
    """A block for each row: lanes of a warp exchange their maxima and their sums."""
    rows, columns = (8, 64) if is_small else (16384, 1024)
    out = softmax_by_threads(rows, columns).output
    trace = """compute_inline(e)
split(top, j, [32])
rfactor(top, j_i)
shuffle_reduce(top, j_i)
compute_at(top_rf, top, j_i)
split(total, k, [32])
rfactor(total, k_i)
shuffle_reduce(total, k_i)
compute_at(total_rf, total, k_i)
split(out, j, [32])
bind(out, i, block.x)
bind(out, j_i, thread.x)
compute_at(total, out, i)
compute_at(top, out, i)"""

    def wanted(arrays: Arrays) -> np.ndarray[Any, Any]:
        shifted = np.exp(arrays["x"] - arrays["x"].max(1, keepdims=True))
        return shifted / shifted.sum(1, keepdims=True)

    return KernelCase("softmax, lanes exchange", out, trace, {"x": sample(rows, columns)}, wanted)


def split_sum(is_small: bool) -> KernelCase:
    """Two launches: parts of each sum by blocks, then the sums of the parts."""
    rows, terms, parts = (64, 512, 8) if is_small else (4096, 16384, 64)
    k = expr.reduce_axis("k", terms)
    x = expr.placeholder("x", (terms, rows))
    y = expr.compute("y", (rows,), lambda i: expr.sum_over(x[k, i], k))
    trace = f"""split_reduction(y, k, {parts})
split(y_rf, i, [64])
bind(y_rf, i_o, block.x)
bind(y_rf, i_i, thread.x)
split(y, i, [64])
bind(y, i_o, block.x)
bind(y, i_i, thread.x)"""
    return KernelCase(
        "sums, split over blocks",
        y,
        trace,
        {"x": sample(terms, rows)},
        lambda a: a["x"].astype(np.float64).sum(0).astype(np.float32),
        float(rows * terms),
    )


def kernel_cases(is_small: bool) -> Iterator[tuple[str, Callable[[], KernelCase]]]:
    yield "elementwise", lambda: elementwise(is_small)
    yield "elementwise f16", lambda: halves(is_small)
    for name in PRODUCTS:
        yield name, lambda name=name: product(name, is_small)
    yield "softmax, lanes exchange", lambda: softmax(is_small)
    yield "sums, split over blocks", lambda: split_sum(is_small)


def default_cases(run: Run) -> Iterator[tuple[str, Callable[[], KernelCase]]]:
    """What is computed with the schedules of untuned networks, and with those by rule."""
    for n in (64,) if run.is_small else (1024, 2048):
        yield f"default product {n}", lambda n=n: default_product(run, n)
    for layer, forms in SMALL_LAYERS if run.is_small else LAYERS:
        for form in forms:
            name = f"default {layer.name}: {form}"
            yield name, lambda name=name, layer=layer, form=form: layer_case(run, name, layer, form)


def default_product(run: Run, n: int) -> KernelCase:
    k = expr.reduce_axis("k", n)
    a, b = expr.placeholder("a", (n, n)), expr.placeholder("b", (n, n))
    c = expr.compute("c", (n, n), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))
    trace = format_trace(trace_of(c, "default", run.target))
    inputs = {"a": sample(n, n), "b": sample(n, n, seed=1)}
    wanted = lambda v: v["a"] @ v["b"]  # noqa: E731, one of the fields of a case
    return KernelCase(f"default product {n}", c, trace, inputs, wanted, 2.0 * n**3)


def layer_case(run: Run, name: str, layer: Layer, form: str) -> KernelCase:
    output = layer.output
    trace = format_trace(trace_of(output, form, run.target))
    return KernelCase(name, output, trace, layer.inputs, layer.wanted, layer.flops, 1e-4, CONSTANTS)


def run_kernel(run: Run, case: KernelCase) -> Row:
    """Launch it once for its result, then in rows of calls for its time."""
    workload = program([case.output], case.constants)
    start = time.perf_counter()
    kernel = build_kernel(workload, parse_trace(case.trace), run.target)
    built_s = time.perf_counter() - start
    code, wanted = load_kernel(kernel), case.wanted(case.inputs)
    result = np.zeros_like(wanted)
    memories = [
        run.device.memory_of(_given(case.inputs.get(each.name, result), each))
        for each in kernel.parameters
    ]
    workspace = run.device.allocate(kernel.spec.scratch_bytes(1))
    code.launch(memories, workspace)
    run.device.wait()
    run.device.copy_out(memories[-1], result)
    time_s = _time_s(run, code, memories, workspace)
    moved = sum(array.nbytes for array in case.inputs.values()) + result.nbytes
    difference = _difference(result, wanted)
    peak = dict(run.target.flops)[F32]
    rate, bandwidth = case.flops / time_s, moved / time_s
    by_flops, by_bytes = rate / peak, bandwidth / run.target.bandwidth
    unit = "of f32" if by_flops > by_bytes else "of bandwidth"
    launches = ", ".join(map(str, kernel.signature.launches))
    return Row(
        case.name,
        difference <= case.tolerance,
        difference,
        time_s * 1e3,
        rate * 1e-9 or None,
        bandwidth * 1e-9,
        f"{max(by_flops, by_bytes):.1%} {unit}",
        f"{launches}; built in {built_s:.1f} s",
    )


def _given(array: np.ndarray[Any, Any], parameter: Parameter) -> np.ndarray[Any, Any]:
    """What the kernel gets for an array: a constant as it is packed."""
    return array if parameter.packing is None else pack(array, parameter.packing)


def _time_s(run: Run, code: LoadedKernel, memories: list[Memory], workspace: Memory) -> float:
    """Seconds of a call: the median of a few rows of calls."""
    table = np.array([[each.address for each in memories]], np.uint64)
    calls = 1 if run.is_small else CALLS
    times_s = [
        run.device.time_calls(code.functions, table, workspace, 1, count=calls) / calls
        for _ in range(REPEATS)
    ]
    return statistics.median(times_s)


def run_open_size(run: Run) -> Row:
    """A grid whose size is that of the call."""
    n = expr.named_size("n", 1, 6000)
    x = expr.placeholder("x", (n, 3))
    doubled = tensorwright.compile(
        expr.compute("y", (n, 3), lambda i, j: x[i, j] * 2.0), target=run.target
    )
    worst = 0.0
    for count in (1, 7, 6000):
        array = sample(count, 3)
        worst = max(worst, _difference(doubled(array), array * 2))
    return Row("open size of 1, 7, 6000 rows", worst == 0, worst)


# networks


def network_inputs(executable: tensorwright.Executable) -> Arrays:
    source = np.random.default_rng(0)
    return {each.name: random_array(each, source) for each in executable.inputs}


def cpu_answers(name: str) -> list[np.ndarray[Any, Any]]:
    """The outputs of the processor's build."""
    executable = tensorwright.compile(load_light(name), target="native")
    return list(executable.run(network_inputs(executable)).values())


def run_network(run: Run, name: str, answers: dict[str, np.ndarray[Any, Any]]) -> Row:
    start = time.perf_counter()
    executable = tensorwright.compile(load_light(name), target=run.target)
    compiled_s = time.perf_counter() - start
    inputs = network_inputs(executable)
    time_s = _call_s(run, executable, inputs)
    with base.override(device_graphs=False):
        single_s = _call_s(run, executable, inputs)
    outputs = list(executable.run(inputs).values())
    steps = executable.profile(inputs, repeat=1 if run.is_small else 3)
    flops = sum(step.flops for step in steps)
    slowest = max(steps, key=lambda step: step.time_s)
    if not answers:
        answers = {f"{name}_{n}": each for n, each in enumerate(cpu_answers(name))}
    difference = max(
        _difference(each, answers[f"{name}_{number}"]) for number, each in enumerate(outputs)
    )
    return Row(
        f"light:{name}",
        difference <= 1e-3,
        difference,
        time_s * 1e3,
        flops / time_s * 1e-9 or None,
        None,
        f"{flops / time_s / dict(run.target.flops)[F32]:.1%} of f32",
        f"{single_s * 1e3:.4f} ms without a graph; compiled in {compiled_s:.1f} s; "
        f"{len(steps)} steps; slowest {slowest.label} "
        f"{slowest.time_s * 1e3:.3f} ms; steps alone {sum(s.time_s for s in steps) * 1e3:.3f} ms",
    )


def _call_s(run: Run, executable: tensorwright.Executable, inputs: Arrays) -> float:
    """Seconds of a call, the median of several; launches are recorded before, where they are."""
    bound = executable.bind(inputs)
    bound.run_seconds()
    bound.run_seconds()
    return statistics.median(bound.run_seconds() for _ in range(1 if run.is_small else CALLS))


def run_open_network(run: Run) -> Row:
    """Attention of any length: products whose rows, columns and sums are open."""
    model, wanted = attention()
    executable = tensorwright.compile(model, sizes={"length": "1..300"}, target=run.target)
    worst = 0.0
    for length in (1, 33, 300, 33, 33):
        x = sample(length, 64)
        worst = max(worst, _difference(executable(x), wanted(x)))
    return Row("network of any length", worst <= 1e-5, worst)


def attention() -> tuple[Any, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]]:
    """A model of ONNX, x (length, 64) -> softmax(x W x^T / 8) x, and what NumPy makes of it."""
    weights = sample(64, 64, seed=3) / 8
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ("length", 64))
        for name in "xy"
    ]
    make = onnx.helper.make_node
    nodes = [
        make("MatMul", ["x", "w"], ["q"]),
        make("Transpose", ["x"], ["k"], perm=[1, 0]),
        make("MatMul", ["q", "k"], ["s"]),
        make("Softmax", ["s"], ["p"]),
        make("MatMul", ["p", "x"], ["y"]),
    ]
    constants = [onnx.numpy_helper.from_array(weights, "w")]
    graph = onnx.helper.make_graph(nodes, "attention", ends[:1], ends[1:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])

    def wanted(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        scores = x @ weights @ x.T
        shares = np.exp(scores - scores.max(1, keepdims=True))
        return shares / shares.sum(1, keepdims=True) @ x

    return model, wanted


def run_dlpack(run: Run) -> Row:
    """A tensor of PyTorch on the card goes in and comes out without the host."""
    torch = importlib.import_module("torch")
    model, wanted = attention()
    executable = tensorwright.compile(model, sizes={"length": "1..300"}, target=run.target)
    worst, is_there = 0.0, True
    for length in (1, 300, 300, 300):
        x = sample(length, 64)
        result = torch.from_dlpack(executable(torch.from_numpy(x).cuda() * 1.0))
        is_there = is_there and result.is_cuda
        worst = max(worst, _difference((result + 0.0).cpu().numpy(), wanted(x)))
    transposed = torch.zeros(64, 30, device="cuda").T
    message = refused("", lambda: executable(transposed), base.InputError, "make it contiguous")
    tensor = torch.from_numpy(sample(300, 64)).cuda()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        executable(tensor)
    call_s = (time.perf_counter() - start) / CALLS
    is_right = worst <= 1e-5 and is_there and message.is_right
    note = f"torch {torch.__version__}; refusal: {message.note}"
    return Row("tensors of PyTorch by DLPack", is_right, worst, call_s * 1e3, note=note)


# prices


def run_prices(run: Run) -> Row:
    """Candidates of some workloads: how prices order them, and what the time model picks."""
    limit_s = min(PRICES_S, run.end - time.monotonic())
    pairs = prices.compare(run.target, 3, limit_s, "", is_large=not run.is_small)
    run.pairs += [asdict(each) for each in pairs]
    figures = prices.summary(pairs)
    note = "; ".join(f"{name} {value:.2f}" for name, value in figures.items())
    return Row("prices of candidates", bool(pairs), note=note)


# errors


def refused(name: str, action: Callable[[], object], kind: type[Exception], text: str) -> Row:
    """Whether an action gives an error of a kind that says something."""
    try:
        action()
    except kind as error:
        message = error.message() if isinstance(error, base.TensorwrightError) else str(error)
        return Row(name, text in message, note=message.replace("\n", " "))
    return Row(name, is_right=False, note="nothing was refused")


def doubled_code(target: base.GpuTarget) -> bytes:
    x = expr.placeholder("x", (64,))
    workload = program([expr.compute("y", (64,), lambda i: x[i] * 2.0)])
    return build_kernel(workload, parse_trace("bind(y, i, thread.x)"), target).object_code


def other_target(run: Run) -> base.GpuTarget:
    """A target whose code the card does not run."""
    for name in ("cuda:sm_80", "cuda:sm_90"):
        target = named_target(name)
        if isinstance(target, base.GpuTarget) and run.device.missing(target) is not None:
            return target
    raise base.MachineError(stage="check", where="targets", reason="the card runs the code of all")


def error_cases(run: Run) -> Iterator[tuple[str, Callable[[], Row]]]:
    device = run.device
    name = "code of another architecture is refused"
    yield (
        name,
        lambda name=name: refused(
            name, lambda: device_of(other_target(run)), base.MachineError, "which does not run"
        ),
    )
    name = "the driver refuses such code, too"
    yield (
        name,
        lambda name=name: refused(
            name,
            lambda: device.load(doubled_code(other_target(run)), ("kernel",)),
            base.MachineError,
            "does not take its machine code",
        ),
    )
    name = "more memory than there is"
    yield (
        name,
        lambda name=name: refused(
            name, lambda: device.allocate(1 << 44), MemoryError, "bytes are needed in one piece"
        ),
    )
    name = "memory comes back"
    yield name, lambda name=name: memory_returns(run, name)
    name = "a kernel at a wrong address (last: the card takes no more calls)"
    yield name, lambda name=name: refused(name, lambda: fault(run), base.MachineError, "ILLEGAL")


def memory_returns(run: Run, name: str) -> Row:
    before = run.device.free_bytes()
    memory = run.device.allocate(1 << 26)
    between = run.device.free_bytes()
    del memory
    after = run.device.free_bytes()
    return Row(name, between < before <= after, note=f"free bytes: {before}, {between}, {after}")


def fault(run: Run) -> None:
    """Let a kernel write where nothing is."""
    x = expr.placeholder("x", (64,))
    workload = program([expr.compute("y", (64,), lambda i: x[i] * 2.0)])
    code = load_kernel(build_kernel(workload, parse_trace("bind(y, i, thread.x)"), run.target))
    nowhere = Memory(64, 256, None)
    code.launch((nowhere, nowhere), nowhere)
    run.device.wait()


# all


def _difference(result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    left, right = (np.asarray(each).astype(np.float64) for each in (result, wanted))
    if left.shape != right.shape or not np.isfinite(left).all():
        return math.inf
    return float(np.abs(left - right).max(initial=0) / max(np.abs(right).max(initial=0), 1e-30))


def cases(
    run: Run, answers: dict[str, np.ndarray[Any, Any]]
) -> Iterator[tuple[str, Callable[[], Row]]]:
    for name, make in kernel_cases(run.is_small):
        yield name, lambda make=make: run_kernel(run, make())
    for name, make in default_cases(run):
        yield name, lambda make=make: run_kernel(run, make())
    yield "open size", lambda: run_open_size(run)
    yield "open network", lambda: run_open_network(run)
    yield "dlpack", lambda: run_dlpack(run)
    for name in NETWORKS:
        yield f"light:{name}", lambda name=name: run_network(run, name, answers)
    yield "prices", lambda: run_prices(run)
    if not run.is_small:
        yield from error_cases(run)


def text_of(row: Row) -> str:
    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    verdict = "ok" if row.is_right else "WRONG"
    return (
        f"{verdict:5} {row.name:42.42} {number(row.difference, '8.1e'):>8}"
        f" {number(row.time_ms, '9.4f'):>9} {number(row.gflops, '9.0f'):>9}"
        f" {number(row.gigabytes, '7.0f'):>7}  {row.share:20} {row.note}"
    )


def describe(run: Run) -> None:
    """The card, what NVRTC knows, and how fast bytes move."""
    nvrtc = find_nvrtc()
    assert nvrtc is not None, "NVRTC is not installed"
    for facts in cuda_devices():
        print(f"{facts.name}, {facts.version}, {facts.memory_bytes / 2**30:.0f} GiB")
    print(run.target.key, f"{dict(run.target.flops)[F32] * 1e-12:.1f} TFLOPS of f32,", end=" ")
    print(f"{run.target.bandwidth * 1e-12:.2f} TB/s by the driver's numbers")
    version = ".".join(map(str, nvrtc.version))
    print(f"NVRTC {version}: {nvrtc.architectures}; Python {sys.version.split()[0]}")
    rates = measure_rates(run.device)
    run.speed = measure_speed(run.target)
    both = asdict(rates) | asdict(run.speed)
    print(", ".join(f"{name} {rate:.3g}" for name, rate in both.items()), flush=True)


def attempt(name: str, action: Callable[[], Row]) -> Row:
    """A case; what it raises is its note."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001, whatever one case does, the others are of interest
        text = error.message() if isinstance(error, base.TensorwrightError) else repr(error)
        at = traceback.extract_tb(error.__traceback__)[-1]
        note = f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {text}"
        return Row(name, is_right=False, note=note.replace("\n", " ")[:1200])


def run_all(options: argparse.Namespace) -> int:
    end = time.monotonic() + options.limit_s
    target = named_target("cuda")
    assert isinstance(target, base.GpuTarget)
    run = Run(target, device_of(target), options.small, end)
    describe(run)
    answers = dict(np.load(options.answers)) if options.answers else {}
    print(f"{'':5} {'case':42} {'differs':>8} {'ms':>9} {'GFLOP/s':>9} {'GB/s':>7}  of peak")
    for name, action in cases(run, answers):
        if options.only and options.only not in name:
            continue
        is_late = time.monotonic() > end
        row = Row(name, is_right=False, note="no time left") if is_late else attempt(name, action)
        run.rows.append(row)
        print(text_of(row), flush=True)
    if options.json:
        rows = [asdict(row) for row in run.rows]
        speed = asdict(run.speed) if run.speed is not None else {}
        facts = {"target": target.key, "speed": speed, "rows": rows, "prices": run.pairs}
        Path(options.json).write_text(json.dumps(facts, indent=1))
    wrong = sum(not row.is_right for row in run.rows)
    print(f"{len(run.rows) - wrong} of {len(run.rows)} cases are right")
    return int(wrong > 0)


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--make-answers", metavar="FILE")
    parser.add_argument("--answers", metavar="FILE")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--limit-s", type=float, default=280.0)
    options = parser.parse_args()
    if options.make_answers:
        found = {f"{n}_{k}": a for n in NETWORKS for k, a in enumerate(cpu_answers(n))}
        np.savez(options.make_answers, **found)
        return 0
    try:
        return run_all(options)
    except base.TensorwrightError as error:
        print(f"{type(error).__name__}: {error.message()}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    if HAS_NO_LLVM:
        use_numpy()
    load_backend("cuda")
    sys.exit(main())
