"""Do prices of programs for graphics processors order them as the device does?  And how many
candidates does a core score in a second?

Of each workload some candidates are measured: the schedules by rule, the one that the time model
picks, the one that it picks without Winograd's algorithm, and others drawn at random. Printed are
each price beside the measured time, the rank correlation (Spearman's) of each workload and of all
together, and what the model's pick takes against the best that was measured.

Run: python benchmarks/device/prices.py [--target opencl] [--draws N] [--limit-s S] [--json FILE]
                                        [--large] [--only TEXT]
     python benchmarks/device/prices.py --again FILE [--target cuda:sm_90a]
     python benchmarks/device/prices.py --rate [--target cuda:sm_90a]

`--again` needs no device: it gives the pairs of a file with results their prices of today. `--rate`
measures nothing either: it says how long describing and pricing candidates takes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np

from tensorwright.artifacts import build_kernel, load_kernel
from tensorwright.base import GpuTarget, TensorwrightError, number_in, override
from tensorwright.graph import Graph, GraphBuilder, Workload
from tensorwright.machine import card_of
from tensorwright.pipeline import prepare
from tensorwright.records import Setting
from tensorwright.runtime import Device, device_of, named_target
from tensorwright.schedule import Trace, format_trace, parse_trace, state_of
from tensorwright.tuning.features import Featurizer
from tensorwright.tuning.population import make_space_tables, sample
from tensorwright.tuning.selection import Chooser
from tensorwright.tuning.space import space_of
from tensorwright.tuning.time_model import launch_seconds

REPEATS = 5
ROW_S, MOST_CALLS = 5e-3, 50  # a row of calls takes so long, or has so many: its start costs a bit
SCORED = 8192

Sizes = tuple[int, ...]
CONVOLUTIONS: dict[str, tuple[Sizes, Sizes]] = {  # outputs, inputs, size, kernel, stride, groups
    "conv 1x1": ((64, 256, 56, 1, 1, 1), (32, 32, 14, 1, 1, 1)),
    "conv 3x3, wide": ((64, 64, 56, 3, 1, 1), (16, 16, 28, 3, 1, 1)),
    "conv 3x3, deep": ((256, 256, 14, 3, 1, 1), (32, 64, 7, 3, 1, 1)),
    "conv 1x1, deep": ((2048, 512, 7, 1, 1, 1), (128, 64, 7, 1, 1, 1)),
    "conv 3x3, deepest": ((512, 512, 7, 3, 1, 1), (64, 64, 7, 3, 1, 1)),
    "conv 7x7, stride 2": ((64, 3, 224, 7, 2, 1), (16, 3, 56, 7, 2, 1)),
    "depthwise 3x3": ((96, 96, 56, 3, 1, 96), (32, 32, 28, 3, 1, 32)),
}
LAYERS: dict[str, tuple[Sizes, Sizes]] = {  # as networks have them
    "layer 3x3, wide": ((64, 64, 56, 3, 1, 1), (16, 16, 14, 3, 1, 1)),
    "layer 3x3, deep": ((256, 256, 14, 3, 1, 1), (32, 32, 7, 3, 1, 1)),
    "layer 3x3, deepest": ((512, 512, 7, 3, 1, 1), (64, 64, 7, 3, 1, 1)),
    "layer 3x3, stride 2": ((512, 512, 14, 3, 2, 1), (32, 32, 14, 3, 2, 1)),
}
PRODUCTS: dict[str, tuple[Sizes, Sizes]] = {  # rows, terms, columns
    "product": ((1024, 1024, 1024), (128, 128, 128)),
    "product of few rows": ((8, 1024, 1024), (8, 256, 256)),
}
ELEMENTWISE: dict[str, tuple[Sizes, Sizes]] = {"elementwise": ((1 << 24,), (1 << 18,))}


@dataclass(frozen=True)
class Pair:
    """A candidate, its price and its time in seconds, and its steps."""

    workload: str
    candidate: str
    price_s: float
    time_s: float
    is_pick: bool
    trace: str = ""


def convolution(sizes: Sizes, *, is_layer: bool = False) -> Graph:
    """With a ReLU; a layer has constant weights and a bias."""
    outputs, inputs, size, kernel, stride, groups = sizes
    builder = GraphBuilder("convolution")
    x = builder.input("x", (1, inputs, size, size))
    weights: tuple[Sizes, ...] = ((outputs, inputs // groups, kernel, kernel), (outputs,))
    if is_layer:
        given = [builder.constant(np.ones(shape, np.float32)) for shape in weights]
    else:
        given = [builder.input("w", weights[0])]
    pads, strides = (kernel // 2,) * 4, (stride, stride)
    out = builder.add("conv", x, *given, pads=pads, strides=strides, groups=groups)
    return builder.finish([builder.add("relu", out)])


def layer(sizes: Sizes) -> Graph:
    return convolution(sizes, is_layer=True)


def product(sizes: Sizes) -> Graph:
    rows, terms, columns = sizes
    builder = GraphBuilder("product")
    left, right = builder.input("a", (rows, terms)), builder.input("b", (terms, columns))
    return builder.finish([builder.add("matmul", left, right)])


def elementwise(sizes: Sizes) -> Graph:
    builder = GraphBuilder("elementwise")
    return builder.finish([builder.add("sigmoid", builder.input("x", sizes))])


def workloads(target: GpuTarget, *, is_large: bool) -> Iterator[tuple[str, Workload]]:
    """The workloads by name: each is a network of one kernel."""
    makers: Sequence[tuple[Callable[[Sizes], Graph], dict[str, tuple[Sizes, Sizes]]]] = (
        (layer, LAYERS),
        (convolution, CONVOLUTIONS),
        (product, PRODUCTS),
        (elementwise, ELEMENTWISE),
    )
    for make, cases in makers:
        for name, (large, small) in cases.items():
            yield name, prepare(make(large if is_large else small), target).workloads[-1]


def candidates(workload: Workload, target: GpuTarget, draws: int) -> dict[str, str]:
    """Traces by name: the schedules by rule, the pick, and some drawn at random."""
    state = state_of(workload)
    space = space_of(state, target)
    named = {each.name: format_trace(each.bound(each.defaults)) for each in space.sketches}
    pick = format_trace(Chooser(Setting(target, 1)).unmeasured(workload).trace)
    with override(winograd=False):
        direct = format_trace(Chooser(Setting(target, 1)).unmeasured(workload).trace)
    named["pick without Winograd"] = direct
    drawn = sample(make_space_tables(space), 4 * draws, np.random.default_rng(0))
    for number in drawn.first_of_each():
        if sum(each.startswith("draw ") for each in named) == draws:
            break
        sketch = space.sketches[int(drawn.sketch[number])]
        genes = tuple(drawn.genes[number, : len(sketch.choices)].tolist())
        named[f"draw {number}"] = format_trace(sketch.bound(sketch.decisions_of(genes)))
    if pick not in named.values():
        named["pick"] = pick
    return named | {"the pick": pick}


def measure(workload: Workload, trace: Trace, target: GpuTarget, device: Device) -> float:
    """Seconds of a call: the least of a few rows of calls, since others may use the machine."""
    kernel = build_kernel(workload, trace, target)
    code, random = load_kernel(kernel), np.random.default_rng(0)
    memories = [
        device.memory_of(random.standard_normal(number_in(each.size_bytes) // 4, np.float32))
        for each in kernel.spec.arguments
    ]
    workspace = device.allocate(kernel.spec.scratch_bytes(1))
    table = np.array([[each.address for each in memories]], np.uint64)
    device.time_calls(code.functions, table, workspace, 1, count=1)
    once_s = device.time_calls(code.functions, table, workspace, 1, count=1)
    calls = max(1, min(MOST_CALLS, int(ROW_S / max(once_s, 1e-9))))
    times_s = [
        device.time_calls(code.functions, table, workspace, 1, count=calls) / calls
        for _ in range(REPEATS)
    ]
    return min(times_s)


def ranks(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The place of each in ascending order; equal ones share theirs."""
    array = np.asarray(values)
    below, upto = (np.array([(compare(array, one)).sum() for one in array]) for compare in _SIDES)
    shared: np.ndarray[tuple[int], np.dtype[np.float64]] = (below + upto) / 2
    return shared


_SIDES = (np.less, np.less_equal)


def spearman(pairs: Sequence[Pair]) -> float:
    """The rank correlation of prices and times; 1 where they order alike."""
    prices, times = ranks([each.price_s for each in pairs]), ranks([each.time_s for each in pairs])
    if len(pairs) < 2 or prices.std() == 0 or times.std() == 0:
        return 1.0
    return float(np.corrcoef(prices, times)[0, 1])


def compare(
    target: GpuTarget, draws: int, limit_s: float, only: str, *, is_large: bool
) -> list[Pair]:
    """Measure candidates of all workloads, as many as there is time for, and print what differs."""
    end, device, card = time.monotonic() + limit_s, device_of(target), card_of(target)
    measured: list[Pair] = []
    chosen = [each for each in workloads(target, is_large=is_large) if only in each[0]]
    for number, (name, workload) in enumerate(chosen):
        named = candidates(workload, target, draws)
        pick = named.pop("the pick")
        until = time.monotonic() + (end - time.monotonic()) / (len(chosen) - number)
        featurizer = Featurizer(state_of(workload), target)
        order = sorted(named.items(), key=lambda each: (each[1] != pick, each[0].startswith("d")))
        pairs: list[Pair] = []
        for label, text in order:
            if time.monotonic() > until and len(pairs) > 1:
                break
            trace = parse_trace(text)
            try:
                time_s = measure(workload, trace, target, device)
            except TensorwrightError as error:
                print(f"{name}, {label}: {error.message()}", flush=True)
                continue
            price_s = float(launch_seconds(featurizer.of_trace(trace), card)[0])
            pairs.append(Pair(name, label, price_s, time_s, text == pick, text))
        report(pairs)
        measured += pairs
    return measured


def priced_again(target: GpuTarget, file: Path) -> list[Pair]:
    """The pairs of a file, with the prices that their schedules have now."""
    measured = [Pair(**each) for each in json.loads(file.read_text())["prices"]]
    card, pairs = card_of(target), list[Pair]()
    for name, workload in workloads(target, is_large=True):
        featurizer = Featurizer(state_of(workload), target)
        own = [each for each in measured if each.workload == name and each.trace]
        prices = [launch_seconds(featurizer.of_trace(parse_trace(one.trace)), card) for one in own]
        again = [replace(one, price_s=float(p[0])) for one, p in zip(own, prices, strict=True)]
        if again:
            report(again)
        pairs += again
    return pairs


def report(pairs: Sequence[Pair]) -> None:
    """What was measured of a workload, and what the pick costs."""
    best = min(each.time_s for each in pairs)
    for each in sorted(pairs, key=lambda each: each.time_s):
        mark = " <- pick" if each.is_pick else ""
        label = f"{each.workload}: {each.candidate}"
        print(f"{label:60.60} {each.time_s * 1e6:10.1f} us, price {each.price_s * 1e6:10.1f}{mark}")
    loss = [each.time_s / best for each in pairs if each.is_pick]
    lost = f"{loss[0]:.2f} of the best" if loss else "was not measured"
    print(
        f"  rank correlation {spearman(pairs):5.2f} of {len(pairs)}; the pick: {lost}", flush=True
    )


def summary(pairs: Sequence[Pair]) -> dict[str, float]:
    """Over all workloads."""
    groups = [
        [one for one in pairs if one.workload == name] for name in {p.workload for p in pairs}
    ]
    losses, ruled, spread = [], [], []
    for group in groups:
        best = min(each.time_s for each in group)
        losses += [each.time_s / best for each in group if each.is_pick]
        ruled += [each.time_s / best for each in group if "in blocks" in each.candidate]
        spread += [spearman(group)] if len(group) > 2 else []
    return {
        "pairs": len(pairs),
        "rank correlation of all": spearman(pairs),
        "median of workloads": median(spread) if spread else 1.0,
        "pick, of the best measured": geometric_mean(losses) if losses else 0.0,
        "tiles by rule, of the best": geometric_mean(ruled) if ruled else 0.0,
    }


def rate(target: GpuTarget) -> None:
    """Candidates a second: to lower a structure, write its formulas, run them, and price."""
    card = card_of(target)
    for name, workload in workloads(target, is_large=True):
        state = state_of(workload)
        space = space_of(state, target)
        drawn = sample(make_space_tables(space), SCORED, np.random.default_rng(0))
        start = time.process_time()
        featurizer, plan_s = Featurizer(state, target), 0.0
        for number in np.unique(drawn.sketch).tolist():
            sketch = space.sketches[number]
            before = time.process_time()
            featurizer.plan(sketch)
            plan_s += time.process_time() - before
            genes = drawn.genes[drawn.sketch == number, : len(sketch.choices)]
            launch_seconds(featurizer.of_sketch(sketch, genes), card)
        total_s = time.process_time() - start
        print(
            f"{name:24} {len(drawn):6} candidates: {len(drawn) / total_s:9,.0f} a second, "
            f"{len(drawn) / (total_s - plan_s):9,.0f} without the formulas ({plan_s * 1e3:.0f} ms)"
        )


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="opencl")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=55.0)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--again", metavar="FILE")
    parser.add_argument("--rate", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    target = named_target(options.target)
    assert isinstance(target, GpuTarget)
    if options.rate:
        rate(target)
        return 0
    if options.again:
        pairs = priced_again(target, Path(options.again))
    else:
        pairs = compare(
            target, options.draws, options.limit_s, options.only, is_large=options.large
        )
    figures = summary(pairs)
    print("; ".join(f"{name} {value:.2f}" for name, value in figures.items()))
    if options.json:
        facts = {
            "target": target.key,
            "summary": figures,
            "prices": [asdict(each) for each in pairs],
        }
        Path(options.json).write_text(json.dumps(facts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
