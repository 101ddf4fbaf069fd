"""Every `python` block of the README and of the pages runs, in the order of the page.

An `output` block behind it is what it prints. Of `output varies` only the words must agree, of
`output sample` only the number of lines: the rest is that of one run. `make golden` writes the
output blocks that no longer agree.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from runpy import run_path

import click
import pytest

from tensorwright.base import ERROR_KINDS
from tensorwright.cli.group import program
from tensorwright.cli.listings import PAGE
from tensorwright.rewriting.library import load_library
from tensorwright.schedule import parse_trace

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$"
    r"(?:\n\n^```output(?P<kind>| varies| sample)\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
ROOMS = [
    ROOT / name for name in ("src", "lab", "runtime", "tests", "examples", "benchmarks", "docs")
]
EVERYTHING = [str(path) for room in ROOMS for path in (room, *room.glob("**/*"))]
PATH = re.compile(r"`([\w./]+(?:\.py|/))`")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]+)")
COMMAND = re.compile(
    r"^(?: {4}|\$ )(?:[A-Z_]+=\S+ )*tensorwright (.*)|`tensorwright ([^`]+)`", re.MULTILINE
)


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.golden
@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_python_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """One namespace for a page: a block may use what an earlier one defined.

    Only the tutorial tells what the time model chooses.
    """
    monkeypatch.chdir(tmp_path)
    if page.parent.name != "tutorial":
        monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "rule")
    if page.name == "README.md":  # what is copied first runs with the package alone
        monkeypatch.setattr("tensorwright.base.sources.has_laboratory", lambda: False)
    names: dict[str, object] = {"__name__": "__page__"}
    text = page.read_text()
    pieces, end = [], 0
    for block in BLOCK.finditer(text):
        printed = _run(page, block["code"], text.count("\n", 0, block.start("code")), names)
        if block["output"] is not None and not _agree(block, printed):
            pieces += [text[end : block.start("output")], printed]
            end = block.end("output")
            if not request.config.getoption("--golden-update"):
                assert printed == block["output"]
    if pieces:
        page.write_text("".join((*pieces, text[end:])))


def _run(page: Path, code: str, line: int, names: dict[str, object]) -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile("\n" * line + code, os.fspath(page), "exec"), names)
    lines = (each.rstrip() for each in printed.getvalue().splitlines())
    return "".join(f"{each}\n" for each in lines)


def _agree(block: re.Match[str], printed: str) -> bool:
    shown = block["output"]
    if block["kind"] == " sample":
        return shown.count("\n") == printed.count("\n")
    if block["kind"] == " varies":
        shown, printed = (re.sub(r"\s*[\d.,]+", " #", text) for text in (shown, printed))
    return shown == printed


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^ {4}.*$", "", prose, flags=re.MULTILINE)  # code has brackets, too
    prose = re.sub(r"`[^`\n]*`", "", prose)
    broken = [link for link in LINK.findall(prose) if not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_files_that_are_named_exist(page: Path) -> None:
    """A page may name a file or a folder by the end of its path."""
    named = [name.rstrip("/") for name in PATH.findall(page.read_text()) if "NAME" not in name]
    missing = [name for name in named if not any(each.endswith(f"/{name}") for each in EVERYTHING)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_exist_with_these_options(page: Path) -> None:
    unknown = []
    for block, inline in COMMAND.findall(page.read_text()):
        words = re.split(r" (?:#|&& )|  ", block or inline)[0].split()
        command: click.Command | None = program
        while isinstance(command, click.Group) and words and words[0][:1].islower():
            command = command.get_command(click.Context(command), words.pop(0))
        options = {name for each in command.params for name in each.opts} if command else set()
        given = {re.split("[=.]", word)[0].rstrip(",;)") for word in words if word[:1] == "-"}
        if command is None or given - options - {"--help", "--version"}:
            unknown.append(block or inline)
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_is_closed(page: Path) -> None:
    assert len(re.findall(r"^```", page.read_text(), re.MULTILINE)) % 2 == 0


LESSONS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_a_lesson_begins_with_what_it_needs(page: Path) -> None:
    text = page.read_text()
    needs = text.split("\n\n")[1]
    assert needs.startswith("*Needs* `pip install ")
    for imported, install in (
        ("tensorwright_lab", "./lab"),
        ("tensorwright.zoo", "./lab"),
        ("rewriting.prove", "'.[prove]'"),
    ):
        assert f"from {imported}" not in text or install in needs


def test_lessons_in_one_folder_share_no_records() -> None:
    names = [set(re.findall(r"[\w]+\.sqlite", page.read_text())) for page in LESSONS]
    assert sum(map(len, names)) == len(set().union(*names))


def test_the_readme_says_early_how_to_try_it() -> None:
    opening = (ROOT / "README.md").read_text()[:3_200]
    assert "make demo" in opening
    assert "make test" in opening


def test_steps_of_schedules_are_written_as_the_page_for_users_of_tvm_says() -> None:
    """Each step in the second column of its table parses, and prints as it is."""
    page = (ROOT / "docs" / "elsewhere" / "tvm.md").read_text()
    table = page.partition("## Schedule primitives")[2].partition("\n\ntensorwright refuses")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")]
    steps = [step for row in rows for step in re.findall(r"`(\w+\(.*?\))`", row)]
    assert len(steps) >= len(rows) - 2
    assert [str(primitive) for step in steps for primitive in parse_trace(step)] == steps


def test_the_table_of_results_is_what_the_files_say() -> None:
    """`python docs/site/results_table.py` writes it."""
    script = ROOT / "docs" / "site" / "results_table.py"
    names = run_path(os.fspath(script))
    readme = (ROOT / "README.md").read_text()
    assert names["in_readme"](readme, names["table"]()) == readme


def test_the_coverage_on_file_is_of_the_rules_that_ship() -> None:
    kept = json.loads((ROOT / "benchmarks/results/rules-coverage.json").read_text())
    assert kept["rules"] == len(load_library()), "tensorwright rules coverage --json FILE"


def test_the_page_of_onnx_counts_what_the_file_counts() -> None:
    kept = json.loads((ROOT / "benchmarks/results/onnx-backend.json").read_text())
    page = (ROOT / "docs" / "onnx.md").read_text()
    assert f"the {len(kept['cases'])} node cases of onnx {kept['onnx']}" in page
    for outcome, count in kept["counts"].items():
        assert re.search(rf"^\| {outcome}\b.* \| {count} \|", page, re.MULTILINE), outcome
    outcomes: dict[str, set[str]] = {}
    for case in kept["cases"]:
        outcomes.setdefault(case["operator"], set()).add(case["outcome"])
    passing = [each for each in outcomes.values() if each & {"compiled", "host"}]
    always = [each for each in outcomes.values() if each == {"compiled"}]
    said = f"{len(passing)} of {len(outcomes)} operators pass in some form, {len(always)} of them"
    assert said in page


def test_the_pictures_are_drawn_by_their_script() -> None:
    """`python docs/pictures/draw.py` draws them."""
    folder = ROOT / "docs" / "pictures"
    drawn = run_path(os.fspath(folder / "draw.py"))["PICTURES"]
    assert {path.stem: path.read_text() for path in folder.glob("*.svg")} == {
        name: str(picture) for name, picture in drawn.items()
    }


@pytest.mark.golden
def test_the_tables_of_commands_are_current(request: pytest.FixtureRequest) -> None:
    names = run_path(os.fspath(ROOT / "docs" / "site" / "reference.py"))
    page = ROOT / "docs" / "cli.md"
    printed = names["with_tables"](page.read_text())
    if request.config.getoption("--golden-update"):
        page.write_text(printed)
    assert page.read_text() == printed, "run the tests with --golden-update"


def test_the_design_is_a_short_page() -> None:
    """What explains one module stands in that module; what another page says is linked."""
    design = (ROOT / "docs" / "design.md").read_text()
    assert design.count("\n") <= 250


def test_every_kind_of_error_has_its_section() -> None:
    """The page is part of the package, for `tensorwright explain`, and linked from the pages."""
    page = PAGE.read_text()
    assert (ROOT / "docs" / "errors.md").resolve() == PAGE.resolve()
    for kind in ERROR_KINDS:
        assert f"## {kind.__name__}: {kind.exit_code}\n" in page
