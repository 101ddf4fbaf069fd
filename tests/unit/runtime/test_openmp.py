"""Which libgomp is taken, what happens without one, how threads wait."""

import subprocess
import sys
from pathlib import Path

import pytest

from tensorwright.base import MachineError, override
from tensorwright.runtime import OpenMP, Origin, find_openmp, openmp_runtime, usable_threads
from tensorwright.runtime.native import openmp
from tensorwright.runtime.native.openmp import OPENMP_SYMBOLS, loaded_libraries

SOURCE = str(Path(__file__).parents[3] / "src")


def python(program: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": SOURCE, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


@pytest.fixture
def without_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmp._State, "searched", True)
    monkeypatch.setattr(openmp._State, "runtime", None)
    monkeypatch.setattr(openmp._State, "has_warned", False)


def test_the_runtime_is_found_once_and_is_whole() -> None:
    runtime = openmp_runtime()
    assert isinstance(runtime, OpenMP)
    assert tuple(name for name, _ in runtime.symbols) == OPENMP_SYMBOLS
    assert all(address > 0 for _, address in runtime.symbols)
    assert openmp_runtime() is runtime


def test_a_loaded_copy_is_taken_first() -> None:
    assert openmp_runtime() is not None
    copies = [path for path in loaded_libraries() if Path(path).name.startswith("libgomp")]
    found = find_openmp()
    assert found is not None
    assert (found.origin, found.path) == (Origin.LOADED, copies[0])
    assert found.symbols == openmp_runtime().symbols


def test_a_copy_under_another_name_is_taken_where_it_is_loaded(tmp_path: Path) -> None:
    loaded = [path for path in loaded_libraries() if Path(path).name.startswith("libgomp")]
    assert loaded
    program = f"""
import ctypes, shutil
from tensorwright.runtime import openmp_runtime
copy = {str(tmp_path / "libgomp-a34b3233.so.1.0.0")!r}
shutil.copy({loaded[0]!r}, copy)
ctypes.CDLL(copy)
runtime = openmp_runtime()
print(runtime.origin.name, runtime.path == copy, runtime.duplicates)
"""
    assert python(program) == "LOADED True ()"


def test_a_library_named_in_the_maps_but_not_loaded_is_passed_over(tmp_path: Path) -> None:
    found = find_openmp(loaded=("/nowhere/libgomp.so.1",), folders=())
    assert found is None or found.origin is Origin.SYSTEM


def test_a_bundled_copy_is_taken_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = [path for path in loaded_libraries() if Path(path).name.startswith("libgomp")]
    bundled = tmp_path / "scikit_learn.libs" / "libgomp-d22c30c5.so.1.0.0"
    bundled.parent.mkdir()
    bundled.symlink_to(loaded[0])
    monkeypatch.setattr(openmp, "_SYSTEM_NAME", "libgomp-absent.so.99")
    assert find_openmp(loaded=(), folders=(str(tmp_path / "absent"),)) is None
    found = find_openmp(loaded=(), folders=(str(tmp_path),))
    assert found is not None
    assert (found.origin, found.path) == (Origin.BUNDLED, str(bundled))


def test_a_file_that_is_no_library_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "x.libs" / "libgomp.so.1"
    bad.parent.mkdir()
    bad.write_bytes(b"\x7fELF nonsense")
    monkeypatch.setattr(openmp, "_SYSTEM_NAME", "libgomp-absent.so.99")
    assert find_openmp(loaded=(), folders=(str(tmp_path),)) is None


@pytest.mark.usefixtures("without_openmp")
def test_without_a_runtime_one_thread_and_one_warning() -> None:
    with override(threads=4):
        with pytest.warns(RuntimeWarning, match="no libgomp: programs run on one thread"):
            assert usable_threads() == 1
        assert usable_threads() == 1  # a second warning would be an error
    assert usable_threads(1) == 1


@pytest.mark.usefixtures("without_openmp")
def test_threads_that_were_demanded_are_refused() -> None:
    with pytest.raises(MachineError) as caught:
        usable_threads(4)
    assert caught.value == MachineError(
        stage="runtime",
        where="4 threads",
        reason="no libgomp: neither loaded, nor on the system, nor inside an installed wheel",
        remedy="install libgomp (Debian: apt install libgomp1; Fedora: dnf install libgomp), "
        "or ask for 1 thread",
    )


def test_threads_are_as_wanted_with_a_runtime() -> None:
    assert openmp_runtime() is not None
    assert usable_threads(3) == 3
    with override(threads=2):
        assert usable_threads() == 2


@pytest.mark.parametrize(("spin", "policy"), [(True, "ACTIVE"), (False, "PASSIVE")])
def test_waiting_is_set_before_the_library_is_loaded(spin: bool, policy: str) -> None:
    program = f"""
import os
from tensorwright.runtime import openmp_runtime, set_spin
print(set_spin({spin}), end=" ")
openmp_runtime()
print(set_spin({spin}), set_spin({not spin}), os.environ["OMP_WAIT_POLICY"].upper())
"""
    output = python(program)
    assert output == f"True True False {policy}"


def test_waiting_cannot_be_set_behind_the_librarys_back() -> None:
    program = """
import ctypes
from tensorwright.runtime import find_openmp, set_spin
assert find_openmp() is not None
print(set_spin(True), set_spin(False))
"""
    assert python(program) == "False False"


def test_pytorchs_copy_is_shared_where_it_is_loaded() -> None:
    program = """
try:
    import torch
except ImportError:
    print("LOADED 1")
else:
    from tensorwright.runtime import openmp_runtime
    from tensorwright.runtime.native.openmp import loaded_libraries
    runtime = openmp_runtime()
    count = len([path for path in loaded_libraries() if "libgomp" in path])
    print(runtime.origin.name, count)
"""
    assert python(program) == "LOADED 1"
