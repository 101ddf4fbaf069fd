"""The text form of graphs, read back: lines, graphs, files. `graph.py` has the grammar."""
