"""What a folder says about its language model: files, ends of a text, and how tokens are chosen.

    defaults = generation_defaults("folder")        a folder of ONNX Runtime GenAI
    executable = tensorwright.compile(defaults.model)

`genai_config.json` names the model, its tokens and its search.  Beside other models,
`generation_config.json` or `config.json` names the ends.

Source:  onnxruntime.ai/docs/genai/reference/config.html.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tensorwright import base
from tensorwright.runtime.sampling import GREEDY, Sampling

_GENAI = "genai_config.json"
_ABOUT_ENDS = ("generation_config.json", _GENAI, "config.json")
_PARTS = ("encoder", "vision", "speech", "embedding")
_UNSAID: dict[str, Any] = {"temperature": 1.0, "top_k": 50}
_NUMBERS = (*_UNSAID, "top_p", "repetition_penalty")


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """What is said about generating with a model.

    model      its file                   tokenizer   a file that says how text becomes ids
    sampling   how a token is chosen      stop        tokens that end a text
    begin      the token before a text, where one is named
    beams      above 1, of a search        length_penalty   as of `generate_beams`
    longest    the most tokens of prompt and continuation together; 0 if it is not said
    state      the output that becomes each input, for `session`; None if names say it
    """

    model: Path
    tokenizer: Path
    sampling: Sampling = GREEDY
    stop: tuple[int, ...] = ()
    begin: int | None = None
    longest: int = 0
    state: Mapping[str, str] | None = None
    beams: int = 1
    length_penalty: float = 1.0


def generation_defaults(path: str | os.PathLike[str]) -> GenerationDefaults:
    """Read what is said about a model: `path` is a folder with genai_config.json, or a model.

    Of a model that is named itself, only the ends of a text count, from a file beside it.
    Raises:  UsageError for a folder without that file, and for search that is not done here;
             InputError for one that cannot be read; UnsupportedError for a model of several parts.
    """
    model = Path(path)
    tokenizer = (model if model.is_dir() else model.parent) / "tokenizer.json"
    if not model.is_dir():
        return GenerationDefaults(model, tokenizer, stop=_ends_beside(model))
    about, config = _read(model / _GENAI), model / _GENAI
    described, search = _part(about, "model", config), _part(about, "search", config)
    decoder = _part(described, "decoder", config)
    parts = [each for each in _PARTS if each in described] + ["pipeline"] * ("pipeline" in decoder)
    if parts:
        raise base.UnsupportedError(
            stage="generate",
            where=f"file {config}",
            reason=f"its model has parts beside a decoder: {', '.join(parts)}",
            remedy="compile the parts one by one, and call them with sessions",
        )
    name = decoder.get("filename")
    if not isinstance(name, str) or not (model / name).is_file():
        raise _wrong(config, f"model.decoder.filename is {name!r}: there is not that file")
    if search.get("num_return_sequences", 1) != 1:
        raise base.UsageError(
            stage="generate",
            where=f"file {config}",
            reason="it asks for several sequences for a prompt, and one is generated",
            remedy="set search.num_return_sequences to 1",
        )
    try:
        chosen = {key: search[key] for key in _NUMBERS if search.get(key)}
        is_drawn = search.get("do_sample", False)
        sampling = Sampling(**(_UNSAID | chosen if is_drawn else chosen | {"temperature": 0.0}))
        stop, begin = _ids(described.get("eos_token_id")), _ids(described.get("bos_token_id"))
        beams, penalty = int(search.get("num_beams", 1)), float(search.get("length_penalty", 1.0))
        longest = int(search.get("max_length", 0) or described.get("context_length", 0))
    except (TypeError, ValueError, base.UsageError) as error:
        raise _wrong(config, f"a number in it is none: {error}") from None
    return GenerationDefaults(
        model / name,
        tokenizer,
        sampling,
        stop,
        begin[0] if begin else None,
        longest,
        _pairs(decoder),
        beams,
        penalty,
    )


def _ends_beside(model: Path) -> tuple[int, ...]:
    for name in _ABOUT_ENDS:
        with suppress(OSError, ValueError, AttributeError, TypeError):
            about = json.loads((model.parent / name).read_text())
            ends = _ids(about.get("model", about).get("eos_token_id"))
            if ends:
                return ends
    return ()


def _ids(said: Any) -> tuple[int, ...]:
    listed = said if isinstance(said, list) else [said]
    return tuple(int(each) for each in listed if each is not None)


def _read(path: Path) -> dict[str, Any]:
    """The object in a file of JSON."""
    try:
        about = json.loads(path.read_text())
    except OSError:
        raise base.UsageError(
            stage="generate",
            where=f"folder {path.parent}",
            reason=f"it has no {path.name}",
            remedy="give a model's file, or a folder of ONNX Runtime GenAI",
        ) from None
    except ValueError as error:
        raise _wrong(path, f"it is not JSON: {error}") from None
    if not isinstance(about, dict):
        raise _wrong(path, "it does not hold an object")
    return about


def _part(about: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    part = about.get(name, {})
    if not isinstance(part, dict):
        raise _wrong(path, f"{name} in it is not an object")
    return part


def _pairs(decoder: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Patterns of the names of past and present, as past.%d.key."""
    inputs, outputs = (decoder.get(name) or {} for name in ("inputs", "outputs"))
    pairs = {}
    for part in ("key", "value"):
        past, present = inputs.get(f"past_{part}_names"), outputs.get(f"present_{part}_names")
        if past and present:
            pairs[str(past)] = str(present)
    return MappingProxyType(pairs) if pairs else None


def _wrong(path: Path, reason: str) -> base.InputError:
    remedy = "write it again, as the model builder of onnxruntime-genai does"
    return base.InputError(stage="generate", where=f"file {path}", reason=reason, remedy=remedy)
