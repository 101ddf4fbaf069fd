"""Decoders of language models with the sizes of published ones, and seeded weights, as GGUF files.

A file is what llama.cpp, OpenVINO GenAI and tensorwright read alike.  Its vocabulary has the 256
bytes and made-up words.  Matrices have the kind that is asked for, vectors are f32.  The package
gguf writes and quantises.

Source:  github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto

from tensorwright.base import Array, MachineError
from tensorwright.graph.imports import whole_model

KINDS = MappingProxyType({"f32": "F32", "int8": "Q8_0", "int4": "Q4_0"})
"""Weights by the names of `quantize`, and the kinds of numbers of GGUF that have as many bits."""
_BYTES = 256
_CONTROL, _NORMAL = 3, 1
_PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))


@dataclass(frozen=True, slots=True)
class Decoder:
    """The sizes of a decoder.

    words, longest   in the vocabulary; positions      size   of a head
    inner            of the gate                       rate   the base of the angles of positions
    """

    architecture: str
    words: int
    width: int
    depth: int
    heads: int
    groups: int
    inner: int
    size: int = 64
    rate: float = 10000.0
    epsilon: float = 1e-5
    longest: int = 2048
    is_tied: bool = True
    end: int = _BYTES

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The names of tensors, and their shapes, rows first."""
        wide, narrow = self.heads * self.size, self.groups * self.size
        yield "token_embd.weight", (self.words, self.width)
        for layer in range(self.depth):
            stem = f"blk.{layer}"
            yield f"{stem}.attn_norm.weight", (self.width,)
            for part, rows in (("q", wide), ("k", narrow), ("v", narrow)):
                yield f"{stem}.attn_{part}.weight", (rows, self.width)
                if self.architecture == "qwen2":
                    yield f"{stem}.attn_{part}.bias", (rows,)
                if self.architecture == "qwen3" and part != "v":
                    yield f"{stem}.attn_{part}_norm.weight", (self.size,)
            yield f"{stem}.attn_output.weight", (self.width, wide)
            yield f"{stem}.ffn_norm.weight", (self.width,)
            yield f"{stem}.ffn_gate.weight", (self.inner, self.width)
            yield f"{stem}.ffn_up.weight", (self.inner, self.width)
            yield f"{stem}.ffn_down.weight", (self.width, self.inner)
        yield "output_norm.weight", (self.width,)
        if not self.is_tied:
            yield "output.weight", (self.words, self.width)


DECODERS = MappingProxyType(
    {
        "decoder_small": Decoder("llama", 8192, 576, 6, 9, 3, 1536, longest=4096),
        "smollm2_135m": Decoder("llama", 49152, 576, 30, 9, 3, 1536, rate=1e5, longest=8192),
        "llama3_1b": Decoder("llama", 128256, 2048, 16, 32, 8, 8192, rate=5e5, longest=131072),
        "qwen2_0.5b": Decoder(
            "qwen2", 151936, 896, 24, 14, 2, 4864, rate=1e6, epsilon=1e-6, longest=32768
        ),
        "qwen3_0.6b": Decoder(
            *("qwen3", 151936, 1024, 28, 16, 8, 3072, 128),
            rate=1e6,
            epsilon=1e-6,
            longest=40960,
        ),
    }
)


def write_decoder(
    path: Path,
    sizes: Decoder,
    weights: str = "f32",
    seed: int = 0,
    quantize: Callable[[Array, Any], Array] | None = None,
) -> None:
    """Write a file.

    weights    f32, int8, int4, or a kind of numbers of GGUF: F16, Q4_1
    quantize   of numbers and a kind; by default what the package gguf has for that kind
    Raises:  MachineError where the package gguf is missing.
    """
    gguf = _package()
    stored_as = quantize or gguf.quants.quantize
    kind = gguf.GGMLQuantizationType[KINDS.get(weights, weights)]
    writer = gguf.GGUFWriter(path, sizes.architecture)
    _write_facts(writer, sizes)
    _write_vocabulary(writer, sizes)
    block, size_bytes = gguf.GGML_QUANT_SIZES[kind]
    shapes = dict(sizes.tensors())
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        is_matrix = len(shape) > 1
        own, stored = (kind, count // block * size_bytes) if is_matrix else (0, 4 * count)
        own = gguf.GGMLQuantizationType(own)
        writer.add_tensor_info(name, shape, np.dtype(np.float32), stored, own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for number, (name, shape) in enumerate(shapes.items()):
        values = _drawn(name, shape, np.random.default_rng([seed, number]))
        is_stored = len(shape) > 1 and kind.name != "F32"
        writer.write_tensor_data(stored_as(values, kind) if is_stored else values)
    writer.close()


def decoder_model(name: str, seed: int = 0) -> ModelProto:
    """One of `DECODERS` in f32, as the ONNX model that a GGUF file is read as."""
    with tempfile.TemporaryDirectory(prefix="tensorwright-zoo-") as folder:
        path = Path(folder) / "model.gguf"
        write_decoder(path, DECODERS[name], "f32", seed)
        return whole_model(path)


def _package() -> Any:
    try:
        return importlib.import_module("gguf")
    except ImportError:
        raise MachineError(
            stage="zoo",
            where="package gguf",
            reason="it is not installed, and writes the files of language models",
            remedy="pip install 'tensorwright[bench]'",
        ) from None


def _drawn(name: str, shape: tuple[int, ...], draw: np.random.Generator) -> Array:
    values = draw.standard_normal(shape, np.float32)
    if len(shape) > 1:
        return values * np.float32(shape[1] ** -0.5)
    return np.float32(0.1) * values + np.float32(0 if name.endswith("bias") else 1)


def _write_facts(writer: Any, sizes: Decoder) -> None:
    writer.add_name(f"drawn {sizes.architecture}")
    writer.add_context_length(sizes.longest)
    writer.add_embedding_length(sizes.width)
    writer.add_block_count(sizes.depth)
    writer.add_feed_forward_length(sizes.inner)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.groups)
    writer.add_key_length(sizes.size)
    writer.add_value_length(sizes.size)
    writer.add_rope_dimension_count(sizes.size)
    writer.add_rope_freq_base(sizes.rate)
    writer.add_layer_norm_rms_eps(sizes.epsilon)
    writer.add_vocab_size(sizes.words)


def _write_vocabulary(writer: Any, sizes: Decoder) -> None:
    """Bytes as byte-level vocabularies write them, an end, and words of two bytes each."""
    others = [byte for byte in range(_BYTES) if byte not in _PRINTABLE]
    letters = [
        chr(byte if byte in _PRINTABLE else _BYTES + others.index(byte)) for byte in range(_BYTES)
    ]
    space = letters[ord(" ")]
    words = [*letters, "<|end|>", f"{space}w"]
    words += [f"w{number}" for number in range(sizes.words - len(words))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm" if sizes.architecture == "llama" else "qwen2")
    writer.add_token_list(words)
    kinds = [_NORMAL] * len(words)
    kinds[_BYTES] = _CONTROL
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{space} w"])
    writer.add_bos_token_id(_BYTES)
    writer.add_eos_token_id(sizes.end)
    writer.add_bool("tokenizer.ggml.add_bos_token", val=False)
