"""Objects are linked as the processors' documents say, on any processor."""

import ctypes
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tensorwright.base import InternalError, MachineError, cpu_target, detect_target
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import load_code, load_object
from tensorwright.runtime.native import linker

BASE = 0x400000
PROGRAM = """
@table = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 11]
@word = internal constant i32 13
@short = internal constant i16 17
@byte = internal constant i8 19
@state = internal global i64 23
@names = internal constant [2 x ptr] [ptr @table, ptr @word]
declare i64 @twice(i64)
declare i64 @thrice(i64)
define internal i64 @add(i64 %x, i64 %y) noinline {
  %z = add i64 %x, %y
  ret i64 %z
}
define double @scaled(double %x) {
  %y = fmul double %x, 1.2345678901234567
  ret double %y
}
define i64 @run(i64 %n) {
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %n
  %a = load i64, ptr %place
  %w = load volatile i32, ptr @word
  %s = load volatile i16, ptr @short
  %t = load volatile i8, ptr @byte
  %w2 = zext i32 %w to i64
  %s2 = zext i16 %s to i64
  %t2 = zext i8 %t to i64
  %before = load i64, ptr @state
  %after = add i64 %before, 1
  store i64 %after, ptr @state
  %name = getelementptr [2 x ptr], ptr @names, i64 0, i64 %n
  %pointer = load volatile ptr, ptr %name
  %first = load i32, ptr %pointer
  %first2 = zext i32 %first to i64
  %b = call i64 @add(i64 %a, i64 %w2)
  %c = call i64 @add(i64 %b, i64 %s2)
  %d = call i64 @add(i64 %c, i64 %t2)
  %e = call i64 @add(i64 %d, i64 %after)
  %f = call i64 @add(i64 %e, i64 %first2)
  %g = call i64 @twice(i64 %f)
  %address = ptrtoint ptr @thrice to i64
  %known = icmp eq i64 %address, 0
  %h = call i64 @thrice(i64 %g)
  %i = select i1 %known, i64 0, i64 %h
  ret i64 %i
}
"""
FUNCTIONS = """
define i64 @twice(i64 %x) {
  %y = mul i64 %x, 2
  ret i64 %y
}
define i64 @thrice(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}
"""
START = """
declare i64 @run(i64)
define i64 @start() {
  %x = call i64 @run(i64 1)
  ret i64 %x
}
"""
RESULT = (5 + 13 + 17 + 19 + 24 + 13) * 6 & 0xFF
SVC_EXIT = struct.pack("<III", 0xD2800BA8, 0xD4000001, 0xD65F03C0)  # mov x8, 93; svc 0; ret


def executable_file(parts: list[tuple[int, bytes]], start: int) -> bytes:
    """A static ELF program with some parts of memory; all can be read, written and run."""
    head = 64 + 56 * len(parts)
    offset, headers, content = linker.PAGE_BYTES, b"", b""
    for address, data in parts:
        headers += struct.pack(
            "<IIQQQQQQ", 1, 7, offset, address, address, len(data), len(data), linker.PAGE_BYTES
        )
        content += data
        offset += len(data)
    magic, sizes = b"\x7fELF\x02\x01\x01", (64, 56, len(parts), 64, 0, 0)
    elf = struct.pack("<16sHHIQQQIHHHHHH", magic, 2, 183, 1, start, 64, 0, 0, *sizes)
    assert len(elf) + len(headers) == head
    return (elf + headers).ljust(linker.PAGE_BYTES, b"\0") + content


def image_of(text: str, target: str, base: int, addresses: dict[str, int]) -> tuple[bytes, dict]:  # type: ignore[type-arg]
    image = linker.lay_out(linker.read_object(compile_module(text, cpu_target(target))))
    memory = bytearray(image.size_bytes)
    defined = linker.write_image(image, memoryview(memory), base, addresses)
    return bytes(memory), defined


@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="needs QEMU")
def test_a_program_for_aarch64_runs_in_a_simulator(tmp_path: Path) -> None:
    target = "aarch64-neon"
    functions, defined = image_of(FUNCTIONS, target, 0x40000000, {})
    program, own = image_of(PROGRAM, target, BASE, defined)
    start, entry = image_of(START, target, 0x800000, own)
    # what begins calls it, and ends the process with its result
    call = entry["start"] - 0x900000 >> 2 & (1 << 26) - 1
    begin = struct.pack("<I", 0x94000000 | call) + SVC_EXIT
    parts = [(0x40000000, functions), (BASE, program), (0x800000, start)]
    parts.append((0x900000, begin.ljust(linker.PAGE_BYTES, b"\0")))
    file = tmp_path / "program"
    file.write_bytes(executable_file(sorted(parts), 0x900000))
    file.chmod(0o755)
    done = subprocess.run(["qemu-aarch64-static", str(file)], check=False, timeout=20)
    assert done.returncode == RESULT


@pytest.mark.skipif(detect_target().arch != "x86-64", reason="the program is for x86-64")
def test_a_program_for_x86_64_runs() -> None:
    native = detect_target()
    text = PROGRAM.replace("declare i64 @twice(i64)\ndeclare i64 @thrice(i64)\n", FUNCTIONS)
    code = load_object(compile_module(text, native), ("run", "scaled"))
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("run"))
    assert [run(1) & 0xFF, run(1) & 0xFF] == [RESULT, RESULT + 6 & 0xFF]
    scaled = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("scaled"))
    assert scaled(2.0) == 2.0 * 1.2345678901234567


@pytest.mark.parametrize("target", ["x86-64-sse2", "aarch64-neon"])
def test_what_is_missing_or_far_away_is_refused(target: str) -> None:
    with pytest.raises(linker.LinkError, match="Symbols not found: thrice, twice"):
        image_of(PROGRAM, target, BASE, {})
    data = compile_module(PROGRAM, cpu_target(target))
    for length in range(0, len(data), 97):
        with pytest.raises(ValueError, match="it is"):
            linker.read_object(data[:length])


def test_damaged_objects_raise_our_error() -> None:
    data = bytearray(compile_module(FUNCTIONS, detect_target()))
    for position in range(0, len(data), 5):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        try:
            load_object(bytes(damaged), ("twice",))
        except InternalError:
            continue


def test_a_shared_object_that_does_not_load_is_refused() -> None:
    with pytest.raises(MachineError, match="a compiled kernel: it does not load") as refused:
        load_code(b"\x7fELF" + bytes(12) + b"\x03\x00", ("twice",))
    assert "TMPDIR" in refused.value.remedy


def linked(machine: int, kind: int, word: bytes, target: int, at: int = 0) -> bytes:
    """An instruction at BASE + `at` that refers to an address, linked."""
    data = bytes(at) + word
    section = linker.Section(1, len(data), 16, False, data)
    symbol = linker.Symbol("there", 0xFFF1, target)
    content = linker.ObjectFile(
        machine, (section,), (symbol,), (linker.Relocation(1, at, kind, 0, 0),)
    )
    image = linker.lay_out(content)
    memory = bytearray(image.size_bytes)
    linker.write_image(image, memoryview(memory), BASE, {})
    return bytes(memory[at : at + len(word)])


@pytest.mark.parametrize(
    ("at", "target", "instruction"),
    [
        (0, BASE + 0xFFC, 0x90000000),  # adrp x0, its own page
        (0xFFC, BASE + 0x1000, 0xB0000000),  # the next page, 4 bytes on
        (0xFFC, BASE + 0x3000, 0xF0000000),
        (0, BASE + 0x4000, 0x90000020),
        (0, BASE - 1, 0xF0FFFFE0),  # the page before
        (0xFFC, BASE + (1 << 32) - 1, 0xF07FFFE0),  # as far as it goes
        (0, BASE - (1 << 32) & (1 << 64) - 1, 0x90800000),
    ],
)
def test_adrp_counts_pages(at: int, target: int, instruction: int) -> None:
    """From the page of the code.  Source: Arm Architecture Reference Manual, ADRP."""
    adrp = struct.pack("<I", 0x90000000)
    if target >= 1 << 63:
        target -= 1 << 64
    assert linked(183, 275, adrp, target, at) == struct.pack("<I", instruction)


def test_a_page_farther_than_4_gib_is_refused() -> None:
    for target in (BASE + (1 << 32), BASE - (1 << 32) - 1):
        with pytest.raises(linker.LinkError, match=r"a target is -?\d+ pages away"):
            linked(183, 275, bytes(4), target)


@pytest.mark.parametrize(("machine", "kind"), [(62, 2), (62, 4), (183, 261)])
def test_a_distance_has_32_bits_and_a_sign(machine: int, kind: int) -> None:
    """System V ABI, AMD64 supplement, 4.4: the linker refuses a field that overflows."""
    for distance in (-(1 << 31), -1, 0, (1 << 31) - 1):
        word = linked(machine, kind, bytes(4), BASE + distance)
        assert struct.unpack("<i", word) == (distance,)
    for distance in (-(1 << 31) - 1, 1 << 31, 1 << 32):
        with pytest.raises(linker.LinkError, match=f"a target is {distance} bytes away"):
            linked(machine, kind, bytes(4), BASE + distance)
