"""Ctrl-C is a wish first, and an order when it is repeated; turns to measure can be waited for."""

from __future__ import annotations

import signal
import threading

import pytest

from tensorwright.tuning.session import Interrupt


def test_the_first_ctrl_c_is_remembered_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupt = Interrupt()
    with interrupt.on_ctrl_c():
        assert not interrupt.is_set
        signal.raise_signal(signal.SIGINT)
        assert interrupt.is_set
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def look() -> None:
        with Interrupt().on_ctrl_c():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]
