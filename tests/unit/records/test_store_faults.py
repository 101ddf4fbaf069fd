"""Files that are corrupt, foreign, locked or newer; killed writers, two writers, a full disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tensorwright import records
from tensorwright.base import OutputError, RecordError, override


def make_record(number: int, trace: str = "") -> records.Record:
    return records.Record(
        "w", "cpu", "box", 1, trace or f"t{number}", (0.5,), records.Status.OK, round=number
    )


def start_child(code: str, *arguments: object, stderr: int | None = None) -> subprocess.Popen[str]:
    prelude = """
        import resource, sys
        from tensorwright.base import OutputError
        from tensorwright.records import Record, RecordStore, Status
        def make_record(number, trace=""):
            trace = trace or f"t{number}"
            return Record("w", "cpu", "box", 1, trace, (0.5,), Status.OK, round=number)
        path = sys.argv[1]
    """
    source = textwrap.dedent(prelude) + textwrap.dedent(code)
    command = [sys.executable, "-c", source, *map(str, arguments)]
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
    )


# A file that is not ours is refused and left as it was.


@pytest.mark.parametrize("content", [b"hello, world\n" * 100, b"SQLite format 2\x00" + b"x" * 99])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.sqlite"
    path.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        records.RecordStore(path)
    assert caught.value.where == f"file {path}"
    assert caught.value.reason == (
        "it is not an SQLite database, not a record store of tensorwright"
    )
    assert caught.value.remedy == "move the file away, or name another one"
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE record (trace TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(RecordError, match="the database of another program"):
        records.RecordStore(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    records.RecordStore(path).close()
    database = sqlite3.connect(path)
    database.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    database.commit()
    database.close()
    with pytest.raises(RecordError, match="schema 99, made by a newer tensorwright") as caught:
        records.RecordStore(path)
    assert caught.value.remedy.startswith("upgrade tensorwright")


@pytest.mark.parametrize("kept", [100, 5000])
def test_a_truncated_database_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "records.sqlite"
    with records.RecordStore(path) as store:
        store.append(make_record(n) for n in range(200))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RecordError, match="corrupt") as caught, records.RecordStore(path) as store:
        list(store.query())
    assert "recover" in caught.value.remedy


def test_damage_that_sqlite_cannot_describe(tmp_path: Path) -> None:
    """SQLite quotes the bytes of the damaged table, and Python cannot decode its message."""
    path = tmp_path / "records.sqlite"
    records.RecordStore(path).close()
    content = path.read_bytes()
    assert content.count(b"CREATE TABLE meta") == 1
    path.write_bytes(content.replace(b"CREATE TABLE meta", b"CREATE TABLE \xff\xfe\xff("))
    with pytest.raises(RecordError, match="corrupt"):
        records.RecordStore(path)


def read_everything(store: records.RecordStore) -> None:
    list(store.query())
    store.top(9, workload="w", target="cpu", hardware="box", threads=1)
    store.workloads()


def test_damage_inside_is_found(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    with records.RecordStore(path) as store:
        store.append(make_record(n) for n in range(300))
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(RecordError, match="corrupt"), records.RecordStore(path) as store:
        read_everything(store)


def test_a_row_that_holds_no_record_is_named(tmp_path: Path) -> None:
    with records.RecordStore(tmp_path / "records.sqlite") as store:
        store.append([make_record(1)])
        database = sqlite3.connect(store.path)
        database.execute("UPDATE record SET times_s = 'fast'")
        database.commit()
        database.close()
        with pytest.raises(RecordError, match="the row is not a record"):
            list(store.query())


def test_a_locked_database_says_so(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    records.RecordStore(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with records.RecordStore(path, busy_s=0.05) as store, pytest.raises(RecordError) as caught:
        store.append([make_record(1)])
    other.close()
    assert caught.value.reason == "another process has locked it"


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = records.RecordStore(tmp_path / "records")
    store.close()
    with pytest.raises(RecordError, match="has been closed"):
        store.append([make_record(1)])


def test_a_path_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        records.RecordStore(tmp_path / "file" / "records")
    with pytest.raises((OutputError, RecordError)):
        records.RecordStore(tmp_path)


def test_a_read_only_store_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a folder?#%" / "records.sqlite"
    with records.RecordStore(path) as store:
        store.append([make_record(1)])
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = sorted(path.parent.iterdir())
    with records.RecordStore(path) as store:
        assert [record.round for record in store.query()] == [1]
        with pytest.raises(OutputError, match="cannot be opened for writing"):
            store.append([make_record(2)])
    assert sorted(path.parent.iterdir()) == before


# Other processes.


def test_a_killed_writer_loses_at_most_the_row_in_flight(tmp_path: Path) -> None:
    code = """
        with RecordStore(path) as store:
            number = 0
            while True:
                store.append([make_record(number)])
                print(number, flush=True)
                number += 1
    """
    path = tmp_path / "records"
    child = start_child(code, path)
    assert child.stdout is not None
    for _ in range(20):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    told = [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    child.stdout.close()
    child.wait()
    last = int(told[-1]) if told else 19
    with records.RecordStore(path) as store:
        found = [record.round for record in store.query()]
        assert found in (list(range(last + 1)), list(range(last + 2)))
        assert store.append([make_record(-1 + 10**6)]) == 1


def test_two_processes_may_append_to_one_file(tmp_path: Path) -> None:
    code = """
        first = int(sys.argv[2])
        with RecordStore(path) as store:
            for number in range(first, first + 40):
                store.append([make_record(number)])
    """
    path = tmp_path / "new" / "records"
    children = [start_child(code, path, first) for first in (0, 1000)]
    for child in children:
        assert child.stdout is not None
        with child:
            assert child.stdout.read() == ""
        assert child.returncode == 0
    with records.RecordStore(path) as store:
        found = [record.round for record in store.query()]
        for first in (0, 1000):
            assert [n for n in found if first <= n < first + 40] == list(range(first, first + 40))
        assert len(found) == 80


def test_a_full_disk_is_an_output_error_and_loses_nothing(tmp_path: Path) -> None:
    code = """
        with RecordStore(path) as store:
            store.append([make_record(0)])
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
            try:
                store.append(make_record(n, "x" * 10_000 + str(n)) for n in range(1, 60))
            except OutputError as error:
                print(error.reason, "|", error.remedy)
            print(store.count())
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            store.append([make_record(1)])
            print(store.count())
    """
    child = start_child(code, tmp_path / "records")
    assert child.stdout is not None
    with child:
        said, count, after = child.stdout.read().splitlines()
    assert "one of this " in said
    assert said.endswith("earlier records are safe")
    assert (count, after) == ("1", "2")
    with records.RecordStore(tmp_path / "records") as store:
        assert [record.round for record in store.query()] == [0, 1]


def test_a_spare_store_goes_on_in_memory_when_the_disk_is_full(tmp_path: Path) -> None:
    code = """
        import warnings
        warnings.simplefilter("always")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        with RecordStore(path, spare=True) as store:
            store.append([make_record(0)])
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
            print(store.append(make_record(n, "x" * 10_000 + str(n)) for n in range(1, 60)))
            print(store.count(), store.has_lost_its_file)
        with RecordStore(path + ".new", spare=True) as store:
            print(store.count())
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        with RecordStore(path + ".other", spare=True) as store:
            print(store.append([make_record(0)]), store.count())
    """
    child = start_child(code, tmp_path / "records", stderr=subprocess.PIPE)
    with child:
        said, told = child.communicate()
    assert said.splitlines() == ["59", "60 True", "0", "1 1"], told
    assert told.count("RuntimeWarning: file ") == 2
    assert "The search goes on" in told
    with records.RecordStore(tmp_path / "records") as store:
        assert [record.round for record in store.query()] == [0]


def test_the_default_path_lies_in_the_home_knob(tmp_path: Path) -> None:
    with override(home=str(tmp_path)):
        assert records.default_path() == tmp_path / "records.sqlite"


def test_a_store_is_opened_by_its_name(tmp_path: Path) -> None:
    with override(home=str(tmp_path)):
        with records.open_store(create=False) as store:
            assert isinstance(store, records.MemoryStore)
        assert not records.default_path().exists()
        with records.open_store() as store:
            assert isinstance(store, records.RecordStore)
        assert records.default_path().exists()
        with records.open_store(create=False) as store:
            assert isinstance(store, records.RecordStore)


def test_json_lines_are_read_and_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "x.JSONL"
    with records.MemoryStore() as store:
        store.append([make_record(1), make_record(2)])
        store.export_jsonl(path)
    before = path.read_bytes()
    with pytest.raises(RecordError, match="JSON lines are for exchange") as caught:
        records.open_store(path)
    assert f"tensorwright records import {path} --records FILE.sqlite" in caught.value.remedy
    with records.open_store(path, create=False) as store:
        assert [record.round for record in store.query()] == [1, 2]
        with pytest.raises(RecordError, match="JSON lines are for exchange"):
            store.remove(store.surplus(0))
    assert path.read_bytes() == before


def test_a_write_waits_for_the_write_of_another_process(tmp_path: Path) -> None:
    database = tmp_path / "records.sqlite"
    with records.RecordStore(database) as store:
        other = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        timer = threading.Timer(0.2, other.execute, ["COMMIT"])
        timer.start()
        store.append([make_record(1)])
        assert [record.round for record in store.query()] == [1]
        timer.join()
        other.close()
