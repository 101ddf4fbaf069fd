"""Search for faster graphs in small networks: whatever a search hands on must compute the same.

    python benchmarks/correctness/rewriting_searches.py [--seed 0] [--count 300]

Of four networks two are pieces of the suite `wild`, as PyTorch exports it (it must be installed);
one cuts images into windows, rolls them and joins them again, with sums over reshapes of other
ranks; one is of random operators on tensors of no to seven dimensions.  Each goes through equality
saturation, through backtracking, and through one after the other, within small limits.  What they
hand on is compared with the network, both in f64, and its certificate is replayed.  Prints a table
and the faults: another value, a certificate that does not hold, any exception.
Exit code 1 if there are faults.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from tensorwright.graph import Graph, GraphBuilder, Node, simplify
from tensorwright.graph.imports import load_onnx
from tensorwright_lab.judging.drills import add_options, finish
from tensorwright_lab.judging.searched_graphs import SEARCHES, cases_of, check_searched
from tensorwright_lab.zoo.wild import load_wild

EXPORTED = (
    *("swin_t", "swin_t", "swin_t", "vit_s16", "mixer_s16", "convnext_t", "mobilenet_v3"),
    *("unet_gn", "yolo_n", "deberta", "whisper_tiny", "wavenet", "conv_tasnet", "lstm_tagger"),
    *("pointnet", "dlrm"),
)
"""Networks that pieces are cut out of; one that is named more often gives more of them."""
_MOST_ELEMENTS = 1 << 20  # of a tensor in a piece
_MOVING = frozenset("reshape transpose slice concat split expand squeeze unsqueeze pad".split())


# -- networks


def cut_piece(graph: Graph, draw: random.Random) -> Graph:
    """Some operators of a network that are connected, three of four times around one that moves
    elements.  What they read of the others is an input.
    """
    small = [
        node
        for node in graph.nodes
        if not node.graphs and _most_elements(graph, node) <= _MOST_ELEMENTS
    ]
    moving = [node for node in small if node.operator in _MOVING]
    wanted = draw.randrange(3, 15)
    chosen = {draw.choice(moving if moving and draw.random() < 0.75 else small)}
    producers = graph.producers()
    consumers: dict[str, list[Node]] = {name: [] for name in graph.types}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            consumers[name].append(node)
    while len(chosen) < wanted:
        near = {producers[name] for node in chosen for name in node.inputs if name in producers}
        near |= {reader for node in chosen for name in node.outputs for reader in consumers[name]}
        beside = [node for node in small if node in near - chosen]
        if not beside:
            break
        chosen.add(draw.choice(beside))
    nodes = [node for node in graph.nodes if node in chosen]
    made = [name for node in nodes for name in node.outputs]
    b = GraphBuilder(graph.name)
    for name in dict.fromkeys(name for node in nodes for name in node.inputs):
        if name in graph.constants:
            b.constant(graph.constants[name], name)
        elif name not in made:
            b.input(name, graph.types[name].shape, graph.types[name].dtype)
    for node in nodes:
        b.append(node, [graph.types[name] for name in node.outputs])
    asked = (name for name in made if set(consumers[name]) - chosen or name in graph.outputs)
    return b.finish(tuple(asked))


def _most_elements(graph: Graph, node: Node) -> int:
    return max(prod(graph.types[name].shape) for name in (*node.inputs, *node.outputs))


class _Drawing:
    """A network that is drawn operator by operator."""

    def __init__(self, name: str, draw: random.Random) -> None:
        self.draw = draw
        self.b = GraphBuilder(name)
        self.values: list[str] = []

    def input(self, *shape: int) -> str:
        self.values.append(self.b.input(f"x{len(self.values)}", shape))
        return self.values[-1]

    def weights(self, *shape: int) -> str:
        drawn = np.random.default_rng(self.draw.randrange(1 << 30)).standard_normal(shape)
        return self.b.constant((drawn / np.sqrt(max(1, *shape, 1))).astype(np.float32))

    def reshape(self, x: str, *shape: int) -> str:
        return self.b.add("reshape", x, shape=shape)

    def roll(self, x: str, axis: int, first: int) -> str:
        cuts = ((first, self.b.shape_of(x)[axis]), (0, first))
        parts = [self.b.add("slice", x, axes=(axis,), starts=(s,), ends=(e,)) for s, e in cuts]
        return self.b.add("concat", *parts, axis=axis)


def windows(draw: random.Random) -> Graph:
    """Images as windows, with rolls, products and heads inside, and sums over other ranks."""
    d = _Drawing("windows", draw)
    b = d.b
    images, down, rows, across, columns = (draw.randint(1, 3) for _ in range(5))
    heads, width = draw.choice((1, 2)), draw.choice((4, 6))
    high, wide = down * rows, across * columns
    image, count = (images, high, wide, width), images * down * across
    x = d.reshape(d.input(images, high * wide, width), *image)
    if draw.random() < 0.5:
        x = b.add("matmul", x, d.weights(width, width))
    rolled = [axis for axis in (1, 2) if image[axis] > 1 and draw.random() < 0.5]
    for axis in rolled:
        x = d.roll(x, axis, draw.randrange(1, image[axis]))
    x = b.add(
        "transpose",
        d.reshape(x, images, down, rows, across, columns, width),
        perm=(0, 1, 3, 2, 4, 5),
    )
    if draw.random() < 0.7:
        x = d.reshape(x, count, rows * columns, width)
        x = b.add(
            "transpose",
            d.reshape(x, count, rows * columns, heads, width // heads),
            perm=(0, 2, 1, 3),
        )
        if draw.random() < 0.5:
            turned = b.add("transpose", x, perm=(0, 1, 3, 2))
            scores = b.add("softmax", b.add("matmul", x, turned), axis=3)
            x = b.add("matmul", scores, x)
        x = d.reshape(b.add("transpose", x, perm=(0, 2, 1, 3)), count, rows * columns, width)
    if draw.random() < 0.5:
        x = b.add("add", b.add("matmul", x, d.weights(width, width)), d.weights(width))
    x = b.add(
        "transpose",
        d.reshape(x, images, down, across, rows, columns, width),
        perm=(0, 1, 3, 2, 4, 5),
    )
    x = d.reshape(x, *image)
    for axis in rolled:
        x = d.roll(x, axis, draw.randrange(1, image[axis]))
    tokens = draw.choice(((images, high * wide, width), (images * high, wide, width), image))
    other = d.reshape(d.input(*draw.choice((image, (images * high * wide, width)))), *tokens)
    x = d.reshape(x, *tokens)
    total = b.add(draw.choice(("add", "sub", "mul")), *draw.sample((x, other), 2))
    if draw.random() < 0.5:
        total = b.add("add", total, b.add("relu", b.add("matmul", total, d.weights(width, width))))
    return b.finish((total, x) if draw.random() < 0.2 else (total,))


def any_ranks(draw: random.Random) -> Graph:
    """Random operators on tensors of no to seven dimensions."""
    d = _Drawing("ranks", draw)
    for _ in range(2):
        d.input(*_shape(draw, draw.randrange(8)))
    steps = (_function, _pair, _pair, _moved, _moved, _moved, _joined, _folded, _multiplied)
    for _ in range(draw.randrange(5, 18)):
        made = draw.choice(steps)(d, draw.choice(d.values[-5:]))
        if made and prod(d.b.shape_of(made)) <= 1 << 12:
            d.values.append(made)
    return d.b.finish(tuple(dict.fromkeys(d.values[-4:])))


def _shape(draw: random.Random, rank: int) -> tuple[int, ...]:
    return tuple(draw.choice((1, 1, 2, 2, 3) if rank > 4 else (1, 2, 3, 4)) for _ in range(rank))


def _function(d: _Drawing, x: str) -> str:
    return d.b.add(d.draw.choice(("relu", "exp", "tanh", "neg", "sigmoid", "abs")), x)


def _pair(d: _Drawing, x: str) -> str:
    """With another tensor of that shape, its last dimensions or a number; or both in one rank."""
    shape = d.b.shape_of(x)
    alike = [each for each in d.values if prod(d.b.shape_of(each)) == prod(shape)]
    last = shape[d.draw.randrange(len(shape) + 1) :]
    ones = tuple(extent if d.draw.random() < 0.5 else 1 for extent in shape)
    other = d.draw.choice(
        (d.reshape(d.draw.choice(alike), *shape), d.weights(*last), d.weights(*ones), d.weights())
    )
    return d.b.add(d.draw.choice(("add", "sub", "mul")), *d.draw.sample((x, other), 2))


def _moved(d: _Drawing, x: str) -> str:
    """In other dimensions, another order, a part, or rolled."""
    draw, shape = d.draw, d.b.shape_of(x)
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    kind = draw.choice(("reshape", "reshape", "transpose", "slice", "roll"))
    if kind == "transpose":
        return d.b.add("transpose", x, perm=tuple(draw.sample(range(len(shape)), len(shape))))
    if kind == "reshape" or not wide:
        return d.reshape(x, *_regrouped(draw, shape))
    axis = draw.choice(wide)
    at = draw.randrange(1, shape[axis])
    if kind == "roll":
        return d.roll(x, axis, at)
    start, end = draw.choice(((0, at), (at, shape[axis])))
    return d.b.add("slice", x, axes=(axis,), starts=(start,), ends=(end,))


def _regrouped(draw: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """As many elements in seven dimensions at most: neighbours joined, then ones put between."""
    extents = list(shape)
    for _ in range(draw.randrange(3)):
        if len(extents) > 1:
            at = draw.randrange(len(extents) - 1)
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
    while len(extents) < 7 and draw.random() < 0.4:
        extents.insert(draw.randrange(len(extents) + 1), 1)
    for at, extent in enumerate(extents):
        if extent == 4 and len(extents) < 7:
            extents[at : at + 1] = [2, 2]
            break
    return tuple(extents) if prod(extents) != 1 or draw.random() < 0.7 else ()


def _joined(d: _Drawing, x: str) -> str:
    """With itself or its like, along some axis."""
    shape = d.b.shape_of(x)
    if not shape:
        return ""
    alike = [each for each in d.values if d.b.shape_of(each) == shape]
    return d.b.add("concat", x, d.draw.choice(alike), axis=d.draw.randrange(len(shape)))


def _folded(d: _Drawing, x: str) -> str:
    rank = len(d.b.shape_of(x))
    if not rank:
        return ""
    axis, is_kept = d.draw.randrange(rank), d.draw.random() < 0.5
    if d.draw.random() < 0.3:
        return d.b.add("softmax", x, axis=axis)
    kind = d.draw.choice(("reduce_sum", "reduce_mean", "reduce_max"))
    return d.b.add(kind, x, axes=(axis,), keepdims=is_kept)


def _multiplied(d: _Drawing, x: str) -> str:
    """Its rows with a matrix, or with its like, turned."""
    shape = d.b.shape_of(x)
    if len(shape) < 2:
        return ""
    if d.draw.random() < 0.7:
        return d.b.add("matmul", x, d.weights(shape[-1], d.draw.choice((2, 3))))
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    return d.b.add("matmul", x, d.b.add("transpose", x, perm=order))


def source_of(seed: int) -> str:
    """Where the network of a seed comes from."""
    if seed % 2 == 0:
        return EXPORTED[seed // 2 % len(EXPORTED)]
    return "windows" if seed % 4 == 1 else "ranks"


def network_of(seed: int) -> Graph:
    """The network of a seed.  Raises: MachineError for a piece where PyTorch is not installed."""
    source, draw = source_of(seed), random.Random(seed)
    if source == "windows":
        return simplify(windows(draw))
    if source == "ranks":
        return simplify(any_ranks(draw))
    return simplify(cut_piece(_exported(source), draw))


@lru_cache(maxsize=1)
def _exported(name: str) -> Graph:
    return simplify(load_onnx(load_wild(name)))


@dataclass(frozen=True, slots=True)
class End:
    """How the network of a seed ended.

    ranks   of its tensors: the fewest and the most dimensions
    graphs  that were compared             rules   that their certificates apply
    fault   "" where all is well
    """

    seed: int
    source: str
    operators: int
    ranks: tuple[int, int]
    graphs: int
    rules: frozenset[str]
    fault: str = ""


def attempt(seed: int) -> End:
    """Draw the network of a seed, search with all searches, compare whatever they hand on."""
    graph = network_of(seed)
    ranks = [len(type_.shape) for type_ in graph.types.values()]
    count, rules, fault = 0, set[str](), ""
    try:
        cases = cases_of(graph)
        for search in SEARCHES:
            for found, outputs in search(graph, random.Random(seed)):
                checked = check_searched(graph, cases, found, outputs)
                rules |= checked.certificate.rules.keys()
                count += 1
    except Exception:  # noqa: BLE001 - what the drill looks for; the next seed is tried all the same
        fault = f"{traceback.format_exc()}\n{graph}"
    bounds = (min(ranks), max(ranks))
    return End(seed, source_of(seed), len(graph.nodes), bounds, count, frozenset(rules), fault)


def table_of(ends: Iterable[End]) -> list[str]:
    """A line for each source of networks, and one for all."""
    listed = list(ends)
    head = ("networks", "operators", "ranks", "graphs", "rules", "faults")
    lines = [f"{'source':14}" + "".join(f"{word:>10}" for word in head)]
    names = [*dict.fromkeys(sorted(end.source for end in listed)), ""]
    for name in names:
        some = [end for end in listed if name in ("", end.source)]
        ranks = f"{min(end.ranks[0] for end in some)}-{max(end.ranks[1] for end in some)}"
        rules = frozenset[str]().union(*(end.rules for end in some))
        operators, graphs = sum(e.operators for e in some), sum(e.graphs for e in some)
        row = (len(some), operators, ranks, graphs, len(rules), sum(bool(e.fault) for e in some))
        lines.append(f"{name or 'all':14}" + "".join(f"{value:>10}" for value in row))
    return lines


def main() -> int:
    """Print the table and the faults; 1 if there are faults."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(options, 300)
    given = options.parse_args()
    seeds = sorted(range(given.seed, given.seed + given.count), key=source_of)
    ends: list[End] = []
    for seed in seeds:
        ends.append(attempt(seed))
        print(f"{len(ends)} of {len(seeds)}, {ends[-1].source} {seed}", file=sys.stderr)
    print("\n".join(table_of(ends)))
    used = Counter(rule for end in ends for rule in end.rules)
    print("most used:", ", ".join(f"{name} {count}" for name, count in used.most_common(8)))
    return finish(len(ends), {end.seed: f"{end.source}: {end.fault}" for end in ends if end.fault})


if __name__ == "__main__":
    sys.exit(main())
