"""Types of a model's inputs: what the caller gives in the place of dimensions that the model leaves
open, and named sizes for the others.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from onnx import GraphProto, ModelProto, ValueInfoProto, shape_inference

from tensorwright import base, expr
from tensorwright.graph.imports.open_dimensions import OpenDimensions, Sizes, name_dimensions
from tensorwright.graph.imports.refusals import model_error, unsupported
from tensorwright.graph.imports.tensors import DTYPES, dtype_of
from tensorwright.ops import TensorType, least_for

InputShapes = Mapping[str, Sequence[int] | int]
_SHAPES = (
    'give extents by the name of an input or of a dimension: {"x": (1, 3, 224, 224)}, {"N": 1}'
)
_ONE_NUMBER = "give one number for the dimension, wherever it occurs"
_EXTENDING = ("Concat", "GroupQueryAttention")
_ROWS_OF_HEADS = 2  # the axis of a cache of keys or values


def _dims(info: ValueInfoProto) -> list[int | str] | None:
    """Extents, names of open dimensions, "" for one without a name; None without a shape."""
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    extents: list[int | str] = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            extents.append(dim.dim_value)
        else:
            extents.append(dim.dim_param)
    return extents


def _fail(where: str, reason: str, remedy: str = _SHAPES) -> base.InputError:
    return base.InputError(stage="import", where=where, reason=reason, remedy=remedy)


def _as_extents(name: str, given: Sequence[int] | int) -> tuple[int, ...]:
    try:
        extents = (given,) if isinstance(given, int) else tuple(map(operator.index, given))
    except TypeError:
        raise _fail(f"input shape {name}", f"{given!r} are not whole numbers") from None
    if any(extent < 0 for extent in extents):
        raise _fail(f"input shape {name}", f"{extents} has a negative extent")
    return extents


def _fixed(
    infos: Sequence[ValueInfoProto], given: InputShapes, dimensions: OpenDimensions
) -> dict[expr.NamedSize, int]:
    """The sizes that are given as numbers: by their name, or by shapes of inputs."""
    fixed: dict[expr.NamedSize, int] = {}
    pairs: list[tuple[str, expr.Index, int]] = []
    for name, shape in given.items():
        if name in dimensions.named and isinstance(shape, int):
            number = _as_extents(name, shape)[0]
            fixed.update(dict.fromkeys(dimensions.named[name], number))
    for info in infos:
        if info.name not in given:
            continue
        extents = _as_extents(info.name, given[info.name])
        dims = _dims(info) or []
        if dims and len(dims) != len(extents):
            reason = f"{extents} has {len(extents)} dimensions, the model declares {len(dims)}"
            remedy = f"give {len(dims)} extents"
            raise _fail(f"input shape {info.name}", reason, remedy)
        for axis, extent in enumerate(extents):
            pairs.append((info.name, dimensions.extents.get((info.name, axis), extent), extent))
    before = -1
    while len(fixed) != before:  # past + sequence tells past once another input tells sequence
        before = len(fixed)
        for name, own, extent in pairs:
            rest = expr.substitute(own, fixed)
            if expr.named_sizes_of(rest):
                with _naming(name):
                    solution = expr.solved_size(rest, extent)
                    if solution is not None:
                        fixed.setdefault(*solution)
    return fixed


def _resolve(
    info: ValueInfoProto,
    given: InputShapes,
    dimensions: OpenDimensions,
    values: Mapping[expr.NamedSize, expr.Index],
) -> tuple[expr.Index, ...]:
    """The shape of an input; `values` are the sizes of which the caller says something."""
    dims = _dims(info)
    own = [dimensions.extents.get((info.name, axis), dim) for axis, dim in enumerate(dims or ())]
    with _naming(info.name):
        shape = tuple(
            expr.substitute(extent, values) for extent in own if not isinstance(extent, str)
        )
    if info.name in given:
        extents = _as_extents(info.name, given[info.name])
        for name, size, asked in zip(own, shape, extents, strict=False):
            if isinstance(name, expr.IndexExpr) and isinstance(size, int) and size != asked:
                reason = f"dimension {name} is {asked} here and {size} elsewhere"
                raise _fail(f"input shape {info.name}", reason, _ONE_NUMBER)
        return extents
    if dims is None:
        raise base.UndecidedError(
            stage="import",
            where=f"input {info.name}",
            reason="the model leaves its shape open",
            remedy=base.Advice(
                f'input_shapes={{"{info.name}": (1, 3, 224, 224)}} (with your own extents)',
                f'--input-shapes "{info.name}:[1,3,224,224]" (with your own extents)',
            ),
        )
    for extent in shape:
        if not expr.is_nonnegative(extent):
            least = least_for(extent >= 0) if isinstance(extent, expr.IndexExpr) else {}
            say = "say the least number that it may be"
            told = base.sizes_advice(least, f"{say}: ") if least else f"{say}, of each of its sizes"
            raise model_error(f"input {info.name}", f"its extent {extent} may be negative", told)
    return shape


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Refuse an input whose extents are not numbers."""
    try:
        yield
    except (ValueError, ArithmeticError) as error:
        raise _fail(f"input shape {name}", str(error)) from None


def open_names(infos: Sequence[ValueInfoProto]) -> tuple[str, ...]:
    """The names of the open dimensions of some inputs, the model's and ours."""
    return tuple(name_dimensions({info.name: _dims(info) or () for info in infos}).named)


def extended_sizes(graph: GraphProto) -> tuple[str, ...]:
    """The lengths of caches: an output is the input with more rows.  They begin with length 0."""
    dims = {info.name: _dims(info) or [] for info in graph.input}
    extents = name_dimensions(dims).extents
    outputs = {info.name for info in graph.output}
    lengths: dict[str, None] = {}
    for node in graph.node:
        if node.op_type not in _EXTENDING or not outputs & {*node.output}:
            continue
        axis = next((each.i for each in node.attribute if each.name == "axis"), _ROWS_OF_HEADS)
        for name in node.input:
            at = axis if axis >= 0 else axis + len(dims.get(name, ()))
            extent = extents.get((name, at))
            if isinstance(extent, expr.NamedSize):
                lengths[extent.name] = None
    return tuple(lengths)


def overridden_sizes(infos: Iterable[ValueInfoProto], given: InputShapes) -> str:
    """The inputs to which the caller gives other sizes than the model fixes, for a person."""
    rows = []
    for info in infos:
        dims = _dims(info) if info.name in given else None
        if dims is None:
            continue
        asked = _as_extents(info.name, given[info.name])
        if any(isinstance(old, int) and old != new for old, new in zip(dims, asked, strict=False)):
            shown = ", ".join(str(dim) if dim != "" else "?" for dim in dims)
            rows.append(f"{info.name} of ({shown}) and is read with {asked}")
    return ", ".join(rows)


def declared_type(info: ValueInfoProto) -> TensorType | None:
    """The type that a model declares, None where it leaves some of it open."""
    dims = _dims(info)
    elements = info.type.tensor_type.elem_type
    if dims is None or elements not in DTYPES:
        return None
    shape = tuple(dim for dim in dims if isinstance(dim, int))
    return TensorType(DTYPES[elements], shape) if len(shape) == len(dims) else None


def output_types(model: ModelProto) -> dict[str, TensorType | base.DType | None]:
    """The types of a model's outputs as it declares them, or as ONNX infers them; the element type
    of one whose rank neither says, or None.
    """
    infos = model.graph.output
    if any(_dims(info) is None for info in infos):
        with suppress(ValueError, RuntimeError):  # a model that is too large, or that it misreads
            infos = shape_inference.infer_shapes(model).graph.output
    types: dict[str, TensorType | base.DType | None] = {}
    for info in infos:
        dims = _dims(info)
        if dims is None:
            types[info.name] = DTYPES.get(info.type.tensor_type.elem_type)
            continue
        extents = name_dimensions({info.name: dims}).extents
        shape = tuple(extents.get((info.name, axis), dim) for axis, dim in enumerate(dims))
        kind = dtype_of(info.type.tensor_type.elem_type, f"output {info.name}", "output")
        types[info.name] = TensorType(
            kind, tuple(each for each in shape if not isinstance(each, str))
        )
    return types


def check_is_tensor(info: ValueInfoProto, reader: str) -> None:
    """Refuse sequences and optional values; `reader` is the operator that reads the input."""
    kind = info.type.WhichOneof("value") or "nothing"
    if kind != "tensor_type":
        reason = f"its type is {kind.removesuffix('_type')}, and only tensors are supported"
        remedy = "export the model with a tensor for each element of it"
        raise unsupported(f"input {info.name}", reader, reason, remedy)


def declared_input_types(
    infos: Sequence[ValueInfoProto],
    shapes: InputShapes | None,
    readers: Mapping[str, str],
    sizes: Sizes,
) -> dict[str, TensorType | base.DType]:
    """As `input_types`; the element type alone of an input whose rank each call decides."""
    has_rank = {info.name: _dims(info) is not None or info.name in (shapes or {}) for info in infos}
    ranked = [info for info in infos if has_rank[info.name]]
    types = input_types(ranked, shapes, readers, sizes)
    return {
        info.name: types[info.name]
        if has_rank[info.name]
        else dtype_of(info.type.tensor_type.elem_type, f"input {info.name}", "input")
        for info in infos
    }


def input_types(
    infos: Sequence[ValueInfoProto],
    shapes: InputShapes | None,
    readers: Mapping[str, str] | None = None,
    sizes: Sizes | None = None,
) -> dict[str, TensorType]:
    """The type of each input.

    `shapes` gives extents by input name, or one extent by the name of an open dimension; it also
    overrides extents that the model fixes.
    `readers` gives the operator that reads an input, which messages name.
    `sizes` says what open dimensions may be.
    Raises:  InputError for a shape that does not fit, UndecidedError for an input without a shape,
             UnsupportedError for sequences, optional values and element types, UsageError for
             bounds that mean nothing.
    """
    given = shapes or {}
    readers = readers or {}
    for info in infos:
        check_is_tensor(info, readers.get(info.name, "input"))
    dimensions = name_dimensions({info.name: _dims(info) or () for info in infos})
    names = {info.name for info in infos}
    for name in given:
        if name not in names and not (name in dimensions.named and isinstance(given[name], int)):
            remedy = f"the inputs are {', '.join(sorted(names)) or 'none'}"
            listed = sorted(dimensions.names)
            remedy += f", the open dimensions {', '.join(listed)}" if listed else ""
            raise _fail(f"input shape {name}", "the model has no such input", remedy)
    bounded = dimensions.bounded(sizes or {})
    fixed = _fixed(infos, given, dimensions)
    for size, number in fixed.items():
        _check_bounds(size.name, number, bounded.get(size))
    said = {size: expr.substitute(answer, fixed) for size, answer in bounded.items()}
    values: dict[expr.NamedSize, expr.Index] = {**said, **fixed}
    return {
        info.name: TensorType(
            dtype_of(
                info.type.tensor_type.elem_type,
                f"input {info.name}",
                readers.get(info.name, "input"),
            ),
            _resolve(info, given, dimensions, values),
        )
        for info in infos
    }


def _check_bounds(name: str, number: int, bounded: expr.Index | None) -> None:
    """Refuse a number that the caller's own bounds exclude."""
    if isinstance(bounded, int) and bounded != number:
        reason = f"{name} is {number} here, and {bounded} in sizes"
        raise _fail(f"input shape {name}", reason, _ONE_NUMBER)
    for size in expr.named_sizes_of(*(() if bounded is None else (bounded,))):
        try:
            size.checked(number)
        except base.ExpressionError as error:
            reason = f"it is {number}, and {error.reason}"
            raise _fail(f"input shape {name}", reason, "give a number within its bounds") from None
