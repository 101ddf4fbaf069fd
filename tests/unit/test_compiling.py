"""An executable comes back as a whole, and never where compiling would give another one."""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tensorwright
from tensorwright import compiling
from tensorwright.base import Advice, UndecidedError, UnsupportedError, knobs, override
from tensorwright.graph.imports import importer, load_onnx
from tensorwright.machine import keep_steps, kept_steps
from tensorwright.records import Record, RecordStore, SavedSession, Status, open_store
from tensorwright.runtime import Executable, default_executable_cache
from tensorwright.tuning.space.derived import sketch_rule, unregister_sketch_rule

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


def model_of(weight: float = 2.0, rows: int | str = 3) -> ModelProto:
    """y = relu(x @ w)."""
    weights = np.full((4, 8), weight, np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Relu", ["z"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 8])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """The models that went through the pipeline, in a home where executables are kept."""
    home = tmp_path / "home"
    home.mkdir()
    kernels = knobs.HOME.get() / "kernels"  # what was built before need not be built again
    (home / "kernels").symlink_to(kernels, target_is_directory=True)
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(home))
    monkeypatch.setenv("TENSORWRIGHT_EXECUTABLE_CACHE", "64")
    monkeypatch.setattr(compiling, "_SETTLED_S", 0.0)
    models: list[object] = []
    pipeline = compiling._pipeline

    def watched(model: object, options: dict[str, object]) -> Executable:
        models.append(model)
        return pipeline(model, options)

    monkeypatch.setattr(compiling, "_pipeline", watched)
    return models


@pytest.fixture
def path(tmp_path: Path) -> Path:
    name = tmp_path / "model.onnx"
    onnx.save(model_of(), name)
    return name


def result(executable: Executable) -> float:
    return float(executable.run({"x": ROWS})["y"][0, 0])


def test_the_second_time_nothing_is_compiled(compiled: list[object], path: Path) -> None:
    first, second = tensorwright.compile(path), tensorwright.compile(str(path))
    assert len(compiled) == 1
    assert second.plan == first.plan
    assert second.sources == first.sources
    assert second.threads == first.threads
    assert result(second) == result(first) == 12.0


def test_every_form_of_a_model_is_taken(compiled: list[object], path: Path) -> None:
    data = path.read_bytes()
    forms: list[Callable[[], object]] = [
        lambda: data,
        lambda: bytearray(data),
        lambda: memoryview(data),
        lambda: io.BytesIO(data),
        lambda: onnx.load(path),
        lambda: load_onnx(path),
        lambda: path.open("rb"),
    ]
    for form in forms:
        for _ in range(2):
            model = form()
            assert result(tensorwright.compile(model)) == 12.0  # type: ignore[arg-type]
            if hasattr(model, "close"):
                model.close()
    assert len(compiled) == 3  # bytes, a ModelProto, a Graph


def test_arguments_of_another_kind_are_refused(path: Path) -> None:
    with pytest.raises(tensorwright.UsageError, match="records 5: it is neither a path nor"):
        tensorwright.compile(path, records=5)
    with pytest.raises(tensorwright.UsageError, match="argument target: it is of type int"):
        tensorwright.compile(path, target=5)


def test_a_file_open_for_text_is_refused() -> None:
    with pytest.raises(tensorwright.UsageError, match="gives text"):
        tensorwright.compile(io.StringIO("a model"))  # type: ignore[arg-type]


def test_a_changed_weight_is_compiled(compiled: list[object], path: Path) -> None:
    tensorwright.compile(path)
    status = path.stat()
    onnx.save(model_of(3.0), path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as if nothing had happened
    assert path.stat().st_size == status.st_size
    assert result(tensorwright.compile(path)) == 18.0
    assert len(compiled) == 2


def test_a_changed_file_of_weights_is_compiled(compiled: list[object], tmp_path: Path) -> None:
    name = tmp_path / "apart.onnx"
    for weight in (2.0, 3.0):
        onnx.save(
            model_of(weight),
            name,
            save_as_external_data=True,
            location="w.bin",
            size_threshold=0,
        )
        expected = 6.0 * weight
        assert result(tensorwright.compile(name)) == expected
        assert result(tensorwright.compile(name)) == expected
        (tmp_path / "w.bin").rename(tmp_path / f"w-{weight}.bin")
    assert len(compiled) == 2
    with pytest.raises(tensorwright.ModelError):
        tensorwright.compile(name)
    shutil.copy(tmp_path / "w-2.0.bin", tmp_path / "w.bin")
    assert result(tensorwright.compile(name)) == 12.0


OPTIONS: list[dict[str, object]] = [
    {"threads": 1},
    {"target": "x86-64-avx2"},
    {"input_shapes": {"x": (3, 4)}},
    {"records": "other.sqlite"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: str(next(iter(each))))
def test_another_option_is_another_network(
    compiled: list[object], path: Path, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("TENSORWRIGHT_THREADS", "2")
    tensorwright.compile(path)
    for _ in range(2):
        tensorwright.compile(path, **options)  # type: ignore[arg-type]
    assert len(compiled) == 2


def test_bounds_of_sizes_are_options(compiled: list[object]) -> None:
    model = model_of(rows="n")
    for bounds in ("1..4", "1..4", "1..8"):
        executable = tensorwright.compile(model, sizes={"n": bounds})
        assert executable.sizes[0].most == int(bounds[-1])
        assert result(executable) == 12.0
    assert len(compiled) == 2


def test_a_knob_is_an_option(compiled: list[object], path: Path) -> None:
    tensorwright.compile(path)
    with override(default_schedule="rule"):
        tensorwright.compile(path)
    with override(winograd=False):
        tensorwright.compile(path)
    assert len(compiled) == 3
    with override(log="debug"):
        tensorwright.compile(path)
    assert len(compiled) == 3


def test_another_processor_is_another_network(
    compiled: list[object], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensorwright.compile(path)
    hardware = compiling.detect_hardware()
    monkeypatch.setattr(compiling, "detect_hardware", lambda: replace(hardware, cores=77))
    tensorwright.compile(path)
    assert len(compiled) == 2


@pytest.mark.usefixtures("unassumed")
def test_other_rates_of_the_machine_are_another_network(compiled: list[object], path: Path) -> None:
    target = tensorwright.compile(path).target
    flops, bandwidth = kept_steps(target) or (0, 0)  # type: ignore[arg-type]
    keep_steps(target, (flops + 1, bandwidth))  # type: ignore[arg-type]
    tensorwright.compile(path)
    assert len(compiled) == 2


def test_another_assumed_machine_is_another_network(compiled: list[object], path: Path) -> None:
    for name in ("avx512-wide", "avx512-halves", "avx512-wide"):
        with override(assume=name):
            tensorwright.compile(path, target="x86-64-sse2")
    assert len(compiled) == 2


def test_other_code_compiles_again(
    compiled: list[object], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensorwright.compile(path)
    monkeypatch.setattr(compiling, "package_digest", lambda: "of other sources")
    tensorwright.compile(path)
    assert len(compiled) == 2


def test_the_digest_of_the_package_is_that_of_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sources: Any = sys.modules["tensorwright.base.sources"]
    root = tmp_path / "package"
    file = root / "a" / "b.py"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(sources, "_ROOT", root)
    monkeypatch.setattr(sources, "source_digest", sources.source_digest.__wrapped__)
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path / "home"))
    digests = []
    for text in ("x = 1", "x = 2", "x = 1"):  # within a tick of the clock of files
        file.write_text(text)
        digests += [sources.package_digest.__wrapped__() for _ in range(2)]
    assert digests[0] == digests[1] == digests[4] == digests[5]
    assert digests[2] == digests[3] != digests[0]
    monkeypatch.setattr(sources, "_SETTLED_S", 0.0)
    assert [sources.package_digest.__wrapped__() for _ in range(2)] == digests[:2]
    assert (tmp_path / "home" / "sources.json").exists()


def record_of(executable: Executable) -> Record:
    """A measurement of the network's one workload."""
    (row,) = json.loads(executable.sources["schedules"])
    hardware = compiling.detect_hardware().fingerprint
    key, threads = executable.target.key, executable.threads
    return Record(row["key"], key, hardware, threads, row["trace"], (1e-6,), Status.OK)


def test_a_new_record_of_a_workload_is_compiled(compiled: list[object], path: Path) -> None:
    executable = tensorwright.compile(path)
    with RecordStore(knobs.HOME.get() / knobs.RECORDS_FILE) as store:
        store.append([record_of(executable)])
        again = tensorwright.compile(path)
        assert len(compiled) == 2
        assert '"source": "on record"' in again.sources["schedules"]
        tensorwright.compile(path)
        assert len(compiled) == 2
        store.remove(store.query())
    assert '"on record"' not in tensorwright.compile(path).sources["schedules"]
    assert len(compiled) == 3


def test_a_record_of_something_else_changes_nothing(compiled: list[object], path: Path) -> None:
    executable = tensorwright.compile(path)
    with RecordStore(knobs.HOME.get() / knobs.RECORDS_FILE) as store:
        record = record_of(executable)
        store.append([replace(record, workload="another"), replace(record, threads=77)])
        store.save_session(SavedSession("1", "another", "another"))
    tensorwright.compile(path)
    tensorwright.compile(path)
    assert len(compiled) == 1


def test_a_store_that_is_open_is_asked(compiled: list[object], path: Path) -> None:
    with open_store(path.parent / "records.sqlite") as store:
        executable = tensorwright.compile(path, records=store)
        tensorwright.compile(path, records=store)
        assert len(compiled) == 1
        record = record_of(executable)
        store.append([record])
        tensorwright.compile(path, records=store)
        assert len(compiled) == 2


def files() -> list[Path]:
    return sorted((knobs.HOME.get() / "executables").glob("*.tw"))


def test_a_damaged_executable_is_made_again(compiled: list[object], path: Path) -> None:
    expected = tensorwright.compile(path).plan
    (file,) = files()
    good = file.read_bytes()
    generator = np.random.default_rng(0)
    positions = [*generator.integers(0, len(good), 30), 0, 25, len(good) - 1]
    for position in map(int, positions):
        damaged = bytearray(good)
        damaged[position] ^= 0x10
        file.write_bytes(damaged)
        executable = tensorwright.compile(path)
        assert executable.plan == expected
        assert result(executable) == 12.0
    for content in (b"", good[:1000], good + b"\0", b"nothing"):
        file.write_bytes(content)
        assert result(tensorwright.compile(path)) == 12.0
    assert files()[0].read_bytes() == good


def test_a_damaged_entry_is_made_again(compiled: list[object], path: Path) -> None:
    tensorwright.compile(path)
    (entry,) = (knobs.HOME.get() / "executables").glob("*.kernel")
    good = entry.read_bytes()
    for content in (b"", good[:-1], good.replace(b"executable", b"executabel")):
        entry.write_bytes(content)
        assert result(tensorwright.compile(path)) == 12.0
    assert len(compiled) == 4
    files()[0].unlink()
    assert result(tensorwright.compile(path)) == 12.0


def test_weights_are_mapped_and_not_copied(compiled: list[object], path: Path) -> None:
    tensorwright.compile(path)
    (constant,) = tensorwright.compile(path).contents.constants
    assert not constant.flags.owndata
    assert not constant.flags.writeable
    assert str(files()[0]) in Path("/proc/self/maps").read_text()


def test_the_cache_stays_within_its_limit(
    compiled: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    tensorwright.compile(model_of())
    cache = default_executable_cache()
    assert cache is not None
    size = files()[0].stat().st_size
    monkeypatch.setattr(cache, "limit_bytes", 3 * size)
    for weight in range(5, 10):
        tensorwright.compile(model_of(float(weight)))
    assert len(files()) <= 3
    monkeypatch.setattr(cache, "limit_bytes", 0)
    cache.clear()
    tensorwright.compile(model_of())
    assert (cache.count(), cache.size_bytes()) == (0, 0)


def test_nothing_is_kept_where_knobs_say_so(
    compiled: list[object], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TENSORWRIGHT_KERNEL_CACHE", "TENSORWRIGHT_EXECUTABLE_CACHE"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "0")
            tensorwright.compile(path)
    assert files() == []


def test_who_watches_kernels_sees_them(compiled: list[object], path: Path) -> None:
    tensorwright.compile(path)
    seen: list[object] = []
    tensorwright.compile(path, on_kernel=lambda *given: seen.append(given))
    assert len(seen) == 1
    with override(dump="graph", dump_dir=path.parent / "dumps"):
        tensorwright.compile(path)
    assert list((path.parent / "dumps").iterdir())


def test_rules_of_ones_own_are_not_taken_for_those_of_the_package(
    compiled: list[object], path: Path
) -> None:
    tensorwright.compile(path)
    rule = sketch_rule(applies=lambda view: False)(lambda view: ())
    tensorwright.compile(path)
    unregister_sketch_rule(rule.name)
    tensorwright.compile(path)
    assert len(compiled) == 2


def _with_missing_operators() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("RandomNormalLike", ["a"], ["b"], name="noise"),
        helper.make_node("Bernoulli", ["b"], ["c"], name="coin"),
        helper.make_node("Bernoulli", ["c"], ["y"], name="again"),
    ]
    weights = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    shape = ("n", 64)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_all_missing_operators_are_one_list_and_no_weight_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.onnx"
    onnx.save(_with_missing_operators(), file)
    monkeypatch.setattr(compiling, "_LEAST_CHECKED_BYTES", 1)
    monkeypatch.setattr(compiling, "_digest_of", lambda _: pytest.fail("it was digested"))
    monkeypatch.setattr(importer, "to_array", lambda *_: pytest.fail("a weight was read"))
    with pytest.raises(UnsupportedError, match="2 operators are missing") as refused:
        tensorwright.compile(file)
    assert "RandomNormalLike (node noise (RandomNormalLike)): its result" in refused.value.reason
    assert "Bernoulli (node coin (Bernoulli) and 1 more): its result" in refused.value.reason


def test_an_executable_that_is_too_large_for_the_disk_is_shared_in_its_process(
    compiled: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compiling.ExecutableCache, "put", lambda *_: False)
    file = tmp_path / "model.onnx"
    onnx.save(model_of(), file)
    first = tensorwright.compile(file)
    second = tensorwright.compile(file)
    assert len(compiled) == 1
    assert second.contents is first.contents
    np.testing.assert_array_equal(second(ROWS), first(ROWS))
    onnx.save(model_of(weight=3.0), file)
    assert not np.array_equal(tensorwright.compile(file)(ROWS), first(ROWS))
    assert len(compiled) == 2


def test_an_executable_may_take_the_whole_limit_and_not_more(
    compiled: list[object], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = default_executable_cache()
    contents = tensorwright.compile(path).contents
    size_bytes = sum(map(len, contents.objects)) + sum(a.nbytes for a in contents.constants)
    for limit_bytes, kept in ((size_bytes, 1), (size_bytes - 1, 0)):
        cache.clear()
        monkeypatch.setattr(cache, "limit_bytes", limit_bytes)
        tensorwright.compile(path)
        assert cache.count() == kept
    monkeypatch.setattr(cache, "limit_bytes", size_bytes)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, size_bytes))
    tensorwright.compile(path)
    assert cache.count() == 0


def test_a_refusal_is_kept_with_its_advice(
    compiled: list[object], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advice = Advice('sizes={"n": 3}', '--sizes "n=3"')
    error = UndecidedError(
        stage="import", where="a node", reason="n decides", remedy=advice, names=("n",)
    )

    def refuse(model: object, _: object) -> Executable:
        compiled.append(model)
        raise error

    monkeypatch.setattr(compiling, "_pipeline", refuse)
    for _ in range(2):
        with pytest.raises(UndecidedError) as refused:
            tensorwright.compile(path, sizes="fixed")
        assert refused.value == error
        assert refused.value.for_command().remedy == '--sizes "n=3"'
        assert not tensorwright.compile(path).instances.kept
    assert len(compiled) == 1


def test_only_programs_of_numbers_are_given_where_sizes_are_fixed(
    compiled: list[object], tmp_path: Path
) -> None:
    file = tmp_path / "open.onnx"
    onnx.save(model_of(rows="n"), file)
    for _ in range(2):
        fixed = tensorwright.compile(file, sizes="fixed")
        assert type(fixed) is Executable
    assert type(tensorwright.compile(file)) is not Executable
    assert len(compiled) == 1
