"""Turn an ONNX model into a Graph, node by node.

Every ONNX value is an operand (see `call.py`). A node whose inputs are all known is computed at
once, so shape arithmetic is gone when Reshape, Slice and their like ask for numbers.
"""

from __future__ import annotations

import json
import os
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, helper

from tensorwright import base
from tensorwright.expr import Index, IndexExpr, NamedSize, substitute
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph, rename_tensors
from tensorwright.graph.imports import reading
from tensorwright.graph.imports.ai_onnx_ml import AI_ONNX_ML
from tensorwright.graph.imports.ai_onnx_ml import DOMAIN as AI_ONNX_ML_DOMAIN
from tensorwright.graph.imports.call import (
    Attribute,
    Call,
    Converter,
    Operand,
    Results,
    as_tensor,
    name_of,
    type_of,
)
from tensorwright.graph.imports.com_microsoft import COM_MICROSOFT, DOMAIN
from tensorwright.graph.imports.control_flow import CONTROL_FLOW, Body, Captured, Inside, Nested
from tensorwright.graph.imports.converters import AT_IMPORT, CONVERTERS
from tensorwright.graph.imports.folding import fold
from tensorwright.graph.imports.functions import (
    expand_local,
    expand_standard,
    has_standard_function,
    is_standard,
)
from tensorwright.graph.imports.open_dimensions import (
    SIZES_PROPERTY,
    Bounds,
    CountedSizes,
    Sizes,
    bounded_size,
    is_bounds,
    may_be_counted,
    narrowed,
    stem_of,
    within,
)
from tensorwright.graph.imports.refusals import (
    INVALID,
    NO_OPERATOR,
    OTHERWISE,
    REFUSED,
    checked,
    converting,
    model_error,
    naming_sizes,
    node_label,
    unsupported,
)
from tensorwright.graph.imports.shapes import (
    InputShapes,
    check_is_tensor,
    declared_input_types,
    extended_sizes,
    input_types,
    open_names,
    output_types,
    overridden_sizes,
)
from tensorwright.graph.imports.size_terms import SizeArray
from tensorwright.graph.imports.tensors import dense, to_array
from tensorwright.ops import TensorType

Converted = TypeVar("Converted")
Held = TypeVar("Held")
_DEEPEST = 32
MOST_ASSUMED = 64  # bounds, each after another import


def load_onnx(
    source: str | os.PathLike[str] | bytes | ModelProto,
    input_shapes: InputShapes | None = None,
    input_values: Mapping[str, ArrayLike] | None = None,
    sizes: Sizes | None = None,
) -> Graph:
    """Import an ONNX model: a path, the bytes of a file, or a ModelProto.

    A dimension that the model leaves open becomes a named size of the graph: under the model's
    name for it, made an identifier, or under that of the input and the axis ("x_0").
    `input_shapes` gives shapes by input name ({"x": (1, 3, 224, 224)}) or extents by the name of an
    open dimension.
    `sizes` says what open dimensions may be: {"batch": "1..64", "seq": "8..512 by 8", "n": 3}; a
    pair (1, 64) is "1..64".  It also bounds sizes that values decide: {"NAME_count": "..100"} for
    the results of a node, {"NAME_trips": "..16"} for the iterations of a loop that collects rows.
    `input_values` fixes inputs that shapes depend on (axes, sizes, ...): they become constants.
    Raises:  ModelError for what is not a valid model or leaves ranks open, UnsupportedError for
             what we cannot express (names the operator, the node and why), InputError for shapes
             that do not fit, UsageError for what is not a mapping and for bounds that mean nothing,
             MachineError for constants that do not fit into memory.
    """
    _require_mapping(
        "input_shapes", input_shapes, '{"x": (1, 3, 224, 224)}, or {"N": 1} for an open dimension'
    )
    _require_mapping(
        "sizes", sizes, '{"batch": "1..64", "seq": "8..512 by 8"}; `compile` also takes "fixed"'
    )
    model = read_supported_model(source)
    try:
        return _with_needed_bounds(model, input_shapes, input_values or {}, sizes or {})
    except MemoryError as error:
        raise base.MachineError(
            stage="import",
            where=model.label,
            reason="there is not enough memory for its constants",
            remedy="give the inputs smaller shapes, or compile on a machine with more memory",
        ) from error


def declared_types(
    source: str | os.PathLike[str] | bytes | ModelProto,
    input_shapes: InputShapes | None = None,
    sizes: Sizes | None = None,
) -> tuple[dict[str, TensorType | base.DType], dict[str, TensorType | base.DType | None]]:
    """What a model declares of its inputs and outputs, by name; no node is read.

    It is the element type alone if nothing says the rank, and None for an output without that.
    """
    graph = (model := reading.read_model(source)).model.graph
    constants = {each.name for each in graph.initializer}
    free = [info for info in graph.input if info.name not in constants]
    readers = {name: node.op_type for node in reversed(graph.node) for name in node.input}
    names = open_names(free)
    bounds = {name: each for name, each in (sizes or {}).items() if name in names}
    given = declared_input_types(free, input_shapes, readers, bounds)
    return given, output_types(model.model)


def _with_needed_bounds(
    model: reading.Source, shapes: InputShapes | None, values: Mapping[str, ArrayLike], sizes: Sizes
) -> Graph:
    """The graph; where the model itself needs a bound of a size, with that bound.

    A table of 512 positions makes a sequence no longer than that, whether or not the caller says
    so.  Bounds that the caller gives are not changed.
    """
    own = _own_bounds(model)

    def run(assumptions: Assumptions) -> Graph:
        return _Import(model, assumptions).run(shapes, values)

    try:
        return with_needed_bounds(run, own, sizes, open_names(model.model.graph.input))
    except base.ModelError as error:
        if not sizes or error.remedy != INVALID:
            raise
        given = ", ".join(f"{name}={value}" for name, value in sizes.items())
        remedy = f"with {given} it does not fit: give other sizes, or none"
        raise error.with_remedy(remedy) from error.__cause__


class Assumptions:
    """Bounds of sizes that nodes turn out to need, and that are assumed; mutable.

    own          those that the model says, which are narrowed
    given        those that the caller gives, which are not changed
    open_sizes   names of open dimensions; other sizes are decided by values
    Raises:  UsageError for given bounds that are not within the model's own.
    """

    def __init__(self, own: Mapping[str, str], given: Sizes, open_sizes: Sequence[str]) -> None:
        bounds = within(own, given)
        self._given = given
        self._open_sizes = open_sizes
        self._assumed = {name: each for name, each in bounds.items() if name not in given}

    @property
    def bounds(self) -> dict[str, Bounds]:
        """All bounds."""
        return {**self._given, **self._assumed}

    def take(self, error: base.UndecidedError) -> tuple[str, Bounds]:
        """Assume what a node needs: the name of the size, and its bounds from now on.

        Raises:  the error, if nothing can be assumed with which the node is decided.
        """
        name, _, needed = error.needs.partition("=")
        decided = [each for each in error.names if each not in self._open_sizes]
        if name and not (name in self._open_sizes or is_bounds(needed)):
            name = ""  # two sizes that values decide are equal, which nothing can promise
        if name and name not in self._given:
            before = self._assumed.get(name)
            self._assumed[name] = needed if before is None else narrowed(before, needed)
            return name, self._assumed[name]
        if not decided:
            raise error
        remedy = (
            f"values decide {', '.join(decided)} when the network runs, so no bounds of it "
            "help: cut this node out of the model, and compute it outside"
        )
        raise error.with_remedy(remedy) from None

    def narrower(self, error: base.UndecidedError, builder: GraphBuilder) -> dict[NamedSize, Index]:
        """As `take`: what stands for a size from now on in a graph that is being built."""
        size = builder.size_named(error.needs.partition("=")[0])
        name, bounds = ("", "") if size is None else self.take(error)
        if size is None or not is_bounds(str(bounds)):
            raise error
        return {size: bounded_size(name, bounds) // size.divisor}


class Importing(Generic[Held]):
    """What imports of all languages share; mutable.

    values   the results of nodes, by name
    """

    def __init__(self, name: str, assumptions: Assumptions) -> None:
        self.builder = GraphBuilder(name or "graph")
        self.values: MutableMapping[str, Held] = {}
        self.assumptions = assumptions

    def assuming(self, convert: Callable[[], Converted]) -> Converted:
        """What `convert` gives; what a node needs of a size is assumed in all tensors before it.

        So one import finds the bounds that all nodes need; its graph is not used.
        """
        for _ in range(MOST_ASSUMED):
            state = dict(self.__dict__)
            try:
                return convert()
            except base.UndecidedError as error:
                self.__dict__.update(state)
                sizes = self.assumptions.narrower(error, self.builder)
                self.builder.narrow(sizes)
                for name, value in self.values.items():
                    self.values[name] = _narrowed(value, sizes)
        return convert()


def _narrowed(value: Any, sizes: Mapping[NamedSize, Index]) -> Any:
    """A value with other sizes."""
    if isinstance(value, tuple):
        return tuple(_narrowed(each, sizes) for each in value)
    if isinstance(value, SizeArray):
        return value.narrowed(sizes)
    return substitute(value, sizes) if isinstance(value, IndexExpr) else value


def with_needed_bounds(
    run: Callable[[Assumptions], Graph],
    own: Mapping[str, str],
    given: Sizes,
    open_sizes: Sequence[str],
) -> Graph:
    """The graph that `run` imports, with the bounds that it turns out to need.

    An import may assume more bounds while it runs.  Then its graph was begun without them, so the
    network is imported once more.  `own`, `given` and `open_sizes` are those of `Assumptions`.
    Raises:  the first UndecidedError, if no assumption leads to a graph.
    """
    assumptions, first = Assumptions(own, given, open_sizes), None
    for _ in range(MOST_ASSUMED):
        before = assumptions.bounds
        try:
            graph = run(assumptions)
            if assumptions.bounds == before:
                return graph
        except base.UndecidedError as error:
            first = first or error
            if assumptions.bounds == before:
                try:
                    assumptions.take(error)
                except base.UndecidedError as last:
                    raise (first if last is error else last) from None
        except (base.ModelError, base.UnsupportedError):
            if assumptions.bounds == before:
                if first is None:
                    raise
                raise first from None
    assert first is not None
    raise first


def _own_bounds(model: reading.Source) -> dict[str, str]:
    """The bounds that a model says of its sizes: one that we wrote, or one with a cache."""
    for each in model.model.metadata_props:
        if each.key == SIZES_PROPERTY:
            try:
                return {str(name): str(bounds) for name, bounds in json.loads(each.value).items()}
            except (ValueError, AttributeError) as error:
                raise model_error(
                    f"property {SIZES_PROPERTY}", f"it says no bounds: {error}"
                ) from None
    return dict.fromkeys(extended_sizes(model.model.graph), "0..")


def _require_mapping(name: str, given: object, remedy: str) -> None:
    """Refuse an argument that is not a mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise base.UsageError(
            stage="import", where=f"{name}={given!r}", reason="it is not a mapping", remedy=remedy
        )


def _attribute(attribute: AttributeProto) -> Attribute:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, (int, float, str)):
        return value
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return tuple(value)
    if attribute.type == AttributeProto.STRINGS:
        return tuple(item.decode("utf-8", errors="replace") for item in value)
    return value  # type: ignore[no-any-return]


class _Import(Importing[Operand]):
    """The state of one import."""

    def __init__(self, source: reading.Source, assumptions: Assumptions) -> None:
        super().__init__(source.model.graph.name, assumptions)
        self.label = source.label
        self.folder: Path | None = source.folder
        self.model = source.model
        self.weights = source.weights
        self.opset = reading.opset_of(source.model, source.label)
        self.functions: dict[tuple[str, str], FunctionProto] = {
            (function.domain, function.name): function for function in source.model.functions
        }
        self.readers: dict[str, str] = {  # input -> the first operator that reads it
            name: node.op_type for node in reversed(source.model.graph.node) for name in node.input
        }
        self.read = frozenset(_read_names(source.model.graph))
        self.expansions = 0
        self.depth = 0
        self.counted = CountedSizes({})

    def run(self, shapes: InputShapes | None, values: Mapping[str, ArrayLike]) -> Graph:
        graph, sizes = self.model.graph, self.assumptions.bounds
        self.read_initializers(graph, self.weights)
        self.fix_inputs(graph, values)
        free = [info for info in graph.input if info.name not in self.values]
        names = open_names(free)
        counted = {n for n in sizes if n not in names and may_be_counted(self.model, n)}
        self.counted = CountedSizes({name: sizes[name] for name in counted})
        dimensions = {name: each for name, each in sizes.items() if name not in counted}
        for name, type_ in input_types(free, shapes, self.readers, dimensions).items():
            self.values[name] = self.builder.input(name, type_.shape, type_.dtype)
            self.counted.avoid(type_)
        with naming_sizes(overridden_sizes(free, shapes or {})):
            self.convert_nodes(graph.node, self.opset, may_assume=True)
        self.counted.check_all_used(names)
        return self.finish([info.name for info in graph.output])

    def fix_inputs(self, graph: GraphProto, values: Mapping[str, ArrayLike]) -> None:
        declared = {info.name: info for info in graph.input}
        for name, value in values.items():
            if name not in declared:
                raise base.InputError(
                    stage="import",
                    where=f"input value {name}",
                    reason="the model has no such input",
                    remedy=f"the inputs are {', '.join(sorted(declared)) or 'none'}",
                )
            check_is_tensor(declared[name], self.readers.get(name, "input"))
            array = np.asarray(value)
            shape = {name: array.shape}
            wanted = input_types([declared[name]], shape, self.readers)[name].dtype
            if base.DType.from_numpy(array.dtype) is not wanted:
                raise base.InputError(
                    stage="import",
                    where=f"input value {name}",
                    reason=f"it must be {wanted}, not {base.DType.from_numpy(array.dtype)}",
                    remedy=f"give an array of {wanted.numpy}: array.astype('{wanted.numpy}')",
                )
            self.values[name] = array

    def read_initializers(
        self, graph: GraphProto, weights: reading.Undecoded = reading.NO_WEIGHTS
    ) -> None:
        for tensor in graph.initializer:
            label = f"initializer {tensor.name}"
            self.values[tensor.name] = to_array(tensor, self.folder, label, weights)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            self.values[name] = dense(sparse, self.folder, f"sparse initializer {name}")

    # -- nodes

    def convert_nodes(
        self, nodes: Sequence[NodeProto], opset: int, *, may_assume: bool = False
    ) -> None:
        """Convert nodes in order; those outside of all others may assume bounds of sizes."""
        for node in nodes:
            convert = partial(self.convert, node, opset)
            results = self.assuming(convert) if may_assume else convert()
            for name, operand in zip(node.output, results, strict=False):
                if name:
                    self.values[name] = operand

    def convert(self, node: NodeProto, opset: int) -> Results:
        """The operands that the node's outputs stand for."""
        label = node_label(node)
        function = self.functions.get((node.domain, node.op_type))
        if function is not None:
            body = expand_local(function, node, self.prefix(node))
            return self.expand(node, body, _opset(function, opset))
        refusal = _refusal(node, opset)
        if refusal is not None:
            raise refusal
        call = self.call(node, label, opset)
        table = _table_of_domain(node)
        if table is not None:
            if not self.depth:
                wanted = tuple(name in self.read for name in node.output)
                call = replace(call, wanted=wanted)
            results = self.convert_known(call, table)
            if results is None:
                raise call.unsupported()
            return _complete(call, results)
        control_flow = CONTROL_FLOW.get(node.op_type)
        if control_flow is not None:
            with checked(label):
                return control_flow(call, self.nested(opset))
        results = self.convert_known(call, CONVERTERS)
        if results is not None:
            return _complete(call, results)
        return self.convert_by_function(node, call, opset)

    def convert_by_function(self, node: NodeProto, call: Call, opset: int) -> Results:
        """The operands of a node for whose operator the standard has a function."""
        if not has_standard_function(node.op_type, opset):
            raise call.unsupported(_without_function(node))
        types = {name: call.type_of(self.values[name]) for name in node.input if name}
        try:
            nodes, version = expand_standard(node, types, opset, self.prefix(node))
        except (RuntimeError, TypeError, ValueError) as error:  # onnx's inliner, in C++
            reason = f"onnx cannot write its function out: {error}"
            raise model_error(call.label, reason) from error
        return self.expand(node, nodes, version)

    def convert_known(self, call: Call, table: Mapping[str, Converter]) -> Results | None:
        """The results of an operator that a table has a converter for."""
        with converting(call.label, call.operator):
            at_import = AT_IMPORT.get(call.operator)
            if at_import is not None:
                return at_import(call)
            converter = table.get(call.operator)
            if converter is None:
                return None
            return fold(call, converter) or converter(call)

    def call(self, node: NodeProto, label: str, opset: int) -> Call:
        missing = [name for name in node.input if name and name not in self.values]
        if missing:
            reason = f"reads {', '.join(missing)}, which nothing before it defines"
            raise model_error(label, reason)
        return Call(
            operator=node.op_type,
            label=label,
            attributes={a.name: _attribute(a) for a in node.attribute},
            operands=tuple(self.values[name] if name else None for name in node.input),
            wanted=tuple(bool(name) for name in node.output),
            opset=opset,
            builder=self.builder,
            folder=self.folder,
            names=tuple(node.input),
            stem=stem_of(node),
            counted=self.counted,
        )

    # -- functions and branches
    # ----------------------------------------------------------------------------------

    def prefix(self, node: NodeProto) -> str:
        self.expansions += 1
        return f"{node.op_type}.{self.expansions}"

    def expand(self, node: NodeProto, body: Sequence[NodeProto], opset: int) -> Results:
        if self.depth >= _DEEPEST:
            reason = f"functions call each other more than {_DEEPEST} deep"
            raise model_error(node_label(node), reason)
        self.depth += 1
        self.convert_nodes(body, opset)
        self.depth -= 1
        missing = [name for name in node.output if name and name not in self.values]
        if missing:
            raise model_error(
                node_label(node), f"its function does not define {', '.join(missing)}"
            )
        return tuple(self.values[name] if name else np.zeros(0) for name in node.output)

    def run_body(self, body: GraphProto, operands: Mapping[str, Operand], opset: int) -> Results:
        """The outputs of a nested graph; its names are forgotten, those around it are seen."""
        outer = self.values
        self.values = ChainMap(dict(operands), outer)
        self.read_initializers(body)
        self.convert_nodes(body.node, opset)
        results = tuple(self.lookup(info.name, f"graph {body.name}") for info in body.output)
        self.values = outer
        return results

    def nested(self, opset: int) -> Nested:
        """The importer of nested graphs, which see the values of this one."""

        def types(body: GraphProto, operands: Mapping[str, Operand]) -> tuple[TensorType, ...]:
            whole = self.builder
            self.builder = whole.draft()
            results = self.run_body(body, operands, opset)
            types = tuple(type_of(each, self.builder) for each in results)
            self.builder = whole
            return types

        def attempt(work: Callable[[GraphBuilder], Results | None]) -> Results | None:
            whole = self.builder
            self.builder = whole.draft()
            results = work(self.builder)
            if results is not None:
                whole.take(self.builder)
            self.builder = whole
            return results

        def body(
            graph: GraphProto,
            inputs: Mapping[str, TensorType],
            computed: Callable[[Inside], Mapping[str, Operand]],
        ) -> Body:
            outer, around = self.builder, self.values
            self.builder = GraphBuilder(graph.name)
            given = {
                name: self.builder.input(name, type_.shape, type_.dtype)
                for name, type_ in inputs.items()
            }
            captured = Captured(around, outer, self.builder)
            self.values = captured  # type: ignore[assignment]  # run_body writes beside it
            more = computed(Inside(self.builder, tuple(given.values()), captured))
            results = self.run_body(graph, {**given, **more}, opset)
            inner, self.builder, self.values = self.builder, outer, around
            return Body(inner, tuple(given.values()), captured.names, results)

        def run(graph: GraphProto, operands: Mapping[str, Operand]) -> Results:
            return self.run_body(graph, operands, opset)

        return Nested(run, types, attempt, body)

    def lookup(self, name: str, where: str) -> Operand:
        operand = self.values.get(name)
        if operand is None:
            raise model_error(where, f"nothing defines {name}")
        return operand

    # -- the end

    def finish(self, outputs: Sequence[str]) -> Graph:
        """The graph, its tensors under their ONNX names where they have one."""
        names: dict[str, str] = {}  # ours -> theirs
        inputs = frozenset(self.builder.inputs)
        taken = set(inputs)
        results = []
        for output in outputs:
            operand = self.lookup(output, f"output {output}")
            if not isinstance(operand, str):
                operand = as_tensor(operand, self.builder)
            if operand == output and operand in inputs:
                results.append(operand)
                continue
            if output in taken:
                raise model_error(
                    f"output {output}", "an input or another output has the same name"
                )
            if operand in inputs or operand in names:
                operand = self.builder.add("identity", operand)
            names[operand] = output
            taken.add(output)
            results.append(operand)
        for theirs, operand in self.values.items():
            ours = name_of(operand, self.builder)
            unnamed = ours is not None and ours not in names and ours not in inputs
            if ours is not None and unnamed and theirs not in taken:
                names[ours] = theirs
                taken.add(theirs)
        return rename_tensors(self.builder.finish(results), names)


def _read_names(graph: GraphProto) -> Iterator[str]:
    """The names of values that nodes of a graph, or of those nested in it, read or return."""
    yield from (info.name for info in graph.output)
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _read_names(attribute.g)


def _refusal(node: NodeProto, opset: int) -> base.UnsupportedError | None:
    """Why the operator of a node cannot be imported; None if it can."""
    reason, remedy = "", OTHERWISE
    is_ours = any(node.op_type in each for each in (AT_IMPORT, CONVERTERS, CONTROL_FLOW))
    table = _table_of_domain(node)
    if table is not None:
        if node.op_type not in AT_IMPORT and node.op_type not in table:
            reason = NO_OPERATOR
    elif node.domain not in reading.DEFAULT_DOMAINS:
        reason = (
            f"the domain {node.domain} is not supported, and the model holds no function for it"
        )
        remedy = "export the model with the standard's operators alone"
    elif node.op_type in REFUSED:
        reason = REFUSED[node.op_type]
        remedy = "cut that part out of the model, and compute it outside"
    elif not (is_ours or has_standard_function(node.op_type, opset)):
        reason = _without_function(node)
    return unsupported(node_label(node), node.op_type, reason, remedy) if reason else None


def _without_function(node: NodeProto) -> str:
    if is_standard(node.op_type):
        return f"{NO_OPERATOR}, and the standard no function"
    return "there is no such operator in ONNX"


def read_supported_model(source: str | os.PathLike[str] | bytes | ModelProto) -> reading.Source:
    """Read a model without its weights, and refuse operators that cannot be imported."""
    read = reading.read_model(source)
    _refuse_missing_operators(read.model, read.label)
    return read


def _refuse_missing_operators(model: ModelProto, label: str) -> None:
    """Refuse a model with operators that cannot be imported, all of them in one list.

    Branches and bodies of loops are not looked at: they may turn out not to be needed.
    """
    functions = {(each.domain, each.name): each for each in model.functions}
    todo = [(model.graph.node, reading.opset_of(model, label))]
    refusals: dict[tuple[str, str], base.UnsupportedError] = {}
    counts: Counter[tuple[str, str]] = Counter()
    while todo:
        nodes, opset = todo.pop()
        for node in nodes:
            key = node.domain, node.op_type
            counts[key] += 1
            if counts[key] > 1:
                continue
            if key in functions:
                todo.append((functions[key].node, _opset(functions[key], opset)))
            elif (refusal := _refusal(node, opset)) is not None:
                refusals[key] = refusal
    if not refusals:
        return
    first, *others = refusals.values()
    if not others:
        raise first
    parts = [
        f"{each.operator} ({each.where}"
        + (f" and {counts[key] - 1} more" if counts[key] > 1 else "")
        + f"): {each.reason}"
        for key, each in refusals.items()
    ]
    remedies = {each.remedy for each in refusals.values()}
    raise unsupported(
        label,
        "",
        f"{len(parts)} operators are missing: " + "; ".join(parts),
        first.remedy if len(remedies) == 1 else OTHERWISE,
    )


def _table_of_domain(node: NodeProto) -> Mapping[str, Converter] | None:
    """The converters of a domain beside the standard's; None for the standard's own operators.

    ONNX Runtime puts some of its operators into the default domain, too.
    """
    if node.domain == AI_ONNX_ML_DOMAIN:
        return AI_ONNX_ML
    is_own = node.op_type in COM_MICROSOFT and not is_standard(node.op_type)
    is_of_onnxruntime = node.domain == DOMAIN or (node.domain in reading.DEFAULT_DOMAINS and is_own)
    return COM_MICROSOFT if is_of_onnxruntime else None


def _complete(call: Call, results: Results) -> Results:
    """The results, if they are all that somebody may read."""
    if any(call.wanted[len(results) :]):
        raise call.unsupported(f"we do not compute its output number {len(results) + 1}")
    return results


def _opset(function: FunctionProto, fallback: int) -> int:
    versions = [o.version for o in function.opset_import if o.domain in reading.DEFAULT_DOMAINS]
    return versions[0] if versions else fallback
