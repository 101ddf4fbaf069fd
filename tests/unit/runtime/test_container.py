from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.runtime import networks

from tensorwright import base, runtime

ROOT = Path(__file__).parents[3]
SOURCES = (("trace", "split(i, 4)\nvectorize(i_i)  # \N{GREEK SMALL LETTER ALPHA}"), ("empty", ""))


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "net.tw"
    networks.executable(networks.CHAIN, sources=SOURCES).save(path)
    yield path
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_saved_program_runs_as_before(saved: Path) -> None:
    inputs = networks.chain_inputs()
    program = runtime.load(saved, threads=1)
    assert program.plan == networks.CHAIN
    assert program.threads == 1
    assert program.sources == dict(SOURCES)
    np.testing.assert_allclose(program.run(inputs)["z"], networks.chain_result(inputs), rtol=1e-6)


def test_saving_what_was_loaded_gives_the_same_bytes(saved: Path) -> None:
    before = saved.read_bytes()
    program = runtime.load(saved)
    program.save(saved)
    assert saved.read_bytes() == before
    inputs = networks.chain_inputs()
    np.testing.assert_allclose(program.run(inputs)["z"], networks.chain_result(inputs), rtol=1e-6)


def test_constants_are_mapped_not_copied(saved: Path) -> None:
    (constant,) = runtime.read_container(saved).constants
    np.testing.assert_array_equal(constant, networks.weights())
    assert constant.ctypes.data % 64 == 0
    assert not constant.flags.writeable
    assert not constant.flags.owndata


def test_writing_into_a_loaded_file_changes_its_constants_and_never_its_code(saved: Path) -> None:
    program = runtime.load(saved, threads=1)
    copied = runtime.load(saved, threads=1, read=Path.read_bytes)
    inputs = networks.chain_inputs()
    before = program.run(inputs)["z"]
    with saved.open("r+b") as file:  # header, object code and sources; constants are the last
        file.write(b"\xff" * (saved.stat().st_size - networks.weights().nbytes))
    np.testing.assert_array_equal(program.run(inputs)["z"], before)
    with saved.open("r+b") as file:
        file.seek(-networks.weights().nbytes, os.SEEK_END)
        file.write(bytes(networks.weights().nbytes))
    (constant,) = program.contents.constants
    assert not constant.any()
    np.testing.assert_array_equal(copied.run(inputs)["z"], before)


def test_a_program_without_anything(tmp_path: Path) -> None:
    nothing = networks.plan([], inputs=(), outputs=(), constants=(), kernels=(), arena_bytes=0)
    runtime.Executable(nothing, [], []).save(tmp_path / "x")
    assert runtime.load(tmp_path / "x").run({}) == {}


@pytest.mark.parametrize(
    "dtype", [base.DType.BOOL, base.DType.I64, base.DType.BF16, base.DType.U8], ids=str
)
def test_constants_of_any_type_and_size(tmp_path: Path, dtype: base.DType) -> None:
    shapes = [(), (3,), (0, 2), (5, 7)]
    constants = tuple(networks.tensor(f"c{i}", shape, dtype) for i, shape in enumerate(shapes))
    outputs = tuple(networks.tensor(f"o{i}", shape, dtype) for i, shape in enumerate(shapes))
    steps = [
        runtime.CopyStep(runtime.ConstantRef(i), runtime.OutputRef(i), spec.size_bytes)
        for i, spec in enumerate(outputs)
    ]
    arrays = [np.arange(np.prod(shape)).reshape(shape).astype(dtype.numpy) for shape in shapes]
    copying = networks.plan(
        steps, inputs=(), outputs=outputs, constants=constants, kernels=(), arena_bytes=0
    )
    runtime.Executable(copying, [], arrays).save(tmp_path / "x")
    results = runtime.load(tmp_path / "x").run({})
    for result, array in zip(results.values(), arrays, strict=True):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, array)


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(base.ModelError) as caught:
        runtime.load(path, **options)
    assert caught.value.stage == "load"
    assert caught.value.where == f"file {path}"
    assert caught.value.remedy
    return caught.value.reason


def test_a_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "x") == "cannot be read: No such file or directory"
    assert refusal(tmp_path) == "cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\x08\x07\x12", "it is not an executable of tensorwright"),
        (b"\x7fELF" * 100, "it is not an executable of tensorwright"),
        (b"TWEXEC\n" + bytes(100), "it is not an executable of tensorwright"),
        (b"TWEX", "it is damaged: it is cut short: 4 bytes"),
    ],
    ids="empty onnx elf text short".split(),
)
def test_foreign_files(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert refusal(path) == reason


def test_another_version(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[8] = 9
    saved.write_bytes(data)
    assert refusal(saved) == "its format is version 9, and this tensorwright reads 1 to 4"


def test_a_file_cut_short_anywhere(saved: Path) -> None:
    data = saved.read_bytes()
    for size in [9, 51, 52, 60, 1000, 4095, 4096, len(data) // 2, len(data) - 1]:
        saved.write_bytes(data[:size])
        assert "it is damaged: it is cut short" in refusal(saved)
    saved.write_bytes(data + b"\0")
    assert "it is damaged: it is too long" in refusal(saved)


def test_a_changed_byte_anywhere(saved: Path) -> None:
    data = saved.read_bytes()
    contents = runtime.read_container(saved)
    used = {0, 8, 12, 20, 51, 52, 500, 4096, 4096 + len(contents.objects[0]) // 2, len(data) - 1}
    for place in used:
        saved.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
        refusal(saved)


def test_the_digest_names_the_section(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[4096 + 16] ^= 255
    saved.write_bytes(data)
    assert refusal(saved) == "it is damaged: the digest of section object/0 is wrong"
    assert "object/0" in refusal(saved, check_constants=False)


def test_constants_are_checked_unless_told_otherwise(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[-1] ^= 255
    saved.write_bytes(data)
    assert refusal(saved) == "it is damaged: the digest of section constant/0 is wrong"
    assert runtime.load(saved, check_constants=False).inputs == networks.CHAIN.inputs


def test_a_header_that_lies_is_refused(saved: Path) -> None:
    """Digests can be made to fit; the plan is verified all the same."""
    data = saved.read_bytes()
    size = int.from_bytes(data[12:20], "little")
    for old, new in [
        (b'"index": 1', b'"index": 7'),
        (b'"arena_bytes": 1536', b'"arena_bytes": 0   '),
        (b'"constant/0"', b'"constant/1"'),
        (b'"KernelStep"', b'"Nonsense"'),
        (b'"kernel": 0', b'"kernel": {}'),
        (b'"sections"', b'"selection"'),
    ]:
        header = data[52 : 52 + size].replace(old, new)
        assert header != data[52 : 52 + size]
        prefix = data[:12] + len(header).to_bytes(8, "little") + hashlib.sha256(header).digest()
        saved.write_bytes((prefix + header).ljust(4096, b"\0") + data[4096:])
        assert "it is damaged" in refusal(saved)


def test_a_constant_begins_on_a_cache_line_of_the_file(saved: Path) -> None:
    """Kernels read it there.  In this file it stands 4 bytes later, and all digests fit."""
    data = saved.read_bytes()
    size = int.from_bytes(data[12:20], "little")
    header = json.loads(data[52 : 52 + size])
    (row,) = [each for each in header["sections"] if each[0] == "constant/0"]
    assert row[1] % 64 == 0
    start = 4096 + row[1]
    row[1] += 4
    text = json.dumps(header).encode()
    prefix = data[:12] + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest()
    head = (prefix + text).ljust(4096, b"\0")
    assert len(head) == 4096
    saved.write_bytes(head + data[4096:start] + bytes(4) + data[start:])
    reason = "it is damaged: section constant/0 has the wrong size or position"
    assert refusal(saved) == reason
    assert refusal(saved, check_constants=False) == reason


def test_an_unwritable_place(tmp_path: Path) -> None:
    with pytest.raises(base.OutputError, match="the folder does not exist"):
        networks.executable(networks.CHAIN).save(tmp_path / "no" / "net.tw")
    with pytest.raises(base.OutputError, match="it is a folder"):
        networks.executable(networks.CHAIN).save(tmp_path)


def test_a_full_disk_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    code = f"""
import resource, sys
from tensorwright.base import OutputError
from tensorwright.runtime import read_container, write_container
contents = read_container({str(saved)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    write_container({str(saved)!r}, contents)
except OutputError as error:
    print(error.exit_code, error.where)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "src", check=True
    )
    assert done.stdout.strip() == f"8 file {saved}"
    assert saved.read_bytes() == before
    assert [each.name for each in saved.parent.iterdir()] == [saved.name]


def for_target(path: Path, target: base.CpuTarget) -> Path:
    contents = runtime.read_container(path)
    foreign = replace(contents.plan, target=target)
    runtime.write_container(
        path, runtime.Contents(foreign, contents.objects, contents.constants, SOURCES)
    )
    return path


@pytest.mark.parametrize(
    ("target", "lacking"),
    [
        (
            replace(networks.NATIVE, name="future", features=(*networks.NATIVE.features, "avx9")),
            "it has no avx9",
        ),
        (
            replace(networks.NATIVE, name="arm", arch="arm", triple="armv7-none-eabi"),
            f"it is {networks.NATIVE.triple}, not armv7-none-eabi",
        ),
    ],
    ids="feature processor".split(),
)
def test_a_file_for_another_processor(saved: Path, target: base.CpuTarget, lacking: str) -> None:
    path = for_target(saved, target)
    with pytest.raises(base.MachineError) as caught:
        runtime.load(path)
    assert caught.value.where == f"file {path}, target {target.name}"
    assert caught.value.reason == f"this machine cannot run its code: {lacking}"
    asked = []

    def recompile(
        contents: runtime.Contents, here: base.CpuTarget, threads: int | None
    ) -> runtime.Executable:
        asked.append((contents.sources, here, threads))
        return networks.executable(networks.CHAIN, threads=threads)

    program = runtime.load(path, threads=1, recompile=recompile)
    assert program.target == networks.NATIVE
    assert asked == [(SOURCES, networks.NATIVE, 1)]


def test_a_file_for_a_lesser_processor_runs(saved: Path) -> None:
    path = for_target(
        saved, replace(networks.NATIVE, name="less", features=networks.NATIVE.features[:2])
    )
    assert runtime.load(path).target.name == "less"


def in_cipher(data: bytes, key: bytes) -> bytes:
    """A toy cipher, which encrypts and decrypts; without a key it does nothing."""
    stream = hashlib.shake_256(key).digest(len(data)) if key else bytes(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))


def test_a_program_is_loaded_from_bytes(saved: Path) -> None:
    inputs = networks.chain_inputs()
    data = saved.read_bytes()
    saved.write_bytes(in_cipher(data, b"key"))
    for key in (b"", b"another"):
        with pytest.raises(base.ModelError, match="is not an executable"):
            runtime.load(saved, read=lambda path, key=key: in_cipher(path.read_bytes(), key))
    programs = [
        runtime.load(data, threads=1),
        runtime.load(memoryview(data), threads=1),
        runtime.load(saved, threads=1, read=lambda path: in_cipher(path.read_bytes(), b"key")),
    ]
    for program in programs:
        np.testing.assert_allclose(
            program.run(inputs)["z"], networks.chain_result(inputs), rtol=1e-6
        )
    with pytest.raises(base.ModelError, match="the bytes: it is damaged: it is cut short"):
        runtime.load(data[:-1])
    with pytest.raises(base.UsageError, match="argument read: the source is bytes"):
        runtime.load(data, read=Path.read_bytes)
    with pytest.raises(base.UsageError, match="argument read: str is not bytes"):
        runtime.load(saved, read=str)  # type: ignore[arg-type]
