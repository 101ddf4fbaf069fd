"""Arithmetic and functions of single elements: subtraction, division, exp, sigmoid, tanh.

goes in    x1, x2 (2, 3), a number s0; ewadd, ewmul, ewsub, ewdiv, exp, ...
is equal   ewsub(ewadd(x1, x2), x2)
comes out  x1
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, terms, weights

_INPUTS = (
    *data("x", 3, (2, 3)),
    *weights("s", 1, (), first=0),
)
_PREPARED = terms("ewsub(ewsub(ones(), ones()), ones())")  # -1
_APPLICATIONS = (
    *(Application(name, ranks=(2,)) for name in ("ewadd", "ewmul", "ewsub", "ewdiv")),
    Application("scalar_mul"),
    *(Application(name, ranks=(2,)) for name in ("relu", "exp", "sigmoid", "tanh")),
    Application("ones", (2, 3)),
)
ELEMENTWISE = Preset("elementwise", _INPUTS, _APPLICATIONS, _PREPARED)
