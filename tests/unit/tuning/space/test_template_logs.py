"""Lines of AutoTVM as seeds of templates here, and records of templates as its lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.targets import AVX512
from tests.unit.tuning.helpers import matmul

from tensorwright.cli.foreign_logs import import_log
from tensorwright.graph import Graph
from tensorwright.pipeline import prepare
from tensorwright.records import MemoryStore, Record, Setting, Status
from tensorwright.records.logs import LogFormat, format_autotvm, parse_autotvm, write_autotvm
from tensorwright.schedule import parse_trace, replay, state_of
from tensorwright.tuning.logs import LineWriter, graph_of_task, seed_of
from tensorwright.tuning.population.population import candidate_of
from tensorwright.tuning.session.ranking import seeds_of
from tensorwright.tuning.space import SpaceKind, space_of

Entity = tuple[str, str, object]
X = ["TENSOR", [32, 64], "float32"]
W = ["TENSOR", [128, 64], "float32"]
IMAGE = ["TENSOR", [1, 64, 14, 14], "float32"]
FILTERS = ["TENSOR", [64, 64, 3, 3], "float32"]
DENSE = ("dense_nopack.x86", [X, W, None, "float32"])
CONV = ("conv2d_NCHWc.x86", [IMAGE, FILTERS, [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW"])


def line(task: str, arguments: list[object], *entities: Entity, error_no: int = 0) -> str:
    config = {"index": 1, "code_hash": None, "entity": entities}
    fields = {
        "input": ["llvm", task, arguments, {}],
        "config": config,
        "result": [[1e9 if error_no else 2e-4], error_no, 1.0, 1.0],
        "version": 0.2,
        "tvm_version": "0.8",
    }
    return json.dumps(fields)


def seed(text: str) -> dict[str, int] | str:
    """The decisions of the seed of a line, or why there is none."""
    parsed = parse_autotvm(text, "here")
    graph = graph_of_task(parsed)
    assert isinstance(graph, Graph)
    (workload,) = prepare(graph, AVX512).workloads
    state = state_of(workload)
    found = seed_of(parsed, state, AVX512)
    if isinstance(found, str):
        return found
    replay(state, parse_trace(found.candidate.trace))
    return dict(found.candidate.decisions)


TILE_I: Entity = ("tile_y", "sp", [-1, 4])
TILE_J: Entity = ("tile_x", "sp", [-1, 64])


def test_a_line_with_our_knobs_is_a_seed() -> None:
    found = seed(line(*DENSE, TILE_I, TILE_J, ("tile_k", "sp", [-1, 8])))
    sizes = {"tile_i_1": 1, "tile_i_2": 4, "tile_j_1": 1, "tile_j_2": 64, "tile_k": 8}
    assert found == sizes


def test_structural_knobs_choose_the_sketch() -> None:
    entities = ("tile_ic", "sp", [-1, 8]), ("tile_oc", "sp", [-1, 16])
    parsed = parse_autotvm(line(*CONV, *entities, ("unroll_kw", "ot", True)), "here")
    graph = graph_of_task(parsed)
    assert isinstance(graph, Graph)
    (workload,) = prepare(graph, AVX512).workloads
    found = seed_of(parsed, state_of(workload), AVX512)
    assert not isinstance(found, str)
    assert "unroll_taps True" in found.candidate.sketch
    assert dict(found.candidate.decisions)["tile_ic"] == 8


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        (("tile_inner", "sp", [-1, 1]), "direct: no knob tile_inner"),
        (("tile_y", "sp", [-1, 5]), "direct: tile_y -1 5 is none of its values"),
        (("tile_y", "sp", [-1, 16]), "the tiles do not fit into registers"),
        (("tile_y", "ot", 4), "direct: tile_y 4 is none of its values"),
        (("tile_y", "sp", [-1, 1, 1, 4]), "direct: tile_y -1 1 1 4 is none of its values"),
    ],
)
def test_other_lines_are_refused_with_a_reason(entity: Entity, reason: str) -> None:
    found = seed(line(*DENSE, TILE_J, entity))
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize(
    ("task", "arguments", "reason"),
    [
        ("sort.x86", [X], "no program is known for the task sort.x86"),
        ("dense.x86", [X, ["TENSOR", [128, 65], "float32"]], "its arguments are none of dense.x86"),
        ("dense.x86", [["TENSOR", [32, 64], "int8"], W], "its tensors are not float32"),
        ("conv2d.x86", [IMAGE, FILTERS, [1], [1], [1]], "its arguments are none of conv2d.x86"),
    ],
)
def test_tasks_without_a_program(task: str, arguments: list[object], reason: str) -> None:
    found = graph_of_task(parse_autotvm(line(task, arguments), "here"))
    assert isinstance(found, str)
    assert found.startswith(reason)


@pytest.mark.parametrize(
    ("task", "filters"),
    [
        ("depthwise_conv2d_NCHWc.x86", [64, 1, 3, 3]),
        ("conv2d_nchw.cuda", [32, 64, 3, 3]),
        ("group_conv2d_nchw.cuda", [32, 16, 3, 3]),
    ],
)
def test_convolutions_of_all_kinds(task: str, filters: list[int]) -> None:
    arguments = [IMAGE, ["TENSOR", filters, "float32"], [2, 2], [1, 1, 1, 1], [1, 1]]
    graph = graph_of_task(parse_autotvm(line(task, arguments), "here"))
    assert isinstance(graph, Graph)
    (output,) = graph.outputs
    assert graph.types[output].shape == (1, 64 if task.startswith("depth") else 32, 7, 7)


def test_seeds_are_tried_and_not_believed(tmp_path: Path) -> None:
    log = tmp_path / "autotvm.log"
    fits = line(*DENSE, TILE_I, TILE_J, ("tile_k", "sp", [-1, 8]))
    log.write_text(fits + "\n" + line(*DENSE, TILE_I, error_no=4) + "\n")
    store = MemoryStore()
    rows = import_log(log, LogFormat.AUTOTVM, store, AVX512, ())
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][3].startswith("seed of matmul ")
    assert rows[1][2:] == ("-", "it failed while it ran")
    graph = graph_of_task(parse_autotvm(fits, "here"))
    assert isinstance(graph, Graph)
    (workload,) = prepare(graph, AVX512).workloads
    (found,) = seeds_of(store, Setting(AVX512, 2, "x86_64-2c-avx512f-0"), workload, 4)
    assert dict(found.decisions)["tile_k"] == 8
    assert store.best(workload=workload.key, target=AVX512.key, hardware="other", threads=2) is None


def test_records_of_templates_are_lines_and_seeds_again(tmp_path: Path) -> None:
    workload = matmul(64)
    space = space_of(state_of(workload), AVX512, kind=SpaceKind.TEMPLATES)
    sketch = space.sketches[1]
    candidate = candidate_of(sketch, tuple(sorted(sketch.defaults.items())))

    def record(trace: str, decisions: tuple[tuple[str, int], ...]) -> Record:
        where = {"workload": workload.key, "target": AVX512.key, "hardware": "h", "threads": 1}
        return Record(**where, trace=trace, decisions=decisions, times_s=(1e-4,), status=Status.OK)  # type: ignore[arg-type]

    writer = LineWriter(workload, AVX512)
    assert writer.line_of(record("parallel(relu, i)", ())) is None
    found = writer.line_of(record(candidate.trace, candidate.decisions))
    assert found is not None
    assert [entity.name for entity in found.entities] == [knob.name for knob in sketch.knobs]
    assert space.sketches[0].size < found.index < space.size * 4
    assert format_autotvm(parse_autotvm(format_autotvm(found), "here")) == format_autotvm(found)
    write_autotvm(tmp_path / "log", [found])
    store = MemoryStore()
    (row,) = import_log(tmp_path / "log", LogFormat.AUTOTVM, store, AVX512, [workload])
    assert row[3] == f"seed of {workload.name} {workload.key}"
    assert [each.trace for each in store.query()] == [candidate.trace]
    (row,) = import_log(tmp_path / "log", LogFormat.AUTOTVM, store, AVX512, ())
    assert "is not among the programs given with --of" in row[3]
