"""Build the package: copy what runs executables from tensorwright, and compile its own functions.

Run: pip wheel --no-deps runtime
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "tensorwright"
NAME = "tensorwright_runtime"
PARTS = ("base", "machine", "machine_code", "expr", "ops", "runtime", "version")
"""The folders that an executable needs at run time: `ops` has the functions that run in NumPy."""
LEFT_OUT = ("machine_code/compilation.py", "runtime/measuring")
BASELINES = ("x86-64-sse2", "aarch64-neon")
"""The oldest processor of each architecture, for which own functions are compiled."""
IMPORTED = re.compile(rf"\btensorwright(?=(\.| import )({'|'.join(PARTS)})\b)")


class BuildRuntime(build_py):  # type: ignore[misc]  # setuptools has no types
    """Add the folders of tensorwright under the name of this package."""

    def run(self) -> None:
        """Copy and compile.

        Raises:  SetupError where this folder does not stand in the repository.
        """
        if not SOURCE.is_dir():
            raise SetupError(
                f"there is no folder {SOURCE}: this package is made of tensorwright's sources. "
                "Build its wheel in the repository (make runtime), and install that wheel"
            )
        super().run()
        root = Path(self.build_lib) / NAME
        for path in sorted(SOURCE.rglob("*.py")):
            name = path.relative_to(SOURCE)
            if name.parts[0].removesuffix(".py") in PARTS and not _is_left_out(name):
                copy = root / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(IMPORTED.sub(NAME, path.read_text()))
        _compile_into(root / "runtime" / "native" / "prebuilt")


def _is_left_out(name: Path) -> bool:
    return any(name.is_relative_to(folder) for folder in LEFT_OUT)


def _compile_into(folder: Path) -> None:
    """Compile the functions that tensorwright writes in LLVM IR, for each architecture."""
    sys.path.insert(0, str(SOURCE.parent))
    from tensorwright.base import cpu_target  # noqa: PLC0415 - only here, from the path above
    from tensorwright.machine_code.compilation import compile_module  # noqa: PLC0415
    from tensorwright.runtime.native.jit import prebuilt_name  # noqa: PLC0415
    from tensorwright.runtime.native.own_modules import own_modules  # noqa: PLC0415

    folder.mkdir(exist_ok=True)
    for target in map(cpu_target, BASELINES):
        for text in own_modules(target.arch):
            (folder / prebuilt_name(text, target.arch)).write_bytes(compile_module(text, target))


setup(cmdclass={"build_py": BuildRuntime})
