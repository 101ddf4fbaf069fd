"""Other runtimes at their best, each in a process of its own, for `bench`.

Read process/protocol.py first (what a competitor must do), then process/rotation.py (how times
are compared). A new competitor is one module with a class that keeps `Peer`, and one line in
process/kinds.py. The process of a competitor imports `process` and its own module only: import the
three folders, there is nothing in this one.
"""

__all__: list[str] = []
