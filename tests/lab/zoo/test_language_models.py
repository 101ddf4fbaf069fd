"""Decoders of the laboratory: as modules of PyTorch, and Whisper's, which reads an encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from tests.unit.graph.gguf.numpy_decoder import NumpyDecoder
from tests.unit.graph.gguf.test_decoder import IDS, file_of

import tensorwright
from tensorwright.base import UsageError
from tensorwright_lab.zoo.torch_decoder import TorchDecoder, Whisper, whisper_models


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("weights", ["f32", "int8"])
def test_modules_have_the_numbers_of_their_files(
    architecture: str, weights: str, tmp_path: Path
) -> None:
    path = file_of(tmp_path, weights, architecture=architecture)
    module, right = TorchDecoder(path).eval(), NumpyDecoder(path)
    state = module.empty_state()
    for end in (2, 3, 5):
        start = state[0].shape[2]
        with torch.no_grad():
            logits, *state = module(torch.tensor([IDS[start:end]]), state)
        np.testing.assert_allclose(logits[0, -1], right.logits(IDS[:end])[-1], atol=1e-4)


@pytest.mark.usefixtures("by_rule")
def test_an_exported_module_generates(tmp_path: Path) -> None:
    path = file_of(tmp_path, architecture="qwen2", depth=1)
    module = TorchDecoder(path).eval()
    rows, past = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("past", min=0, max=63)
    example = torch.tensor([IDS]), [torch.zeros(1, 1, 7, 32) for _ in range(2)]
    program = torch.export.export(module, example, dynamic_shapes=({1: rows}, [{2: past}] * 2))
    executable = tensorwright.compile(program, threads=1)
    assert len(executable.in_place[0].plan.states) == 2
    right, ids = NumpyDecoder(path), list(IDS)
    for token in tensorwright.generate(executable, IDS, tokens=6):
        assert token == right.logits(ids)[-1].argmax()
        ids.append(token)


@pytest.mark.usefixtures("by_rule")
def test_whisper_generates_from_keys_that_are_computed_once() -> None:
    sizes = Whisper(50, 32, 2, 2, frames=10, longest=20)
    cross, decoder = whisper_models(sizes)
    rows = np.random.default_rng(0).standard_normal((1, 10, 32), np.float32)
    fixed = tensorwright.compile(cross, threads=1).run({"encoder_hidden_states": rows})
    executable = tensorwright.compile(decoder, threads=1)
    assert len(executable.in_place[0].plan.states) == 4
    right, ids = ReferenceEvaluator(decoder), [3, 1, 4]
    empty = {
        f"past_key_values.{n}.{part}": np.zeros((1, 2, 0, 16), np.float32)
        for n in range(2)
        for part in ("key", "value")
    }
    for token in tensorwright.generate(executable, ids, tokens=5, inputs=fixed):
        given = {"input_ids": np.array([ids]), "position_ids": np.arange(len(ids))[None]}
        logits = right.run(["logits"], {**given, **fixed, **empty})[0]
        assert token == logits[0, -1].argmax()
        ids = [*ids, token]
    with pytest.raises(UsageError, match="the decoder has no input cross"):
        tensorwright.generate(executable, ids, inputs={"cross": rows})
    with pytest.raises(UsageError, match=r"does not know what its input cross\.0\.key is"):
        tensorwright.generate(executable, ids)
