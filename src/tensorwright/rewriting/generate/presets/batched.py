"""Products of batches of matrices, and of a batch with one matrix.

goes in    x1 (2, 3, 4), w1 (4, 4) and products of them
is equal   matmul(x1, broadcast[2, 4, 4](reshape[1, 4, 4](w1)))
comes out  reshape[2, 3, 4](matmul(reshape[6, 4](x1), w1))
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, terms, weights

_INPUTS = (
    *data("x", 2, (2, 3, 4)),
    *weights("y", 2, (2, 4, 4)),
    *weights("w", 1, (4, 4)),
    *weights("s", 1, (), first=0),
)
_PREPARED = terms("broadcast[2, 4, 4](reshape[1, 4, 4](?w1))")
_APPLICATIONS = (
    Application("matmul"),
    Application("ewadd", ranks=(3,)),
    Application("scalar_mul"),
    Application("relu", ranks=(3,)),
    Application("transpose", (0, 2, 1)),
    *(Application("concat", (axis,), ranks=(3,)) for axis in (0, 2)),
    *(Application(half, (axis,)) for axis in (0, 2) for half in ("split0", "split1")),
    Application("reshape", (6, 4)),
    Application("reshape", (2, 3, 4)),
)
BATCHED = Preset("batched", _INPUTS, _APPLICATIONS, _PREPARED)
