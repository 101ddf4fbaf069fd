"""Open dimensions of a model's inputs as named sizes.

    x (batch, 3, ?), y (2*seq, "past + seq")   batch, x_2, 2*seq, past + seq
    sizes={"seq": "8..512 by 8"}               8 <= seq <= 512, seq % 8 == 0
    sizes={"total": "past + seq"}              one size less

A dimension's name becomes an identifier.  What reads like an expression of sizes is one, unless a
name may be written so ("batch-size").  Every dimension without an identity is a size of its own.

Sizes that nodes decide when a network runs, and what is known of them before.

    Loop "walk" that collects rows       walk_trips, of at most as many iterations as it may have
    NonZero "where" of x: f32(n, 4)      where_count, of at most 4*n
    Range "steps" up to a computed end   steps_count, and the caller says how many there may be

The graph says how large such a size may be, or the caller does, under the name of the size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from math import lcm
from typing import TypeAlias

from onnx import ModelProto, NodeProto

from tensorwright import expr
from tensorwright.base import AttributeValue, ExpressionError, SizeBounds, UsageError, did_you_mean
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Node, free_name
from tensorwright.ops import TensorType

Dim: TypeAlias = int | str
Bounds: TypeAlias = int | str | tuple[int, int | None]
Sizes: TypeAlias = Mapping[str, Bounds]

SIZES_PROPERTY = "tensorwright.sizes"
"""The property of a model that we wrote which says the bounds of its sizes, as JSON."""

_UNKNOWN = re.compile(
    r"(unk|unknown|none|null|nil|nan|any|dyn|dynamic|undefined|unspecified|open)?[\W\d_]*",
    re.IGNORECASE,
)
_IN_NAMES = re.compile(r"\w[-/.]\w")  # signs that stand inside of names, too
_RESERVED = ("min", "max")  # functions in expressions of sizes
_SUM_OR_PRODUCT = re.compile(r"[-+*/%(]")
_BOUNDS = re.compile(r"(?:(\d+)|(\d*)\s*\.\.\s*(\d*))(?:\s+by\s+(\d+))?", re.ASCII)
_LARGEST = (1 << 31) - 1  # of what a caller may say of a size
_REMEDY = '"64" for a number, "1..512" for bounds, "8..512 by 8" for multiples of 8 between them'


def is_identity(name: str) -> bool:
    """Whether two dimensions of that name have the same extent.

    ONNX says so of every name. But exporters need one for what they do not know, too, and write a
    word or a sign for that: "?", "-1", "*", "None", "unk__7", "dynamic". Such a name says nothing
    of another dimension: an exporter that numbers them uses each number once.
    """
    return _UNKNOWN.fullmatch(name) is None


def is_name(text: str) -> bool:
    """Whether a size may have that name."""
    return text.isascii() and text.isidentifier() and text not in _RESERVED


@dataclass(frozen=True, slots=True)
class OpenDimensions:
    """The open dimensions of a model.

    extents  what each is, by input and axis
    named    the sizes that a name stands for: the model's name, or ours
    """

    extents: Mapping[tuple[str, int], expr.Index]
    named: Mapping[str, tuple[expr.NamedSize, ...]]

    def bounded(self, sizes: Sizes) -> dict[expr.NamedSize, expr.Index]:
        """The caller's values of sizes: a number, a size with bounds, or an expression of others.

        Raises:  UsageError for another name, and for bounds that mean nothing.
        """
        answers: dict[expr.NamedSize, expr.Index] = {}
        for name, bounds in sizes.items():
            if name not in self.named:
                listed = ", ".join(self.names) or "none: all its dimensions are numbers"
                remedy = did_you_mean(str(name), self.names, f"its open sizes are {listed}")
                raise _refused(str(name), "the model has no open dimension of that name", remedy)
            for atom in self.named[name]:
                answer = self._expression(bounds)
                if answer is None:
                    answer = bounded_size(atom.name, bounds)
                if answers.setdefault(atom, answer) is not answer:
                    reason = f"it is {answers[atom]} by another name, and {answer} by this one"
                    raise _refused(name, reason, "say it by one name")
        for _ in answers:  # expressions of sizes of which something is said
            answers = {atom: expr.substitute(size, answers) for atom, size in answers.items()}
        return answers

    def _expression(self, text: object) -> expr.Index | None:
        """The expression of sizes that a text is; None for another one."""
        if not isinstance(text, str) or _BOUNDS.fullmatch(text.strip()):
            return None
        try:
            size = expr.parse_size(text, lambda name: next(iter(self.named.get(name, ())), None))
        except (ValueError, ExpressionError):
            return None
        return None if isinstance(size, int) and size < 1 else size

    @property
    def names(self) -> tuple[str, ...]:
        """Our names of the sizes."""
        atoms = (atom for atoms in self.named.values() for atom in atoms)
        return tuple(dict.fromkeys(atom.name for atom in atoms))


def name_dimensions(inputs: Mapping[str, Sequence[Dim]]) -> OpenDimensions:
    """The sizes of the inputs of a model; an extent that is a text is open."""
    texts = [text for dims in inputs.values() for text in dims if isinstance(text, str)]
    plain = {text for text in texts if is_identity(text) and not _SUM_OR_PRODUCT.search(text)}
    namer = _Namer(frozenset(inputs))
    for text in sorted(plain, key=lambda text: (not is_name(text), texts.index(text))):
        namer.of(text)  # so that names which may stay do
    extents: dict[tuple[str, int], expr.Index] = {}
    for name, dims in inputs.items():
        for axis, dim in enumerate(dims):
            if isinstance(dim, int):
                continue
            if not is_identity(dim):
                extents[name, axis] = namer.at(name, axis, dim)
            else:
                size = None if dim in plain else _parsed(dim, plain, namer)
                extents[name, axis] = namer.of(dim) if size is None else size
    return OpenDimensions(extents, {name: tuple(atoms) for name, atoms in namer.named.items()})


def _parsed(text: str, plain: set[str], namer: _Namer) -> expr.Index | None:
    """The expression that a name of a dimension is; None where it is a name and nothing else."""
    words = set(re.findall(r"[A-Za-z_]\w*", text)) - set(_RESERVED)
    if not words or (_IN_NAMES.search(text) and not words <= plain):
        return None
    try:
        expr.parse_size(text, lambda _: expr.named_size("n"))
        size = expr.parse_size(text, namer.of)
    except (ValueError, ExpressionError):
        return None
    return size if expr.named_sizes_of(size) else None


class _Namer:
    """Gives names to sizes, each once; mutable, used inside one function."""

    def __init__(self, inputs: frozenset[str]) -> None:
        self.named: dict[str, list[expr.NamedSize]] = {}
        self._sizes: dict[str, expr.NamedSize] = {}
        self._taken = set(_RESERVED)
        self._inputs = inputs

    def of(self, text: str) -> expr.Index:
        """The size of a name of the model."""
        if text not in self._sizes:
            self._sizes[text] = self._new(text, text)
        return self._sizes[text]

    def at(self, name: str, axis: int, text: str) -> expr.Index:
        """A size for a place alone."""
        return self._new(f"{name}_{axis}", text, self._inputs)

    def _new(self, wish: str, text: str, avoided: frozenset[str] = frozenset()) -> expr.NamedSize:
        stem = re.sub(r"[^0-9A-Za-z_]+", "_", wish).strip("_") or "size"
        stem = f"size_{stem}" if stem[0].isdigit() else stem
        name = free_name(stem, self._taken | avoided, 2)
        self._taken.add(name)
        (atom,) = expr.named_sizes_of(expr.named_size(name))
        for key in dict.fromkeys(filter(None, (text, name))):
            self.named.setdefault(key, []).append(atom)
        return atom


def bounded_size(name: str, bounds: object) -> expr.Index:
    """A number, or a size with bounds."""
    least, greatest, divisor = read_bounds(name, bounds)
    if greatest is not None and least == greatest and divisor == 1:
        return least
    try:
        return expr.named_size(name, least, greatest, divisor)
    except ExpressionError as error:
        raise _refused(f"{name}={bounds!r}", error.reason, _REMEDY) from None


def is_bounds(text: str) -> bool:
    """Whether a text says bounds of a size, or a number."""
    return _BOUNDS.fullmatch(text.strip()) is not None


def read_bounds(name: str, bounds: object, low: int = 1) -> SizeBounds:
    """The least and the greatest number, and what divides them; `low` is the least of "..64"."""
    numbers = _numbers_of(name, bounds, low)
    if max(filter(None, numbers)) > _LARGEST:
        reason = f"it has a number above {_LARGEST}"
        raise _refused(f"{name}={bounds!r}", reason, '"1.." says that there is no greatest number')
    return numbers


def _numbers_of(name: str, bounds: object, low: int) -> SizeBounds:
    if isinstance(bounds, int) and not isinstance(bounds, bool) and bounds >= 0:
        return SizeBounds(bounds, bounds)
    if isinstance(bounds, str) and (match := _BOUNDS.fullmatch(bounds.strip())):
        number, least, greatest, divisor = match.groups()
        if number:
            least = greatest = number
        most = int(greatest) if greatest else None
        return SizeBounds(int(least or low), most, int(divisor or 1))
    if isinstance(bounds, Sequence) and not isinstance(bounds, str) and len(bounds) == 2:
        least, greatest = bounds
        is_open = greatest is None
        if all(type(each) is int for each in (least, *(() if is_open else (greatest,)))):
            return SizeBounds(least, greatest)
    raise _refused(f"{name}={bounds!r}", "it says neither a number nor bounds", _REMEDY)


def narrowed(bounds: Bounds, others: str) -> Bounds:
    """The numbers that are within both bounds; the others, if one is an expression of sizes."""
    texts = (str(bounds), others)
    if not all(map(is_bounds, texts)):
        return others
    (least, most, divisor), (low, high, by) = (read_bounds("", each) for each in texts)
    ends = [end for end in (most, high) if end is not None]
    return str(SizeBounds(max(least, low), min(ends, default=None), lcm(divisor, by)))


def within(own: Mapping[str, str], given: Sizes) -> dict[str, Bounds]:
    """The bounds that a model says of its sizes, and the narrower ones that a caller gives.

    Raises:  UsageError for bounds that are not within the model's own.
    """
    for name, bounds in given.items():
        if name not in own:
            continue
        least, greatest, divisor = read_bounds(name, own[name])
        asked_least, asked_greatest, asked_divisor = read_bounds(name, bounds)
        is_below = greatest is None or (asked_greatest is not None and asked_greatest <= greatest)
        is_number = asked_least == asked_greatest
        is_multiple = (asked_least if is_number else asked_divisor) % divisor == 0
        if asked_least < least or not is_below or not is_multiple:
            reason = f"the model was written for {own[name]}, and computes that alone"
            raise _refused(f"{name}={bounds!r}", reason, "give bounds within these")
    return {**own, **given}


def _refused(name: str, reason: str, remedy: str) -> UsageError:
    return UsageError(stage="import", where=f"size {name}", reason=reason, remedy=remedy)


_KEEPING = frozenset({"cast", "expand", "identity", "reshape", "squeeze", "unsqueeze"})
_NO_LIMIT = 1 << 62


def stem_of(node: NodeProto) -> str:
    """The stem of the names of a node's sizes: its name or first output, made an identifier."""
    name = node.name or next(iter(node.output), "") or "size"
    stem = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "size"
    return f"{node.op_type.lower()}_{stem}" if stem[0].isdigit() else stem


def may_be_counted(model: ModelProto, name: str) -> bool:
    """Whether a size of that name may be one that a node of the model decides."""
    functions = (function.node for function in model.functions)
    nodes = chain(all_nodes(model.graph.node), *map(all_nodes, functions))
    return any(name.startswith(f"{stem_of(node)}_") for node in nodes)


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes of a graph and of those nested in it, definitions first."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g.node)
        yield node


class CountedSizes:
    """Makes the sizes that nodes decide, each once; mutable.

    bounds   what the caller says of them
    """

    def __init__(self, bounds: Mapping[str, Bounds]) -> None:
        self._bounds = bounds
        self._asked: set[str] = set()
        self._taken: set[str] = set()
        self._most: dict[expr.NamedSize, expr.Index] = {}

    def avoid(self, type_: TensorType) -> None:
        """Other sizes have the names of those in a type."""
        extents = (each for each in type_.shape if isinstance(each, expr.IndexExpr))
        self._taken.update(size.name for size in expr.named_sizes_of(*extents))

    def of(
        self, name: str, most: expr.Index | None, least: int = 0
    ) -> tuple[expr.Index, expr.Index] | None:
        """A size and its upper bound; None where it has none.

        most   what the graph says, which may be made of sizes     least   as the graph says it
        """
        self._asked.add(name)
        if name in self._bounds:
            low, given, _ = read_bounds(name, self._bounds[name], 0)
            least = max(low, least)
            most = given if most is None else most if given is None else expr.minimum(most, given)
        if most is None:
            return None
        bound = expr.simplify(expr.substitute(expr.room_for(most), self._most), {})
        free = free_name(name, self._taken, 2)
        self._taken.add(free)
        greatest = greatest_number(bound)
        size = 0 if greatest == 0 else expr.counted_size(free, greatest, least)
        self._most.update(dict.fromkeys(expr.named_sizes_of(size), bound))
        return size, bound

    def have_decided(self, sizes: Sequence[expr.NamedSize]) -> bool:
        """Whether some sizes, at least one, are all such that nodes decide them."""
        return bool(sizes) and all(size in self._most for size in sizes)

    def check_all_used(self, names: Iterable[str]) -> None:
        """Refuse bounds of a size that no node has asked for.

        names   of the sizes of inputs
        """
        for name in self._bounds:
            if name not in self._asked:
                sizes = (*names, *sorted(self._asked))
                listed = ", ".join(sizes) or "none: all its dimensions are numbers"
                raise UsageError(
                    stage="import",
                    where=f"size {name}",
                    reason="the model has no size of that name",
                    remedy=did_you_mean(name, sizes, f"its sizes are {listed}"),
                )


def greatest_number(bound: expr.Index) -> int | None:
    """The greatest number of what is greatest where all of its sizes are; None without one."""
    sizes = expr.named_sizes_of(bound)
    number, beyond = (
        expr.substitute(bound, {size: far if size.most is None else size.most for size in sizes})
        for far in (_NO_LIMIT, 4 * _NO_LIMIT)
    )
    if isinstance(number, int) and number == beyond:
        return number  # as of min(n, 12), which is 12 for every large n
    return None


def greatest_value(builder: GraphBuilder, tensor: str) -> expr.Index | None:
    """What integers that are computed are never above, by the numbers and sizes that they count to,
    are sums of, or are the least of; None where nothing says it.
    """
    constant = builder.constant_value(tensor)
    if constant is not None:
        return int(constant.reshape(-1)[0]) if constant.size == 1 else None
    node = builder.producer(tensor)
    if node is None:
        return None
    if node.operator == "full":
        value = node.attribute_map["value"]
        return value if isinstance(value, expr.IndexExpr) else int(node.number("value"))
    if node.operator == "clip":
        most = node.number("max")
        return int(most) if most < _NO_LIMIT else None
    if node.operator == "range":
        return _last_of(node)
    bounds = [greatest_value(builder, name) for name in node.inputs]
    limits = [bound for bound in bounds if bound is not None]
    if node.operator in _KEEPING:
        return bounds[0]
    if node.operator == "add" and len(limits) == len(bounds):
        return expr.sum_of(limits)
    return reduce(expr.minimum, limits) if node.operator == "min" and limits else None


def _last_of(node: Node) -> expr.Index | None:
    """The greatest of a range of integers; None for other numbers."""
    start, step, size = (_whole(node.attribute_map[name]) for name in ("start", "step", "size"))
    if start is None or size is None or not isinstance(step, int):
        return None
    return start + step * (size - 1) if step > 0 else start


def _whole(value: AttributeValue) -> expr.Index | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int | expr.IndexExpr) else None
