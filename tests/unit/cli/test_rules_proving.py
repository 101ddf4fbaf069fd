"""`tensorwright rules check | prove | explain`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tensorwright.cli.rules import command
from tensorwright.rewriting.prove import stamp_of


def called(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(args))
    return result.exit_code, result.output


def test_check_says_by_its_exit_code() -> None:
    assert called("check", "relu(relu(?x)) == relu(?x)")[0] == 0
    code, text = called("check", "relu(?x) == ?x")
    assert code == 10
    assert "left" in text
    assert called("check", "tanh(relu(?x)) == relu(tanh(?x)) if rank(x) = 1")[0] == 11


def test_check_names_the_condition_that_is_missing() -> None:
    sides = (
        "conv2d[1, 1, same, none](?x, concat[0](?v, ?w)) == "
        "concat[1](conv2d[1, 1, same, none](?x, ?v), conv2d[1, 1, same, none](?x, ?w))"
    )
    code, text = called("check", sides)
    assert code == 10
    assert "it is proved if x.1 = w.1" in text
    assert "it is proved if" not in called("check", "relu(?x) == ?x")[1]


def test_explain_draws_both_graphs_and_names_the_axioms() -> None:
    rule = "transpose[1, 0](matmul(?x, ?y)) == matmul(transpose[1, 0](?y), transpose[1, 0](?x))"
    code, text = called("explain", rule)
    assert code == 0
    assert "t1 = transpose[1, 0](t0)" in text
    assert "by transpose-matmul" in text


def test_prove_a_file_and_keep_the_proved(tmp_path: Path) -> None:
    source, target = tmp_path / "a.rules", tmp_path / "b.rules"
    source.write_text("good: relu(relu(?x)) == relu(?x) if rank(x) = 2\nbad: relu(?x) == ?x\n")
    code, text = called("prove", str(source), "--processes", "1", "-o", str(target))
    assert code == 10
    assert "1 proved, 1 refuted" in text
    (line,) = target.read_text().splitlines()
    assert line.startswith("good: relu(relu(?x)) == relu(?x)")
    assert line.endswith(f"[{stamp_of()}]")
