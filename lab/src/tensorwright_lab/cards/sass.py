"""The machine code of NVIDIA's cards as a person reads it, and what is counted in its loops."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_WHEEL = "nvidia/*/bin/nvdisasm"
_FUNCTION = re.compile(r"\s*\.text\.(\w+):")
_LABEL = re.compile(r"\s*(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)(.*?);")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_LOCAL = ("LDL", "STL")
"""Loads and stores of memory of a thread that is in no register."""


class NoDisassemblerError(Exception):
    """There is no nvdisasm here."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The instructions of a loop: how often each operation is there.

    operations   of the whole loop, those of loops inside once
    own          without those of loops inside
    """

    operations: Counter[str]
    own: Counter[str]

    @property
    def size(self) -> int:
        """How many instructions it has."""
        return self.operations.total()

    @property
    def multiply_adds(self) -> int:
        """Multiplications of f32 with an addition."""
        return self.operations["FFMA"]

    @property
    def share(self) -> float:
        """Those, of all of its instructions."""
        return self.multiply_adds / self.size

    @property
    def local(self) -> int:
        """Loads and stores of local memory."""
        return sum(self.operations[each] for each in _LOCAL)


@dataclass(frozen=True, slots=True)
class Function:
    """The machine code of one function, with its loops in the order of their ends."""

    name: str
    operations: Counter[str]
    loops: tuple[Loop, ...]

    @property
    def main_loop(self) -> Loop | None:
        """The loop with most multiply-adds of its own, and then with most instructions."""
        return max(self.loops, key=lambda each: (each.own["FFMA"], each.own.total()), default=None)


def find_disassembler() -> Path | None:
    """The program nvdisasm: that of its package, else that of the system."""
    for name in ("purelib", "platlib"):
        for path in sorted(Path(sysconfig.get_path(name)).glob(_WHEEL)):
            return path
    system = shutil.which("nvdisasm")
    return None if system is None else Path(system)


def disassemble(cubin: bytes) -> str:
    """The text of a cubin.  Raises: NoDisassemblerError; CalledProcessError where it is refused."""
    program = find_disassembler()
    if program is None:
        raise NoDisassemblerError("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "code.cubin")
        path.write_bytes(cubin)
        command = [str(program), "-c", str(path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions_of(text: str) -> list[Function]:
    """The functions of a disassembled text.

    Operations are counted without their modifiers: LDS.128 is LDS.
    """
    return [_function(name, lines) for name, lines in _by_function(text.splitlines())]


def _by_function(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    name, start = "", 0
    for number, line in enumerate(lines):
        begins = _FUNCTION.fullmatch(line)
        if begins is None:
            continue
        if name:
            yield name, lines[start:number]
        name, start = begins[1], number
    if name:
        yield name, lines[start:]


def _function(name: str, lines: list[str]) -> Function:
    operations: list[str] = []
    places: dict[str, int] = {}
    ranges: list[tuple[int, int]] = []
    for line in lines:
        label, instruction = _LABEL.match(line), _INSTRUCTION.match(line)
        if label is not None:
            places[label[1]] = len(operations)
        elif instruction is not None:
            operation, operands = instruction[2], instruction[3]
            target = _TARGET.search(operands) if operation.startswith("BRA") else None
            operations.append(operation.partition(".")[0])
            if target is not None and places.get(target[1], len(operations)) < len(operations) - 1:
                ranges.append((places[target[1]], len(operations)))
    loops = tuple(_loop(operations, each, ranges) for each in ranges)
    return Function(name, Counter(operations), loops)


def _loop(operations: list[str], span: tuple[int, int], ranges: list[tuple[int, int]]) -> Loop:
    """The loop at a range of instructions, among those of the function."""
    first, end = span
    whole = Counter(operations[first:end])
    inside = {
        number
        for start, stop in ranges
        if (start, stop) != span and first <= start and stop <= end
        for number in range(start, stop)
    }
    own = Counter(operations[number] for number in range(first, end) if number not in inside)
    return Loop(whole, own)
