"""Tables in the columns that there are: names are cut, numbers never."""

from __future__ import annotations

import io

from rich.console import Console

from tensorwright.cli.printing import fit_table, format_table, print_table, shorten

COLUMNS = ("workload", "ms", "writes", "limited by")
CELLS = [
    ("conv2d_batch_norm_add_relu_0123", "12345.678", "a_tensor_of_a_long_name", "arithmetic"),
    ("relu", "1", "y", "memory"),
]


def printed(width: int) -> list[str]:
    text = io.StringIO()
    print_table(
        COLUMNS, CELLS, Console(file=text, width=width, force_terminal=True, color_system=None)
    )
    return text.getvalue().splitlines()


def test_a_table_is_framed_where_there_is_room() -> None:
    assert printed(100)[0].startswith("┏")
    assert max(map(len, printed(100))) <= 100


def test_a_narrow_terminal_has_the_same_numbers_in_its_columns() -> None:
    for width in (80, 60, 40):
        lines = printed(width)
        assert max(map(len, lines)) <= width
        assert any("12345.678" in line for line in lines)
        assert not any(line.startswith("┏") for line in lines)


def test_names_are_cut_where_that_is_enough() -> None:
    assert max(map(len, format_table(COLUMNS, CELLS).splitlines())) == 79
    assert fit_table(COLUMNS, CELLS, 70) == (
        "workload                       ms                   writes  limited by\n"
        "conv2d_bat...relu_0123  12345.678  a_tensor_of_a_long_name  arithmetic\n"
        "relu                            1                        y      memory"
    )


def test_columns_stand_below_where_it_is_not() -> None:
    assert fit_table(COLUMNS, CELLS, 30) == (
        "workload           ms\n"
        "conv...123  12345.678\n"
        "relu                1\n\n"
        "workload        writes\n"
        "conv...123  a_te...ame\n"
        "relu                 y\n\n"
        "workload    limited by\n"
        "conv...123  arithmetic\n"
        "relu            memory"
    )


def test_the_end_of_a_name_tells_as_much_as_its_start() -> None:
    assert shorten("conv2d_relu 86cd0a", 12) == "conv2...cd0a"
    assert shorten("relu", 12) == "relu"
    assert len(shorten("x" * 50, 2)) <= 3
