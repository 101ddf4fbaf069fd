"""Draw the pipeline: its stages, and what leaves each.

    python docs/pictures/pipeline.py        writes docs/pictures/pipeline.svg

The colours suit a light and a dark page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

STAGES = (
    ("import", "ONNX, PyTorch", "graph"),
    ("rewrite", "rules, each proved", "faster graph"),
    ("partition", "fused, by price", "workloads"),
    ("schedule", "predicted, or searched", "trace of steps"),
    ("lower", "barriers, vectors", "loop nests"),
    ("generate", "LLVM, C, CUDA, CL", "machine code"),
    ("run", "a checked executable", "answers, times"),
)
"""Each stage: its name, how it works, and what leaves it."""
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
LEARNED = {"rewrite", "partition", "schedule"}
"""The stages that ask the learned model for times."""


def picture() -> str:
    """The drawing as SVG."""
    width = len(STAGES) * (WIDTH + GAP) - GAP + 20
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 216" role="img" '
        'aria-label="From a trained model to an executable, in seven stages">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8" style="marker-end:none"/>'
        "</marker></defs>"
    )
    parts = (head, f"<style>{STYLE}</style>", marker, *_stages(), *_learning(width), "</svg>")
    return "\n".join(parts) + "\n"


def _stages() -> Iterator[str]:
    for number, (name, how, out) in enumerate(STAGES):
        left = 10 + number * (WIDTH + GAP)
        middle = left + WIDTH // 2
        kind = "box learned" if name in LEARNED else "box"
        yield f'<rect class="{kind}" x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>'
        yield f'<text x="{middle}" y="{TOP + 27}" font-weight="600">{name}</text>'
        yield f'<text class="how" x="{middle}" y="{TOP + 46}">{how}</text>'
        yield f'<text class="out" x="{middle}" y="{TOP - 12}">{out}</text>'
        if number + 1 < len(STAGES):
            right = left + WIDTH
            yield f'<path d="M{right} {TOP + 32} L{right + GAP - 2} {TOP + 32}"/>'


def _learning(width: int) -> Iterator[str]:
    """The loop from measuring back to the stages that predict."""
    low, box = TOP + HEIGHT + 44, 300
    left = (width - box) // 2
    last = width - 10 - WIDTH // 2
    first = 10 + 3 * (WIDTH + GAP) + WIDTH // 2
    yield f'<rect class="box learned" x="{left}" y="{low}" width="{box}" height="52"/>'
    middle = left + box // 2
    yield f'<text x="{middle}" y="{low + 22}" font-weight="600">records and learned models</text>'
    how = "every time that was measured; predictions from it"
    yield f'<text class="how" x="{middle}" y="{low + 40}">{how}</text>'
    turn = low + 26
    yield f'<path class="back" d="M{last} {TOP + HEIGHT} L{last} {turn} L{left + box + 2} {turn}"/>'
    yield f'<path class="back" d="M{first} {low} L{first} {TOP + HEIGHT + 2}"/>'


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture())
