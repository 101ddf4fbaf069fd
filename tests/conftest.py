"""Shared by all tests: golden files, and a home folder of the package's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
SHARED = ("kernels", "machine")
"""Folders of a home that all tests share."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-update", action="store_true", help="write the golden files instead of comparing"
    )


def share_home(home: Path, config: pytest.Config) -> None:
    """Let a home use the kernels and the rates of this machine that other tests have made.

    They are kept from run to run, beside what pytest keeps: a kernel is named by all that it comes
    from, the sources of the compiler included. `pytest --cache-clear` removes them.
    """
    home.mkdir(exist_ok=True)
    for name in SHARED:
        folder = config.cache.mkdir(name)  # type: ignore[union-attr]  # its plugin is always there
        folder.chmod(0o700)
        (home / name).symlink_to(folder, target_is_directory=True)


@pytest.fixture(scope="session", autouse=True)
def _own_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Keep the user's record store, kernel cache and settings out of the tests.

    All settings but the target: `TENSORWRIGHT_TARGET` says what tests that run code compile for.
    """
    home = tmp_path_factory.mktemp("home")
    share_home(home, request.config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_HOME", str(home))
        for name in ("DUMP", "DUMP_DIR", "LOG", "SEED", "VERIFY"):
            patch.delenv(f"TENSORWRIGHT_{name}", raising=False)
        # No test asks who wins the last comparison of a search, which has 12 seconds otherwise.
        patch.setattr("tensorwright.search._LEAST_NETWORK_S", 1.0)
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare a text with the golden file of the test: golden/<file>/<test>.<suffix>.

    `golden(text)`, or `golden(text, suffix="ll")`. With --golden-update it writes the file.
    """

    def compare(text: str, suffix: str = "txt") -> None:
        folder = GOLDEN / Path(request.node.path).stem.removeprefix("test_")
        name = request.node.name.removeprefix("test_").replace("[", "-").replace("]", "")
        path = folder / f"{name}.{suffix}"
        if request.config.getoption("--golden-update"):
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text.rstrip("\n") + "\n")
        assert path.is_file(), f"no golden file {path}: run `make golden` and review it"
        assert text.rstrip("\n") + "\n" == path.read_text()

    return compare
