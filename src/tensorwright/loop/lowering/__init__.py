"""From a schedule state to a loop program. Read `nests.py` first, then `buffers.py`."""

from tensorwright.loop.lowering.nests import lower
