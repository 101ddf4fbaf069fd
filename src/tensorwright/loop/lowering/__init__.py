"""From a schedule state to a loop program. Read `nests.py` first, then `homes.py`."""

from tensorwright.loop.lowering.nests import lower

__all__ = ["lower"]
