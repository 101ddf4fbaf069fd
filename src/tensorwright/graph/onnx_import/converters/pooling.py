"""Pooling."""

from __future__ import annotations

from tensorwright.graph.onnx_import.call import Call, Results, Table
from tensorwright.graph.onnx_import.converters.windows import window_of
from tensorwright.ops import AttributeValue


def _pool(call: Call, operator: str, **attributes: AttributeValue) -> Results:
    window = window_of(call, call.integers("kernel_shape"))
    return (
        call.add(
            operator,
            call.tensor(0),
            kernel=window.kernel,
            **window.attributes,
            ceil_mode=call.flag("ceil_mode", default=False),
            **attributes,
        ),
    )


def _max_pool(call: Call) -> Results:
    return _pool(call, "max_pool")


def _average_pool(call: Call) -> Results:
    return _pool(
        call, "average_pool", count_include_pad=call.flag("count_include_pad", default=False)
    )


def _lp_pool(call: Call) -> Results:
    return _pool(call, "lp_pool", p=call.integer("p", 2))


POOLING: Table = (
    ("MaxPool", _max_pool),
    ("AveragePool", _average_pool),
    ("LpPool", _lp_pool),
)
