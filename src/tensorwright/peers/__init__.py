"""Other runtimes, each in a process of its own: to check answers, and to rewrite graphs for one.

Read process/protocol.py first (what a runtime must do), then process/rotation.py (how times are
compared). A new one is a module with a class that keeps `Peer`, and one line in process/kinds.py.
Its process imports `process` and its own module only: import the folders, there is nothing in this
one.
"""

__all__: list[str] = []
