"""Triangles and running sums."""

from __future__ import annotations

from tensorwright.graph.onnx_import.call import Call, Converter, Results, Table


def _trilu(call: Call) -> Results:
    k = int(call.scalar(1, "k")) if call.has(1) else 0
    return (call.add("trilu", call.tensor(0), upper=call.flag("upper", default=True), k=k),)


def _running(operator: str) -> Converter:
    def convert(call: Call) -> Results:
        return (
            call.add(
                operator,
                call.tensor(0),
                axis=int(call.scalar(1, "axis")),
                exclusive=call.flag("exclusive", default=False),
                reverse=call.flag("reverse", default=False),
            ),
        )

    return convert


GENERATION: Table = (
    ("Trilu", _trilu),
    ("CumSum", _running("cumsum")),
    ("CumProd", _running("cumprod")),
)
