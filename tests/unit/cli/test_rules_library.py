"""`tensorwright rules list | derive | explain | generate | prove`: from files of proved rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorwright.base import UsageError
from tensorwright.cli.listings import operators
from tensorwright.cli.rules import command
from tensorwright.ops import OPERATORS as GRAPH_OPERATORS
from tensorwright.rewriting.library import load_library, read_library
from tensorwright.rewriting.operators import OPERATORS
from tensorwright.rewriting.prove import stamp_of

RULES = """# Rules of mine.

# origin: first
twice: relu(relu(?x)) == relu(?x)  [old/0]
# origin: second
through: relu(concat[0](?x, ?y)) == concat[0](relu(?x), relu(?y))  [old/0]
"""


def called(*args: object) -> tuple[int, str]:
    result = CliRunner().invoke(command, [str(arg) for arg in args])
    return result.exit_code, result.output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.rules"
    path.write_text(RULES)
    return path


def test_list_counts_and_filters(file: Path) -> None:
    code, text = called("list", "--file", file)
    assert code == 0
    assert "2 of 2 rules" in text
    assert "concat[0](relu(?x), relu(?y))" in text
    for chosen in (("--operator", "concat"), ("--origin", "second"), ("--name", "thr*")):
        code, text = called("list", "--file", file, *chosen)
        assert "1 of 2 rules" in text
        assert "twice" not in text
    code, text = called("list", "--file", file, "--counts")
    assert "==" not in text
    assert "relu" in text


def test_list_shows_what_ships() -> None:
    code, text = called("list", "--counts")
    assert code == 0
    assert f"{len(load_library())} of {len(load_library())} rules" in text


def test_derive_names_the_rules_by_its_exit_code(file: Path) -> None:
    wanted = "relu(concat[0](relu(?x), ?y)) == concat[0](relu(?x), relu(?y))"
    code, text = called("derive", wanted, "--file", file)
    assert code == 0
    assert "follows from through, twice" in text
    assert "by twice" in text
    assert called("derive", "relu(?x) == ?x", "--file", file)[0] == 11


def test_derive_and_explain_use_the_shipped_rules() -> None:
    assert called("derive", "relu(relu(relu(?x))) == relu(?x)")[0] == 0
    rule = load_library()[0].rule
    code, text = called("explain", rule.name)
    assert code == 0
    assert "axioms:" in text


def test_an_unknown_name_is_refused_with_the_nearest(file: Path) -> None:
    result = CliRunner().invoke(command, ["explain", "twize", "--file", str(file)])
    assert isinstance(result.exception, UsageError)
    assert result.exception.remedy == "did you mean twice?"


def test_prove_stamps_a_file_again_and_keeps_its_origins(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "new.rules"
    code, text = called("prove", file, "--processes", "1", "-o", target)
    assert code == 0
    assert "2 have the stamp of other axioms" in text
    assert target.read_text().startswith("# Rules of mine.\n\n# origin: first\n")
    rules = read_library(target.read_text().splitlines())
    assert [each.origin for each in rules] == ["first", "second"]
    assert {each.rule.stamp for each in rules} == {stamp_of()}


def test_generate_writes_proved_rules_with_the_table(tmp_path: Path) -> None:
    target = tmp_path / "new.rules"
    small = ("--preset", "elementwise", "--max-ops", 1)
    code, text = called("generate", *small, "-o", target)
    assert code == 0
    for step in ("initial", "renaming", "common subgraph", "implied", "proved"):
        assert step in text
    rules = read_library(target.read_text().splitlines())
    assert {each.rule.stamp for each in rules} == {stamp_of()}
    assert f"{len(rules)} rules written" in text
    again = tmp_path / "again.rules"
    called("generate", *small, "--processes", 1, "-o", again)
    assert again.read_text() == target.read_text()
    code, text = called("generate", *small, "--processes", 1, "--plan")
    assert code == 0
    assert "hours of a worker" in text
    assert " 512 workers: " in text


def test_a_sample_is_of_late_levels_only(tmp_path: Path) -> None:
    for wrong in (("--max-ops", 3), ("--max-ops", 4, "--plan"), ("--max-ops", 4, "--shipped")):
        code, text = called("generate", "--sample", 9, *wrong, "-o", tmp_path / "new.rules")
        assert code == 2
        assert "--sample goes with --max-ops 4 or 5, without --plan or --shipped." in text


def test_the_operators_of_rules_are_listed_as_they_are_written() -> None:
    code, text = called("operators")
    assert code == 0
    lines = text.splitlines()
    assert "conv2d[stride_h, stride_w, padding, activation](?x, ?w)" in lines
    assert "    padding: same, valid, words like p1_1_1_1" in lines
    assert "scalar_mul(?x, ?c)" in lines
    assert "transpose[perm, ...](?x)" in lines
    assert "    alpha: a number as a word: 0.01 is f0p01" in lines
    heads = [line for line in lines if line.endswith(")")]
    assert len(heads) == len(OPERATORS)
    assert max(map(len, lines)) <= 80


def test_the_operators_of_graphs_are_listed_with_their_attributes() -> None:
    result = CliRunner().invoke(operators)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert "softmax(x, axis=-1)" in lines
    assert "argmax(x, axis=0, keepdims=True, select_last_index=False, skip_nan=False)" in lines
    assert "bitcast(x, to)" in lines
    assert [line for line in lines if line.startswith("conv(x, w, bias?, ")]
    heads = [line for line in lines if not line.startswith(" ")]
    assert len(heads) == len(GRAPH_OPERATORS)
    assert heads == sorted(heads, key=lambda line: line.partition("(")[0])
    assert max(map(len, lines)) <= 80
