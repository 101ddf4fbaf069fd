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


def test_what_was_made_meanwhile_counts_as_old() -> None:
    with without_collection():
        made: list[object] = []
    assert not any(each is made for each in gc.get_objects(generation=0))
    assert any(each is made for each in gc.get_objects(generation=2))


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with without_collection():
            pass
        assert gc.get_freeze_count() == count > 0
    finally:
        gc.unfreeze()
