"""The text form of graphs, read back: lines and graphs. `graph/graph.py` has the grammar."""

from tensorwright_lab.graph_text.parse import constants_named, parse
