"""`tensorwright generate`: ids and text, sessions in files, what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from tests.decoders import PROMPT, VOCABULARY, decoder, greedy
from tests.unit.graph.gguf.test_decoder import file_of

import tensorwright
from tensorwright.cli import generate as generate_command
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


def test_an_interrupted_text_goes_on(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was printed is read before the state is saved."""
    session, printed = tmp_path / "state.zip", greedy(PROMPT, 3)
    made = generate_command.generate

    def interrupted(*arguments: Any, **options: Any) -> Iterator[int]:
        yield from islice(made(*arguments, **options), 3)
        raise KeyboardInterrupt

    command = ("generate", model, "--ids", "--session", session, "--tokens", 4)
    with monkeypatch.context() as patch:
        patch.setattr(generate_command, "generate", interrupted)
        result = invoke(*command, ids_text(PROMPT))
    assert result.stdout.splitlines()[0] == ids_text(printed)
    result = invoke(*command, "2")
    assert result.stdout == ids_text(greedy([*PROMPT, *printed, 2], 4)) + "\n"


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


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    """A folder as the builder of ONNX Runtime GenAI writes it, with names of a cache of its own."""
    model = decoder()
    for node in model.graph.node:
        for names in (node.input, node.output):
            for at, name in enumerate(names):
                names[at] = _OWN_NAMES.get(name, name)
    for value in (*model.graph.input, *model.graph.output):
        value.name = _OWN_NAMES.get(value.name, value.name)
    path = tmp_path / "folder"
    path.mkdir()
    (path / "own.onnx").write_bytes(model.SerializeToString())
    (path / "tokenizer.json").write_text("{}")
    names = {"inputs": {"past_key_names": "kept.%d"}, "outputs": {"present_key_names": "made.%d"}}
    about = {
        "model": {
            "bos_token_id": 3,
            "eos_token_id": [],
            "decoder": {"filename": "own.onnx"} | names,
        },
        "search": {"do_sample": False, "temperature": 5.0, "max_length": 12, "num_beams": 1},
    }
    (path / "genai_config.json").write_text(json.dumps(about))
    return path


_OWN_NAMES = {"past_key_values.0.key": "kept.0", "present.0.key": "made.0"}


def changed(folder: Path, **parts: object) -> dict[str, object]:
    """The configuration with other parts, which is written."""
    path = folder / "genai_config.json"
    about: dict[str, object] = json.loads(path.read_text()) | parts
    path.write_text(json.dumps(about))
    return about


@pytest.mark.usefixtures("letters")
def test_a_folder_of_genai(invoke: Invoke, folder: Path) -> None:
    """Its search: greedy, 12 tokens in all; an end; a first token where the text has none."""
    right = greedy(PROMPT, 20)
    result = invoke("generate", folder, text_of(PROMPT))
    assert result.exit_code == 0, result.output
    assert result.stdout == text_of(right[:7]) + "\n"
    assert invoke("generate", folder, "").stdout == text_of(greedy([3], 11)) + "\n"
    longer = invoke("generate", folder, ids_text(PROMPT), "--ids", "--tokens", 9)
    assert longer.stdout == ids_text(right[:9]) + "\n"
    model: dict[str, object] = json.loads((folder / "genai_config.json").read_text())["model"]
    changed(
        folder, model=model | {"eos_token_id": right[2]}, search={"do_sample": True, "top_k": 1}
    )
    assert invoke("generate", folder, text_of(PROMPT)).stdout == text_of(right[:3]) + "\n"
    drawn = ("--temperature", 9, "--top-k", 20, "--tokens", 12, "--ids")
    lines = {
        invoke("generate", folder, ids_text(PROMPT), *drawn, "--seed", seed).stdout
        for seed in range(4)
    }
    assert len(lines) > 1
    changed(folder, search={"num_beams": 3, "max_length": 9, "length_penalty": 0.5})
    line = invoke("generate", folder, ids_text(PROMPT), "--ids").stdout
    asked = ("--beams", 3, "--length-penalty", 0.5, "--tokens", 4, "--ids")
    assert line == invoke("generate", folder, ids_text(PROMPT), *asked).stdout
    defaults = tensorwright.generation_defaults(folder)
    assert (defaults.beams, defaults.length_penalty, defaults.longest) == (3, 0.5, 9)
    changed(folder, search={"do_sample": True, "top_k": 1})
    defaults = tensorwright.generation_defaults(folder)
    assert defaults.sampling == tensorwright.Sampling(temperature=1.0, top_k=1)
    assert (defaults.stop, defaults.begin, defaults.state) == (
        (right[2],),
        3,
        {"kept.%d": "made.%d"},
    )


BAD_FOLDERS: dict[str, tuple[dict[str, object], str]] = {
    "no file": ({"model": {"decoder": {"filename": "none.onnx"}}}, "'none.onnx': there is not"),
    "no name": ({"model": {}}, "filename is None"),
    "no object": ({"model": 3}, "model in it is not an object"),
    "parts": ({"model": {"encoder": {}, "decoder": {}}}, "parts beside a decoder: encoder"),
    "sequences": ({"search": {"num_return_sequences": 4}}, "several sequences"),
    "a number": ({"search": {"do_sample": True, "top_p": 7}}, "a number in it is none"),
    "a word": ({"search": {"max_length": "long"}}, "a number in it is none"),
}


@pytest.mark.parametrize("bad", BAD_FOLDERS)
def test_folders_that_are_refused(invoke: Invoke, folder: Path, bad: str) -> None:
    parts, reason = BAD_FOLDERS[bad]
    changed(folder, **parts)
    result = invoke("generate", folder, "1", "--ids")
    assert result.exit_code != 0
    assert reason in result.stderr


def test_a_folder_without_a_configuration_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("generate", tmp_path, "1", "--ids")
    assert "it has no genai_config.json" in result.stderr
    (tmp_path / "genai_config.json").write_text("[")
    assert "it is not JSON" in invoke("generate", tmp_path, "1", "--ids").stderr
    missing = invoke("generate", tmp_path / "lacks.gguf", "a text").stderr
    assert "lacks.gguf: there is no such file" in missing


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ("kept.%d=made.%d", ""),
        ("kept.0=made.0", ""),
        ("kept.0", "it names no input and output"),
        ("kep.%d=made.%d", "it has no input kep.%d"),
        ("kept.%d=mad.%d", "it has no output mad.0"),
        ("kept.0=logits", "cannot become kept.0"),
        ("input_ids=made.0", "cannot become input_ids"),
    ],
)
def test_states_that_are_named(invoke: Invoke, folder: Path, pair: str, reason: str) -> None:
    command = ("generate", folder / "own.onnx", ids_text(PROMPT), "--ids", "--tokens", 4)
    result = invoke(*command, "--state", pair)
    assert (result.exit_code == 0) is not reason
    assert reason in result.stderr
    assert reason or result.stdout == ids_text(greedy(PROMPT, 4)) + "\n"


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
