"""Every `python` block of the README and of the pages runs, in the order of the page."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROOMS = [
    ROOT / name for name in ("src", "lab", "runtime", "tests", "examples", "benchmarks", "docs")
]
EVERYTHING = [str(path) for room in ROOMS for path in (room, *room.glob("**/*"))]
PATH = re.compile(r"`([\w./]+(?:\.py|/))`")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]+)")


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One namespace for a page: a block may use what an earlier one defined."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__page__"}
    for block in BLOCK.finditer(text):
        padding = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(padding + block[1], os.fspath(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^ {4}.*$", "", page.read_text(), flags=re.MULTILINE)  # code has brackets, too
    prose = re.sub(r"`[^`\n]*`", "", prose)
    broken = [link for link in LINK.findall(prose) if not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_files_that_are_named_exist(page: Path) -> None:
    """A page may name a file or a folder by the end of its path."""
    named = [name.rstrip("/") for name in PATH.findall(page.read_text()) if "NAME" not in name]
    missing = [name for name in named if not any(each.endswith(f"/{name}") for each in EVERYTHING)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_is_closed(page: Path) -> None:
    assert len(re.findall(r"^```", page.read_text(), re.MULTILINE)) % 2 == 0


def test_the_readme_says_early_how_to_try_it() -> None:
    opening = (ROOT / "README.md").read_text()[:2_000]
    assert "make demo" in opening
    assert "make test" in opening
