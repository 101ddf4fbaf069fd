"""Build the site: the pages of the repository, the reference, a search that works offline.

    python docs/site/build.py OUT

OUT/html/index.html is the first page. Every page is there as Markdown, too, beside its HTML, and
`llms.txt` lists them with their first sentences. The pages keep their folders, so the links that
lead from page to page in the repository lead there on the site as well.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from reference import PAGES, page
from sphinx.cmd.build import build_main

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
CHAPTERS = (
    ("Tutorial", "docs/tutorial/*.md"),
    ("Concepts", "docs/concepts/*.md"),
    ("If you come from elsewhere", "docs/elsewhere/*.md"),
    ("Guides", "docs/*.md"),
    ("Recipes", "docs/howto/*.md"),
    ("Reference", "reference/*.md"),
    ("What was measured", "benchmarks/results/*.md"),
    ("Changes", "CHANGELOG.md"),
)


def main(out: Path) -> int:
    """Write everything below `out`; the exit code of Sphinx, for which a warning is an error."""
    source, html = out / "source", out / "html"
    shutil.rmtree(out, ignore_errors=True)
    copy_pages(source)
    (source / "reference").mkdir()
    for name in PAGES:
        (source / "reference" / f"{name}.md").write_text(page(name))
    write_first_page(source)
    settings = str(ROOT / "docs" / "site")
    words = ["-q", "-W", "--keep-going", "-c", settings, str(source), str(html)]
    status: int = build_main(words)
    if status == 0:
        copy_markdown(source, html)
    return status


def copy_pages(source: Path) -> None:
    """Copy the pages, and every file of the repository to which one of them leads."""
    for each in pages():
        copy(each, source)
        for link in LINK.findall(each.read_text()):
            linked = (each.parent / link).resolve()
            if linked.is_file() and linked.is_relative_to(ROOT):
                copy(linked, source)


def pages() -> Iterator[Path]:
    """The pages that people read, by their paths."""
    yield from (ROOT / "README.md", ROOT / "CHANGELOG.md")
    yield from sorted((ROOT / "docs").rglob("*.md"))


def copy(path: Path, source: Path) -> None:
    """Copy a file to its folder. The README is the first page, and so is called `index`."""
    if path == ROOT / "README.md":
        return
    target = source / path.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".md":
        target.write_text(re.sub(r"\]\(((?:\.\./)+)README\.md", r"](\1index.md", path.read_text()))
    else:
        shutil.copyfile(path, target)


def write_first_page(source: Path) -> None:
    """The README, followed by the table of contents."""
    parts = [(ROOT / "README.md").read_text()]
    for caption, pattern in CHAPTERS:
        names = sorted(path.relative_to(source).as_posix() for path in source.glob(pattern))
        listed = "\n".join(names)
        options = f":caption: {caption}\n:maxdepth: 1\n:hidden:"
        parts.append(f"```{{toctree}}\n{options}\n\n{listed}\n```\n")
    (source / "index.md").write_text("\n".join(parts))


def copy_markdown(source: Path, html: Path) -> None:
    """Each page as Markdown beside its HTML, and the list of them for language models."""
    lines = ["# tensorwright", "", "> A tensor compiler that learns, in Python.", ""]
    for path in sorted(source.rglob("*.md")):
        name = path.relative_to(source)
        shutil.copyfile(path, html / name)
        lines.append(f"- [{title_of(path)}]({name.as_posix()}): {first_sentence(path)}")
    (html / "llms.txt").write_text("\n".join(lines) + "\n")


def title_of(path: Path) -> str:
    """The first line of a page."""
    return path.read_text().partition("\n")[0].lstrip("# ")


def first_sentence(path: Path) -> str:
    """The first sentence of a page that is plain text."""
    for part in path.read_text().split("\n\n")[1:]:
        if part[:1].isalpha():
            sentence = re.split(r"(?<=[.:])\s", " ".join(part.split()), maxsplit=1)[0]
            return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    return title_of(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
