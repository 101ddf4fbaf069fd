from __future__ import annotations

from tensorwright.base import HERE, Printer


def test_blocks_indent() -> None:
    page = Printer()
    page.line("matmul f32 (4, 4)")
    with page.block("for i in 0..4:"):
        with page.block("for j in 0..4:"):
            page.line("C[i, j] = 0")
        page.lines(["a", "b"])
    page.line("end")
    assert str(page) == (
        "matmul f32 (4, 4)\nfor i in 0..4:\n  for j in 0..4:\n    C[i, j] = 0\n  a\n  b\nend"
    )


def test_notes_of_neighbours_line_up() -> None:
    page = Printer()
    page.line("a", note="where x")
    with page.block("for k in 0..64:", note=HERE):
        page.line("plain")
    page.line("z", note="alone")
    assert str(page) == (
        "a                  where x\nfor k in 0..64:    <- here\n  plain\nz    alone"
    )


def test_text_with_line_breaks_keeps_the_indent() -> None:
    page = Printer()
    with page.indent():
        page.line("one\n\n  two", note="n")
    assert str(page) == "  one    n\n\n    two"


def test_tables() -> None:
    page = Printer()
    page.table([("name", "time"), ("conv", "1.5 ms", "fast"), ("x",)])
    assert str(page) == "name  time\nconv  1.5 ms  fast\nx"
    empty = Printer()
    empty.table([])
    assert str(empty) == ""
