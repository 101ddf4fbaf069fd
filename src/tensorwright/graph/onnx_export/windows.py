"""Convolutions, pooling and attention."""

from __future__ import annotations

from tensorwright.graph.onnx_export.call import ExportCall, ExportRule, ExportTable, OnnxValue


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


def _pool(operator: str, *integers: str) -> ExportRule:
    def rule(call: ExportCall) -> None:
        more = {name: call.integer(name) for name in ("ceil_mode", *integers)}
        window = _window(call)
        if any(d != 1 for d in call.ints("dilations")):
            call.needs_opset(19)
        elif operator == "AveragePool":
            window.pop("dilations", None)  # known from operator set 19 on
        call.emit(operator, kernel_shape=call.ints("kernel"), **window, **more)

    return rule


def _attention(call: ExportCall) -> None:
    call.needs_opset(23)
    attributes: dict[str, OnnxValue] = {"is_causal": call.integer("causal")}
    for name in ("scale", "softcap"):
        if call.number(name):
            attributes[name] = call.number(name)
    call.emit("Attention", **attributes)


WINDOWS: ExportTable = (
    ("conv", _conv("Conv")),
    ("conv_integer", _conv("ConvInteger")),
    ("conv_transpose", _conv_transpose),
    ("max_pool", _pool("MaxPool")),
    ("average_pool", _pool("AveragePool", "count_include_pad")),
    ("lp_pool", _pool("LpPool", "p")),
    ("attention", _attention),
)
