"""Other runtimes, each in a separate process: to check answers, and to rewrite graphs for one.

Read process/protocol.py first (what a runtime must do), then process/rotation.py (how times are
compared). A new runtime is a module with a class that fulfils `Peer`, and one line in
process/protocol.py. Its process imports only `process` and its own module, so this module is empty:
import the folders.
"""
