"""What is refused of GGUF files: cut and damaged ones, and what no decoder here has."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.graph.gguf.test_decoder import SMALL

import tensorwright
from tensorwright.base import ModelError, TensorwrightError, UnsupportedError
from tensorwright.graph.imports.reading import read_model
from tensorwright_lab.zoo.language_models import write_decoder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("files") / "model.gguf"
    write_decoder(path, replace(SMALL, depth=1, words=300), "int4")
    return path.read_bytes()


def changed(folder: Path, **changes: Any) -> Path:
    """A file of one tensor, and some keys; those of None are missing."""
    path = folder / "model.gguf"
    facts = {"embedding_length": 32, "block_count": 1, "attention.head_count": 2}
    facts |= {"context_length": 8, "feed_forward_length": 32}
    facts["attention.layer_norm_rms_epsilon"] = 1
    name = changes.pop("architecture", "llama")
    extra = changes.pop("tensor", "token_embd.weight")
    writer = gguf.GGUFWriter(path, name)
    for key, value in (facts | changes).items():
        if isinstance(value, str):
            writer.add_string(f"{name}.{key}", value)
        elif value is not None:
            writer.add_uint32(f"{name}.{key}", value)
    writer.add_tensor(extra, np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"architecture": "mamba"}, "its architecture mamba is not read"),
        ({"block_count": None}, "llama.block_count is missing"),
        ({"block_count": 0}, "llama.block_count is 0, not a number from 0 to 16777216"),
        ({"context_length": "8"}, "llama.context_length is 8, not a number from 0 to 16777216"),
        ({"expert_count": 8}, "8 experts are not supported"),
        ({"rope.scaling.type": "yarn"}, "positions of the scaling yarn are not supported"),
        ({"attention.value_length": 8}, "heads of values have another size than those of keys"),
        ({"attention.head_count_kv": 3}, "2 heads are not whole groups of 3"),
        ({"rope.dimension_count": 7}, "7 elements of heads of 16 are turned"),
        ({"embedding_length": 64}, "its shape is (4, 32), not (4, 64)"),
        ({}, "there is none"),
    ],
)
def test_decoders_that_are_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises((ModelError, UnsupportedError)) as caught:
        tensorwright.compile(changed(tmp_path, **changes))
    assert caught.value.reason == reason
    assert caught.value.remedy


def test_a_tensor_that_no_decoder_has(whole: bytes) -> None:
    other = whole.replace(b"blk.0.attn_k.weight", b"blk.0.attn_k.weighs")
    with pytest.raises(ModelError, match=r"blk\.0\.attn_k\.weight: there is none"):
        read_model(other)
    name = b"output_norm.weight"
    twice = whole.replace(name, b"blk.0.ffn_expert_w")
    with pytest.raises(ModelError, match=r"output_norm\.weight: there is none"):
        read_model(twice)


def test_kinds_and_versions_that_are_not_read(whole: bytes) -> None:
    name = b"blk.0.attn_k.weight"
    at = whole.index(name) + len(name) + 4 + 16
    unread = whole[:at] + struct.pack("<I", 16) + whole[at + 4 :]
    with pytest.raises(UnsupportedError, match=r"blk\.0\.attn_k\.weight: its type IQ2_XXS is not"):
        read_model(unread)
    first = whole[:4] + struct.pack("<I", 1) + whole[8:]
    with pytest.raises(UnsupportedError, match="it is of version 1 of the format"):
        read_model(first)


def test_a_tensor_that_ends_after_the_file(whole: bytes) -> None:
    with pytest.raises(ModelError, match=r"it is cut: tensor output_norm\.weight ends at byte"):
        read_model(whole[:-100])


@given(st.data())
def test_cut_and_damaged_files_are_refused(whole: bytes, data: st.DataObject) -> None:
    """Whatever bytes are lost or changed, import gives a model or an error of ours."""
    end = data.draw(st.integers(4, len(whole)))
    with pytest.raises(TensorwrightError):
        read_model(whole[: end - 1])
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(4, 9000))] = data.draw(st.integers(0, 255))
    with suppress(TensorwrightError):
        read_model(bytes(damaged))
