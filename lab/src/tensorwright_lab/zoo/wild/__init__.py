"""Networks that people write in PyTorch and export to ONNX, with seeded random weights.

`suite.py` names them; a family is a file, whose functions make an `Example`; `tuning/logs.py`
writes it as PyTorch's tracing exporter does, with all that it leaves behind: arithmetic of shapes,
constants, normalisation in pieces. PyTorch is imported in the process that exports, never in the
caller's.
"""

from tensorwright_lab.zoo.wild.suite import WILD, load_wild, make_module
