"""All stores answer alike, whatever is appended, pruned and asked."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.records import MemoryStore, Record, RecordStore, Status

MOMENTS = [f"2026-01-0{day}T00:00:00.000000Z" for day in (1, 2, 3)]

records = st.builds(
    Record,
    workload=st.sampled_from("vw"),
    target=st.just("cpu"),
    hardware=st.just("box"),
    threads=st.sampled_from((1, 2)),
    trace=st.sampled_from(("", "split(i, 4)", "vectorize(j)")),
    times_s=st.sampled_from(((0.5,), (0.25, 0.5, 0.75), (0.125,))),
    status=st.sampled_from((Status.OK, Status.OK, Status.CENSORED, Status.CRASHED)),
    round=st.integers(0, 1),
    when=st.sampled_from(MOMENTS),
)
batches = st.lists(records, max_size=6)
prunings = st.tuples(st.integers(0, 2), st.sampled_from((None, *MOMENTS)))
steps = st.lists(st.one_of(batches, prunings), max_size=6)


@given(steps)
@settings(max_examples=20)
def test_all_stores_agree(plan: list[list[Record] | tuple[int, str | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stores = [
            stack.enter_context(store)
            for store in (
                MemoryStore(),
                RecordStore(Path(folder) / "r.sqlite"),
            )
        ]
        for step in plan:
            if isinstance(step, list):
                assert len({store.append(step) for store in stores}) == 1
            else:
                assert len({store.remove(store.surplus(*step)) for store in stores}) == 1
            assert len({tuple(store.query()) for store in stores}) == 1
            assert len({store.workloads() for store in stores}) == 1
            for workload in "vw":
                tops = {
                    store.top(9, workload=workload, target="cpu", hardware="box", threads=2)
                    for store in stores
                }
                assert len(tops) == 1
