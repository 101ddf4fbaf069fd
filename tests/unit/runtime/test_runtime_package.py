"""The package that runs executables alone, in an environment that has NumPy and nothing else."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import cpu_target, detect_target

ROOT = Path(__file__).parents[3]
STORED = Path(__file__).parent / "stored"
PROGRAM = """
import json, sys
import numpy as np
import tensorwright_runtime
array = np.arange(64, dtype=np.float32).reshape(4, 16) % 5 - 2
results = [tensorwright_runtime.load(path)(array) for path in sys.argv[1:]]
modules = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps([[each.tolist() for each in result] for result in results]))
print(json.dumps(modules))
try:
    tensorwright_runtime.load(__file__)
except tensorwright_runtime.ModelError as error:
    print(error.reason)
"""


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_folder_alone_says_what_it_needs(tmp_path: Path) -> None:
    copy = shutil.copytree(ROOT / "runtime", tmp_path / "runtime")
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build"],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert f"error: there is no folder {tmp_path / 'src' / 'tensorwright'}" in done.stderr
    assert "make runtime" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    bool(cpu_target("x86-64-sse2").missing_on(detect_target())),
    reason="its files hold code for x86-64",
)
def test_an_empty_environment_runs_executables(tmp_path: Path) -> None:
    source = tmp_path / "repository"  # building leaves files beside what it builds
    source.mkdir()
    for name in ("src", "runtime", "LICENSE"):
        (source / name).symlink_to(ROOT / name)
    (source / "runtime").unlink()
    run("cp", "-r", ROOT / "runtime", source / "runtime")
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps")
    run(*pip, "--no-build-isolation", "-w", tmp_path, source / "runtime", HOME=str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 1_000_000
    venv.create(tmp_path / "empty")
    (packages,) = (tmp_path / "empty" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    installed = Path(np.__file__).parent
    for folder in (installed, installed.with_name("numpy.libs")):
        if folder.exists():
            (packages / folder.name).symlink_to(folder, target_is_directory=True)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    saved = [STORED / f"version-{version}.tw" for version in (2, 3, 4)]
    python = tmp_path / "empty" / "bin" / "python"
    results, modules, refusal = run(python, program, *saved, HOME=str(tmp_path)).splitlines()
    weights = np.arange(256, dtype=np.float32).reshape(16, 16) % 7 - 3
    array = np.arange(64, dtype=np.float32).reshape(4, 16) % 5 - 2
    expected = np.maximum(array @ weights, 0)
    for rows, largest in json.loads(results):
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(largest, -np.sort(-expected)[:, :3])
    assert not {"tensorwright", "llvmlite", "onnx", "ml_dtypes", "scipy"} & {*json.loads(modules)}
    assert refusal.startswith("it is not an executable of tensorwright")
