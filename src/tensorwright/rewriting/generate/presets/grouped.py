"""Grouped and depthwise convolutions, and kernels whose groups were merged.

goes in    i1 (2, 4, 3, 3), g1 (4, 2, 3, 3): two groups
is equal   conv2d[1, 1, same, none](i1, g1)
comes out  conv2d[1, 1, same, none](i1, the kernel of one group, zeros where groups differ)
"""

from __future__ import annotations

from tensorwright.rewriting.generate.preset import Application, Preset, data, terms, weights

_INPUTS = (
    *data("i", 2, (2, 4, 3, 3)),
    *weights("w", 2, (4, 4, 1, 1)),
    *weights("g", 2, (4, 2, 3, 3)),
    *weights("d", 2, (4, 1, 3, 3)),
)
_SIZE = "d1.1*d1.2*d1.3"
_PAIRS = f"reshape[d1.0 // 2, 2, 1, {_SIZE}](?d1)"
_PREPARED = terms(
    # two groups as one: zeros where a group does not look
    "concat[0](pad[1, 0, g1.1](split0[0, g1.0 // 2](?g1)),"
    " pad[1, g1.1, 0](split1[0, g1.0 // 2](?g1)))",
    # any even number of groups of one output each as half as many
    f"reshape[d1.0, 2*d1.1, d1.2, d1.3](concat[1](pad[3, 0, {_SIZE}](slice[1, 0, 1]({_PAIRS})),"
    f" pad[3, {_SIZE}, 0](slice[1, 1, 2]({_PAIRS}))))",
)
_APPLICATIONS = (
    Application("ewadd", ranks=(4,)),
    Application("relu", of_data=True),
    Application("concat", (0,)),
    Application("concat", (1,)),
    Application("split0", (0,)),
    Application("split1", (0,)),
    Application("split0", (1,)),
    Application("split1", (1,)),
    Application("conv2d", (1, 1, "same", "none"), by_weights=True),
    Application("conv2d", (1, 1, "same", "relu"), by_weights=True),
    Application("conv2d", (2, 2, "same", "none"), by_weights=True),
)
GROUPED = Preset("grouped", _INPUTS, _APPLICATIONS, _PREPARED)
