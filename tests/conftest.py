"""Shared by all tests: golden files, and a home folder of the package's own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tests.advice  # noqa: F401 - it lets imports follow the advice of refusals
from tests.decisions.changes import Change, describe
from tests.forked import Starts

from tensorwright.base import without_collection
from tensorwright.codegen.c import backend
from tensorwright.processes import pool

_YOUNG_OBJECTS = 100_000
"""So many are made before the collector looks at them: expressions and loops have no cycles."""
LAYERS = ("interpreter", "shim", "pocl", "oclgrind", "nvrtc", "sass")
"""How code for graphics processors is tested where no card is; marks of tests name them."""
GOLDEN = Path(__file__).parent / "golden"
SHARED = ("kernels",)
"""What is in a home from the beginning."""
SPAWN = pool.start_process
CHANGES = pytest.StashKey[list[Change]]()
"""Decisions that `--golden-update` wrote anew."""
_SHORT = {
    "drivers.tune._LEAST_NETWORK_S": 0.3,  # the last comparison of a search
    "drivers.graph_prices._TURNS_S": 0.2,
    "drivers.optimize._TURNS_S": 0.1,
    "peers.process.rotation.TURN_S": 0.02,
    "peers.process.rotation.WARM_UP_S": 0.005,
    "peers.prices._NETWORK_S": 0.05,
    "profiling.measure._BUDGET_S": 0.2,
    "report.graph_changes._TURNS_S": 0.2,
    "report.rivals._TURNS_S": 0.2,
    "tuning.session.over_sizes._LEAST_S": 0.1,
    "runtime.measuring.peak._BUDGET_S": 0.03,
}
"""How long tests measure, in seconds: none asks who is faster, or how fast this machine is."""
backend.WARNINGS += ("-Werror",)  # here, what we write in C has nothing to warn of


@pytest.fixture
def unassumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine is assumed: this one is read and measured."""
    monkeypatch.delenv("TENSORWRIGHT_ASSUME")


@pytest.fixture(scope="module")
def by_rule() -> Iterator[None]:
    """Schedules and groups are chosen by rule: the time model takes most of a small compilation,
    and is no matter of what is tested.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "rule")
        yield


@pytest.fixture
def young_garbage() -> Iterator[None]:
    """Collections look only at what the test makes: to walk through all else takes seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-update", action="store_true", help="write the golden files instead of comparing"
    )
    parser.addoption(
        "--layer", choices=LAYERS, help="run one layer of tests for graphics processors"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[CHANGES] = []
    gc.set_threshold(_YOUNG_OBJECTS, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is collected ends as a cycle, and there is much to walk through."""
    with without_collection():
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where golden files are written, run nothing but what compares with them; or one layer."""
    if config.getoption("--golden-update"):
        items[:] = [item for item in items if _has_golden_file(item)]
    layer = config.getoption("--layer")
    if layer is not None:
        items[:] = [item for item in items if _is_of_layer(item, layer)]


def _is_of_layer(item: pytest.Item, layer: str) -> bool:
    return any(layer in marker.args for marker in item.iter_markers("layer"))


def _has_golden_file(item: pytest.Item) -> bool:
    is_marked = item.get_closest_marker("golden") is not None
    return is_marked or "golden" in getattr(item, "fixturenames", ())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which decisions were written anew, the greatest loss of predicted time first."""
    changes = terminalreporter.config.stash[CHANGES]
    if changes:
        terminalreporter.section("decisions that changed")
        terminalreporter.write_line(describe(changes))


def share_home(home: Path, config: pytest.Config) -> None:
    """Let a home use the kernels that other tests have built.

    Kernels are kept from run to run, beside what pytest keeps: one is named by all that it comes
    from, the sources of the compiler included. `pytest --cache-clear` removes them.
    """
    home.mkdir(exist_ok=True)
    kernels = config.cache.mkdir("kernels")  # type: ignore[union-attr]  # its plugin is always there
    kernels.chmod(0o700)
    (home / "kernels").symlink_to(kernels, target_is_directory=True)


@pytest.fixture(scope="session", autouse=True)
def _own_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Keep the user's record store, kernel cache and settings out of the tests.

    All settings but two: `TENSORWRIGHT_TARGET` says what tests that run code compile for, and
    `TENSORWRIGHT_ASSUME` the machine for which choices are made.
    """
    home = tmp_path_factory.mktemp("home")
    share_home(home, request.config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORWRIGHT_HOME", str(home))
        patch.setenv("TENSORWRIGHT_EXECUTABLE_CACHE", "0")  # tests are of what compiles
        for name in ("DUMP", "DUMP_DIR", "LOG", "SEED", "VERIFY"):
            patch.delenv(f"TENSORWRIGHT_{name}", raising=False)
        for name, seconds in _SHORT.items():
            patch.setattr(f"tensorwright.{name}", seconds)
        yield


@pytest.fixture(scope="session", autouse=True)
def _forked() -> Iterator[None]:
    """Workers are copies of a process that has imported the compiler."""
    starts = Starts(SPAWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "start_process", starts)
        yield
    starts.close()


@pytest.fixture(scope="module")
def spawned() -> Iterator[None]:
    """Workers start as they do for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "start_process", SPAWN)
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
