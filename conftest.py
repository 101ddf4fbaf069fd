"""Modules of competitors import packages that need not be installed: then they have no examples."""

from __future__ import annotations

from importlib.util import find_spec

_OPTIONAL = {
    "tvm": ("metaschedule/build", "metaschedule/calls", "metaschedule/peer"),
    "openvino": ("openvino_peer",),
}

collect_ignore = [
    f"src/tensorwright/peers/competitors/{module}.py"
    for package, modules in _OPTIONAL.items()
    if find_spec(package) is None
    for module in modules
]
