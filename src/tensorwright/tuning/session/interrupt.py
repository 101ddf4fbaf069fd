"""Ctrl-C as a request: the first one is remembered, the second one interrupts immediately."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether the user has asked to stop; a caller can also ask."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_set(self) -> bool:
        """Whether the user or a caller has asked."""
        return self._event.is_set()

    def set(self) -> None:
        """Ask to stop, from any thread."""
        self._event.set()

    @contextmanager
    def on_ctrl_c(self) -> Iterator[None]:
        """Take SIGINT as a request inside the block; outside of the main thread, do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

        def ask(number: int, frame: FrameType | None) -> None:
            if self.is_set:
                signal.signal(signal.SIGINT, before)
                raise KeyboardInterrupt
            self.set()

        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
