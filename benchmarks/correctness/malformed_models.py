"""Compile damaged models: each must end well or with an error of ours, in bounded time and memory.

    python benchmarks/correctness/malformed_models.py [MODEL ...] [--seed 0] [--count 1000]
         [--workers 2]

Each seed takes one of the models and damages it in one to three places: attributes, element types,
shapes, nodes, or bytes of the file. Without arguments the models are those that the onnx package
carries, and small ones of every kind of operator. Prints how many ended how, and the faults: any
other exception, an InternalError, a crash, a compilation that takes too long or too much memory.
Exit code 1 if there are faults.
"""

from __future__ import annotations

import argparse
import importlib
import math
import random
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, ModelProto, TensorProto, parser

import tensorwright
from tensorwright.base import InternalError, TensorwrightError
from tensorwright.processes import Done, Job, Outcome, Raised, WorkerPool
from tensorwright.records import MemoryStore
from tensorwright_lab.judging.drills import add_options, finish

LIMIT_S = 300.0  # a large network takes a minute where others work, too
LIMIT_BYTES = 4 << 30
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
SMALL = {
    "image": """agraph (float[1,3,12,12] x, float[8,3,3,3] w, float[8] b, float[8] s, float[8,4] d)
        => (float[1,4] y) {
        c = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w, b)
        n = BatchNormalization <epsilon = 0.001> (c, s, b, b, s)
        r = LeakyRelu <alpha = 0.1> (n)
        p = MaxPool <kernel_shape = [3,3], strides = [1,1], pads = [1,1,1,1]> (r)
        k = Concat <axis = 1> (p, r)
        u, v = Split <axis = 1, num_outputs = 2> (k)
        z = Add (u, v)
        g = GlobalAveragePool (z)
        f = Flatten <axis = 1> (g)
        h = Gemm <alpha = 0.5, transB = 0> (f, d)
        y = Softmax <axis = 1> (h) }""",
    "heads": """agraph (float[1,6,16] x, float[16,16] w, int64[4] split, int64[3] join, float[16] s)
        => (float[1,6,16] y) {
        q = MatMul (x, w)
        r = Reshape (q, split)
        t = Transpose <perm = [0,2,1,3]> (r)
        o = Transpose <perm = [0,1,3,2]> (t)
        m = MatMul (t, o)
        a = Softmax <axis = -1> (m)
        v = MatMul (a, t)
        b = Transpose <perm = [0,2,1,3]> (v)
        c = Reshape (b, join)
        e = Add (c, x)
        y = LayerNormalization <axis = -1, epsilon = 0.00001> (e, s) }""",
    "state space": """agraph
        (float[1,8,4] x, float[4] a, int64[1] one, int64[1] last, int64[2] grow)
        => (float[8,4] y, int64[1,8] where) {
        d = Exp (a)
        u = Mul (x, d)
        axis = Constant <value = int64 {1}> ()
        c = CumSum <exclusive = 0, reverse = 0> (u, axis)
        n = Einsum <equation = "bij,j->bi"> (c, a)
        e = Unsqueeze (n, last)
        f = Mul (e, c)
        g = ReduceSum <keepdims = 0> (f, one)
        h = Expand (g, grow)
        k = Clip (h, , )
        m = Gather <axis = 1> (k, one)
        where = ArgMax <axis = 2, keepdims = 0> (f)
        b = Greater (h, m)
        y = Where (b, h, k) }""",
    "shapes": """agraph (float[2,3,8] x, float[3] scales) => (float[N,M] y, float[2,3,4] z) {
        s = Shape (x)
        i = Constant <value = int64[1] {0}> ()
        n = Gather <axis = 0> (s, i)
        k = Constant <value = int64[1] {4}> ()
        f = Concat <axis = 0> (n, k)
        o = ConstantOfShape <value = float[1] {1.5}> (f)
        p = Constant <value = int64[4] {0, 1, 0, 1}> ()
        y = Pad <mode = "constant"> (o, p)
        e = Constant <value = int64[1] {8}> ()
        t = Constant <value = int64[1] {2}> ()
        w = Slice (x, i, e, t, t)
        q, j = TopK <axis = -1, largest = 1, sorted = 1> (w, k)
        c = Constant <value = float[3] {1, 1, 1}> ()
        r = Resize <mode = "nearest"> (q, , c)
        z = Tanh (r) }""",
    "sequence": """agraph (float[3,1,4] x, float[1,9,4] w, float[1,9,3] r, float[1,18] b)
        => (float[3,1,1,3] y, float[3,1,4] z) {
        y, h = GRU <hidden_size = 3, linear_before_reset = 1> (x, w, r, b)
        m = Constant <value = int64 {2}> ()
        t = Constant <value = bool {1}> ()
        z = Loop (m, t, x) <body = step (int64 i, bool c, float[3,1,4] v)
            => (bool o, float[3,1,4] a) { o = Identity (c) a = Sin (v) }> }""",
}
INTEGERS: dict[str, list[float]] = {
    "split": [1, 6, 2, 8],
    "join": [1, 6, 16],
    "grow": [8, 4],
    "last": [-1],
}
NUMBERS = (0, 1, -1, 2, 3, 7, 255, 1 << 31, 1 << 40, -(1 << 63), (1 << 63) - 1)
REALS = (0.0, -1.0, 0.5, 1e30, math.inf, -math.inf, math.nan)
TYPES = tuple(TensorProto.DataType.values())
EXTENTS = (0, 1, 2, 5, 17, 1 << 20, 1 << 40)


def small_models() -> dict[str, bytes]:
    """Models of many kinds of operators, as files: their first input, the others made constants."""
    files = {}
    for name, text in SMALL.items():
        model = parser.parse_model(HEAD + text)
        draw = random.Random(name)
        for info in list(model.graph.input)[1:]:
            model.graph.initializer.append(_constant(info, draw))
            model.graph.input.remove(info)
        files[name] = model.SerializeToString()
    return files


def _constant(info: onnx.ValueInfoProto, draw: random.Random) -> TensorProto:
    kind = info.type.tensor_type
    shape = [dim.dim_value for dim in kind.shape.dim]
    if kind.elem_type == TensorProto.INT64:
        values: list[float] = INTEGERS.get(info.name, [1])
    else:
        values = [draw.uniform(0.1, 1.0) for _ in range(math.prod(shape))]
    return onnx.helper.make_tensor(info.name, kind.elem_type, shape, values)


# -- damages: each changes a model in one place, and may find nothing to change


def change_attribute(model: ModelProto, draw: random.Random) -> None:
    """Another value, another type, or none."""
    given = [(n, a) for n in model.graph.node for a in n.attribute]
    if not given:
        return
    node, attribute = draw.choice(given)
    match draw.randrange(6):
        case 0:
            node.attribute.remove(attribute)
        case 1:
            attribute.name = draw.choice([a.name for _, a in given])
        case 2:
            attribute.type = draw.choice(list(AttributeProto.AttributeType.values()))
        case _:
            _change_value(attribute, draw)


def _change_value(attribute: AttributeProto, draw: random.Random) -> None:
    match attribute.type:
        case AttributeProto.INT:
            attribute.i = draw.choice(NUMBERS)
        case AttributeProto.FLOAT:
            attribute.f = draw.choice(REALS)
        case AttributeProto.STRING:
            attribute.s = draw.choice((b"", b"SAME_UPPER", b"linear", b"ij,jk->ik", b"\xff"))
        case AttributeProto.INTS:
            if attribute.ints and draw.random() < 0.5:
                attribute.ints[draw.randrange(len(attribute.ints))] = draw.choice(NUMBERS)
            elif attribute.ints and draw.random() < 0.5:
                attribute.ints.pop()
            else:
                attribute.ints.append(draw.choice(NUMBERS))
        case AttributeProto.TENSOR:
            change_tensor(attribute.t, draw)


def change_tensor(tensor: TensorProto, draw: random.Random) -> None:
    """Another element type, another shape, or other bytes."""
    choice = draw.randrange(4)
    if choice == 0:
        tensor.data_type = draw.choice(TYPES)
    elif choice == 1 and tensor.dims:
        tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(EXTENTS)
    elif choice == 2:
        tensor.dims.append(draw.choice(EXTENTS))
    elif tensor.raw_data:
        tensor.raw_data = damage_bytes(tensor.raw_data, draw)
    elif tensor.int64_data:
        tensor.int64_data[draw.randrange(len(tensor.int64_data))] = draw.choice(NUMBERS)


def change_type(model: ModelProto, draw: random.Random) -> None:
    """Another element type of an input or an initializer."""
    kinds = [info.type.tensor_type for info in model.graph.input]
    holders = [*kinds, *model.graph.initializer]
    if holders:
        holder = draw.choice(holders)
        field = "data_type" if isinstance(holder, TensorProto) else "elem_type"
        setattr(holder, field, draw.choice(TYPES))


def change_shape(model: ModelProto, draw: random.Random) -> None:
    """Another extent or rank of an input, or another initializer."""
    infos = list(model.graph.input)
    if not infos or (model.graph.initializer and draw.random() < 0.3):
        if model.graph.initializer:
            change_tensor(draw.choice(model.graph.initializer), draw)
        return
    shape = draw.choice(infos).type.tensor_type.shape
    if not shape.dim or draw.random() < 0.2:
        shape.dim.add().dim_value = draw.choice(EXTENTS)
    elif draw.random() < 0.2:
        shape.dim.pop()
    elif draw.random() < 0.2:
        shape.dim[draw.randrange(len(shape.dim))].dim_param = "N"
    else:
        shape.dim[draw.randrange(len(shape.dim))].dim_value = draw.choice(EXTENTS)


def change_node(model: ModelProto, draw: random.Random) -> None:
    """Another operator, other inputs; a node less, twice, or elsewhere."""
    nodes = model.graph.node
    if not nodes:
        return
    at = draw.randrange(len(nodes))
    node = nodes[at]
    names = [name for each in nodes for name in (*each.input, *each.output)]
    match draw.randrange(8):
        case 0:
            del nodes[at]
        case 1:
            nodes.insert(draw.randrange(len(nodes)), node)
        case 2:
            node.op_type = draw.choice([each.op_type for each in nodes])
        case 3 if node.input:
            node.input.pop()
        case 4 if node.output:
            node.output[draw.randrange(len(node.output))] = draw.choice(names)
        case 5:
            node.op_type = draw.choice(("Relu", "Reshape", "Conv", "Loop", "Nothing", "Gather"))
        case 6:
            node.input.append(draw.choice([*names, ""]))
        case _ if node.input:
            node.input[draw.randrange(len(node.input))] = draw.choice([*names, "", "missing"])


def damage_bytes(data: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, or the end cut off."""
    if not data:
        return data
    if draw.random() < 0.2:
        return data[: draw.randrange(len(data))]
    damaged = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
    return bytes(damaged)


DAMAGES: tuple[Callable[[ModelProto, random.Random], None], ...] = (
    change_attribute,
    change_type,
    change_shape,
    change_node,
)


def damaged_model(models: Sequence[bytes], seed: int) -> bytes:
    """The file of a seed."""
    draw = random.Random(seed)
    data = draw.choice(models)
    for _ in range(draw.choice((1, 1, 2, 3))):
        change = draw.choice((*DAMAGES, None))
        if change is None:
            return damage_bytes(data, draw)
        model = ModelProto()
        model.ParseFromString(data)
        change(model, draw)
        data = model.SerializeToString()
    return data


# -- compiling one


def limit_memory() -> None:
    """Let this process have so much more memory than it has."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + LIMIT_BYTES, hard))


def attempt(data: bytes) -> str:
    """Compile the bytes of a model: "compiled", or the kind of our error."""
    try:
        tensorwright.compile(data, records=MemoryStore(), threads=1)
    except InternalError:
        raise
    except TensorwrightError as error:
        return type(error).__name__
    return "compiled"


@dataclass(frozen=True, slots=True)
class End:
    """How a seed ended; `fault` says what is wrong with that, "" if nothing."""

    seed: int
    kind: str
    fault: str = ""


def drill(models: Sequence[bytes], seeds: Sequence[int], workers: int) -> Iterator[End]:
    """Compile the damaged model of each seed in a child process, each with limits."""
    here: Any = importlib.import_module(Path(__file__).stem if __name__ == "__main__" else __name__)
    jobs = [Job(here.attempt, (damaged_model(models, seed),)) for seed in seeds]
    with tempfile.TemporaryDirectory() as home:
        variables = {"TENSORWRIGHT_HOME": home, "TENSORWRIGHT_VERIFY": "1"}
        with WorkerPool(workers, Job(here.limit_memory), variables) as pool:
            for seed, outcome in zip(seeds, pool.run(jobs, LIMIT_S), strict=True):
                yield _end(seed, outcome)


def _end(seed: int, outcome: Outcome) -> End:
    if isinstance(outcome, Done):
        return End(seed, str(outcome.value))
    kind = outcome.kind if isinstance(outcome, Raised) else type(outcome).__name__
    return End(seed, kind, str(outcome))


def main() -> int:
    """Print the table and the faults; 1 if there are faults."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("models", nargs="*", type=Path)
    add_options(options, 1000)
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    paths = given.models or sorted(LIGHT.glob("light_*.onnx"))
    models = [path.read_bytes() for path in paths]
    if not given.models:
        models += [*small_models().values()] * 3
    seeds = range(given.seed, given.seed + given.count)
    ends = list(drill(models, seeds, given.workers))
    for kind, count in Counter(end.kind for end in ends).most_common():
        print(f"{count:6}  {kind}")
    return finish(len(ends), {end.seed: end.fault for end in ends if end.fault})


if __name__ == "__main__":
    sys.exit(main())
