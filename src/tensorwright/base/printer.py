"""The document printer behind every pseudo-code listing: graphs, schedules, loop nests, reports.

page = Printer()
with page.block("for i in 0..128:", note="@parallel"):
    page.line("C[i] = 0")
str(page)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

INDENT = "  "
HERE = "<- here"


class Printer:
    """Collect indented lines; mutable, used inside one function and then turned into a str.

    A note is text to the right of a line (`where i = i_o*32 + i_i`, `<- here`). The notes of
    neighbouring lines start in one column.
    """

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []
        self._depth = 0

    def line(self, text: str = "", note: str = "") -> None:
        """Add one line, or several where the text has line breaks; the note goes on the first."""
        for row in text.split("\n"):
            self._lines.append((INDENT * self._depth + row if row else "", note))
            note = ""

    def lines(self, texts: Iterable[str]) -> None:
        """Add a line for each text."""
        for text in texts:
            self.line(text)

    @contextmanager
    def indent(self) -> Iterator[None]:
        """Indent the lines added inside by one step."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextmanager
    def block(self, header: str, note: str = "") -> Iterator[None]:
        """Add a header line and indent what follows."""
        self.line(header, note)
        with self.indent():
            yield

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add rows of cells in left-aligned columns; rows may have different lengths."""
        count = max((len(row) for row in rows), default=0)
        widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(count)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            self.line("  ".join(cells).rstrip())

    def __str__(self) -> str:
        texts: list[str] = []
        start = 0
        while start < len(self._lines):
            stop = start + 1
            while stop < len(self._lines) and bool(self._lines[stop][1]) == bool(
                self._lines[start][1]
            ):
                stop += 1
            texts += _render(self._lines[start:stop])
            start = stop
        return "\n".join(texts)


def _render(run: Sequence[tuple[str, str]]) -> list[str]:
    """The lines of one run, which all have a note or all have none."""
    column = max(len(text) for text, _ in run) + 4
    return [text.ljust(column) + note if note else text.rstrip() for text, note in run]
