"""Write graphs as ONNX models. Start with `exporter.py`; the other files are rules, one family
each.
"""

from tensorwright.graph.onnx_export.exporter import save_onnx, to_onnx
