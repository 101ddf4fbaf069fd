"""The vocabulary of a GGUF file as a tokenizer of Hugging Face's package tokenizers.

Two kinds of vocabularies are read.  One has bytes as letters, and pairs that are joined in order
(gpt2, whose `pre` says how text is cut into words before).  The other has pieces with scores, the
best pair first (llama, as SentencePiece writes it).

Source:  github.com/ggml-org/llama.cpp, src/llama-vocab.cpp; Sennrich et al., ACL 2016 (pairs).
"""

from __future__ import annotations

import importlib
import mmap
import os
from pathlib import Path
from typing import Any

from tensorwright.base import GGUF, InputError, UsageError, kind_of_file
from tensorwright.graph.imports import refusals
from tensorwright.graph.imports.gguf.reading import GgufFile, read_gguf

_KEY = "tokenizer.ggml"
_UNKNOWN, _CONTROL, _USER = 2, 3, 4
_ENDS = "eos_token_id", "eot_token_id"
_SPACE = "\u2581"  # stands for a blank in pieces
_TOKENIZER_JSON = "name a tokenizer.json (--tokenizer FILE.json), or give ids"
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DIGITS_OF = {"llama-bpe": 3, "llama3": 3, "llama-v3": 3, "qwen2": 1}
"""How many digits are a word, where words are cut by `_WORDS`."""
_SINGLE_DIGITS = {"gpt-2": False, "": False, "smollm": True}
"""Whether digits are cut apart, where words are cut as for GPT-2."""


def open_tokenizer(path: str | os.PathLike[str]) -> Any:
    """The tokenizer of the file `path`, GGUF or tokenizer.json: a `tokenizers.Tokenizer`.

    Raises:  UsageError without the package tokenizers, and for a file that is not there;
             InputError for one that holds none; ModelError, UnsupportedError for a vocabulary that
             is not read.
    """
    try:
        package = importlib.import_module("tokenizers")
    except ImportError:
        raise UsageError(
            stage="cli",
            where="prompt",
            reason="text needs the package tokenizers, which is not installed",
            remedy="pip install 'tensorwright[text]', or give ids with --ids",
        ) from None
    if not Path(path).exists():
        raise UsageError(
            stage="cli",
            where=f"file {path}",
            reason="there is no such tokenizer",
            remedy="name it with --tokenizer FILE.json, or give ids with --ids",
        )
    if kind_of_file(path) is GGUF:
        return _tokenizer(package, _read(path))
    try:
        return package.Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001  the package raises this class alone
        raise InputError(
            stage="cli",
            where=f"file {path}",
            reason=f"it holds no tokenizer ({error})",
            remedy="give a tokenizer.json of Hugging Face's tokenizers, or a GGUF file",
        ) from None


def ends_of(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """The tokens that end a text, as a GGUF file says.  Raises: as `read_gguf`."""
    facts = _read(path).metadata
    said = (facts.get(f"{_KEY}.{name}") for name in _ENDS)
    return tuple(each for each in said if isinstance(each, int))


def _read(path: str | os.PathLike[str]) -> GgufFile:
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return read_gguf(data, f"file {path}")


def _tokenizer(package: Any, file: GgufFile) -> Any:
    """Raises:  ModelError without a vocabulary; UnsupportedError for another kind of one."""
    words = file.metadata.get(f"{_KEY}.tokens", ())
    model = file.metadata.get(f"{_KEY}.model")
    if not words or not all(isinstance(word, str) for word in words):
        raise refusals.model_error(file.label, "it has no vocabulary", _TOKENIZER_JSON)
    if model == "gpt2":
        made = _of_bytes(package, file, words)
    elif model == "llama":
        made = _of_pieces(package, file, words)
    else:
        reason = f"its vocabulary of kind {model} is not read"
        raise refusals.unsupported(file.label, "", reason, _TOKENIZER_JSON)
    kinds = file.metadata.get(f"{_KEY}.token_type", ())
    for kind, is_special in ((_CONTROL, True), (_USER, False)):
        whole = [word for word, own in zip(words, kinds, strict=False) if own == kind]
        added = [package.AddedToken(word, special=is_special, normalized=False) for word in whole]
        (made.add_special_tokens if is_special else made.add_tokens)(added)
    first = file.metadata.get(f"{_KEY}.bos_token_id", -1)
    is_first_added = file.metadata.get(f"{_KEY}.add_bos_token", model == "llama")
    if is_first_added and 0 <= first < len(words):
        name = words[first]
        template = package.processors.TemplateProcessing(
            single=[name, "$A"], pair=[name, "$A", "$B"], special_tokens=[(name, first)]
        )
        made.post_processor = template
    return made


def _of_bytes(package: Any, file: GgufFile, words: tuple[str, ...]) -> Any:
    pre = file.metadata.get(f"{_KEY}.pre", "")
    cuts = package.pre_tokenizers
    if pre in _DIGITS_OF:
        pattern = package.Regex(_WORDS % _DIGITS_OF[pre])
        first = cuts.Split(pattern, "isolated")
        cut = [first, cuts.ByteLevel(add_prefix_space=False, use_regex=False)]
    elif pre in _SINGLE_DIGITS:
        first = [cuts.Digits(individual_digits=True)] if _SINGLE_DIGITS[pre] else []
        cut = [*first, cuts.ByteLevel(add_prefix_space=False)]
    else:
        reason = f"how its vocabulary cuts text into words, {pre}, is not supported"
        raise refusals.unsupported(file.label, "", reason, _TOKENIZER_JSON)
    merges = file.metadata.get(f"{_KEY}.merges", ())
    pairs = [tuple(each.split(" ", 1)) for each in merges]
    ids = {word: number for number, word in enumerate(words)}
    usable = [pair for pair in pairs if len(pair) > 1 and "".join(pair) in ids]
    model = package.models.BPE(ids, usable, ignore_merges=pre.startswith("llama"))
    made = package.Tokenizer(model)
    made.pre_tokenizer = cuts.Sequence(cut)
    made.decoder = package.decoders.ByteLevel()
    return made


def _of_pieces(package: Any, file: GgufFile, words: tuple[str, ...]) -> Any:
    """Pairs in the order of the scores of what they become."""
    scores = file.metadata.get(f"{_KEY}.scores", ())
    if len(scores) != len(words):
        raise refusals.model_error(file.label, "its pieces have no scores", _TOKENIZER_JSON)
    ids = {word: number for number, word in enumerate(words)}
    order = sorted(range(len(words)), key=lambda number: -scores[number])
    pairs = [
        (words[number][:at], words[number][at:])
        for number in order
        for at in range(1, len(words[number]))
        if words[number][:at] in ids and words[number][at:] in ids
    ]
    unknown = words[file.metadata.get(f"{_KEY}.unknown_token_id", 0)]
    model = package.models.BPE(ids, pairs, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    made = package.Tokenizer(model)
    blanks = [package.normalizers.Replace(" ", _SPACE)]
    is_led = file.metadata.get(f"{_KEY}.add_space_prefix", True)
    lead = [package.normalizers.Prepend(_SPACE)] if is_led else []
    made.normalizer = package.normalizers.Sequence([*lead, *blanks])
    parts = package.decoders
    strip = [parts.Strip(" ", 1, 0)] if is_led else []
    made.decoder = parts.Sequence(
        [parts.Replace(_SPACE, " "), parts.ByteFallback(), parts.Fuse(), *strip]
    )
    return made
