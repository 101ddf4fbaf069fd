"""How long the tests take: kept by a run in a file, and told by folder.

    pytest --keep-durations build/durations.json     {"tests/unit/base/test_knobs.py::test_a": 0.12}
    python tests/durations.py build/durations.json   the seconds of each folder, as a table
    python tests/durations.py build/durations.json --write    in the page, too, and beside results

The seconds of a test are those of its fixtures, too: one that others share counts where it is made.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tensorwright.base import write_atomically

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reading_the_code.md"
KEPT = ROOT / "benchmarks/results/test-durations.json"
MARKS = "<!-- durations: written by tests/durations.py -->", "<!-- end of durations -->"
_SHOWN_S = 1.0
_OPTION = "--keep-durations"


class Durations:
    """The plugin of the process that reports: it adds up the seconds of each test."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the setting up, the call or the tearing down of a test."""
        self._seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the file, and say what each folder took."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        seconds = {name: round(each, 3) for name, each in sorted(self._seconds.items())}
        write_atomically(self._file, json.dumps(seconds, indent=0) + "\n")
        terminalreporter.section(f"seconds by folder, of each test in {self._file}")
        terminalreporter.write_line(table(by_folder(seconds)))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of a run that keeps durations."""
    parser.addoption(_OPTION, metavar="FILE", type=Path, help="keep the seconds of all tests")


def pytest_configure(config: pytest.Config) -> None:
    """Keep durations where the option asks for it; workers send theirs to the process above."""
    file = config.getoption(_OPTION)
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(file))


def folder_of(name: str) -> str:
    """The folder that a test is counted in: "tests/unit/base", "tests/property", "src"."""
    path = Path(name.partition("::")[0]).parent
    if path.parts[:1] == ("src",):
        return "src (examples in docstrings)"
    return "/".join(path.parts[: 3 if path.parts[:2] == ("tests", "unit") else 2])


def by_folder(seconds: Mapping[str, float]) -> dict[str, tuple[int, float]]:
    """How many tests each folder has, and their seconds together; the longest first."""
    counts = Counter(map(folder_of, seconds))
    sums: defaultdict[str, float] = defaultdict(float)
    for name, each in seconds.items():
        sums[folder_of(name)] += each
    return {name: (counts[name], sums[name]) for name in sorted(sums, key=lambda n: -sums[n])}


def table(folders: Mapping[str, tuple[int, float]]) -> str:
    """A table in Markdown; folders that take no second are one row."""
    short = [each for each in folders.values() if each[1] < _SHOWN_S]
    rows = [(name, *each) for name, each in folders.items() if each[1] >= _SHOWN_S]
    if short:
        rows.append(("others", sum(n for n, _ in short), sum(s for _, s in short)))
    count, total_s = (sum(column) for column in zip(*folders.values(), strict=True))
    rows.append(("all", int(count), total_s))
    lines = [f"| {name} | {number} | {seconds:.0f} |" for name, number, seconds in rows]
    return "\n".join(("| folder | tests | seconds |", "|---|---|---|", *lines))


def page_table(kept: Path = KEPT) -> str:
    """The table of the page, from the figures beside the results."""
    content = json.loads(kept.read_text())
    folders = {name: (int(count), float(s)) for name, count, s in content["folders"]}
    return f"Of {content['when']}:\n\n{table(folders)}"


def _write(folders: Mapping[str, tuple[int, float]]) -> None:
    """Keep the figures, and write the page from them."""
    rows = [[name, count, round(seconds, 1)] for name, (count, seconds) in folders.items()]
    content = {"when": f"{datetime.now(UTC):%Y-%m-%d}", "folders": rows}
    write_atomically(KEPT, json.dumps(content, indent=1) + "\n")
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    write_atomically(PAGE, f"{before}{MARKS[0]}\n{page_table()}\n{MARKS[1]}{after}")


def main() -> None:
    """Print a table of kept durations, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--write", action="store_true", help="write the page and its figures")
    arguments = parser.parse_args()
    folders = by_folder(json.loads(arguments.file.read_text()))
    print(table(folders))
    if arguments.write:
        _write(folders)


if __name__ == "__main__":
    main()
