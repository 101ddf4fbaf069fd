"""What works element by element, over concatenation and splits along every axis, and transposes.

goes in    tensors of rank 4, split and concatenated along each axis
is equal   concat[2](relu(x1), relu(x2))
comes out  relu(concat[2](x1, x2))
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data

_INPUTS = data("x", 2, (2, 3, 2, 3))
_APPLICATIONS = (
    *(Application(name) for name in ("ewsub", "ewdiv")),
    *(Application(name) for name in ("relu", "exp", "sigmoid", "tanh")),
    *(Application("concat", (axis,)) for axis in range(4)),
    *(Application(half, (axis,)) for axis in range(4) for half in ("split0", "split1")),
    Application("transpose", (0, 2, 1, 3)),
)
POINTWISE = Preset("pointwise", _INPUTS, _APPLICATIONS)
