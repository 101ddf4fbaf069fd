"""Merge chains of reshapes and of transpositions; replace gathers by simpler operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.graph.graph import Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.rebuild import Copy, rewriting
from tensorwright.ops import Movement, decided, sizes_of

_END = (1 << 31) - 1  # of a slice that goes to the end


@rewriting()
def merge_reshapes(copy: Copy, node: Node) -> Sequence[str] | None:
    """One reshape for a chain of reshape, squeeze and unsqueeze.

    Rewrite:  reshape(squeeze(x), s)    ->    reshape(x, s)
    """
    if operator_of(node).movement is not Movement.RESHAPE:
        return None
    before = copy.producer(node.inputs[0])
    chained = before is not None and before.operator == "reshape"
    if node.operator == "reshape" and not chained:
        return None
    source = before.inputs[0] if before is not None and chained else node.inputs[0]
    shape = copy.result(node).shape
    return copy.emit("reshape", (source,), node.outputs, shape=shape)


@rewriting("transpose")
def merge_transposes(copy: Copy, node: Node) -> Sequence[str] | None:
    """One transposition for two; one that moves only extents of 1 is a reshape.

    Rewrite:  transpose(transpose(x, p), q)    ->    transpose(x, [p[i] for i in q])
    """
    shape = copy.type_of(node.inputs[0]).shape
    perm = node.ints("perm") or tuple(reversed(range(len(shape))))
    kept = [n for n in perm if shape[n] != 1]
    if kept == sorted(kept):
        target = copy.result(node).shape
        return copy.emit("reshape", node.inputs, node.outputs, shape=target)
    before = copy.producer(node.inputs[0])
    if before is None or before.operator != "transpose":
        return None
    first = before.ints("perm") or tuple(reversed(range(len(shape))))
    both = tuple(first[n] for n in perm)
    return copy.emit("transpose", before.inputs, node.outputs, perm=both)


@rewriting("gemm")
def turn_weights(copy: Copy, node: Node) -> Sequence[str] | None:
    """A product reads packed weights in the order in which they are stored.

    Rewrite:  gemm(a, transpose(dequantize_blocks(w)), trans_b)    ->    gemm(a, .., not trans_b)
    """
    turned = copy.producer(node.inputs[1])
    if turned is None or turned.operator != "transpose":
        return None
    packed = copy.producer(turned.inputs[0])
    if packed is None or packed.operator != "dequantize_blocks":
        return None
    inputs = (node.inputs[0], packed.outputs[0], *node.inputs[2:])
    attributes = {**node.attribute_map, "trans_b": not node.attribute_map["trans_b"]}
    return copy.emit("gemm", inputs, node.outputs, **attributes)


@rewriting("reshape")
def transpose_apart(copy: Copy, node: Node) -> Sequence[str] | None:
    """Leading dimensions that are joined only around a transposition stay apart.

    Rewrite:  reshape(transpose(reshape(x, (a*b, c, d)), (0, 2, 1)), (a, b, d, c))
              ->    transpose(x, (0, 1, 3, 2))    where x has the shape (a, b, c, d)
    """
    turned = copy.producer(node.inputs[0])
    if turned is None or turned.operator != "transpose":
        return None
    joined = copy.producer(turned.inputs[0])
    perm = turned.ints("perm")
    if joined is None or joined.operator != "reshape" or not perm or perm[0] != 0:
        return None
    own, result = copy.type_of(joined.inputs[0]).shape, copy.result(node).shape
    middle = copy.type_of(turned.inputs[0]).shape
    lead = len(own) - len(middle) + 1
    moved = tuple(middle[at] for at in perm[1:])
    is_apart = own[lead:] == middle[1:] and result[lead:] == moved
    if lead < 2 or not is_apart or own[:lead] != result[:lead]:
        return None
    whole = (*range(lead), *(lead - 1 + at for at in perm[1:]))
    return copy.emit("transpose", joined.inputs, node.outputs, perm=whole)


@rewriting("gather")
def slice_for_gather(copy: Copy, node: Node) -> Sequence[str] | None:
    """A gather at one constant position becomes a slice, which is often a view.

    Rewrite:  gather(x, 3)    ->    reshape(slice(x, 3..4))
    """
    index = copy.constant(node.inputs[1])
    if index is None or index.size != 1:
        return None
    shape = sizes_of(copy.type_of(node.inputs[0]))
    axis = node.integer("axis") % len(shape)
    position = int(index.reshape(()))
    extent = shape[axis]
    if not decided(extent > position) or not decided(extent >= -position):
        return None
    if isinstance(extent, int):
        position %= extent
    piece = copy.new(
        "slice",
        node.inputs[:1],
        f"{node.outputs[0]}.piece",
        starts=(position,),
        ends=(position + 1 or _END,),
        axes=(axis,),
        steps=(1,),
    )
    return copy.emit("reshape", (piece,), node.outputs, shape=copy.result(node).shape)


@rewriting("gather_elements", "scatter_elements")
def move_whole_rows(copy: Copy, node: Node) -> Sequence[str] | None:
    """Elements at positions that are equal along all later dimensions are moved in rows.

    Rewrite:  gather_elements(x, expand(i))        ->    gather_nd(x, i)
              scatter_elements(x, expand(i), u)    ->    scatter_nd(x, i, u)
    Requires: the node takes all of x along the dimensions other than the axis; a scattered tensor
    has no dimension before the axis.
    """
    x, indices, *updates = node.inputs
    shape, asked = copy.type_of(x).shape, copy.type_of(indices).shape
    axis = node.integer("axis") % len(shape)
    is_scatter = node.operator == "scatter_elements"
    is_whole = shape[:axis] == asked[:axis] and shape[axis + 1 :] == asked[axis + 1 :]
    has_rows = any(extent != 1 for extent in shape[axis + 1 :]) and 0 not in shape[axis + 1 :]
    if not is_whole or not has_rows or (is_scatter and axis):
        return None
    positions = _positions(copy, node, axis)
    if positions is None:
        return None
    if is_scatter:
        reduction = node.attribute_map["reduction"]
        inputs = (x, positions, *updates)
        return copy.emit("scatter_nd", inputs, node.outputs, reduction=reduction)
    return copy.emit("gather_nd", (x, positions), node.outputs, batch_dims=axis)


def _positions(copy: Copy, node: Node, axis: int) -> str | None:
    """Positions (..., 1) for the dimensions up to the axis, if all others have the same."""
    indices = node.inputs[1]
    asked = copy.type_of(indices).shape
    wish = f"{node.outputs[0]}.positions"
    first = (*(slice(None),) * (axis + 1), *(slice(0, 1),) * (len(asked) - axis - 1))
    array, made = copy.constant(indices), copy.producer(indices)
    if array is not None:
        if not array.size or not (array == array[first]).all():
            return None
        return copy.hold(array[first].reshape(*array.shape[: axis + 1], 1), wish)
    if made is None or made.operator != "expand":
        return None
    source = copy.type_of(made.inputs[0]).shape
    missing = len(asked) - len(source)
    if (*(1,) * missing, *source) != (*asked[: axis + 1], *(1,) * (len(asked) - axis - 1)):
        return None
    target = (*asked[: axis + 1], 1)
    return copy.new("reshape", made.inputs, wish, shape=target)


@rewriting("concat")
def reshape_joined(copy: Copy, node: Node) -> Sequence[str] | None:
    """Contiguous pieces are joined before they are reshaped, not after.

    Rewrite:  concat(reshape(x), reshape(y))    ->    reshape(concat(x, y))
    Requires: no extent but 1 is outside of the dimension of the concat, and x and y differ in their
    first extents at most.
    """
    if len(node.inputs) < 2:
        return None
    shape = copy.result(node).shape
    axis = node.integer("axis") % len(shape)
    before = [copy.producer(name) for name in node.inputs]
    sources = [each.inputs[0] for each in before if each and each.operator == "reshape"]
    if len(sources) < len(before) or any(extent != 1 for extent in shape[:axis]):
        return None
    shapes = [copy.type_of(name).shape for name in sources]
    if len({each[1:] for each in shapes}) > 1 or () in shapes:
        return None
    joined = copy.new("concat", sources, f"{node.outputs[0]}.joined", axis=0)
    return copy.emit("reshape", (joined,), node.outputs, shape=shape)


_LEAST_WINDOW = 25  # elements
_LEAST_GAIN = 1.5


@rewriting("conv", "average_pool")
def fold_pads(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  conv(pad(x, p), w, pads=q)    ->    conv(x, w, pads=p+q)

    The same for average_pool, which then counts the padding; it must not have padding of its own or
    round up. Requires: the pad is constant zero, of spatial dimensions only, and not negative.
    """
    before = copy.producer(node.inputs[0])
    if before is None or before.operator != "pad":
        return None
    attributes = before.attribute_map
    pads = before.ints("pads")
    rank = len(pads) // 2
    begins, ends = pads[:rank], pads[rank:]
    if attributes["mode"] != "constant" or attributes["value"] != 0 or min(pads) < 0:
        return None
    if any((*begins[:2], *ends[:2])):
        return None
    moved = (*begins[2:], *ends[2:])
    own = node.ints("pads") or (0,) * len(moved)
    both = tuple(a + b for a, b in zip(moved, own, strict=True))
    changes: dict[str, bool] = {}
    if node.operator == "average_pool":
        if any(own) or node.attribute_map["ceil_mode"]:
            return None
        changes["count_include_pad"] = True
    full = {**node.attribute_map, **changes, "pads": both}
    return copy.emit(node.operator, (before.inputs[0], *node.inputs[1:]), node.outputs, **full)


@rewriting("max_pool")
def separate_large_pools(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  max_pool(x, 13x13)    ->    max_pool(max_pool(x, 13x1), 1x13)

    26 comparisons for an element instead of 169. Requires: at least a third of the comparisons
    vanish, counting those that steps along the later dimension waste.
    """
    kernel = node.ints("kernel")
    if prod(kernel) < _LEAST_WINDOW:
        return None
    rank = len(kernel)
    last = max(at for at in range(rank) if kernel[at] > 1)
    ones, zeros = (1,) * rank, (0,) * rank
    strides, dilations = node.ints("strides") or ones, node.ints("dilations") or ones
    pads = node.ints("pads") or zeros + zeros
    separate = prod(kernel[:last]) * strides[last] + kernel[last]
    if prod(kernel) < _LEAST_GAIN * separate:
        return None

    def part(x: str, keep: range, outputs: tuple[str, ...]) -> tuple[str, ...]:
        """The pool along some dimensions alone."""

        def kept(values: tuple[int, ...], neutral: int) -> tuple[int, ...]:
            return tuple(v if at % rank in keep else neutral for at, v in enumerate(values))

        changes = {
            "kernel": kept(kernel, 1),
            "strides": kept(strides, 1),
            "dilations": kept(dilations, 1),
            "pads": kept(pads, 0),
        }
        return copy.emit("max_pool", (x,), outputs, **{**node.attribute_map, **changes})

    wish = copy.free(f"{node.outputs[0]}.columns")
    (columns,) = part(node.inputs[0], range(last), (wish,))
    return part(columns, range(last, rank), node.outputs)
