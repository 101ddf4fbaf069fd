"""Feature sets besides the features of statements: one module each, the formula in its docstring.

Those over loops are functions of `LoopArrays` (`loop_arrays.py`); `knob.py` needs no loops at all.
"""

from tensorwright.tuning.features.sets.knob import KnobFeatures

__all__ = ["KnobFeatures"]
