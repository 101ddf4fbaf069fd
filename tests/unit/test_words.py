"""The names and turns that the glossary forbids: docs/glossary.md, its last section, is the list.

Checked are the pages, and of the code the names that it binds, its docstrings, comments and
messages. Code in pages and between backticks is not prose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tensorwright.base import without_collection

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = [ROOT / "src" / "tensorwright", ROOT / "lab" / "src", ROOT / "runtime"]


@dataclass(frozen=True, slots=True)
class Turn:
    """Words that are not written, and what may look like them."""

    text: str
    pattern: re.Pattern[str]
    allowed: re.Pattern[str] | None

    def occurs_in(self, sentence: str) -> bool:
        """Whether a sentence has it outside of what is allowed."""
        allowed = [m.span() for m in self.allowed.finditer(sentence)] if self.allowed else []
        return any(
            not any(start <= match.start() < end for start, end in allowed)
            for match in self.pattern.finditer(sentence)
        )


def tables_of(glossary: str) -> tuple[list[str], list[Turn]]:
    """The forbidden names and turns of the glossary's last section."""
    section = glossary.rpartition("\n## ")[2]
    first, second = section.split("|---|---|---|\n")
    names = [code for row in first.splitlines() if row.startswith("| `") for code in _codes(row, 1)]
    turns = []
    for row in second.splitlines():
        allowed = "|".join(map(_pattern, _codes(row, 3)))
        for text in _codes(row, 1):
            either = re.compile(allowed, re.IGNORECASE) if allowed else None
            flags = 0 if text[0].isupper() else re.IGNORECASE
            turns.append(Turn(text, re.compile(_pattern(text), flags), either))
    return names, turns


def _codes(row: str, column: int) -> list[str]:
    return re.findall(r"`([^`]*)`", row.split("|")[column])


def _pattern(turn: str) -> str:
    """A turn as a regular expression: `...` is words of one sentence, `X` is one word."""
    words = re.escape(turn).replace(r"\ \.\.\.\ ", r" [^.:;]* ")
    words = re.sub(r"\bX\b", r"[\\w-]+", words)
    start = r"(?:^|(?<=[.:;] ))" if turn[0].isupper() else r"\b"
    return start + words + (r"\b" if turn[-1].isalpha() else "")


@cache
def forbidden() -> tuple[list[str], list[Turn]]:
    """What `tables_of` reads."""
    return tables_of((ROOT / "docs" / "glossary.md").read_text())


def bound_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """The names that a module gives to something, without leading underscores: (line, name)."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name.lstrip("_")
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name.lstrip("_")


def prose_of_module(text: str, nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Docstrings, messages and comments: (line, text)."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for number, line in enumerate(text.splitlines(), 1):
        _, mark, comment = line.partition("# ")
        if mark:
            yield number, comment


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs and rows without code: (line, text)."""
    text = re.sub(r"^```.*?^```$", _blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    for part in re.finditer(r"(?:^.*\S.*\n?)+", text, re.MULTILINE):
        yield text.count("\n", 0, part.start()) + 1, part[0]


def _blank(block: re.Match[str]) -> str:
    return "\n" * block[0].count("\n")


@cache
def any_turn() -> re.Pattern[str]:
    return re.compile("|".join(turn.pattern.pattern for turn in forbidden()[1]), re.IGNORECASE)


def turns_in(pieces: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Forbidden turns: 'line: turn'."""
    for line, text in pieces:
        plain = " ".join(re.sub(r"`[^`]*`", "CODE", text).split())
        if any_turn().search(plain):
            yield from (f"{line}: {turn.text}" for turn in forbidden()[1] if turn.occurs_in(plain))


@cache
def folders() -> dict[str, list[Path]]:
    """The modules of each folder that has a line in the layers: 'expr', 'lab/zoo', ..."""
    parts: dict[str, list[Path]] = {}
    for room in ROOMS:
        prefix = "" if room.name == "tensorwright" else f"{room.relative_to(ROOT).parts[0]}/"
        for path in sorted(room.rglob("*.py")):
            inside = path.relative_to(room).parts[:-1]
            inside = inside[1:] if prefix == "lab/" else inside
            parts.setdefault(prefix + (inside[0] if inside else "."), []).append(path)
    return parts


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_no_forbidden_turns(page: Path) -> None:
    assert list(turns_in(prose_of_page(page.read_text()))) == []


@pytest.mark.parametrize("folder", folders())
def test_code_has_no_forbidden_names_and_turns(folder: str) -> None:
    names, turns = [], []
    for path in folders()[folder]:
        text = path.read_text()
        with without_collection():
            nodes = list(ast.walk(ast.parse(text)))
        where = path.relative_to(ROOT)
        bound = bound_names(nodes)
        names += [f"{where}:{line}: {name}" for line, name in bound if name in forbidden()[0]]
        turns += [f"{where}:{turn}" for turn in turns_in(prose_of_module(text, nodes))]
    assert not names, "\n".join(names)
    assert not turns, "\n".join(turns)


def test_what_is_allowed_is_not_refused() -> None:
    _, turns = tables_of("## A\n\n| a | b | c |\n|---|---|---|\n| `is no X` | | `there is no` |\n")
    assert turns[0].occurs_in("seven is no size")
    assert not turns[0].occurs_in("there is no size")
