"""Tokenizers of GGUF files: bytes as letters, pieces with scores, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.graph.gguf.test_decoder import file_of

import tensorwright
from tensorwright.base import ModelError, TensorwrightError, UnsupportedError
from tensorwright.graph.imports.gguf import ends_of, open_tokenizer

BLANK = "\u2581"
PIECES = [
    *("<unk>", "<s>", "</s>"),
    *(f"<0x{byte:02X}>" for byte in range(256)),
    *(BLANK, *"abcd", "ab", "bc", "abc", "cd", f"{BLANK}a", f"{BLANK}ab", "dd", "dda"),
]
SCORES = [0.0] * 259 + [-10.0 - (7 * number) % 13 for number in range(len(PIECES) - 259)]


def vocabulary_file(folder: Path, words: Sequence[str], model: str, **facts: Any) -> Path:
    path = folder / "vocabulary.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(words)
    if model == "llama":
        writer.add_token_scores(SCORES)
        writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (len(words) - 259))
    for key, value in facts.items():
        add = writer.add_bool if isinstance(value, bool) else writer.add_uint32
        (writer.add_string if isinstance(value, str) else add)(f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pieces")
    return open_tokenizer(vocabulary_file(folder, PIECES, "llama", bos_token_id=1))


def joined(text: str) -> list[int]:
    """SentencePiece's rule: of neighbours that make a piece, join those with the best score."""
    parts = list(BLANK + text.replace(" ", BLANK))
    while True:
        pairs = [(a + b, at) for at, (a, b) in enumerate(pairwise(parts))]
        best = [(-SCORES[PIECES.index(word)], at) for word, at in pairs if word in PIECES]
        if not best:
            break
        at = min(best)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    ids = []
    for part in parts:
        units = [part] if part in PIECES else [f"<0x{byte:02X}>" for byte in part.encode()]
        ids += [PIECES.index(unit) for unit in units]
    return ids


@given(st.text("abcd \u00e9x", min_size=1, max_size=12))
def test_pieces_are_joined_by_their_scores(pieces: Any, text: str) -> None:
    assert pieces.encode(text).ids == [1, *joined(text)]
    assert pieces.decode(pieces.encode(text).ids) == text


@given(st.text(max_size=20))
def test_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    tokenizer = bytes_of(tmp_path_factory)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


_KEPT: dict[str, Any] = {}


def bytes_of(factory: pytest.TempPathFactory) -> Any:
    if not _KEPT:
        _KEPT["bytes"] = open_tokenizer(file_of(factory.mktemp("bytes")))
    return _KEPT["bytes"]


def test_words_digits_and_the_end(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    tokenizer = open_tokenizer(path)
    letters = {chr(byte): byte for byte in range(33, 127)}
    assert tokenizer.encode("a w12<|end|>").ids == [letters["a"], 257, *map(ord, "12"), 256]
    assert ends_of(path) == (256,)
    assert tensorwright.open_tokenizer is open_tokenizer


@pytest.mark.parametrize(
    ("words", "model", "facts", "reason"),
    [
        (["a"], "bert", {}, "its vocabulary of kind bert is not read"),
        (["a"], "gpt2", {"pre": "poro"}, "cuts text into words, poro, is not supported"),
        (PIECES[:-1], "gpt2", {"pre": 3}, "cuts text into words, 3, is not supported"),
    ],
)
def test_vocabularies_that_are_refused(
    tmp_path: Path, words: list[str], model: str, facts: dict[str, Any], reason: str
) -> None:
    with pytest.raises((ModelError, UnsupportedError)) as caught:
        open_tokenizer(vocabulary_file(tmp_path, words, model, **facts))
    assert reason in caught.value.reason
    assert "tokenizer.json" in str(caught.value.remedy)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a b c")
    with pytest.raises(TensorwrightError, match="it holds no tokenizer"):
        open_tokenizer(tmp_path / "words.txt")
