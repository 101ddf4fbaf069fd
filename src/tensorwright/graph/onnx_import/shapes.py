"""Static types of a model's inputs, with the shapes that the caller gives where the model leaves
them open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from onnx import ValueInfoProto

from tensorwright.base import InputError, UnsupportedError
from tensorwright.graph.onnx_import.refusals import model_error
from tensorwright.graph.onnx_import.tensors import DTYPES, dtype_of
from tensorwright.ops import TensorType

InputShapes = Mapping[str, Sequence[int] | int]

_UNKNOWN = re.compile(
    r"(unk|unknown|none|null|nil|nan|any|dyn|dynamic|undefined|unspecified|open)?[\W\d_]*",
    re.IGNORECASE,
)


def is_identity(name: str) -> bool:
    """Whether two dimensions of that name have the same extent.

    ONNX says so of every name. But exporters need one for what they do not know, too, and write a
    word or a sign for that: "?", "-1", "*", "None", "unk__7", "dynamic". Such a name says nothing
    of another place: who numbers them gives each place a number of its own, so nothing is lost.
    """
    return _UNKNOWN.fullmatch(name) is None


def _dims(info: ValueInfoProto) -> list[int | str] | None:
    """An extent, the name of an open dimension, or "" for an open one without a name; None without
    a shape.
    """
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    found: list[int | str] = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            found.append(dim.dim_value)
        else:
            found.append(dim.dim_param)
    return found


def _fail(where: str, reason: str, remedy: str = "") -> InputError:
    return InputError(stage="import", where=where, reason=reason, remedy=remedy)


def _as_extents(name: str, given: Sequence[int] | int) -> tuple[int, ...]:
    extents = (given,) if isinstance(given, int) else tuple(int(extent) for extent in given)
    if any(extent < 0 for extent in extents):
        raise _fail(f"input shape {name}", f"{extents} has a negative extent")
    return extents


def _bind(infos: Iterable[ValueInfoProto], given: InputShapes) -> dict[str, int]:
    """The extents of named open dimensions: given by their name, whatever it is, or by an input's
    shape, where the name is an identity.
    """
    infos = tuple(infos)
    params = {d for info in infos for d in _dims(info) or () if isinstance(d, str) and d}
    bound: dict[str, int] = {}
    for name, shape in given.items():
        if name in params and isinstance(shape, int):
            bound[name] = _as_extents(name, shape)[0]
    for info in infos:
        if info.name not in given:
            continue
        extents = _as_extents(info.name, given[info.name])
        dims = _dims(info) or []
        if dims and len(dims) != len(extents):
            reason = f"{extents} has {len(extents)} dimensions, the model declares {len(dims)}"
            remedy = f"give {len(dims)} extents"
            raise _fail(f"input shape {info.name}", reason, remedy)
        for dim, extent in zip(dims, extents, strict=False):
            if not isinstance(dim, str) or not is_identity(dim):
                continue
            if bound.setdefault(dim, extent) != extent:
                reason = f"dimension {dim} is {extent} here and {bound[dim]} elsewhere"
                raise _fail(f"input shape {info.name}", reason)
    return bound


def _resolve(info: ValueInfoProto, given: InputShapes, bound: Mapping[str, int]) -> tuple[int, ...]:
    if info.name in given:
        return _as_extents(info.name, given[info.name])
    dims = _dims(info)
    where = f"input {info.name}"
    if dims is None:
        remedy = f'--input-shapes "{info.name}:[1,3,224,224]" (with your own extents)'
        raise model_error(where, "the model leaves its shape open", remedy)
    extents = [bound.get(dim, dim) if isinstance(dim, str) else dim for dim in dims]
    still_open = [
        dim if is_identity(dim) else f"dimension {at}"
        for at, dim in enumerate(extents)
        if isinstance(dim, str)
    ]
    if still_open:
        shape = ", ".join(str(dim) if dim != "" else "?" for dim in extents)
        example = ",".join(str(dim) if isinstance(dim, int) else "1" for dim in extents)
        names = dict.fromkeys(dim for dim in extents if isinstance(dim, str))
        by_name = f'"{",".join(f"{name}:1" for name in names)}", or '
        by_name = by_name if all(map(is_identity, names)) else ""
        raise model_error(
            where,
            f"the model leaves {', '.join(still_open)} of ({shape}) open",
            f'--input-shapes {by_name}"{info.name}:[{example}]" (with your own extents)',
        )
    return tuple(dim for dim in extents if isinstance(dim, int))


def overridden_sizes(infos: Iterable[ValueInfoProto], given: InputShapes) -> str:
    """Which inputs the caller gives other sizes than those that the model fixes, for a person; ""
    where none.
    """
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


def check_is_tensor(info: ValueInfoProto, reader: str) -> None:
    """Refuse sequences and optional values; `reader` is the operator that reads the input.

    Raises:  UnsupportedError.
    """
    kind = info.type.WhichOneof("value") or "nothing"
    if kind != "tensor_type":
        reason = f"its type is {kind.removesuffix('_type')}, and only tensors are supported"
        raise UnsupportedError(
            stage="import", where=f"input {info.name}", reason=reason, operator=reader
        )


def input_types(
    infos: Sequence[ValueInfoProto],
    shapes: InputShapes | None,
    readers: Mapping[str, str] | None = None,
) -> dict[str, TensorType]:
    """The type of each input.

    `shapes` gives extents by input name, or one extent by the name of an open dimension; it also
    overrides extents that the model fixes.
    `readers` gives the operator that reads an input, which messages name.
    Raises:  InputError for a shape that does not fit, ModelError for dimensions that stay open,
             UnsupportedError for sequences, optional values and element types.
    """
    given = shapes or {}
    readers = readers or {}
    for info in infos:
        check_is_tensor(info, readers.get(info.name, "input"))
    bound = _bind(infos, given)
    names = {info.name for info in infos}
    for name in given:
        if name not in names and name not in bound:
            open_names = {
                dim for info in infos for dim in _dims(info) or () if isinstance(dim, str)
            }
            listed = sorted(dim for dim in open_names if is_identity(dim))
            remedy = f"the inputs are {', '.join(sorted(names)) or 'none'}"
            remedy += f", the open dimensions {', '.join(listed)}" if listed else ""
            raise _fail(f"input shape {name}", "the model has no such input", remedy)
    return {
        info.name: TensorType(
            dtype_of(
                info.type.tensor_type.elem_type,
                f"input {info.name}",
                readers.get(info.name, "input"),
            ),
            _resolve(info, given, bound),
        )
        for info in infos
    }
