"""What takes long is said to everybody, all else in the log."""

import logging

import pytest

from tensorwright.base import printing, timed_stage


def test_long_stages_are_warnings(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with caplog.at_level(logging.INFO, "tensorwright.compile"):
        with timed_stage("short"):
            pass
        monkeypatch.setattr(printing, "LONG_S", 0.0)
        with pytest.raises(KeyError), timed_stage("long"):
            raise KeyError
    said = [(each.levelname, each.getMessage().partition(":")[0]) for each in caplog.records]
    assert said == [("INFO", "short"), ("WARNING", "long")]
