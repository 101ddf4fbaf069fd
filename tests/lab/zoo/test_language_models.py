"""Decoders of the laboratory as modules of PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.graph.gguf.numpy_decoder import NumpyDecoder
from tests.unit.graph.gguf.test_decoder import IDS, file_of

import tensorwright
from tensorwright_lab.zoo.torch_decoder import TorchDecoder


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
