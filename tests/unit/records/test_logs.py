"""Log lines of AutoTVM and Ansor: read, printed, written back; bad lines are refused by place."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tensorwright.base import RecordError
from tensorwright.records import logs

CUDA = (
    '{"input": ["cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32", '
    '"conv2d_nchw.cuda", [["TENSOR", [1, 256, 14, 14], "float32"], '
    '["TENSOR", [512, 256, 1, 1], "float32"], [2, 2], [0, 0, 0, 0], [1, 1], "float32"], {}], '
    '"config": {"index": 1171968, "code_hash": null, "entity": [["tile_f", "sp", [-1, 4, 32, 2]], '
    '["tile_y", "sp", [-1, 1, 7, 1]], ["tile_x", "sp", [-1, 1, 7, 1]], '
    '["tile_rc", "sp", [-1, 8]], ["tile_ry", "sp", [-1, 1]], ["tile_rx", "sp", [-1, 1]], '
    '["auto_unroll_max_step", "ot", 1500], ["unroll_explicit", "ot", 0]]}, '
    '"result": [[2.7193e-05, 2.72e-05], 0, 1.9276, 1647281923.51], '
    '"version": 0.2, "tvm_version": "0.9.dev0"}'
)
X86 = (
    '{"input": ["llvm -mcpu=skylake-avx512", "conv2d_NCHWc.x86", '
    '[["TENSOR", [1, 3, 8, 8], "float32"], ["TENSOR", [16, 3, 3, 3], "float32"], [1, 1], '
    '[1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], {}], "config": {"index": 263, '
    '"code_hash": "a1", "entity": [["tile_ic", "sp", [-1, 3]], ["unroll_kw", "ot", true], '
    '["reorder_0", "re", [0, 2, 1]], ["ann_reduce", "an", ["unroll", "none"]]]}, '
    '"result": [[1000000000.0], 4, 10.0, 1], "version": 0.2}'
)
ANSOR = (
    '{"i": [["[\\"matmul\\", 128, [64, 32]]", "llvm -keys=cpu", [2, 64, 64, 0, 0, 0, 0, 0], "", 0, '
    '[]], [[], [["SP", 2, 0, 128, [4, 8], 1], ["RE", 2, [0, 2, 1]], ["AN", 2, 3, 2]]]], '
    '"r": [[0.0004, 0.0006], 0, 1.5, 1600000000], "v": "v0.6"}'
)


@pytest.mark.parametrize("text", [CUDA, X86])
def test_lines_of_autotvm_are_written_as_they_were(text: str) -> None:
    assert logs.format_autotvm(logs.parse_autotvm(text, "here")) == text


def test_a_line_prints() -> None:
    line = logs.parse_autotvm(CUDA, "here")
    assert line.tensors == (
        logs.LoggedTensor((1, 256, 14, 14), "float32"),
        logs.LoggedTensor((512, 256, 1, 1), "float32"),
    )
    assert str(line) == (
        "conv2d_nchw.cuda 1x256x14x14, 512x256x1x1, [2, 2], [0, 0, 0, 0], [1, 1], float32\n"
        "  configuration 1171968: tile_f -1 4 32 2; tile_y -1 1 7 1; tile_x -1 1 7 1; "
        "tile_rc -1 8; tile_ry -1 1; tile_rx -1 1; auto_unroll_max_step 1500; unroll_explicit 0\n"
        "  0.0272 ms"
    )


def test_failed_lines_have_no_time() -> None:
    result = logs.parse_autotvm(X86, "here").result
    assert math.isinf(result.latency_s)
    assert result.failure == "it failed while it ran"


def test_a_line_of_ansor() -> None:
    line = logs.parse_ansor(ANSOR, "here")
    assert line.result.latency_s == pytest.approx(0.0005)
    assert str(line) == "matmul 128, [64, 32]\n  SP RE AN\n  0.5 ms"


def _changed(text: str, *path: str | int, to: object) -> str:
    fields = json.loads(text)
    at = fields
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"i": [], "r": [], "v": 0.1}', "a line of version 0.1"),
        ('{"input": [], "config": {}}', "it lacks result, lacks version"),
        (_changed(CUDA, "version", to=0.3), "a line of version 0.3"),
        (_changed(CUDA, "extra", to=1), "it has extra"),
        (_changed(CUDA, "input", to=[]), "the input must be a list of 4 items"),
        (_changed(CUDA, "config", to=[]), "the config must have index, code_hash and entity"),
        (_changed(CUDA, "config", "entity", 0, 1, to="xx"), "entity tile_f is of an unknown kind"),
        (_changed(CUDA, "config", "entity", 0, 2, 1, to=1.5), "tile_f must be a whole number"),
        (_changed(CUDA, "config", "index", to="1"), "the index must be a whole number"),
        (_changed(CUDA, "result", 0, to=[]), "a line without an error needs costs above 0"),
        (_changed(CUDA, "result", 0, 0, to="fast"), "a cost must be a number"),
        (_changed(CUDA, "input", 2, 0, 1, to=[True]), "an extent must be a whole number"),
    ],
)
def test_bad_lines_name_file_line_and_reason(line: str, reason: str, tmp_path: Path) -> None:
    log = tmp_path / "autotvm.log"
    log.write_text(f"# measured in 2022\n{CUDA}\n\n{line}\n")
    assert logs.format_of(log) is logs.LogFormat.AUTOTVM
    with pytest.raises(RecordError) as refused:
        logs.read_log(log, logs.LogFormat.AUTOTVM)
    assert f"file {log}, line 4" in str(refused.value)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"i": []}', "it lacks r, v"),
        (_changed(ANSOR, "i", 0, 0, to="matmul"), "the workload is not JSON text"),
        (_changed(ANSOR, "i", 1, 1, to=[[]]), "a step has no name"),
    ],
)
def test_bad_lines_of_ansor(line: str, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        logs.parse_ansor(line, "file a.json, line 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CUDA, logs.LogFormat.AUTOTVM),
        ('{"i": [], "r": [], "v": 0.1}', logs.LogFormat.AUTOTVM),
        (ANSOR, logs.LogFormat.ANSOR),
        ('{"kind": "record"}', logs.LogFormat.OWN),
        ("", logs.LogFormat.OWN),
        ("[1]", logs.LogFormat.OWN),
    ],
)
def test_formats_are_recognised(text: str, expected: logs.LogFormat, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    assert logs.format_of(tmp_path / "log") is expected


def test_files_are_written_and_read(tmp_path: Path) -> None:
    lines = [logs.parse_autotvm(text, "here") for text in (CUDA, X86)]
    assert logs.write_autotvm(tmp_path / "log", lines) == 2
    found = logs.read_log(tmp_path / "log", logs.LogFormat.AUTOTVM)
    assert list(found) == [1, 2]
    assert list(found.values()) == lines
    assert all(isinstance(line, logs.AutoTvmLine) for line in found.values())


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be read"):
        logs.format_of(tmp_path / "nothing")
