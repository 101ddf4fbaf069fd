"""Work that makes many small objects without cycles, done without looking for cycles among them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Let Python look for no cyclic garbage meanwhile; reference counts free what is not needed.

    Expressions, states and loop nests have no cycles, but there are so many that collections,
    which walk through everything that lives, take a third of the time.  What is left afterwards
    counts as old: the next collection of everything looks at it, none does so at once.  For work of
    at most some seconds.  May be nested.
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
