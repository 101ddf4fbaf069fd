"""`tensorwright generate`: ids and text, sessions in files, what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result
from tests.decoders import PROMPT, VOCABULARY, decoder, greedy
from tests.unit.graph.gguf.test_decoder import file_of

import tensorwright
from tensorwright.compiling import compile as compile_model

Invoke = Callable[..., Result]
_FIRST = ord("a")


class Letters:
    """A tokenizer whose tokens are letters; token 0 is half of a character."""

    def encode(self, text: str) -> SimpleNamespace:
        """The ids of letters."""
        return SimpleNamespace(ids=[ord(letter) - _FIRST for letter in text])

    def decode(self, ids: Sequence[int]) -> str:
        """The letters; a last half is unknown, and vanishes once another token follows."""
        letters = "".join(chr(_FIRST + each) if each else "" for each in ids)
        return letters + ("\ufffd" if ids and not ids[-1] else "")


@pytest.fixture
def model(tmp_path: Path, home: Path) -> Path:
    """The decoder, compiled, with a tokenizer beside it."""
    path = tmp_path / "decoder.tw"
    compile_model(decoder()).save(path)
    (tmp_path / "tokenizer.json").write_text("{}")
    return path


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package tokenizers, which reads each file as `Letters`."""
    package = SimpleNamespace(Tokenizer=SimpleNamespace(from_file=lambda _: Letters()))
    monkeypatch.setitem(sys.modules, "tokenizers", package)


def ids_text(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def text_of(ids: Sequence[int]) -> str:
    return Letters().decode(ids)


def test_ids_continue_ids(invoke: Invoke, model: Path) -> None:
    result = invoke("generate", model, ids_text(PROMPT), "--ids", "--tokens", 9)
    assert result.exit_code == 0, result.output
    assert result.stdout == ids_text(greedy(PROMPT, 9)) + "\n"
    assert "9 tokens: the first after" in result.stderr


def test_a_session_in_a_file_continues(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    session, more = tmp_path / "state.zip", [2, 2]
    command = ("generate", model, "--ids", "--session", session, "--tokens", 4)
    first = greedy(PROMPT, 4)
    assert invoke(*command, ids_text(PROMPT)).stdout == ids_text(first) + "\n"
    second = greedy([*PROMPT, *first, *more], 4)
    assert invoke(*command, ids_text(more)).stdout == ids_text(second) + "\n"


def test_prompts_are_continued_together(invoke: Invoke, model: Path) -> None:
    prompts = [PROMPT, [7], [2, 2, 20]]
    result = invoke("generate", model, *map(ids_text, prompts), "--ids", "--tokens", 9)
    assert result.exit_code == 0, result.output
    assert result.stdout == "".join(ids_text(greedy(ids, 9)) + "\n" for ids in prompts)
    assert "27 tokens in " in result.stderr


@pytest.mark.usefixtures("letters")
def test_beams_continue_text(invoke: Invoke, model: Path) -> None:
    command = ("generate", model, text_of(PROMPT), "--beams", 3, "--length-penalty", 0.5)
    result = invoke(*command, "--tokens", 6)
    assert result.exit_code == 0, result.output
    best = tensorwright.generate_beams(
        tensorwright.load(model), PROMPT, 3, tokens=6, length_penalty=0.5
    )
    assert result.stdout == text_of(best[0].tokens) + "\n"


def test_drafts_change_nothing(invoke: Invoke, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "decoder.tw"
    compile_model(decoder(of_all=True)).save(path)
    command = ("generate", path, ids_text(4 * PROMPT), "--ids", "--tokens", 20, "--drafts", 5)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert result.stdout == ids_text(greedy(4 * PROMPT, 20)) + "\n"


@pytest.mark.usefixtures("letters")
def test_text_continues_text(invoke: Invoke, model: Path) -> None:
    result = invoke("generate", model, text_of(PROMPT), "--tokens", 12)
    assert result.exit_code == 0, result.output
    assert result.stdout == text_of(greedy(PROMPT, 12)) + "\n"


@pytest.mark.usefixtures("letters")
def test_a_text_ends_it(invoke: Invoke, model: Path) -> None:
    whole = text_of(greedy(PROMPT, 20))
    stop = whole[3:5]
    result = invoke("generate", model, text_of(PROMPT), "--tokens", 20, "--stop", stop)
    assert result.stdout == whole[: whole.index(stop)] + "\n"


def test_the_end_is_named_beside_the_model(invoke: Invoke, model: Path) -> None:
    right = greedy(PROMPT, 20)
    end = right[5]
    about = {"model": {"eos_token_id": [end, VOCABULARY]}}
    (model.parent / "genai_config.json").write_text(json.dumps(about))
    result = invoke("generate", model, ids_text(PROMPT), "--ids", "--tokens", 20)
    assert result.stdout == ids_text(right[: right.index(end) + 1]) + "\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("abc", "--ids"), "they are not numbers with commas between them"),
        (("1,99", "--ids"), "99 is not in the vocabulary"),
        (("1", "--ids", "--drafts", "2"), "has the scores of the last id alone"),
        (("1", "2", "--ids", "--session", "x"), "several continuations have no one session"),
        (("1", "--ids", "--beams", "2", "--top-k", "9"), "beams draw nothing"),
        (("1", "--ids", "--length-penalty", "2"), "it is for --beams"),
        (("1", "--ids", "--temperature", "-1"), "-1.0 is not in the range"),
        (("abc", "--tokenizer", "lacks.json"), "there is no such tokenizer"),
    ],
)
@pytest.mark.usefixtures("letters")
def test_refusals(invoke: Invoke, model: Path, arguments: Sequence[str], reason: str) -> None:
    result = invoke("generate", model, *arguments)
    assert result.exit_code != 0
    assert reason in result.stderr


def test_a_gguf_file_has_its_own_vocabulary(invoke: Invoke, tmp_path: Path, home: Path) -> None:
    path, saved = file_of(tmp_path), tmp_path / "model.tw"
    executable = tensorwright.compile(path)
    executable.save(saved)
    tokenizer = tensorwright.open_tokenizer(path)
    ids = tokenizer.encode("hello w").ids
    right = tokenizer.decode(list(tensorwright.generate(executable, ids, tokens=6, stop=(256,))))
    for program in ((path,), (saved, "--tokenizer", path)):
        result = invoke("generate", *program, "hello w", "--tokens", 6)
        assert result.exit_code == 0, result.output
        assert result.stdout == right + "\n"


def test_text_without_the_package_is_refused(
    invoke: Invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    result = invoke("generate", model, "abc")
    assert "pip install 'tensorwright[text]'" in result.stderr
