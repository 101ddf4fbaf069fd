"""Decoders of GGUF files against NumPy, by architecture, kind of numbers, and in steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from tests.unit.graph.gguf.numpy_decoder import NumpyDecoder

import tensorwright
from tensorwright.graph.imports.gguf.blocks import KINDS, Kind, Plain
from tensorwright.graph.model_import import load_model
from tensorwright_lab.zoo.language_models import Decoder, write_decoder

pytestmark = pytest.mark.usefixtures("by_rule")

IDS = [3, 250, 17, 3, 99]
SMALL = Decoder("llama", 320, 96, 2, 3, 1, 128, size=32, longest=64)
RANDOM = np.random.default_rng(5)


def file_of(folder: Path, weights: str = "f32", **sizes: Any) -> Path:
    path = folder / "model.gguf"
    write_decoder(path, replace(SMALL, **sizes), weights, seed=1)
    return path


def check(path: Path, tolerance: float) -> None:
    """The prompt at once, and token by token, give the scores of NumPy."""
    wanted = NumpyDecoder(path).logits(IDS)
    session = tensorwright.compile(path).session()
    whole = session.run({"input_ids": np.array([IDS])})["logits"]
    assert np.abs(whole[0] - wanted).max() < tolerance * np.abs(wanted).max()
    session.reset()
    steps = [session.run({"input_ids": np.array([[each]])})["logits"][0, 0] for each in IDS]
    assert np.abs(steps - wanted).max() < tolerance * np.abs(wanted).max()


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma"])
def test_architectures(tmp_path: Path, architecture: str) -> None:
    check(file_of(tmp_path, architecture=architecture, is_tied=architecture != "qwen3"), 1e-5)


@pytest.mark.parametrize("weights", ["F16", "Q8_0", "Q4_1", "Q5_0"])
def test_kinds_of_numbers(tmp_path: Path, weights: str) -> None:
    path = file_of(tmp_path, weights)
    check(path, 1e-3)
    operators = {node.operator for node in load_model(path).nodes}
    assert ("dequantize_blocks" in operators) is weights.startswith("Q")


@pytest.mark.parametrize("weights", ["f32", "Q4_0"])
def test_a_thousand_steps(tmp_path: Path, weights: str) -> None:
    """The likeliest token is that of the numbers of the file, and its score as near as said."""
    path = file_of(tmp_path, weights, longest=1024)
    reference, executable = NumpyDecoder(path), tensorwright.compile(path)
    drawn = np.random.default_rng(7).integers(0, SMALL.words, 1000).tolist()
    wanted, session = reference.logits(drawn), executable.session()
    steps = [session.run({"input_ids": np.array([[each]])})["logits"][0, -1] for each in drawn]
    np.testing.assert_array_equal(np.argmax(steps, -1), wanted.argmax(-1))
    errors = np.abs(steps - wanted).max(-1) / np.abs(wanted).max(-1)
    assert errors.max() < (1e-5 if weights == "f32" else 5e-4)  # as docs/language_models.md says
    made = list(tensorwright.generate(executable, IDS, tokens=1000))
    whole = reference.logits([*IDS, *made[:-1]])
    np.testing.assert_array_equal(made, whole[len(IDS) - 1 :].argmax(-1))
    session.reset()
    assert list(tensorwright.generate(session, IDS, tokens=1000, drafts=7)) == made
    assert session.steps < 500


@pytest.mark.parametrize("name", ["Q4_K", "Q5_K", "Q6_K"])
def test_kinds_of_large_blocks(tmp_path: Path, name: str) -> None:
    (kind,) = (each for each in KINDS.values() if each.name == name)
    path = tmp_path / "model.gguf"

    def drawn(values: Any, _: Any) -> Any:
        return drawn_blocks(kind, len(values), values.shape[1] // kind.elements)

    sizes = replace(SMALL, width=256, heads=4, groups=2, size=64, inner=256)
    write_decoder(path, sizes, name, quantize=drawn)
    check(path, 1e-3)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_numbers_of_blocks(kind: Kind) -> None:
    raw = drawn_blocks(kind, 3, 2)
    theirs = gguf.quants.dequantize(raw.reshape(3, -1), gguf.GGMLQuantizationType[kind.name])
    np.testing.assert_allclose(kind.numbers(raw), theirs, rtol=2e-6, atol=1e-6)


def drawn_blocks(kind: Kind, rows: int, blocks: int) -> Any:
    """Bytes of blocks, whose scales are small numbers; one scale is 0."""
    raw = RANDOM.integers(0, 256, (rows, blocks, kind.size_bytes), dtype=np.uint8)
    if isinstance(kind, Plain):
        numbers = RANDOM.standard_normal((rows, blocks)).astype(kind.dtype.numpy)
        return numbers.view(np.uint8).reshape(raw.shape)
    places = [208] if kind.name == "Q6_K" else [0, 2] if kind.has_zeros else [0]
    for at in places:
        scales = RANDOM.uniform(-0.002, 0.002, (rows, blocks, 1)).astype("<f2")
        scales[0, 0] *= bool(at)
        raw[..., at : at + 2] = scales.view(np.uint8)
    return raw
