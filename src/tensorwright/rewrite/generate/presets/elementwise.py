"""Arithmetic and functions of single elements: subtraction, division, exp, sigmoid, tanh."""

from __future__ import annotations

from tensorwright.rewrite.generate.preset import Application, Preset, data, terms, weights

__all__ = ["ELEMENTWISE"]

_INPUTS = (
    *data("x", 3, (2, 3)),
    *weights("s", 1, (), first=0),
)
_PREPARED = terms("ewsub(ewsub(ones(), ones()), ones())")  # -1
_APPLICATIONS = (
    Application("ewadd", ranks=(2,)),
    Application("ewmul", ranks=(0, 2)),
    Application("ewsub", ranks=(2,)),
    Application("ewdiv", ranks=(2,)),
    Application("scalar_mul"),
    *(Application(name, ranks=(2,)) for name in ("relu", "exp", "sigmoid", "tanh")),
    Application("ones", (2, 3)),
    Application("transpose", (1, 0)),
    Application("concat", (1,)),
    Application("split0", (1,)),
    Application("split1", (1,)),
)
ELEMENTWISE = Preset("elementwise", _INPUTS, _APPLICATIONS, _PREPARED)
