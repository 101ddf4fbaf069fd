"""Draw the pictures of the pages: rows of boxes, what each is, and what leaves it.

    python docs/pictures/draw.py        writes docs/pictures/*.svg

The colours suit a light and a dark page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
WIDTH, HEIGHT, GAP, TOP = 128, 64, 26, 34
STYLE = """
  text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1a2733; }
  .how { font-size: 10.5px; fill: #48606f; }
  .out { font-size: 11.5px; fill: #0b6e99; font-style: italic; }
  .box { fill: #eef5f9; stroke: #5b8aa6; rx: 7; }
  .learned { fill: #fdf3e1; stroke: #c98a1b; }
  path { stroke: #5b8aa6; fill: none; marker-end: url(#head); }
  .back { stroke: #c98a1b; stroke-dasharray: 5 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6eef3; } .how { fill: #a9bdc9; } .out { fill: #6cc3ea; }
    .box { fill: #1d2b35; } .learned { fill: #3a2d12; }
  }
"""
MARKER = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
    'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8" style="marker-end:none"/>'
    "</marker></defs>"
)


@dataclass(frozen=True, slots=True)
class Box:
    """A step: its name, how it works, what leaves it, and whether it asks a learned model."""

    name: str
    how: str
    out: str = ""
    is_learned: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes from left to right.

    back   what comes back from the last box, and the number of the box to which it goes; "" for
           nothing
    """

    title: str
    boxes: tuple[Box, ...]
    back: str = ""
    back_how: str = ""
    back_to: int = 0

    def __str__(self) -> str:
        """The drawing as SVG."""
        width = len(self.boxes) * (WIDTH + GAP) - GAP + 20
        height = 216 if self.back else TOP + HEIGHT + 10
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" role="img" aria-label="{escape(self.title)}">'
        )
        style = f"<style>{STYLE}</style>"
        returned = self._returned(width) if self.back else ()
        return "\n".join((head, style, MARKER, *self._row(), *returned, "</svg>")) + "\n"

    def _row(self) -> Iterator[str]:
        for number, box in enumerate(self.boxes):
            left = 10 + number * (WIDTH + GAP)
            middle = left + WIDTH // 2
            kind = "box learned" if box.is_learned else "box"
            yield f'<rect class="{kind}" x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>'
            yield f'<text x="{middle}" y="{TOP + 27}" font-weight="600">{escape(box.name)}</text>'
            yield f'<text class="how" x="{middle}" y="{TOP + 46}">{escape(box.how)}</text>'
            yield f'<text class="out" x="{middle}" y="{TOP - 12}">{escape(box.out)}</text>'
            if number + 1 < len(self.boxes):
                right = left + WIDTH
                yield f'<path d="M{right} {TOP + 32} L{right + GAP - 2} {TOP + 32}"/>'

    def _returned(self, width: int) -> Iterator[str]:
        low, box = TOP + HEIGHT + 44, 300
        first, last = 10 + self.back_to * (WIDTH + GAP) + WIDTH // 2, width - 10 - WIDTH // 2
        left = min((width - box) // 2, first - 20)
        yield f'<rect class="box learned" x="{left}" y="{low}" width="{box}" height="52"/>'
        middle = left + box // 2
        yield f'<text x="{middle}" y="{low + 22}" font-weight="600">{escape(self.back)}</text>'
        yield f'<text class="how" x="{middle}" y="{low + 40}">{escape(self.back_how)}</text>'
        bottom, turn = TOP + HEIGHT, low + 26
        yield f'<path class="back" d="M{last} {bottom} L{last} {turn} L{left + box + 2} {turn}"/>'
        yield f'<path class="back" d="M{first} {low} L{first} {bottom + 2}"/>'


PICTURES = {
    "pipeline": Picture(
        "From a trained model to an executable, in seven stages",
        (
            Box("import", "ONNX, PyTorch", "graph"),
            Box("rewrite", "rules, each proved", "faster graph", is_learned=True),
            Box("partition", "fused, by price", "workloads", is_learned=True),
            Box("schedule", "predicted, or searched", "trace of steps", is_learned=True),
            Box("lower", "barriers, vectors", "loop nests"),
            Box("generate", "LLVM, C, CUDA, CL", "machine code"),
            Box("run", "a checked executable", "answers, times"),
        ),
        back="records and learned models",
        back_how="every time that was measured; predictions from it",
        back_to=3,
    ),
    "graph": Picture(
        "From a file to a simplified graph with layouts",
        (
            Box("read", "shapes checked", "graph"),
            Box("simplify", "until nothing changes", "fewer operators"),
            Box("layouts", "blocks of channels", "graph with layouts", is_learned=True),
        ),
    ),
    "rules": Picture(
        "How rules are found, proved and used",
        (
            Box("enumerate", "all small graphs", "candidates"),
            Box("fingerprint", "over a finite field", "likely equal"),
            Box("prove", "axioms, then Z3", "rules"),
            Box("prune", "what others imply", "shipped rules"),
            Box("search", "e-graph, backtracking", "faster graph", is_learned=True),
        ),
    ),
    "workloads": Picture(
        "From a graph to workloads",
        (
            Box("group", "by criteria", "certain groups"),
            Box("settle", "by predicted time", "partition", is_learned=True),
            Box("write", "as expressions", "workloads"),
        ),
    ),
    "schedules": Picture(
        "From a workload to a trace",
        (
            Box("derive", "by sketch generators", "sketches"),
            Box("limit", "what cannot run", "space"),
            Box("predict", "time of each", "best candidates", is_learned=True),
            Box("replay", "each step checked", "trace"),
        ),
    ),
    "loops": Picture(
        "From a trace to loops",
        (
            Box("lower", "stages to nests", "loops"),
            Box("passes", "guards, vectors", "final loops"),
            Box("verify", "bounds, races", "loop program"),
        ),
    ),
    "code": Picture(
        "From loops to machine code",
        (
            Box("analyse", "registers, strides", "facts"),
            Box("emit", "LLVM, C, CUDA, CL", "source"),
            Box("compile", "once, then cached", "kernel"),
            Box("assemble", "memory plan", "executable"),
        ),
    ),
    "measuring": Picture(
        "How a candidate is measured",
        (
            Box("build", "in worker processes", "kernel"),
            Box("check", "against NumPy", "right answer"),
            Box("time", "alone, in turns", "seconds"),
            Box("record", "kept at once", "record"),
        ),
        back="the session",
        back_how="learns, and proposes the next candidates",
        back_to=0,
    ),
    "records": Picture(
        "What records serve",
        (
            Box("tune", "writes every trial", "records"),
            Box("store", "SQLite, JSON lines", "best schedules"),
            Box("compile", "measures nothing", "executable"),
        ),
    ),
    "models": Picture(
        "What is learned, and from what",
        (
            Box("features", "numbers of a program", "a row"),
            Box("time model", "ships, trained before", "seconds", is_learned=True),
            Box("trees", "of this session", "which is faster", is_learned=True),
        ),
    ),
}


if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(str(picture))
