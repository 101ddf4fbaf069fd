"""The counterparts of networks' operators in the language of rules.

    add(x, b)            ewadd(?x, broadcast[1, 8, 14, 14](reshape[1, 8, 1, 1](?b)))
    conv(x, w, b)        ewadd(conv2d[1, 1, same, none](?x, ?w), broadcast[...](reshape[...](?b)))
    conv(x, w)           of volumes: conv3d[1, 1, 1, same, none](?x, ?w)
    conv(x, w)           of rows: reshape[...](conv2d[...](reshape[...](?x), reshape[...](?w)))
    matmul(x, w)         of (2, 5, 8) and (8, 9): reshape[2, 5, 9](matmul(reshape[10, 8](?x), ?w))
    concat(a, b, c)      concat[1](concat[1](?a, ?b), ?c)
    split(x)             split0[1, 4](?x), split0[1, 4](split1[1, 4](?x)), ...
    reduce_mean(x)       over 2 and 3: reduce_mean[3](reduce_mean[2](?x))
    where(x < y, x, 0)   select(less(?x, ?y), ?x, broadcast[...](...))
    gather(table, i)     rows of a matrix: matmul(call[one_hot-0, 0](?i), ?table)

A counterpart is exact: written back (`write.py`) it is the operator again, or costs no more.  Where
there is none, the operator is called as it is (`network_analysis.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from tensorwright import ops
from tensorwright.base import DType
from tensorwright.graph import Node
from tensorwright.rewriting import operators
from tensorwright.rewriting.dims import Shape
from tensorwright.rewriting.egraph import Id
from tensorwright.rewriting.networks.network_analysis import (
    CALL,
    ROW_READER,
    TermBuilder,
    has_rules,
)
from tensorwright.rewriting.terms import Param


@dataclass(frozen=True, slots=True)
class Application:
    """An operator of a network, applied to terms.

    types   of its outputs
    """

    node: Node
    args: tuple[Id, ...]
    types: tuple[ops.TensorType, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the first output."""
        return ops.sizes_of(self.types[0])


Along = TypeVar("Along")
Terms: TypeAlias = "tuple[Id, ...] | None"
"""The term of each output; None where the language of rules has none."""
Counterpart: TypeAlias = Callable[[TermBuilder, Application], Terms]


def _product(terms: TermBuilder, application: Application) -> Terms:
    """A product with a constant number is a multiple."""
    for number, arg in enumerate(application.args):
        factor, other = terms.number(arg), application.args[1 - number]
        if factor is not None and terms.shape(other) == application.shape:
            return (terms.apply("scalar_mul", (), other, factor),)
    return _of_any("ewmul", terms, application)


def _of_any(operator: str, terms: TermBuilder, application: Application) -> Terms:
    """Of any number of operands, one after the other, broadcast as NumPy does."""
    folded, *others = (terms.stretched(arg, application.shape) for arg in application.args)
    for other in others:
        folded = terms.apply(operator, (), folded, other)
    return (folded,)


def _function(
    operator: operators.RewriteOperator, terms: TermBuilder, application: Application
) -> Terms:
    """With its parameters as attributes; of one operand, and vectors as large as its rows."""
    node, (_, *vectors) = application.node, application.args
    rows = application.shape[node.integer("axis") :] if vectors else ()
    if len(vectors) + 1 != operator.arity or any(terms.shape(v) != rows for v in vectors):
        return None
    params: list[Param] = []
    for each in operator.parameters:
        if each is operators.AXIS:
            params.append(node.integer(each.name) % len(application.shape))
        elif each.words:
            params.append(str(node.attribute_map[each.name]))
        else:
            params.append(operators.number_word(node.number(each.name)))
    return (terms.apply(operator.name, tuple(params), *application.args),)


def _matmul(terms: TermBuilder, application: Application) -> Terms:
    """Of matrices, of as many of them, or of many with one."""
    x, w = application.args
    left, right = terms.shape(x), terms.shape(w)
    if min(len(left), len(right)) < 2:
        return None
    if left[:-2] == right[:-2]:
        return (terms.apply("matmul", (), x, w),)
    if len(right) != 2:
        return None
    rows = terms.reshaped(x, (ops.product_of(left[:-1]), left[-1]))
    return (terms.reshaped(terms.apply("matmul", (), rows, w), application.shape),)


def _gemm(terms: TermBuilder, application: Application) -> Terms:
    node = application.node
    if (node.number("alpha"), node.number("beta")) != (1.0, 1.0):
        return None
    operands = [
        terms.apply("transpose", (1, 0), arg) if node.integer(flag) else arg
        for arg, flag in zip(application.args, ("trans_a", "trans_b"), strict=False)
    ]
    return (
        _with_bias(
            terms, terms.apply("matmul", (), *operands), application.args[2:], application.shape
        ),
    )


def _with_bias(terms: TermBuilder, product: Id, bias: tuple[Id, ...], shape: Shape) -> Id:
    return terms.apply("ewadd", (), product, terms.stretched(bias[0], shape)) if bias else product


def _convolution(terms: TermBuilder, application: Application) -> Terms:
    node, (x, w, *bias) = application.node, application.args
    window = _window(node, terms.shape(x), terms.shape(w)[2:])
    if window is None:
        return None
    operands = (_as_images(terms, each) for each in (x, w))
    operator = "conv3d" if len(application.shape) == 5 else "conv2d"
    product = terms.reshaped(terms.apply(operator, (*window, "none"), *operands), application.shape)
    if bias:
        own = (1, application.shape[1], *(1 for _ in application.shape[2:]))
        bias = [terms.reshaped(bias[0], own)]
    return (_with_bias(terms, product, tuple(bias), application.shape),)


def _as_images(terms: TermBuilder, x: Id) -> Id:
    """Rows of elements as images of one row; images and volumes as they are."""
    outer, inner = terms.shape(x)[:2], terms.shape(x)[2:]
    return terms.reshaped(x, (*outer, *_of_images(inner, 1)))


def _of_images(along: tuple[Along, ...], idle: Along) -> tuple[Along, ...]:
    """Numbers along rows and columns, or planes, too; of columns alone the rows' are idle."""
    return (idle, *along) if len(along) == 1 else along


def _window(node: Node, shape: Shape, kernel: Shape) -> tuple[Param, ...] | None:
    """Strides and padding of a window over planes or volumes; None where rules have no such."""
    spatial = len(shape) - 2
    if spatial not in (1, 2, 3):
        return None
    strides = _of_images(node.ints("strides") or (1,) * spatial, 1)
    steps = _of_images(node.ints("dilations") or (1,) * spatial, 1)
    given = node.ints("pads") or (0,) * 2 * spatial
    pads = (*_of_images(given[:spatial], 0), *_of_images(given[spatial:], 0))
    extents, taps = _of_images(shape[2:], 1), _of_images(tuple(map(ops.number_of, kernel)), 1)
    for mode, word in (("VALID", "valid"), ("SAME_UPPER", "same")):
        if set(steps) == {1} and pads == ops.automatic_pads(mode, extents, taps, strides, steps):
            return (*strides, word)
    return (*strides, operators.padding_word(pads, steps))


def _pool(operator: str, terms: TermBuilder, application: Application) -> Terms:
    node, (x,) = application.node, application.args
    kernel = node.ints("kernel")
    window = _window(node, terms.shape(x), kernel)
    if window is None or node.integer("ceil_mode"):
        return None
    if any(step != 1 for step in node.ints("dilations")):
        return None
    taps = _of_images(kernel, 1)
    if not operators.holds_elements(window[-1], taps):
        return None
    if (
        operator == "avg_pool"
        and any(node.ints("pads"))
        and not bool(node.integer("count_include_pad"))
    ):
        return None
    over = f"{operator}3d" if len(application.shape) == 5 else operator
    pooled = terms.apply(over, (*taps, *window), _as_images(terms, x))
    return (terms.reshaped(pooled, application.shape),)


def _transpose(terms: TermBuilder, application: Application) -> Terms:
    perm = application.node.ints("perm") or tuple(reversed(range(len(application.shape))))
    return (terms.apply("transpose", perm, application.args[0]),)


def _reshape(terms: TermBuilder, application: Application) -> Terms:
    return (terms.reshaped(application.args[0], application.shape),)


def _concat(terms: TermBuilder, application: Application) -> Terms:
    axis = application.node.integer("axis") % len(application.shape)
    joined = application.args[0]
    for arg in application.args[1:]:
        joined = terms.apply("concat", (axis,), joined, arg)
    return (joined,)


def _split(terms: TermBuilder, application: Application) -> Terms:
    axis = application.node.integer("axis") % len(application.shape)
    rest, pieces = application.args[0], []
    for size in application.node.sizes("sizes")[:-1]:
        if not ops.is_certain(size >= 1) or not ops.is_certain(size < terms.shape(rest)[axis]):
            return None
        pieces.append(terms.apply("split0", (axis, size), rest))
        rest = terms.apply("split1", (axis, size), rest)
    return (*pieces, rest)


def _slice(terms: TermBuilder, application: Application) -> Terms:
    """Along one dimension: a run, all backwards, or with a step from the first on."""
    (x,) = application.args
    shape = terms.shape(x)
    taken = ops.slices_taken(shape, application.node.attribute_map)
    cut = [
        axis
        for axis, ((start, count, step), extent) in enumerate(zip(taken, shape, strict=True))
        if not (start == 0 and count == extent and (step == 1 or count == 1))
    ]
    if len(cut) != 1:
        return None
    axis = cut[0]
    start, count, step = taken[axis]
    if step == 1 or count == 1:
        return (terms.apply("slice", (axis, start, start + count), x),)
    if step == -1 and count == shape[axis]:
        return (terms.apply("reverse", (axis,), x),)
    if step > 1 and start == 0 and count == (shape[axis] - 1) // step + 1:
        return (terms.apply("strided", (axis, step), x),)
    return None


def _reduction(operator: str, terms: TermBuilder, application: Application) -> Terms:
    """Along one dimension after the other: each stays with extent 1 until the end."""
    node, (x,) = application.node, application.args
    rank = len(terms.shape(x))
    folded = x
    for axis in sorted({a % rank for a in node.ints("axes")} or range(rank)):
        folded = terms.apply(operator, (axis,), folded)
    return (terms.reshaped(folded, application.shape),)


def _rows(terms: TermBuilder, application: Application) -> Terms:
    """Rows of a matrix at positions that are not constant: a product with a row selector."""
    table, positions = application.args
    shape = terms.shape(table)
    if application.node.integer("axis") or len(shape) != 2:
        return None
    if terms.terms.data(positions).is_constant:
        return None
    rows = ops.number_of(shape[0])
    chosen = terms.call(terms.opaque.row_selector(rows), 0, (positions,))
    flat = terms.reshaped(chosen, (ops.product_of(terms.shape(positions)), rows))
    return (terms.reshaped(terms.apply("matmul", (), flat, table), application.shape),)


_COMPARISONS: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "less": ("less", False),
        "less_or_equal": ("less_or_equal", False),
        "greater": ("less", True),
        "greater_or_equal": ("less_or_equal", True),
        "equal": ("equal", False),
    }
)
"""Of networks: the comparison of rules, and whether the operands change places."""


def _where(terms: TermBuilder, application: Application) -> Terms:
    """In rules truth is a number: the result of a comparison of numbers, else a cast."""
    condition, *others = application.args
    truth = _truth(terms, condition)
    operands = (terms.stretched(each, application.shape) for each in (truth, *others))
    return (terms.apply("select", (), *operands),)


def _truth(terms: TermBuilder, condition: Id) -> Id:
    egraph, opaque = terms.terms, terms.opaque
    operator, params = egraph.parts(egraph.head_of(condition))
    compared = _COMPARISONS.get(opaque.kind(str(params[0]))[0]) if operator == CALL else None
    operands = egraph.children(condition)
    if compared is None or not all(has_rules(egraph.data(each)) for each in operands):
        return terms.call(opaque.word("cast", (("to", DType.F32),)), 0, (condition,))
    name, is_swapped = compared
    shape = terms.shape(condition)
    ordered = reversed(operands) if is_swapped else operands
    return terms.apply(name, (), *(terms.stretched(each, shape) for each in ordered))


MIXED = frozenset({ROW_READER, "where"})
"""Some of their operands are positions or truth, which rules do not cover."""
COUNTERPARTS: Mapping[str, Counterpart] = MappingProxyType(
    {
        **{name: partial(_of_any, f"ew{name}") for name in operators.ARITHMETIC},
        "mul": _product,
        **{each.name: partial(_function, each) for each in operators.ALIKE_IN_NETWORKS},
        "matmul": _matmul,
        "gemm": _gemm,
        "conv": _convolution,
        "max_pool": partial(_pool, "max_pool"),
        "average_pool": partial(_pool, "avg_pool"),
        "transpose": _transpose,
        "reshape": _reshape,
        "squeeze": _reshape,
        "unsqueeze": _reshape,
        "expand": lambda terms, at: (terms.stretched(at.args[0], at.shape),),
        "identity": lambda terms, at: at.args,
        "concat": _concat,
        "split": _split,
        "slice": _slice,
        **{name: partial(_reduction, name) for name in sorted(operators.REDUCTIONS)},
        ROW_READER: _rows,
        "where": _where,
    }
)
"""By the name of the operator in networks."""
