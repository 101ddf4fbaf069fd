"""Pause Python's search for cycles during work that makes many small objects without cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the collection of cycles inside the block; reference counts still free objects.

    Expressions, states and loop nests have no cycles. Collections would walk through all of them
    and take a third of the time. Objects that are left after the block count as old: only a full
    collection looks at them. A block should take some seconds at most; blocks may be nested.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # somebody else's frozen objects stay frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
