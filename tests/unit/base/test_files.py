from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tensorwright import base
from tensorwright.base import write_atomically as write


def test_writes_bytes_and_text(tmp_path: Path) -> None:
    write(tmp_path / "a", b"\x00\xff")
    write(tmp_path / "b", "é")
    assert (tmp_path / "a").read_bytes() == b"\x00\xff"
    assert (tmp_path / "b").read_bytes() == "é".encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_replaces_and_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    write(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_an_error_in_the_block_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def write_half() -> None:
        with base.atomic_writer(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_file_takes_the_place_of_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(base.OutputError, match="it is a device or a pipe"):
        write(pipe, "new")
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "no permission to write there"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_a_failed_write_is_an_output_error(
    code: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(base.OutputError) as caught:
        write(path, "new")
    assert caught.value.where == f"file {path}"
    assert caught.value.reason == reason
    assert caught.value.remedy
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(base.OutputError, match="the folder does not exist"):
        write(tmp_path / "no" / "a", "x")
    with pytest.raises(base.OutputError, match="a part of the path is not a folder"):
        write(tmp_path / "file" / "a", "x")
    with pytest.raises(base.OutputError, match="it is a folder"):
        write(tmp_path, "x")
    with pytest.raises(base.OutputError):
        base.make_folder(tmp_path / "file" / "folder")
    assert base.make_folder(tmp_path / "x" / "y").is_dir()


def test_dumps_are_numbered_files(tmp_path: Path) -> None:
    rendered: list[str] = []

    def render() -> str:
        rendered.append("x")
        return "for i in 0..4: pass"

    base.dump("loop", "after vectorize", render)
    assert rendered == []
    with base.override(dump="loop,source", dump_dir=tmp_path / "d"):
        base.dump("loop", "after vectorize/1", render)
        base.dump("asm", "not asked for", render)
        with base.dump_subject("conv2d"):
            base.dump("source", "", lambda: "define", "ll")
    first, second = sorted((tmp_path / "d").iterdir())
    assert first.name == "001-loop-after_vectorize_1.txt"
    assert second.name == "002-source-conv2d.ll"
    assert first.read_text() == "for i in 0..4: pass\n"


def test_dumps_without_a_folder_go_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with base.override(dump="graph"):
        base.dump("graph", "imported", lambda: "a = relu(x)")
    assert capsys.readouterr().err == "--- graph: imported\na = relu(x)\n"


def test_dumps_may_be_collected(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        base.override(dump="all"),
        base.collect_dumps(("graph", "asm")) as dumps,
        base.dump_subject("net"),
    ):
        base.dump("graph", "imported", lambda: "a = relu(x)")
        base.dump("loop", "hoist", lambda: "not asked for")
        assert base.is_dumped("asm", "loop")
        assert not base.is_dumped("loop")
    assert dumps == [base.Dump("graph", "net", "imported", "a = relu(x)")]
    assert capsys.readouterr().err == ""
