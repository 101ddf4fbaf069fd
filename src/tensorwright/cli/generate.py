"""`tensorwright generate`: continue a text, or ids, with a language model."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from tensorwright import base
from tensorwright.cli.arguments.compilation import Compilation, compile_options, open_program
from tensorwright.cli.arguments.output import check_writable
from tensorwright.runtime import GREEDY, Sampling, generate

_TOKENIZER = "tokenizer.json"
_VOCABULARIES = "tensorwright.graph.imports.gguf"  # by name: a compiled program needs no importer
_ABOUT_ENDS = ("generation_config.json", "genai_config.json", "config.json")
_UNFINISHED = "\ufffd"  # what the first bytes of a character become


@dataclass(frozen=True, kw_only=True)
class Generating(Compilation):
    """The options of `generate`; the seed is that of the draws, too."""

    tokens: int = base.option(128, "The most tokens that are generated.", least=1)
    stop: tuple[str, ...] = base.option(
        (),
        "A text after which generating ends; with --ids, a token. May be repeated. The end that "
        "the model's configuration names counts, too.",
        metavar="TEXT",
    )
    tokenizer: Path | None = base.option(
        None,
        "How text becomes ids: tokenizer.json or a GGUF file; by default the model, if it is a "
        "GGUF file, else tokenizer.json beside it.",
        metavar="FILE",
        kind=Path,
    )
    ids: bool = base.option(
        default=False, text='The prompt is ids ("1,2,3"), and so is what is printed.'
    )
    session: Path | None = base.option(
        None,
        "Continue from the state in this file, if it exists, and write the state at the end to it.",
        metavar="FILE",
        kind=Path,
    )
    sampling: Sampling = GREEDY


@click.command()
@click.argument("program", metavar="EXECUTABLE|MODEL")
@click.argument("prompt", metavar="TEXT|IDS")
@partial(compile_options, record=Generating)
def command(program: str, prompt: str, how: Generating) -> None:
    """Continue a text, or ids, with a language model.

    The decoder has an input of ids, a cache, and an output of logits. Its text is printed as it
    grows; --ids needs no tokenizer. Text needs the package tokenizers. A GGUF file has its own
    vocabulary.

    Example: tensorwright generate decoder.onnx "Once upon a time" --tokens 64
             tensorwright generate decoder.tw 5,17,99 --ids
    """
    check_writable(how.session, program, how.tokenizer)
    vocabulary = how.tokenizer or _vocabulary_of(Path(program))
    text = None if how.ids else _Text.of(vocabulary)
    ids = _ids_of(prompt) if text is None else text.ids_of(prompt)
    ends = {
        *_ends_of(Path(program), vocabulary),
        *(_ids_of(",".join(how.stop)) if text is None else ()),
    }
    session = open_program(program, how, None, draws=False).session()
    if how.session is not None and how.session.exists():
        session.load(how.session)
    start = time.perf_counter()
    sampling = replace(how.sampling, seed=how.seed)
    given = generate(session, ids, sampling, tokens=how.tokens, stop=tuple(ends))
    last, count, first_s = ids[-1:], 0, 0.0

    def made() -> Iterator[int]:
        for last[0] in given:
            yield last[0]

    try:
        shown = _ids_shown(made()) if text is None else text.shown(made(), how.stop)
        for part in shown:
            first_s = first_s or time.perf_counter() - start
            count += part.count
            sys.stdout.write(part.text)
            sys.stdout.flush()
        if how.session is not None:
            next(generate(session, last))  # reads the last token, which the next prompt follows
    finally:
        sys.stdout.write("\n")
        if how.session is not None:
            session.save(how.session)
    others_s = time.perf_counter() - start - first_s
    rate = f", then {(count - 1) / others_s:.0f} a second" if count > 1 else ""
    click.echo(f"{count} tokens: the first after {first_s:.2f} s{rate}", err=True)


@dataclass(frozen=True, slots=True)
class _Part:
    """What is printed for some tokens."""

    text: str
    count: int = 1


def _ids_of(text: str) -> list[int]:
    """The ids of a text such as "1,2,3".  Raises: UsageError."""
    try:
        return [int(each) for each in text.replace(",", " ").split()]
    except ValueError:
        raise base.UsageError(
            stage="cli",
            where=f"ids {text!r}",
            reason="they are not numbers with commas between them",
            remedy="give ids as 5,17,99; without --ids the prompt is text",
        ) from None


def _ids_shown(tokens: Iterable[int]) -> Iterator[_Part]:
    for number, token in enumerate(tokens):
        yield _Part(f",{token}" if number else str(token))


def _vocabulary_of(model: Path) -> Path:
    """The file that says how text becomes ids, if the user names none."""
    return model if base.kind_of_file(model) is base.GGUF else model.parent / _TOKENIZER


def _ends_of(model: Path, vocabulary: Path) -> tuple[int, ...]:
    """The tokens that end a text, as a GGUF file or a configuration beside the model says."""
    if base.kind_of_file(vocabulary) is base.GGUF:
        said: tuple[int, ...] = importlib.import_module(_VOCABULARIES).ends_of(vocabulary)
        return said
    for name in _ABOUT_ENDS:
        with suppress(OSError, ValueError, AttributeError):
            about = json.loads((model.parent / name).read_text())
            ends = about.get("model", about).get("eos_token_id")
            if ends is not None:
                return tuple(int(each) for each in (ends if isinstance(ends, list) else [ends]))
    return ()


@dataclass(frozen=True, slots=True)
class _Text:
    """Text as ids, and back."""

    tokenizer: Any

    @classmethod
    def of(cls, path: Path) -> _Text:
        """The tokenizer of a file.  Raises: as `open_tokenizer`."""
        return cls(importlib.import_module(_VOCABULARIES).open_tokenizer(path))

    def ids_of(self, text: str) -> list[int]:
        """The ids of a text."""
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids

    def shown(self, tokens: Iterable[int], stops: Iterable[str]) -> Iterator[_Part]:
        """The text that tokens add, up to the first of the stops.

        A text that may be the beginning of a stop, and the first bytes of a character, wait for the
        next token.
        """
        ids: list[int] = []
        done, count = "", 0
        for token in tokens:
            ids.append(token)
            count += 1
            text = self.tokenizer.decode(ids)
            ends = [at for stop in stops if (at := text.find(stop)) >= 0]
            if ends:
                yield _Part(text[len(done) : min(ends)], count)
                return
            waiting = max((_overlap(text, stop) for stop in stops), default=0)
            sure = text[: len(text) - waiting]
            if sure.endswith(_UNFINISHED) or len(sure) <= len(done):
                continue
            yield _Part(sure[len(done) :], count)
            done, count = sure, 0
        yield _Part(self.tokenizer.decode(ids)[len(done) :], count)


def _overlap(text: str, stop: str) -> int:
    """How much of the end of a text may be the beginning of a stop."""
    return next((n for n in range(len(stop) - 1, 0, -1) if text.endswith(stop[:n])), 0)
