"""Where the threads of a group wait for each other. Read `placement.py` first.

accesses.py     what a statement loads and stores of the memory that threads see together
same_thread.py  whether two accesses of an element are made by one thread
"""

from tensorwright.loop.passes.barriers.placement import place_barriers

__all__ = ["place_barriers"]
