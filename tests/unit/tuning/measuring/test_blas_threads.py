from __future__ import annotations

import numpy as np
import pytest

from tensorwright.tuning.measuring import expected_results
from tensorwright.tuning.measuring.expected_results import one_blas_thread


def test_products_run_on_one_thread_inside_and_on_as_many_as_before_outside() -> None:
    threads = expected_results._find_openblas()
    if threads is None:
        pytest.skip("NumPy has another BLAS here")
    before = threads.get()
    square = np.ones((50, 50))
    with one_blas_thread() as is_limited:
        assert is_limited
        assert threads.get() == 1
        assert (square @ square == 50).all()
    assert threads.get() == before


def test_another_blas_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_results, "_find_openblas", lambda: None)
    with one_blas_thread() as is_limited:
        assert not is_limited
