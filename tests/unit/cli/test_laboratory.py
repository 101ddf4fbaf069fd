"""What the command line says where the package tensorwright-lab is not installed."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest
from tests.command_line import Invoke

from tensorwright.base import LABORATORY, MachineError
from tensorwright.cli.group import COMMANDS, OF_LABORATORY, commands
from tensorwright.peers.process import find_kind


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler without the laboratory."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == LABORATORY else find(n))


def test_its_commands_stand_beside_the_others() -> None:
    assert commands() == (*COMMANDS, *OF_LABORATORY)


@pytest.mark.usefixtures("_alone")
def test_without_it_its_commands_say_what_to_install(invoke: Invoke) -> None:
    assert commands() == COMMANDS
    assert "bench" not in invoke("--help").stdout
    for entry in OF_LABORATORY:
        result = invoke(entry.name)
        assert result.exit_code == MachineError.exit_code
        assert f"command {entry.name}" in result.stderr
        assert "pip install ./lab" in result.stderr


@pytest.mark.usefixtures("_alone")
def test_without_it_rules_are_not_generated(invoke: Invoke, tmp_path: Path) -> None:
    assert "generate" not in invoke("rules", "--help").stdout.split()
    result = invoke("rules", "generate", "-o", tmp_path / "new.rules")
    assert result.exit_code == MachineError.exit_code
    assert "command rules generate" in result.stderr
    assert "pip install ./lab" in result.stderr


@pytest.mark.usefixtures("_alone")
def test_without_it_networks_by_name_and_its_peers_say_what_to_install(
    invoke: Invoke, tmp_path: Path
) -> None:
    result = invoke("compile", "light:squeezenet", "-o", tmp_path / "s.tw")
    assert result.exit_code == MachineError.exit_code
    assert "network light:squeezenet" in result.stderr
    assert "pip install ./lab" in result.stderr
    with pytest.raises(MachineError, match="tensorwright-lab"):
        find_kind("pytorch")


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(
    ("options", "where"),
    [
        (("--strategy", "grid"), "strategy grid"),
        (("--features", "itervar"), "features 'itervar'"),
        (("--features", "curve-paired@20"), "features 'curve-paired@20'"),
        (("--model", "embedding-pairs"), "model 'embedding-pairs'"),
        (("--model", "trees-squares"), "loss squares"),
        (("--fading", "held-out"), "fading held-out"),
        (("--proposing", "proposing.npz"), "option --proposing"),
    ],
)
def test_without_it_other_ways_to_search_say_what_to_install(
    invoke: Invoke, model: Path, options: tuple[str, str], where: str
) -> None:
    result = invoke("tune", model, "--trials", 1, *options)
    assert result.exit_code == MachineError.exit_code
    assert where in result.stderr
    assert "pip install ./lab" in result.stderr


@pytest.mark.usefixtures("_alone")
def test_without_it_models_compile_and_run(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.tw"
    assert invoke("compile", model, "-o", out, "--threads", 1).exit_code == 0
    assert invoke("run", out, "--input", "random", "--threads", 1).exit_code == 0


def test_the_networks_have_a_name_in_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    zoo = importlib.import_module("tensorwright.zoo")
    assert zoo.build is importlib.import_module(f"{LABORATORY}.zoo").build
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == LABORATORY else find(n))
    with pytest.raises(MachineError, match=r"pip install \./lab"):
        zoo.build("squeezenet")
