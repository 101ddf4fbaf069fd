from __future__ import annotations

import time

from tensorwright.runtime import calls_per_sample, measure, time_calls


def test_a_sample_lasts_as_long_as_asked() -> None:
    calls = []
    times_s = measure(lambda: calls.append(1), min_time_s=0.002, repeats=3)
    assert len(times_s) == 3
    assert all(0 < time_s < 1e-4 for time_s in times_s)
    assert len(calls) > 100


def test_a_long_call_is_a_sample() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        time.sleep(0.003)

    (time_s,) = measure(work, min_time_s=0.001, repeats=1)
    assert 0.003 <= time_s < 0.1
    assert len(calls) == 3  # one to warm up, one to count, one that counts


def test_counting_stops() -> None:
    assert calls_per_sample(lambda: time.sleep(0.001), 0.0) == 1
    assert time_calls(lambda: time.sleep(0.001), 2) >= 0.001
