"""Reshape, slice, pad and broadcast among operators that work element by element.

goes in    x1 (2, 3, 4) and reshapes, slices, pads of it
is equal   relu(reshape[6, 4](x1))
comes out  reshape[6, 4](relu(x1))
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data

_INPUTS = (
    *data("x", 2, (2, 3, 4)),
    *data("b", 2, (2, 1, 4)),
)
_APPLICATIONS = (
    Application("reshape", (24,)),
    Application("reshape", (6, 4)),
    Application("reshape", (2, 12)),
    Application("reshape", (2, 3, 4)),
    Application("broadcast", (2, 3, 4)),
    Application("slice", (2, 0, 4), ranks=(3,)),
    Application("slice", (2, 4, 8), ranks=(3,)),
    Application("slice", (2, 0, 2), ranks=(3,)),
    Application("slice", (1, 0, 2), ranks=(3,)),
    Application("pad", (2, 0, 4), ranks=(3,)),
    Application("pad", (2, 4, 0), ranks=(3,)),
    Application("pad", (2, 1, 0), ranks=(3,)),
    Application("pad", (2, 0, 1), ranks=(3,)),
    Application("pad", (2, 1, 1), ranks=(3,)),
    Application("transpose", (0, 2, 1)),
    Application("concat", (1,)),
    Application("concat", (2,)),
    Application("ewadd"),
    Application("ewmul"),
    *(Application(name) for name in ("relu", "sigmoid")),
)
MOVEMENT = Preset("movement", _INPUTS, _APPLICATIONS)
