"""`tensorwright generate`: continue a text, or ids, with a language model."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from tensorwright import base
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.output import check_writable
from tensorwright.runtime import (
    GREEDY,
    Executable,
    GenerationDefaults,
    Sampling,
    generate,
    generate_batch,
    generate_beams,
    generation_defaults,
    stream_text,
)

_OF_DRAWS = tuple(field.name for field in fields(Sampling) if field.name != "seed")
_MODELS = "tensorwright.cli.arguments.models"
_VOCABULARIES = "tensorwright.graph.imports.gguf"  # by name: a compiled program needs no importer


@dataclass(frozen=True, kw_only=True)
class Generating(options.Compilation):
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
    block: int = base.option(
        0, "The most ids of the prompt that a call reads; by default as many as it takes.", least=1
    )
    drafts: int = base.option(
        0,
        "Where the last tokens were there before, guess that up to so many follow as then, and "
        "check them in one call: faster if text repeats, and the same tokens.",
        least=0,
    )
    beams: int = base.option(
        1, "Search with so many beams for the likeliest continuation; it is printed whole.", least=1
    )
    length_penalty: float = base.option(
        1.0,
        "With --beams: the power of their numbers of tokens by which continuations are compared; "
        "above 0, longer ones are better.",
        kind=float,
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
    state: tuple[str, ...] = base.option(
        (),
        "An input that holds the cache, and the output that it becomes, where their names do not "
        "say it: past.0=present.0, or past.%d=present.%d for all layers. May be repeated.",
        metavar="INPUT=OUTPUT",
    )
    sampling: Sampling = GREEDY

    @property
    def draws(self) -> Sampling:
        """How tokens are chosen, with the seed."""
        return replace(self.sampling, seed=self.seed)

    @property
    def limits(self) -> dict[str, Any]:
        """The numbers of tokens that all ways of generating take."""
        return {"tokens": self.tokens, "block": self.block}


@click.command()
@click.argument("program", metavar="EXECUTABLE|MODEL|FOLDER")
@click.argument("prompts", metavar="TEXT|IDS...", nargs=-1, required=True)
@partial(options.compile_options, record=Generating)
def command(program: str, prompts: tuple[str, ...], how: Generating) -> None:
    """Continue texts, or ids, with a language model.

    The decoder has an input of ids, a cache, and an output of logits. Its text is printed as it
    grows; --ids needs no tokenizer. Text needs the package tokenizers. A GGUF file has its own
    vocabulary. Several prompts are continued together, and printed when all are.

    Of a folder with genai_config.json, that file says which model is in it, how tokens are chosen
    and what ends a text; options come first.

    Example: tensorwright generate decoder.onnx "Once upon a time" --tokens 64
             tensorwright generate decoder.tw 5,17,99 --ids
    """
    defaults = generation_defaults(program)
    model = str(defaults.model) if Path(program).is_dir() else program
    if options.kind_of(model) is options.ProgramKind.MODEL:
        importlib.import_module(_MODELS).check_model(model)
    check_writable(how.session, model, how.tokenizer)
    vocabulary = how.tokenizer or _vocabulary_of(defaults)
    tokenizer = None
    if not how.ids:
        tokenizer = importlib.import_module(_VOCABULARIES).open_tokenizer(vocabulary)
    rows = [_ids_of(each) if tokenizer is None else tokenizer.encode(each).ids for each in prompts]
    if defaults.begin is not None:
        rows = [ids or [defaults.begin] for ids in rows]
    how = _completed(how, defaults, max(map(len, rows)))
    stop = _ids_of(",".join(how.stop)) if tokenizer is None else ()
    ends = {*(_ends_of(vocabulary) or defaults.stop), *stop}
    pairs = dict(map(_pair_of, how.state)) or defaults.state
    is_whole = how.beams > 1 or len(rows) > 1
    if is_whole:
        options.refuse_given(
            ("session", "drafts"), because="several continuations have no one session"
        )
    if how.beams > 1:
        options.refuse_given(_OF_DRAWS, because="beams draw nothing")
    else:
        options.refuse_given(("length_penalty",), because="it is for --beams")
    executable = options.open_program(model, how, None, draws=False)
    if is_whole:
        _print_whole(executable, rows, how, tuple(ends), tokenizer, pairs)
        return
    (ids,), session = rows, executable.session(pairs)
    if how.session is not None and how.session.exists():
        session.load(how.session)
    start = time.perf_counter()
    given = generate(session, ids, how.draws, stop=tuple(ends), drafts=how.drafts, **how.limits)
    made: list[int] = []
    first_s = 0.0

    def kept() -> Iterator[int]:
        for token in given:
            made.append(token)
            yield token

    try:
        shown = _ids_shown(kept())
        for part in shown if tokenizer is None else stream_text(kept(), tokenizer, how.stop):
            first_s = first_s or time.perf_counter() - start
            sys.stdout.write(part)
            sys.stdout.flush()
    finally:
        sys.stdout.write("\n")
        if how.session is not None:
            try:
                if made:  # the last token is not read yet, and the next prompt follows it
                    next(generate(session, made[-1:]))
            finally:
                session.save(how.session)
    others_s = time.perf_counter() - start - first_s
    count = len(made)
    rate = f", then {(count - 1) / others_s:.0f} a second" if count > 1 else ""
    click.echo(f"{count} tokens: the first after {first_s:.2f} s{rate}", err=True)


def _print_whole(
    executable: Executable,
    prompts: Sequence[Sequence[int]],
    how: Generating,
    ends: tuple[int, ...],
    tokenizer: Any,
    pairs: Mapping[str, str] | None,
) -> None:
    """Print what follows each prompt when all of it is there."""
    start = time.perf_counter()
    if how.beams > 1:
        session = executable.session(pairs)
        search = partial(generate_beams, session, length_penalty=how.length_penalty, stop=ends)
        rows = [list(search(ids, how.beams, **how.limits)[0].tokens) for ids in prompts]
    else:
        told: Any = {"stop": ends, "state": pairs, **how.limits}
        columns = generate_batch(executable, prompts, how.draws, **told)
        rows = [[token for token in row if token is not None] for row in zip(*columns, strict=True)]
    for row in rows:
        shown = _ids_shown(row) if tokenizer is None else stream_text(row, tokenizer, how.stop)
        click.echo("".join(shown))
    count, seconds = sum(map(len, rows)), time.perf_counter() - start
    click.echo(f"{count} tokens in {seconds:.2f} s: {count / seconds:.0f} a second", err=True)


def _completed(how: Generating, defaults: GenerationDefaults, longest: int) -> Generating:
    """The options, where none is given those of the model; `longest` is the longest prompt."""
    given = options.given_options()
    chosen = {name: getattr(how.sampling, name) for name in _OF_DRAWS if name in given}
    said: dict[str, Any] = {"beams": defaults.beams, "length_penalty": defaults.length_penalty}
    if defaults.longest:
        said["tokens"] = max(1, min(how.tokens, defaults.longest - longest))
    said = {name: value for name, value in said.items() if name not in given}
    return replace(how, sampling=replace(defaults.sampling, **chosen), **said)


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


def _ids_shown(tokens: Iterable[int]) -> Iterator[str]:
    for number, token in enumerate(tokens):
        yield f",{token}" if number else str(token)


def _pair_of(text: str) -> tuple[str, str]:
    """Two names of a text such as "past.0=present.0".  Raises: UsageError."""
    past, sign, present = text.partition("=")
    if not (past and sign and present):
        raise base.UsageError(
            stage="cli",
            where=f"option --state {text}",
            reason="it names no input and output",
            remedy="give an input and the output that it becomes: --state past.0=present.0",
        )
    return past, present


def _vocabulary_of(defaults: GenerationDefaults) -> Path:
    """The file that says how text becomes ids, if the user names none."""
    is_gguf = base.kind_of_file(defaults.model) is base.GGUF
    return defaults.model if is_gguf else defaults.tokenizer


def _ends_of(vocabulary: Path) -> tuple[int, ...]:
    """The tokens that end a text, as a GGUF file says."""
    if base.kind_of_file(vocabulary) is not base.GGUF:
        return ()
    said: tuple[int, ...] = importlib.import_module(_VOCABULARIES).ends_of(vocabulary)
    return said
