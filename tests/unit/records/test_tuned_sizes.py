"""For which sizes workloads were tuned."""

from __future__ import annotations

from tensorwright import records


def test_points_of_several_sessions_are_told_each_once() -> None:
    store = records.MemoryStore()
    records.save_tuned_sizes(store, ["one", "two"], [{"n": 1}, {"n": 8}], "net")
    records.save_tuned_sizes(store, ["one", "two"], [{"n": 8}, {"n": 64}], "net")
    records.save_tuned_sizes(store, ["two", "three"], [{"n": 2}], "other")
    assert records.load_tuned_sizes(store, "one") == ({"n": 1}, {"n": 8}, {"n": 64})
    assert records.load_tuned_sizes(store, "three") == ({"n": 2},)
    assert sorted(point["n"] for point in records.load_tuned_sizes(store, "two")) == [1, 2, 8, 64]
    assert records.load_tuned_sizes(store, "four") == ()


def test_texts_of_another_version_are_passed_over() -> None:
    store = records.MemoryStore()
    arguments = '{"kind": "tuned sizes", "workloads": ["one"]}'
    for number, state in enumerate(('{"points": 3}', "{}", '{"points": [[1]]}')):
        store.save_session(records.SavedSession(str(number), "", "", arguments, state))
    assert records.load_tuned_sizes(store, "one") == ()
