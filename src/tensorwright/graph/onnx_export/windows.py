"""Convolutions, products, pooling and normalisations."""

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


def _gemm(call: ExportCall) -> None:
    call.emit(
        "Gemm",
        alpha=call.number("alpha"),
        beta=call.number("beta"),
        transA=call.integer("trans_a"),
        transB=call.integer("trans_b"),
    )


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


def _plain(operator: str, opset: int = 0) -> ExportRule:
    def rule(call: ExportCall) -> None:
        call.needs_opset(opset)
        call.emit(operator)

    return rule


def _global_lp_pool(call: ExportCall) -> None:
    call.emit("GlobalLpPool", p=call.integer("p"))


def _norm(operator: str, opset: int = 0) -> ExportRule:
    def rule(call: ExportCall) -> None:
        call.needs_opset(opset)
        attributes: dict[str, OnnxValue] = {"epsilon": call.number("epsilon")}
        if "axis" in call.node.attribute_map:
            attributes["axis"] = call.integer("axis")
        if "groups" in call.node.attribute_map:
            attributes["num_groups"] = call.integer("groups")
        call.emit(operator, **attributes)

    return rule


def _lrn(call: ExportCall) -> None:
    numbers = {name: call.number(name) for name in ("alpha", "beta", "bias")}
    call.emit("LRN", size=call.integer("size"), **numbers)


def _lp_normalization(call: ExportCall) -> None:
    call.emit("LpNormalization", axis=call.integer("axis"), p=call.integer("p"))


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
    ("matmul", _plain("MatMul")),
    ("matmul_integer", _plain("MatMulInteger")),
    ("gemm", _gemm),
    ("max_pool", _pool("MaxPool")),
    ("average_pool", _pool("AveragePool", "count_include_pad")),
    ("lp_pool", _pool("LpPool", "p")),
    ("global_max_pool", _plain("GlobalMaxPool")),
    ("global_average_pool", _plain("GlobalAveragePool")),
    ("global_lp_pool", _global_lp_pool),
    ("batch_norm", _norm("BatchNormalization")),
    ("instance_norm", _norm("InstanceNormalization")),
    ("layer_norm", _norm("LayerNormalization", 17)),
    ("group_norm", _norm("GroupNormalization", 21)),
    ("rms_norm", _norm("RMSNormalization", 23)),
    ("lrn", _lrn),
    ("lp_normalization", _lp_normalization),
    ("attention", _attention),
)
