"""One suite for every kind of record store: a new kind is one more subclass at the end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tensorwright.base import OutputError, RecordError
from tensorwright.records import (
    MemoryStore,
    Record,
    RecordStore,
    SavedSession,
    Status,
    WorkloadText,
    to_line,
    with_times,
)

SETTING = {"workload": "w", "target": "cpu", "hardware": "box", "threads": 2}


def make_record(number: int = 0, median_s: float = 0.5, **changes: object) -> Record:
    """A record of its own for each number; OK unless told."""
    fields: dict[str, object] = {
        **SETTING,
        "trace": f"split(i, {number})",
        "times_s": (median_s,),
        "status": Status.OK,
        "decisions": (("t0", number),),
        "round": number,
        "when": f"2026-01-01T00:00:{number % 60:02}.{number:06}Z",
    }
    return Record(**{**fields, **changes})  # type: ignore[arg-type]


def make_failure(number: int, status: Status = Status.CRASHED) -> Record:
    return make_record(number, times_s=(), status=status, error="signal 11")


class RecordStoreSuite:
    """What `RecordStore` promises. `reopen` gives another store on the same file, or the same."""

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], RecordStore]:
        raise AssertionError("each subclass says how to open its store")

    @pytest.fixture
    def store(self, open_store: Callable[[], RecordStore]) -> Iterator[RecordStore]:
        with open_store() as opened:
            yield opened

    def test_appended_records_come_out_in_order_and_equal(self, store: RecordStore) -> None:
        records = [make_record(3), make_failure(1), make_record(2, 1e-9)]
        assert store.append(records[:2]) == 2
        assert store.append(records[2:]) == 1
        assert list(store.query()) == records
        assert store.count() == 3

    def test_an_equal_record_is_the_same_fact(self, store: RecordStore) -> None:
        store.append([make_record(1), make_record(1)])
        assert store.append([make_record(1), make_record(2)]) == 1
        assert list(store.query()) == [make_record(1), make_record(2)]

    def test_every_status_and_text_survives(self, store: RecordStore) -> None:
        records = [
            make_record(n, status=status, error='line\none "ünicode" \x00 \u2028', seed=2**62)
            for n, status in enumerate(Status)
        ]
        store.append(records)
        assert list(store.query()) == records

    def test_query_selects_by_each_field(self, store: RecordStore) -> None:
        base = make_record(0)
        others = {
            "workload": make_record(1, workload="v"),
            "target": make_record(2, target="gpu"),
            "hardware": make_record(3, hardware="other"),
            "threads": make_record(4, threads=1),
            "status": make_failure(5),
        }
        store.append([base, *others.values()])
        for name, other in others.items():
            wanted = {name: getattr(other, name)}
            assert list(store.query(**wanted)) == [other]
            assert store.count(**wanted) == 1
        assert list(store.query(**SETTING, status=Status.OK)) == [base]
        assert list(store.query(workload="no such")) == []

    def test_long_queries_are_complete_and_may_be_left(self, store: RecordStore) -> None:
        records = [make_record(n) for n in range(1300)]
        store.append(records)
        assert next(store.query()) == records[0]
        assert list(store.query()) == records
        assert store.append([make_record(2000)]) == 1

    def test_best_is_the_smallest_median_among_ok_records(self, store: RecordStore) -> None:
        store.append([make_record(1, 0.3), make_record(2, 0.1), make_record(3, 0.2)])
        store.append([make_record(4, 0.01, status=Status.CENSORED), make_failure(5)])
        store.append([make_record(6, 0.001, threads=1), make_record(7, 0.001, workload="v")])
        assert store.best(**SETTING) == make_record(2, 0.1)
        assert store.best(**{**SETTING, "workload": "no such"}) is None
        assert [r.round for r in store.top(2, **SETTING)] == [2, 3]
        assert [r.round for r in store.top(9, **SETTING)] == [2, 3, 1]
        assert store.top(0, **SETTING) == ()

    def test_best_takes_the_median_not_the_fastest_run(self, store: RecordStore) -> None:
        store.append([make_record(1, times_s=(0.1, 0.9, 0.9)), make_record(2, times_s=(0.5,) * 3)])
        best = store.best(**SETTING)
        assert best is not None
        assert best.round == 2
        assert best.median_s == 0.5

    def test_a_trace_stands_by_its_newest_record(self, store: RecordStore) -> None:
        lucky = make_record(1, 0.1)
        store.append([lucky, make_record(2, 0.2)])
        store.append([with_times(lucky, (0.3,))])
        assert [r.median_s for r in store.top(9, **SETTING)] == [0.2, 0.3]
        store.append([make_failure(2, Status.WRONG_ANSWER)])
        assert [r.median_s for r in store.top(9, **SETTING)] == [0.3]

    def test_an_older_record_that_arrives_later_changes_nothing(self, store: RecordStore) -> None:
        old, new = make_record(1, 0.1), make_record(1, 0.4, when="2026-02-01T00:00:00.000000Z")
        store.append([new])
        store.append([old])
        assert store.top(9, **SETTING) == (new,)

    def test_ties_keep_the_order_of_appending(self, store: RecordStore) -> None:
        store.append([make_record(n, 0.5) for n in (4, 2, 3)])
        assert [r.round for r in store.top(3, **SETTING)] == [4, 2, 3]

    def test_workloads_and_their_texts(self, store: RecordStore) -> None:
        store.append([make_record(1, workload=key) for key in ("z", "a")], [WorkloadText("a", "A")])
        store.append([], [WorkloadText("b", "B"), WorkloadText("a", "A and program")])
        assert store.workloads() == ("z", "a")
        assert store.workload_text("a") == "A and program"
        assert store.workload_text("z") is None
        assert store.workload_texts() == (("a", "A and program"), ("b", "B"))
        store.append([], [WorkloadText("a", "A")])

    def test_prune_keeps_the_best_of_each_setting(self, store: RecordStore) -> None:
        store.append([make_record(n, 0.1 * n) for n in range(1, 6)])
        store.append([make_record(7, 9.0, threads=1), make_record(8, 1.0, status=Status.CENSORED)])
        store.append([make_failure(20), make_failure(30)])
        assert store.remove(store.surplus(2)) == 4
        assert [r.round for r in store.query()] == [1, 2, 7, 20, 30]
        assert store.remove(store.surplus(2)) == 0
        assert store.remove(store.surplus(2, failures_before=make_failure(30).when)) == 1
        assert [r.round for r in store.query()] == [1, 2, 7, 30]
        assert store.append([make_record(40)]) == 1
        assert store.count() == 5

    def test_surplus_is_what_prune_removes_and_is_told_before(self, store: RecordStore) -> None:
        store.append([make_record(n, 0.1 * n) for n in range(1, 4)])
        store.append([make_record(n, 0.1 * n, workload="other") for n in range(4, 7)])
        assert [r.round for r in store.surplus(1)] == [2, 3, 5, 6]
        assert [r.round for r in store.surplus(1, workload="other")] == [5, 6]
        assert store.count() == 6
        assert store.remove(store.surplus(1, workload="other")) == 2
        assert store.remove([make_record(1, 0.1), make_record(99)]) == 1
        assert [r.round for r in store.query()] == [2, 3, 4]

    def test_the_records_of_some_workloads_are_exported(
        self, store: RecordStore, tmp_path: Path
    ) -> None:
        given = [make_record(1, workload="a"), make_record(2, workload="b")]
        store.append(given, [WorkloadText("a", "A"), WorkloadText("b", "B")])
        assert store.export_jsonl(tmp_path / "some.jsonl", {"b"}) == 1
        with MemoryStore() as other:
            assert other.import_jsonl(tmp_path / "some.jsonl") == 1
            assert list(other.query()) == [given[1]]
            assert other.workload_texts() == (("b", "B"),)

    def test_sessions_are_replaced_by_id(self, store: RecordStore) -> None:
        first = SavedSession("1", "night", "a.onnx", '{"minutes": 10}', "{}", updated="2026")
        second = SavedSession("2", "night", "b.onnx", updated="2027")
        store.save_session(first)
        store.save_session(second)
        assert store.sessions() == (second, first)
        assert store.session("1") == first
        assert store.session("night") == second
        assert store.session("day") is None
        later = SavedSession("1", "night", "a.onnx", "{}", '{"round": 3}', updated="2028")
        store.save_session(later)
        assert store.sessions() == (later, second)

    def test_export_then_import_gives_the_same_store(
        self, store: RecordStore, tmp_path: Path
    ) -> None:
        store.append([make_record(1), make_failure(2)], [WorkloadText("w", "C[i] += 1")])
        lines = tmp_path / "out.jsonl"
        assert store.export_jsonl(lines) == 2
        assert store.import_jsonl(lines) == 0
        with MemoryStore() as other:
            assert other.import_jsonl(lines) == 2
            assert list(other.query()) == list(store.query())
            assert other.workload_texts() == store.workload_texts()

    def test_a_bad_line_is_named_and_nothing_is_imported(
        self, store: RecordStore, tmp_path: Path
    ) -> None:
        lines = tmp_path / "bad.jsonl"
        broken = json.loads(to_line(make_record(2))) | {"threads": "two"}
        lines.write_text(to_line(make_record(1)) + "\n\n" + json.dumps(broken) + "\n")
        with pytest.raises(RecordError) as caught:
            store.import_jsonl(lines)
        assert caught.value.where == f"file {lines}, line 3"
        assert "threads must be a whole number" in caught.value.reason
        assert caught.value.exit_code == 7
        assert store.count() == 0

    def test_importing_a_missing_file_or_exporting_nowhere(
        self, store: RecordStore, tmp_path: Path
    ) -> None:
        with pytest.raises(RecordError, match="cannot be read"):
            store.import_jsonl(tmp_path / "none.jsonl")
        with pytest.raises(OutputError):
            store.export_jsonl(tmp_path / "no" / "folder" / "x.jsonl")

    def test_threads_may_share_a_store(self, store: RecordStore) -> None:
        def work(first: int) -> None:
            for number in range(first, first + 20):
                store.append([make_record(number)])
                store.best(**SETTING)

        threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {r.round for r in store.query()} == {
            100 * n + m for n in range(3) for m in range(20)
        }

    def test_two_stores_on_one_file_see_each_other(
        self, open_store: Callable[[], RecordStore]
    ) -> None:
        with open_store() as one, open_store() as other:
            one.append([make_record(1)])
            assert other.append([make_record(1), make_record(2)]) == 1
            assert list(one.query()) == [make_record(1), make_record(2)]
            other.remove(other.surplus(0))
            assert one.count() == 0
            one.append([make_record(3)])
            assert list(other.query()) == [make_record(3)]

    def test_closing_twice_does_no_harm(self, store: RecordStore) -> None:
        store.close()
        store.close()


class TestMemoryStore(RecordStoreSuite):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], RecordStore]:
        store = MemoryStore()
        return lambda: store


class TestSqliteStore(RecordStoreSuite):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], RecordStore]:
        return lambda: RecordStore(tmp_path / "folder" / "records.sqlite")
