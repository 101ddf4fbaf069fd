"""The decoder of a GGUF file as the ONNX model that ONNX Runtime's GenAI would run.

    input_ids (1, sequence), past_key_values.N.key, .value (1, groups, past, size)
        -> logits (1, sequence, vocabulary), present.N.key, .value

Weights of few bits stay codes (MatMulNBits, GatherBlockQuantized); f16 and bf16 become f32.  Their
arrays are made of the file's bytes when the model is imported.

Rows of queries and keys that are turned as pairs of neighbours (llama) are put in the order in
which they are turned as halves: a sum over a head does not see the order of its elements.
Source:  github.com/ggml-org/llama.cpp, src/models; convert_hf_to_gguf.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorwright.base import Array, DType
from tensorwright.graph.imports import refusals
from tensorwright.graph.imports.gguf.blocks import Coded, Plain
from tensorwright.graph.imports.gguf.reading import Buffer, GgufFile, read_gguf
from tensorwright.graph.imports.open_dimensions import SIZES_PROPERTY

_MICROSOFT = "com.microsoft"
_OPSET = 18
_ROUNDED_ROWS = 4  # an accuracy_level: rows may be rounded
_PLAIN_SCALINGS = ("none", "linear")
_TABLE, _HEAD, _FACTORS = "token_embd", "output", "rope_freqs.weight"
_IDS, _ANGLES = "input_ids", ("cosines", "sines")
_MOST_ROWS = 512  # of a call: longer prompts are read in several, in less memory
_MOST = 1 << 24  # of any number that a decoder has
_CONVERT = "convert the network again"
_AS_ONNX = "give the network as ONNX"


@dataclass(frozen=True, slots=True)
class _Architecture:
    """How a family of decoders differs from others.

    is_paired    neighbours are turned as pairs, not halves of a head
    activation   of the gate
    is_scaled    rows of the table are times the root of the width
    """

    is_paired: bool = False
    activation: str = "silu"
    is_scaled: bool = False


ARCHITECTURES = {
    "llama": _Architecture(is_paired=True),
    "qwen2": _Architecture(),
    "qwen3": _Architecture(),
    "gemma": _Architecture(activation="gelu", is_scaled=True),
}


class FileWeights:
    """The arrays of a model's initialisers, made of a file's bytes when they are asked for."""

    def __init__(self) -> None:
        self.makers: dict[str, Callable[[], Array]] = {}

    def array(self, tensor: TensorProto, dtype: DType) -> Array | None:
        """The elements of an initialiser; None for one that the model holds."""
        maker = self.makers.get(tensor.name)
        if maker is None:
            return None
        return np.ascontiguousarray(maker(), dtype.numpy).reshape(tuple(tensor.dims))


def read_decoder(data: Buffer, label: str) -> tuple[ModelProto, FileWeights]:
    """The model, and its weights.

    Raises:  ModelError for a damaged file, and for one without what a decoder needs;
             UnsupportedError for another architecture, or parts that are not read.
    """
    file = read_gguf(data, label)
    writer = _Writer(file)
    model = _Decoder.of(file).written(writer)
    return model, writer.weights


def with_weights(model: ModelProto, weights: Any) -> ModelProto:
    """The model with its weights inside, for other runtimes."""
    for tensor in model.graph.initializer:
        dtype = DType.from_numpy(np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)))
        array = weights.array(tensor, dtype)
        if array is not None:
            tensor.raw_data = array.tobytes()
    return model


class _Writer:
    """Writes nodes that read the tensors of a file; mutable."""

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        self.weights = FileWeights()
        self.nodes: list[Any] = []
        self.constants: list[TensorProto] = []
        self._used: set[str] = set()

    def node(
        self, kind: str, inputs: Sequence[str], *outputs: str, domain: str = "", **how: Any
    ) -> str:
        """Append a node; its first output."""
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **how))
        return outputs[0]

    def constant(self, name: str, array: Array) -> str:
        """A small array of the model."""
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def made(self, name: str, dtype: int, shape: Sequence[int], make: Callable[[], Array]) -> str:
        """An array that is made when it is asked for, as those of the file's bytes are."""
        self.constants.append(TensorProto(name=name, dims=shape, data_type=dtype))
        self.weights.makers[name] = make
        return name

    def numbers(self, name: str, shape: Sequence[int]) -> NDArray[Any]:
        """A tensor as numbers.  Raises: ModelError if there is none of that shape."""
        self.check(name, shape)
        tensor = self.file.tensors[name]
        return tensor.kind.numbers(self.file.raw(name)).reshape(shape)

    def check(self, name: str, shape: Sequence[int]) -> None:
        """Note that a tensor is used.  Raises: ModelError if there is none of that shape."""
        own = self.file.tensors.get(name)
        if own is None or own.shape != tuple(shape):
            reason = "there is none" if own is None else f"its shape is {own.shape}, not {shape}"
            raise refusals.model_error(f"tensor {name}", reason, _CONVERT)
        self._used.add(name)

    def check_all_used(self) -> None:
        """Raise an UnsupportedError for tensors that nothing has read."""
        others = [name for name in self.file.tensors if name not in self._used]
        if others:
            reason = "decoders of this architecture have no such tensor"
            raise refusals.unsupported(f"tensor {others[0]}", "", reason, _AS_ONNX)

    def norm(self, x: str, name: str, size: int, epsilon: float, output: str) -> str:
        """Rows over the root of their mean square, times a vector."""
        scale = self.constant(f"{name}.weight", self.numbers(f"{name}.weight", (size,)))
        return self.node(
            "SimplifiedLayerNormalization", [x, scale], output, axis=-1, epsilon=epsilon
        )

    def rows(self, name: str, shape: tuple[int, int], ids: str, output: str) -> str:
        """Rows of a table."""
        weight = f"{name}.weight"
        self.check(weight, shape)
        kind = self.file.tensors[weight].kind
        if isinstance(kind, Plain):
            table = self.made(
                f"{name}.rows", TensorProto.FLOAT, shape, lambda: self.numbers(weight, shape)
            )
            return self.node("Gather", [table, ids], output)
        width = shape[1] * kind.bits // 8
        table, *scales = self._matrix(name, "rows", kind, (shape[0], width))
        how = {"bits": kind.bits, "block_size": kind.block}
        inputs = [table, ids, *scales]
        return self.node("GatherBlockQuantized", inputs, output, domain=_MICROSOFT, **how)

    def product(
        self,
        x: str,
        name: str,
        shape: tuple[int, int],
        output: str,
        order: Array | None = None,
    ) -> str:
        """Rows of x times the transpose of a matrix, plus the bias where the file has one.

        order   of the rows of the matrix
        """
        weight, bias = f"{name}.weight", f"{name}.bias"
        self.check(weight, shape)
        kind = self.file.tensors[weight].kind
        is_biased = bias in self.file.tensors
        own = f"{output}.product" if is_biased else output
        rows: Any = slice(None) if order is None else order
        if isinstance(kind, Plain):
            matrix = self.made(
                f"{name}.matrix",
                TensorProto.FLOAT,
                shape[::-1],
                lambda: self.numbers(weight, shape)[rows].T,
            )
            self.node("MatMul", [x, matrix], own)
        else:
            how = {"bits": kind.bits, "block_size": kind.block, "N": shape[0], "K": shape[1]}
            how["accuracy_level"] = _ROUNDED_ROWS
            blocks = shape[0], shape[1] // kind.block, kind.block * kind.bits // 8
            inputs = [x, *self._matrix(name, "matrix", kind, blocks, order)]
            self.node("MatMulNBits", inputs, own, domain=_MICROSOFT, **how)
        if is_biased:
            added = self.constant(bias, self.numbers(bias, shape[:1])[rows])
            self.node("Add", [own, added], output)
        return output

    def _matrix(
        self,
        name: str,
        use: str,
        kind: Coded,
        bytes_: Sequence[int],
        order: Array | None = None,
    ) -> list[str]:
        """The codes of a matrix as ONNX Runtime has them, their scales, and zeros if any."""
        weight = f"{name}.weight"
        count, inner = self.file.tensors[weight].shape
        rows: Any = slice(None) if order is None else order

        def packed() -> Array:
            whole = kind.quantized(self.file.raw(weight))[rows]
            pairs: Array = whole if kind.bits == 8 else whole[:, ::2] | (whole[:, 1::2] << 4)
            return pairs

        def scales(position: int) -> Array:
            made = kind.scales(self.file.raw(weight))[position]
            assert made is not None, "a kind with zeros has them"
            chosen: Array = made[rows]
            return chosen

        names = [self.made(f"{name}.{use}", TensorProto.UINT8, bytes_, packed)]
        for position, what in enumerate(("scales", "zeros") if kind.has_zeros else ("scales",)):
            make = partial(scales, position)
            blocks = count, inner // kind.block
            names.append(self.made(f"{name}.{use}.{what}", TensorProto.FLOAT, blocks, make))
        return names


@dataclass(frozen=True, slots=True)
class _Decoder:
    """What a file says of its decoder.

    size   of a head                 turned   elements of a head that are turned by its position
    """

    name: str
    architecture: _Architecture
    depth: int
    width: int
    heads: int
    groups: int
    size: int
    turned: int
    longest: int
    epsilon: float
    base: float
    factor: float
    inner: int

    @classmethod
    def of(cls, file: GgufFile) -> _Decoder:
        """Raises:  ModelError, UnsupportedError."""
        name = file.metadata.get("general.architecture")
        architecture = ARCHITECTURES.get(str(name))
        if architecture is None:
            remedy = f"{', '.join(ARCHITECTURES)} are read; {_AS_ONNX}"
            reason = f"its architecture {name} is not read"
            raise refusals.unsupported(file.label, "", reason, remedy)

        def said(key: str, usual: float | None = None) -> float:
            value = file.metadata.get(f"{name}.{key}", usual)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 < value <= _MOST:
                what = "missing" if value is None else f"{value}, not a number from 0 to {_MOST}"
                raise refusals.model_error(file.label, f"{name}.{key} is {what}", _CONVERT)
            return float(value)

        def count(key: str, usual: float | None = None) -> int:
            return int(said(key, usual))

        scaling = file.metadata.get(f"{name}.rope.scaling.type", "none")
        experts = file.metadata.get(f"{name}.expert_count", 0)
        if scaling not in _PLAIN_SCALINGS or experts:
            what = f"{experts} experts" if experts else f"positions of the scaling {scaling}"
            raise refusals.unsupported(file.label, "", f"{what} are not supported", _AS_ONNX)
        width, heads = count("embedding_length"), count("attention.head_count")
        size = count("attention.key_length", width / heads)
        made = cls(
            str(name),
            architecture,
            count("block_count"),
            width,
            heads,
            count("attention.head_count_kv", heads),
            size,
            count("rope.dimension_count", size),
            count("context_length"),
            said("attention.layer_norm_rms_epsilon"),
            said("rope.freq_base", 10000.0),
            said("rope.scaling.factor", 1.0) if scaling == "linear" else 1.0,
            count("feed_forward_length"),
        )
        reason = ""
        if count("attention.value_length", size) != size:
            reason = "heads of values have another size than those of keys"
        elif heads % made.groups:
            reason = f"{heads} heads are not whole groups of {made.groups}"
        elif made.turned % 2 or made.turned > size:
            reason = f"{made.turned} elements of heads of {size} are turned"
        if reason:
            raise refusals.unsupported(file.label, "", reason, _AS_ONNX)
        return made

    def written(self, writer: _Writer) -> ModelProto:
        """The model.  Raises: ModelError, UnsupportedError."""
        caches = [f"{layer}.{part}" for layer in range(self.depth) for part in ("key", "value")]
        self._write_angles(writer)
        self._write_lengths(writer)
        table = writer.file.tensors.get(f"{_TABLE}.weight")
        words = table.shape[0] if table is not None else 0
        x = writer.rows(_TABLE, (words, self.width), _IDS, "rows")
        if self.architecture.is_scaled:
            factor = writer.constant("root", np.array(self.width**0.5, np.float32))
            x = writer.node("Mul", [x, factor], "rows.scaled")
        for layer in range(self.depth):
            x = self._layer(writer, x, layer)
        x = writer.norm(x, "output_norm", self.width, self.epsilon, "norm")
        head = _HEAD if f"{_HEAD}.weight" in writer.file.tensors else _TABLE
        writer.product(x, head, (words, self.width), "logits")
        writer.check_all_used()

        def value(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> Any:
            return helper.make_tensor_value_info(name, kind, shape)

        inputs = [value(_IDS, 1, "sequence", kind=TensorProto.INT64)]
        inputs += [
            value(f"past_key_values.{each}", 1, self.groups, "past", self.size) for each in caches
        ]
        outputs = [value("logits", 1, "sequence", words)]
        outputs += [value(f"present.{each}", 1, self.groups, "total", self.size) for each in caches]
        graph = helper.make_graph(writer.nodes, self.name, inputs, outputs, writer.constants)
        versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=9)
        bounds = {"past": f"0..{self.longest - 1}", "sequence": f"1..{self.rows}"}
        helper.set_model_props(model, {SIZES_PROPERTY: json.dumps(bounds)})
        return model

    @property
    def rows(self) -> int:
        """The most that a call reads."""
        return min(self.longest, _MOST_ROWS)

    def _write_angles(self, writer: _Writer) -> None:
        """Cosines and sines of the angles of all positions that a call may reach."""
        half = self.turned // 2
        rates: NDArray[Any] = self.base ** (-np.arange(half) / half) / self.factor
        if _FACTORS in writer.file.tensors:
            rates = rates / writer.numbers(_FACTORS, (half,))
        positions = np.arange(self.longest + self.rows)
        for name, function in zip(_ANGLES, (np.cos, np.sin), strict=True):
            make = partial(lambda of: of(np.outer(positions, rates)), function)
            writer.made(name, TensorProto.FLOAT, (len(positions), half), make)

    def _write_lengths(self, writer: _Writer) -> None:
        """The length of cache and new rows together, and the last position, as i32."""
        past = writer.node("Shape", ["past_key_values.0.key"], "length.past", start=2, end=3)
        rows = writer.node("Shape", [_IDS], "length.rows", start=1, end=2)
        both = writer.node("Add", [past, rows], "length.both")
        total = writer.node("Cast", [both], "length.i32", to=TensorProto.INT32)
        one = writer.constant("length.one", np.array([1], np.int32))
        writer.node("Sub", [total, one], "length.last")
        writer.node("Squeeze", [total], "length.total")

    def _layer(self, writer: _Writer, x: str, layer: int) -> str:
        stem = f"blk.{layer}"
        y = writer.norm(x, f"{stem}.attn_norm", self.width, self.epsilon, f"{stem}.y")
        parts = []
        for part, count in (("q", self.heads), ("k", self.groups), ("v", self.groups)):
            name, order = f"{stem}.attn_{part}", self._order(count) if part != "v" else None
            shape = count * self.size, self.width
            each = writer.product(y, name, shape, f"{stem}.{part}", order)
            if f"{name}_norm.weight" in writer.file.tensors:
                each = self._norm_of_heads(writer, each, f"{name}_norm", count)
            parts.append(each)
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        y = writer.node(
            "GroupQueryAttention",
            [*parts, *past, "length.last", "length.total", *_ANGLES],
            f"{stem}.mixed",
            *present,
            domain=_MICROSOFT,
            num_heads=self.heads,
            kv_num_heads=self.groups,
            do_rotary=1,
        )
        wide = self.width, self.heads * self.size
        y = writer.product(y, f"{stem}.attn_output", wide, f"{stem}.attended")
        x = writer.node("Add", [x, y], f"{stem}.x")
        y = writer.norm(x, f"{stem}.ffn_norm", self.width, self.epsilon, f"{stem}.z")
        gate, up = (
            writer.product(y, f"{stem}.ffn_{part}", (self.inner, self.width), f"{stem}.{part}")
            for part in ("gate", "up")
        )
        if self.architecture.activation == "gelu":
            gate = writer.node("FastGelu", [gate], f"{stem}.active", domain=_MICROSOFT)
        else:
            share = writer.node("Sigmoid", [gate], f"{stem}.share")
            gate = writer.node("Mul", [gate, share], f"{stem}.active")
        y = writer.node("Mul", [gate, up], f"{stem}.gated")
        y = writer.product(y, f"{stem}.ffn_down", (self.width, self.inner), f"{stem}.down")
        return writer.node("Add", [x, y], f"{stem}.out")

    def _order(self, count: int) -> Array | None:
        """The order in which rows of heads that are turned in pairs are turned as halves."""
        if not self.architecture.is_paired:
            return None
        heads = np.arange(count * self.size).reshape(count, self.size)
        pairs = heads[:, : self.turned].reshape(count, -1, 2).swapaxes(1, 2)
        turned = pairs.reshape(count, self.turned)
        return np.concatenate((turned, heads[:, self.turned :]), axis=1).reshape(-1)

    def _norm_of_heads(self, writer: _Writer, x: str, name: str, count: int) -> str:
        apart = writer.constant(f"{name}.apart", np.array([0, 0, count, self.size]))
        joined = writer.constant(f"{name}.joined", np.array([0, 0, count * self.size]))
        heads = writer.node("Reshape", [x, apart], f"{x}.heads")
        heads = writer.norm(heads, name, self.size, self.epsilon, f"{x}.norm")
        return writer.node("Reshape", [heads, joined], f"{x}.rows")
