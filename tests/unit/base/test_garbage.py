"""Collections wait for the end of the work, also where it is nested or fails."""

import gc

import pytest

from tensorwright.base import without_collection


def test_collection_waits_for_the_outermost_work() -> None:
    assert gc.isenabled()
    with without_collection():
        with without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_failure_lets_it_go_on() -> None:
    with pytest.raises(KeyError), without_collection():
        raise KeyError
    assert gc.isenabled()


def test_who_had_switched_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
