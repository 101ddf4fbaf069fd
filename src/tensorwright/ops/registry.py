"""Find an operator by name, and check an application of it."""

from __future__ import annotations

from tensorwright import base
from tensorwright.ops.attention import ATTENTION_OPERATORS, SOFTMAX_OPERATORS
from tensorwright.ops.contraction import EINSUM_OPERATORS, MATMUL_OPERATORS
from tensorwright.ops.counted import COUNTED_OPERATORS
from tensorwright.ops.host import HOST_OPERATORS
from tensorwright.ops.moving.gathering import GATHERING_OPERATORS
from tensorwright.ops.moving.generation import GENERATION_OPERATORS
from tensorwright.ops.moving.joining import JOINING_OPERATORS
from tensorwright.ops.moving.movement import MOVEMENT_OPERATORS
from tensorwright.ops.moving.resizing import RESIZING_OPERATORS, SAMPLING_OPERATORS
from tensorwright.ops.normalization import NORMALIZATION_OPERATORS
from tensorwright.ops.operator import Operator, Types, bool_of, scalar_of, text_of
from tensorwright.ops.pointwise.activation import ACTIVATION_OPERATORS
from tensorwright.ops.pointwise.elementwise import ELEMENTWISE_OPERATORS
from tensorwright.ops.pointwise.quantization import QUANTIZATION_OPERATORS
from tensorwright.ops.reduction import REDUCTION_OPERATORS, RUNNING_OPERATORS
from tensorwright.ops.shapes import in_single_precision
from tensorwright.ops.windows.convolution import CONVOLUTION_OPERATORS
from tensorwright.ops.windows.pooling import POOLING_OPERATORS
from tensorwright.ops.windows.transposed_convolution import TRANSPOSED_CONVOLUTION_OPERATORS

_FAMILIES: tuple[Operator, ...] = (
    *ELEMENTWISE_OPERATORS,
    *ACTIVATION_OPERATORS,
    *REDUCTION_OPERATORS,
    *MATMUL_OPERATORS,
    *CONVOLUTION_OPERATORS,
    *POOLING_OPERATORS,
    *NORMALIZATION_OPERATORS,
    *MOVEMENT_OPERATORS,
    *JOINING_OPERATORS,
    *GATHERING_OPERATORS,
    *TRANSPOSED_CONVOLUTION_OPERATORS,
    *ATTENTION_OPERATORS,
    *GENERATION_OPERATORS,
    *RUNNING_OPERATORS,
    *EINSUM_OPERATORS,
    *RESIZING_OPERATORS,
    *SAMPLING_OPERATORS,
    *QUANTIZATION_OPERATORS,
    *HOST_OPERATORS,
    *COUNTED_OPERATORS,
)
OPERATORS = (*(in_single_precision(each) for each in _FAMILIES), *SOFTMAX_OPERATORS)
_BY_NAME = {each.name: each for each in OPERATORS}


def operator(name: str) -> Operator:
    """The operator of this name.

    Raises:  UnsupportedError, with the nearest names, if there is none.
    """
    match = _BY_NAME.get(name)
    if match is None:
        raise base.UnsupportedError(
            stage="operators",
            where="looking it up",
            reason="there is no such operator",
            remedy=base.did_you_mean(name, _BY_NAME, most=3),
            operator=name,
        )
    return match


def infer_types(
    name: str,
    input_types: Types,
    attributes: base.Attributes,
    where: str = "",
) -> tuple[Types, dict[str, base.AttributeValue]]:
    """The output types of an application, and its attributes with the defaults filled in.

    where    the position for error messages, "node conv_3"

    Raises:  UnsupportedError for an unknown operator; ModelError for a wrong number of inputs, an
             unknown or missing attribute, and whatever else the operator's rule refuses.
    """
    op = operator(name)
    position = f"{where} ({name})" if where else f"operator {name}"
    try:
        complete = op.complete(attributes)
    except ValueError as error:
        names = ", ".join(attribute.name for attribute in op.attributes)
        raise base.ModelError(
            stage="operators",
            where=position,
            reason=str(error),
            remedy=f"its attributes are {names}" if names else "it has no attributes",
        ) from None
    _require_count(op, len(input_types), position)
    try:
        _require_kinds(op, complete)
        return op.infer(input_types, complete), complete
    except base.UnsupportedError as error:
        raise error.of(name).at(position, "operators") from None
    except base.ModelError as error:
        remedy = error.remedy or f"docs/operators.md says what {name} takes"
        raise base.ModelError(
            stage="operators", where=position, reason=error.reason, remedy=remedy
        ) from None


def _require_kinds(op: Operator, attributes: base.Attributes) -> None:
    """Refuse an attribute of another kind than its default, as its reader does."""
    for attribute in op.attributes:
        match attribute.default:
            case bool():
                bool_of(attributes, attribute.name)
            case float():
                scalar_of(attributes, attribute.name)
            case str():
                text_of(attributes, attribute.name)
            case _:
                pass


def _require_count(op: Operator, count: int, position: str) -> None:
    least, most = op.input_range
    if count < least or (most is not None and count > most):
        names = ", ".join(op.inputs)
        raise base.ModelError(
            stage="operators",
            where=position,
            reason=f"{count} inputs given",
            remedy=f"it takes ({names})" if names else "it takes none",
        )
