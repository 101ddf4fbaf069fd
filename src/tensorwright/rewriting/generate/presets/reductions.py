"""Sums and means along a dimension, and tensors stretched along one.

goes in    x1 (3, 4), sums and means along its dimensions
is equal   reduce_sum[0](ewadd(x1, x2))
comes out  ewadd(reduce_sum[0](x1), reduce_sum[0](x2))
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, weights

_INPUTS = (
    *data("x", 2, (3, 4)),
    *weights("w", 2, (4, 4)),
    *weights("s", 1, (), first=0),
)
_APPLICATIONS = (
    Application("reduce_sum", (0,), ranks=(2,)),
    Application("reduce_sum", (1,), ranks=(2,)),
    Application("reduce_mean", (1,), ranks=(2,)),
    Application("ones", (4, 1)),
    Application("ones", (1, 3)),
    Application("broadcast", (3, 4)),
    Application("matmul"),
    Application("ewadd", ranks=(2,)),
    Application("ewmul", ranks=(2,)),
    Application("scalar_mul"),
    Application("transpose", (1, 0)),
    Application("concat", (0,)),
    Application("concat", (1,)),
)
REDUCTIONS = Preset("reductions", _INPUTS, _APPLICATIONS)
