from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import tensorwright
from tensorwright.base import (
    ERROR_KINDS,
    InternalError,
    TensorwrightError,
    UndecidedError,
    UserError,
    sizes_advice,
)
from tensorwright.cli.group import COMMANDS, LazyGroup, program
from tensorwright.cli.listings import PAGE, explain

Invoke = Callable[..., Result]


def test_help_lists_every_command_without_importing_it(child: Callable[..., Any]) -> None:
    script = (
        "import sys\n"
        "from tensorwright.cli.group import program\n"
        "try:\n    program(['--help'])\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'onnx', 'llvmlite', 'rich', 'tensorwright.graph'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    start = child()
    start["args"] = [sys.executable, "-c", script]
    done = subprocess.run(**start, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    for entry in COMMANDS:
        assert f"  {entry.name} " in done.stdout


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_has_help_with_an_example(entry: object, invoke: Invoke) -> None:
    name = entry.name  # type: ignore[attr-defined]
    command = entry.load()
    assert invoke(name, "--help").exit_code == 0
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    for each in commands:
        assert f"Example: tensorwright {name}" in (each.help or "")


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").output == f"tensorwright {tensorwright.__version__}\n"


def test_an_unknown_command_names_the_nearest(invoke: Invoke) -> None:
    result = invoke("optimise")
    assert result.exit_code == 2
    assert "no such command 'optimise'; did you mean optimize?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "command", "reason"),
    [
        (("--nope",), "", "no such option"),
        (("knobs", "--nope"), " knobs", "no such option"),
        (("compile",), " compile", "missing argument 'MODEL|MODULE:EXPR'"),
        (("compile", "-o"), " compile", "option '-o' requires an argument"),
        (("cache", "lost"), " cache", "no such command 'lost'"),
        (("rewrite", "m.onnx"), " rewrite", "give -o OUT, or --check CERTIFICATE with MODEL"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    invoke: Invoke, arguments: tuple[str, ...], command: str, reason: str
) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    first, *rest = result.stderr.splitlines()
    assert first.startswith(f"UsageError: tensorwright{command}: {reason}")
    assert rest[0] == f"  try: tensorwright{command} --help"
    assert rest[1].startswith("  read on: tensorwright explain UsageError")


def test_a_group_without_a_command_shows_its_help(invoke: Invoke) -> None:
    assert "clear  Empty the caches" in invoke("cache").output


def _raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Result:
    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    return CliRunner().invoke(program, ["knobs"])


@pytest.mark.parametrize("kind", [k for k in ERROR_KINDS if issubclass(k, UserError)])
def test_an_error_of_the_user_is_text_and_an_exit_code(
    kind: type[TensorwrightError], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = dict.fromkeys(kind.field_names, "f")
    error = kind(**{**fields, "where": "the place", "reason": "why", "remedy": "this"})
    result = _raising(error, monkeypatch)
    assert result.exit_code == kind.exit_code
    assert result.stderr == (
        f"{kind.__name__}: {error}\n  read on: tensorwright explain {kind.__name__} "
        f"(docs/errors.md#{kind.__name__.lower()}-{kind.exit_code})\n"
    )
    assert "the place" in result.stderr
    assert "try: this" in result.stderr


@pytest.mark.parametrize("kind", ERROR_KINDS)
def test_every_kind_of_error_is_explained(kind: type[TensorwrightError], invoke: Invoke) -> None:
    shown = invoke("explain", kind.__name__)
    assert shown.exit_code == 0
    assert shown.output == invoke("explain", kind.exit_code).output
    parts = re.split(r"^(Cause\.|Remedy\.|Example\.)", shown.output, flags=re.MULTILINE)
    assert parts[1::2] == ["Cause.", "Remedy.", "Example."]
    assert parts[0] == f"{kind.__name__}: {kind.exit_code}\n\n"
    assert f"    {kind.__name__}: " in parts[6]
    assert "](" not in shown.output


@pytest.mark.parametrize("code", [1, 10, 11, 130])
def test_every_other_exit_code_is_explained(code: int, invoke: Invoke) -> None:
    assert invoke("explain", code).output.startswith("Other codes: ")


def test_an_unknown_kind_of_error_names_the_nearest(invoke: Invoke) -> None:
    refused = invoke("explain", "ModlError")
    assert refused.exit_code == 2
    assert "try: did you mean ModelError?" in refused.stderr


def test_a_fault_of_ours_asks_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _raising(InternalError(stage="s", where="here", reason="broken"), monkeypatch)
    assert result.exit_code == 70
    assert result.stderr.startswith("InternalError: here: broken\n")
    assert "please report it" in result.stderr
    assert "TENSORWRIGHT_DUMP=all" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unforeseen_exception_names_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _raising(KeyError("lost"), monkeypatch)
    assert result.exit_code == 70
    assert "InternalError: test_group.py, line" in result.stderr
    assert "KeyError: 'lost'" in result.stderr


def _kinds(kind: type[TensorwrightError]) -> Iterator[type[TensorwrightError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def test_every_kind_of_error_is_explained_where_its_message_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("farm", "peers", "rewriting", "expr", "drivers.tune"):
        importlib.import_module(f"tensorwright.{name}")
    page = PAGE.read_text()
    anchors = re.findall("^## (.*)$", page, re.MULTILINE)
    named = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in anchors}
    kinds = [
        each for each in _kinds(TensorwrightError) if each.__module__.startswith("tensorwright.")
    ]
    kinds = [each for each in kinds if "onnxruntime_compat" not in each.__module__]
    assert UndecidedError in kinds
    for kind in sorted(kinds, key=lambda each: each.__name__):
        if kind is UserError:
            continue
        error = kind(**dict.fromkeys(kind.field_names, "f"))
        result = _raising(error, monkeypatch)
        told = " ".join(result.stderr.split())
        shown = re.search(r"read on: tensorwright explain (\w+) \(docs/errors.md#([\w-]+)\)", told)
        assert shown is not None, told
        assert shown[2] in named
        explained = CliRunner().invoke(explain, [shown[1]])
        assert explained.exit_code == 0, explained.output
        assert kind.__name__ in explained.output


def test_remedies_are_options_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    advice = sizes_advice({"n": "3..", "m": 4}, "say it: ", ", please")
    error = UndecidedError(stage="s", where="w", reason="r", remedy=advice, names=("n", "m"))
    again = pickle.loads(pickle.dumps(error))
    for each in (error, again):
        assert str(each) == 'w: r\n  try: say it: sizes={"n": "3..", "m": 4}, please'
        told = _raising(each, monkeypatch).stderr
        assert 'try: say it: --sizes "n=3..,m=4", please' in told


def test_interrupting_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _raising(KeyboardInterrupt(), monkeypatch)
    assert (result.exit_code, result.stderr) == (130, "Interrupted.\n")


def test_want_of_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _raising(MemoryError(), monkeypatch)
    assert result.exit_code == 9
    assert "not enough memory" in result.stderr


def test_warnings_are_one_plain_line(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def command() -> None:
        warnings.simplefilter("always")
        warnings.warn("slow", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    result = CliRunner().invoke(program, ["knobs"])
    assert (result.exit_code, result.stderr) == (0, "warning: slow\n")


def test_knobs_are_listed_with_their_values(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_THREADS", "3")
    lines = [line.split() for line in invoke("knobs").output.splitlines()]
    assert ["TENSORWRIGHT_THREADS", "3", "(set)"] in lines
    assert ["TENSORWRIGHT_VERIFY", "0", "(default)"] in lines


def test_a_knob_that_cannot_be_read_is_a_usage_error(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_THREADS", "many")
    result = invoke("knobs")
    assert result.exit_code == 2
    assert "environment variable TENSORWRIGHT_THREADS: 'many' is not a number" in result.stderr


def test_the_page_lists_every_command_and_exit_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    for entry in COMMANDS:
        command = entry.load()
        names = command.commands if isinstance(command, click.Group) else [""]
        for name in names:
            assert f"| `{entry.name} {name}".rstrip() in page
    for kind in ERROR_KINDS:
        assert f"| {kind.exit_code} | `{kind.__name__}` |" in page


def test_a_misspelt_variable_is_said(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORWRIGHT_THREDS", "1")
    monkeypatch.setenv("TENSORWRIGHT_OF_SOMEBODY_ELSE", "1")
    said = invoke("knobs").stderr
    assert said == "warning: TENSORWRIGHT_THREDS sets nothing; did you mean TENSORWRIGHT_THREADS?\n"
