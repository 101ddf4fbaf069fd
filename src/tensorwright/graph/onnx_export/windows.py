"""Convolutions, pooling and attention."""

from __future__ import annotations

from tensorwright.graph.onnx_export.call import ExportCall, ExportRule, ExportTable, OnnxValue
from tensorwright.graph.onnx_import.counterparts import MAX_POOL, POOLS, Counterpart


def _window(call: ExportCall) -> dict[str, OnnxValue]:
    """Strides, pads and dilations, where they are said."""
    given = {name: call.ints(name) for name in ("strides", "pads", "dilations")}
    return {name: values for name, values in given.items() if values}


def _conv(operator: str) -> ExportRule:
    return lambda call: call.emit(operator, group=call.integer("groups"), **_window(call))


def _conv_transpose(call: ExportCall) -> None:
    window = _window(call)
    if extra := call.ints("output_padding"):
        window["output_padding"] = extra
    call.emit("ConvTranspose", group=call.integer("groups"), **window)


def _pool(counterpart: Counterpart) -> ExportRule:
    def rule(call: ExportCall) -> None:
        window = _window(call)
        if any(d != 1 for d in call.ints("dilations")):
            call.needs_opset(19)
        elif counterpart.theirs == "AveragePool":
            window.pop("dilations", None)  # known from operator set 19 on
        more = call.attributes_of(counterpart)
        call.emit(counterpart.theirs, kernel_shape=call.ints("kernel"), **window, **more)

    return rule


def _attention(call: ExportCall) -> None:
    call.needs_opset(23)
    if call.attribute("nan_weights") == "zero":
        raise call.unsupported("it makes weights that are NaN 0")
    attributes: dict[str, OnnxValue] = {"is_causal": call.integer("causal")}
    for name in ("scale", "softcap"):
        if call.number(name):
            attributes[name] = call.number(name)
    call.emit("Attention", **attributes)


WINDOWS: ExportTable = (
    ("conv", _conv("Conv")),
    ("conv_integer", _conv("ConvInteger")),
    ("conv_transpose", _conv_transpose),
    *((each.ours, _pool(each)) for each in (MAX_POOL, *POOLS)),
    ("attention", _attention),
)
