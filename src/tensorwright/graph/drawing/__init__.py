"""Two graphs side by side, with coloured differences.  Read `difference.py`, then `dot.py`."""

from tensorwright.graph.drawing.difference import compare_graphs
from tensorwright.graph.drawing.difference_text import difference_text
from tensorwright.graph.drawing.dot import difference_dot

__all__ = ["compare_graphs", "difference_dot", "difference_text"]
