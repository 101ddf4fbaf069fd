"""The networks by name. PyTorch is imported only in the process that exports one."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx
from onnx import ModelProto

from tensorwright.base import MachineError, unknown_name
from tensorwright.processes import Child, Done, Job

BUILDERS: MappingProxyType[str, str] = MappingProxyType(
    {
        "vit_s16": "vision_transformers",
        "swin_t": "vision_transformers",
        "mixer_s16": "vision_transformers",
        "convnext_t": "convolutional",
        "mobilenet_v3": "convolutional",
        "x3d_s": "convolutional",
        "unet_gn": "dense_images",
        "deeplab_v3": "dense_images",
        "yolo_n": "detection",
        "edsr_x2": "image_generation",
        "stylegan2": "image_generation",
        "distilgpt2": "decoders",
        "llama_small": "decoders",
        "deberta": "encoders",
        "t5_encoder": "encoders",
        "performer": "encoders",
        "whisper_tiny": "speech",
        "wav2vec2": "speech",
        "wavenet": "speech",
        "conv_tasnet": "speech",
        "lstm_tagger": "points_and_tables",
        "crnn_gru": "points_and_tables",
        "pointnet": "points_and_tables",
        "dlrm": "points_and_tables",
    }
)
WILD: tuple[str, ...] = tuple(BUILDERS)
BUILDER, SEED = "tensorwright.builder", "tensorwright.seed"
"""Keys of a model's metadata: from what it was exported."""
_LIMIT_S = 300.0
_EXPORT = "tensorwright_lab.zoo.wild.export"


def load_wild(name: str, seed: int = 0) -> ModelProto:
    """One of `WILD` with seeded weights, as PyTorch exports it; batch 1, all shapes known.

    The caller must not change it: the last one is kept.
    Raises:  UsageError for another name; MachineError where PyTorch is not installed or fails.
    """
    if name not in BUILDERS:
        raise unknown_name("zoo", f"wild model {name!r}", "there is no such model", name, WILD)
    if importlib.util.find_spec("torch") is None:
        raise MachineError(
            stage="zoo",
            where=f"wild model {name!r}",
            reason="PyTorch, which writes it, is not installed",
            remedy="pip install 'tensorwright[torch]'",
        )
    return _export(name, seed)


@lru_cache(maxsize=1)
def _export(name: str, seed: int) -> ModelProto:
    """Export in a process of its own, through a file: models have up to hundreds of megabytes."""
    with tempfile.TemporaryDirectory(prefix="tensorwright-wild-") as folder:
        path = Path(folder) / "model.onnx"
        child = Child()
        try:
            builder = f"{BUILDERS[name]}:{name}"
            outcome = child.do(Job(write_model, (builder, seed, str(path))), _LIMIT_S)
        finally:
            child.close()
        if not isinstance(outcome, Done):
            raise MachineError(
                stage="zoo",
                where=f"wild model {name!r}",
                reason=f"PyTorch did not export it: {outcome}",
                remedy="the version of PyTorch that the extra test names",
            )
        return onnx.load(path)


def write_model(builder: str, seed: int, path: str) -> None:
    """The job of the process: only this function imports PyTorch."""
    importlib.import_module(_EXPORT).export_file(builder, seed, path)


def make_module(model: ModelProto) -> tuple[Any, tuple[Any, ...]] | None:
    """The PyTorch module that a model of the suite was exported from, and tensors like its inputs.

    None for another model. PyTorch is imported into the calling process.
    """
    told = {each.key: each.value for each in model.metadata_props}
    if told.get(BUILDER) not in {f"{family}:{name}" for name, family in BUILDERS.items()}:
        return None
    example = importlib.import_module(_EXPORT).make_example(told[BUILDER], int(told[SEED]))
    return example.module.eval(), tuple(example.inputs.values())
