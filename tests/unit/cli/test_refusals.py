"""What commands refuse, whole: the message, the exit code, and that no file is made or changed.

`refusals.txt` has commands and what they print; `--golden-update` writes what is behind them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result
from tests.tables import check_transcript

Invoke = Callable[..., Result]
MakeOnnx = Callable[..., Path]
PAGE = Path(__file__).with_name("refusals.txt")
LOG = (
    '{"input": ["llvm", "dense", [], {}], "config": {"index": 1, "code_hash": null, "entity": []},'
    ' "result": [[0.001], 0, 1.0, 1.0], "version": 0.2, "tvm_version": "0.8"}\n'
)
KINDS = {2: "Usage", 3: "Model", 4: "Unsupported", 5: "Input", 7: "Record", 8: "Output"}


@pytest.fixture
def here(
    invoke: Invoke, model: Path, own: Path, make_onnx: MakeOnnx, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with all that commands of the page name, and more that is damaged."""
    folder = model.parent
    monkeypatch.chdir(folder)
    assert own.parent == folder
    make_onnx("Frobnicate", [2, 3]).rename("frobnicate.onnx")
    make_onnx("Abs", [2, 3], onnx.TensorProto.COMPLEX64).rename("complex.onnx")
    make_onnx("Relu", ["N", "M"]).rename("two_open.onnx")
    make_onnx("Relu", ["N", 3]).rename("open.onnx")
    for words in ("tiny.onnx -o tiny.tw", "open.onnx -o open.tw --sizes N=1..9"):
        assert invoke("compile", *words.split(), "--threads", 1).exit_code == 0
    weights = {"location": "beside.bin", "size_threshold": 0}
    onnx.save(onnx.load(model), "beside.onnx", save_as_external_data=True, **weights)
    shutil.copy(model, "model.tw")
    for whole, cut in (("tiny.onnx", "cut.onnx"), ("tiny.tw", "cut.tw")):
        content = Path(whole).read_bytes()
        Path(cut).write_bytes(content[: len(content) // 2])
    texts = {"text.onnx": "hello, this is text\n", "text.npy": "1 2 3", "log.json": LOG}
    for name, text in (texts | {"notes.txt": "my notes\n" * 100}).items():
        Path(name).write_text(text)
    np.save("right.npy", np.zeros((4, 8), np.float32))
    np.save("narrow.npy", np.zeros((4, 7), np.float32))
    np.save("integers.npy", np.zeros((4, 8), np.int32))
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    np.savez("several.npz", a=np.zeros(2), b=np.zeros(2))
    np.savez("w.npz", w=np.ones((24, 24), np.float32))
    shutil.copy("w.npz", "arrays.onnx")
    Path("torn.npz").write_bytes(Path("several.npz").read_bytes()[:60])
    with sqlite3.connect("foreign.sqlite") as database:
        database.execute("create table friends (name text)")
    database.close()
    return folder


NO_MATTER = {"kernels", "__pycache__", "records.sqlite"}


def contents(folder: Path) -> dict[Path, bytes]:
    """Of all files but kernels, imported modules and the user's store, which may be opened."""
    kept = (path for path in folder.rglob("*") if not NO_MATTER & {*path.parts})
    return {path: path.read_bytes() if path.is_file() else b"" for path in kept}


@pytest.mark.golden
def test_what_is_refused(invoke: Invoke, here: Path, request: pytest.FixtureRequest) -> None:
    before = contents(here)

    def answer(line: str) -> str:
        result = invoke(*shlex.split(line.replace("HERE", str(here))))
        kind = KINDS[result.exit_code]
        assert result.stderr.startswith(f"{kind}Error: "), f"{line}\n{result.output}"
        assert contents(here) == before, line
        text = result.output.replace(str(here), "HERE").rstrip()
        return re.sub(r"\d+( bytes instead of )\d+", r"N\1M", text)

    check_transcript(request, PAGE, "$ ", answer)
