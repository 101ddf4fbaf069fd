"""Convolutions and pools over volumes: planes, rows and columns.

goes in    i1 (2, 2, 3, 2, 3), w1, w2 (2, 2, 2, 1, 3)
is equal   conv3d[1, 1, 1, same, none](i1, w1), the same of w2
comes out  the two halves of conv3d[1, 1, 1, same, none](i1, concat[0](w1, w2))
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, weights

_INPUTS = (
    *data("i", 2, (2, 2, 3, 2, 3)),
    *weights("w", 2, (2, 2, 2, 1, 3)),
    *weights("w", 1, (2, 2, 1, 1, 1), first=3),
    *weights("s", 1, (), first=0),
)
_APPLICATIONS = (
    Application("ewadd", ranks=(5,)),
    Application("scalar_mul", ranks=(5,)),
    Application("relu", of_data=True),
    *(Application("concat", (axis,)) for axis in (0, 1)),
    *(Application(half, (axis,)) for axis in (0, 1) for half in ("split0", "split1")),
    Application("conv3d", (1, 1, 1, "same", "none"), by_weights=True),
    Application("conv3d", (1, 1, 1, "same", "relu"), by_weights=True),
    Application("conv3d", (1, 1, 1, "valid", "none"), by_weights=True),
    Application("max_pool3d", (2, 1, 2, 1, 1, 1, "same"), of_data=True),
    Application("avg_pool3d", (2, 1, 2, 1, 1, 1, "same"), of_data=True),
)
VOLUMES = Preset("volumes", _INPUTS, _APPLICATIONS, deepest=3)
