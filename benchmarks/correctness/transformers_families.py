"""Run small networks of 32 families of Hugging Face transformers through both doors of PyTorch.

    python benchmarks/correctness/transformers_families.py [FAMILY ...] [--json FILE]

Each family is its own code of the package `transformers`, with two layers and random weights of a
fixed seed; nothing is downloaded. Two inputs go through each door and must give what eager PyTorch
gives, within 1e-4 of the greatest magnitude of a result:

compile   torch.compile(network, backend="tensorwright")
pt2       torch.export, torch.export.save, and tensorwright.compile of the file

right     equal; a number beside it says how many operators PyTorch has run
refused   UnsupportedError, which names the operator and the reason
no file   PyTorch itself cannot export the network
wrong     everything else: a wrong result, another error

Exit code 1 if one is wrong, 2 where the package is missing.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

import tensorwright
from tensorwright.base import UnsupportedError, override
from tensorwright.integrations.pytorch import compile_backend

TOLERANCE = 1e-4
OUTCOMES = ("right", "refused", "no file", "wrong")
Inputs = Mapping[str, torch.Tensor]
_GENERATOR = torch.Generator().manual_seed(0)
_MISSING = """the package transformers is missing, which the project does not require:
  pip install "tensorwright-lab[families]"    or    pip install transformers"""


def tokens(batch: int = 2, length: int = 7) -> Inputs:
    """A text of numbers below 90."""
    return {"input_ids": torch.randint(3, 90, (batch, length), generator=_GENERATOR)}


def padded() -> Inputs:
    """Two texts, of which the second is shorter."""
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 4:] = 0
    return {**tokens(), "attention_mask": mask}


def pairs() -> Inputs:
    """A text, and the beginning of its answer."""
    return {**tokens(), "decoder_input_ids": tokens(length=5)["input_ids"]}


def picture() -> Inputs:
    """Two images of 32 x 32."""
    return {"pixel_values": torch.randn(2, 3, 32, 32, generator=_GENERATOR)}


def picture_and_text() -> Inputs:
    """Two images, and a text for each."""
    return {**padded(), **picture()}


def sound() -> Inputs:
    """Two signals of 800 samples."""
    return {"input_values": torch.randn(2, 800, generator=_GENERATOR)}


def spectrum() -> Inputs:
    """A spectrum of 16 bands, and the beginning of its text."""
    bands = torch.randn(2, 16, 40, generator=_GENERATOR)
    return {"input_features": bands, "decoder_input_ids": tokens(length=5)["input_ids"]}


@dataclass(frozen=True, slots=True)
class Family:
    """A configuration of a family, and what its networks read."""

    name: str
    config: Mapping[str, Any]
    inputs: Callable[[], Inputs] = padded
    fixed: Mapping[str, Any] = field(default_factory=dict)


_TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GROUPED = {**_TEXT, "num_key_value_heads": 2}
_NARROW = {**_GROUPED, "head_dim": 8}
_IMAGE = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
_SEQUENCE = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_SOUND = {
    **_TEXT,
    "conv_dim": (16, 16, 16),
    "conv_kernel": (10, 3, 2),
    "conv_stride": (5, 2, 2),
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "do_stable_layer_norm": False,
}
_STATES = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
_NO_CACHE = {"use_cache": False}

FAMILIES = (
    Family("bert", _TEXT),
    Family("roberta", _TEXT),
    Family(
        "gpt2",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        fixed=_NO_CACHE,
    ),
    Family("llama", _GROUPED, fixed=_NO_CACHE),
    Family("mistral", {**_GROUPED, "sliding_window": 4}, fixed=_NO_CACHE),
    Family("qwen2", _GROUPED, fixed=_NO_CACHE),
    Family(
        "t5",
        {
            "vocab_size": 99,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
        pairs,
        _NO_CACHE,
    ),
    Family("bart", _SEQUENCE, pairs, _NO_CACHE),
    Family(
        "whisper",
        {
            **_SEQUENCE,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 64,
        },
        spectrum,
        _NO_CACHE,
    ),
    Family("vit", _IMAGE, picture),
    Family("wav2vec2", _SOUND, sound),
    Family("mamba", _STATES, tokens, _NO_CACHE),
    # twenty more
    Family(
        "distilbert",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
    Family("albert", {**_TEXT, "embedding_size": 16}),
    Family("electra", {**_TEXT, "embedding_size": 16}),
    Family("mpnet", _TEXT),
    Family(
        "deberta-v2",
        {
            **_TEXT,
            "relative_attention": True,
            "position_buckets": 8,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
        },
    ),
    Family("modernbert", {**_TEXT, "global_attn_every_n_layers": 2, "local_attention": 4}),
    Family("gemma2", {**_NARROW, "sliding_window": 4}, fixed=_NO_CACHE),
    Family("qwen3", _NARROW, fixed=_NO_CACHE),
    Family("phi3", _GROUPED, fixed=_NO_CACHE),
    Family("gpt_neox", _TEXT, fixed=_NO_CACHE),
    Family("opt", {**_TEXT, "ffn_dim": 48, "word_embed_proj_dim": 32}, fixed=_NO_CACHE),
    Family(
        "bloom", {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4}, fixed=_NO_CACHE
    ),
    Family("falcon", _TEXT, fixed=_NO_CACHE),
    Family(
        "mixtral", {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}, fixed=_NO_CACHE
    ),
    Family(
        "swin",
        {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 16,
            "depths": (2, 2),
            "num_heads": (2, 4),
            "window_size": 4,
        },
        picture,
    ),
    Family("convnext", {"hidden_sizes": (8, 16), "depths": (1, 2), "num_stages": 2}, picture),
    Family("dinov2", _IMAGE, picture),
    Family(
        "segformer",
        {
            "hidden_sizes": (16, 32),
            "depths": (1, 1),
            "num_encoder_blocks": 2,
            "num_attention_heads": (1, 2),
            "sr_ratios": (2, 1),
            "patch_sizes": (7, 3),
            "strides": (4, 2),
            "mlp_ratios": (2, 2),
        },
        picture,
    ),
    Family(
        "clip",
        {"text_config": _TEXT, "vision_config": _IMAGE, "projection_dim": 16},
        picture_and_text,
    ),
    Family("hubert", _SOUND, sound),
)


class Network(torch.nn.Module):  # type: ignore[misc]  # the types of PyTorch are not read
    """A network of a family, called with tensors alone; it gives the first of its results."""

    def __init__(self, family: Family, names: tuple[str, ...]) -> None:
        super().__init__()
        transformers = import_module("transformers")
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(family.name, **family.config)
        self.network = transformers.AutoModel.from_config(config).eval()
        self.names, self.fixed = names, dict(family.fixed)

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        given = dict(zip(self.names, tensors, strict=True))
        return self.network(**given, **self.fixed)[0]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a family at one door."""

    family: str
    door: str
    outcome: str
    seconds: float
    error: float = 0.0
    in_pytorch: tuple[str, ...] = ()
    reason: str = ""


def distance(got: torch.Tensor, want: torch.Tensor) -> float:
    """The greatest difference, over the greatest magnitude; infinite for another shape or type."""
    if got.shape != want.shape or got.dtype != want.dtype or not got.isfinite().all():
        return float("inf")
    return float((got - want).abs().max() / want.abs().max())


def by_compile(network: Network, inputs: list[tuple[torch.Tensor, ...]]) -> list[torch.Tensor]:
    """The results of the one door."""
    torch._dynamo.reset()
    call = torch.compile(network, backend="tensorwright")
    return [call(*each) for each in inputs]


class NoFileError(Exception):
    """PyTorch cannot export a network."""


def by_file(network: Network, inputs: list[tuple[torch.Tensor, ...]]) -> list[torch.Tensor]:
    """The results of the other one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.pt2"
        try:
            torch.export.save(torch.export.export(network, inputs[0]), path)
        except Exception as error:
            raise NoFileError(f"{type(error).__name__}: {error}") from error
        executable = tensorwright.compile(path)
    return [torch.from_numpy(executable(*(t.numpy() for t in each))) for each in inputs]


DOORS = {"compile": by_compile, "pt2": by_file}


def run(family: Family, door: str) -> Row:
    """One family at one door."""
    began = time.perf_counter()
    first, second = family.inputs(), family.inputs()
    network = Network(family, tuple(first))
    inputs = [tuple(each.values()) for each in (first, second)]
    wants = [network(*each) for each in inputs]
    compile_backend.reset()
    outcome, reason, error = "right", "", 0.0
    try:
        results = DOORS[door](network, inputs)
        error = max(map(distance, results, wants))
        if error > TOLERANCE:
            outcome, reason = "wrong", f"differs by {error:.1e}"
    except UnsupportedError as refusal:
        outcome, reason = "refused", str(refusal)
    except NoFileError as fault:
        outcome, reason = "no file", str(fault)
    except Exception as fault:  # noqa: BLE001 - any other end is a row of the table
        outcome, reason = "wrong", f"{type(fault).__name__}: {fault}"
    in_pytorch = tuple(sorted(compile_backend.fallbacks())) if door == "compile" else ()
    seconds, reason = round(time.perf_counter() - began, 1), reason.partition("\n")[0]
    return Row(family.name, door, outcome, seconds, error, in_pytorch, reason)


def told(row: Row) -> str:
    """An outcome as the table has it."""
    beside = f" ({len(row.in_pytorch)})" if row.in_pytorch else ""
    return row.outcome + beside


def printed(pair: Sequence[Row]) -> None:
    """A family's line, and the reasons below it."""
    one, other = map(told, pair)
    error, seconds = max(row.error for row in pair), sum(row.seconds for row in pair)
    print(f"{pair[0].family:<14}{one:<14}{other:<14}{error:>16.1e}{seconds:>9.1f}")
    for row in pair:
        if row.reason:
            print(f"    {row.door}: {row.reason[:300]}")
        if row.in_pytorch:
            print(f"    PyTorch ran {', '.join(row.in_pytorch)}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("family", nargs="*", help="the families to run; all by default")
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    options = parser.parse_args()
    if find_spec("transformers") is None:
        print(_MISSING, file=sys.stderr)
        return 2
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    print(f"{'family':<14}{'compile':<14}{'pt2':<14}{'greatest error':>16}{'seconds':>9}")
    for family in FAMILIES:
        if options.family and family.name not in options.family:
            continue
        with torch.no_grad(), override(default_schedule="rule"):  # which chooses faster
            pair = [run(family, door) for door in DOORS]
        rows += pair
        printed(pair)
    for door in DOORS:
        counts = Counter(row.outcome for row in rows if row.door == door)
        print(door, ", ".join(f"{counts[each]} {each}" for each in OUTCOMES if counts[each]))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return int(any(row.outcome == "wrong" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
