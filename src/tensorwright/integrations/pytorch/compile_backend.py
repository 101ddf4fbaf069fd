"""The backend of torch.compile.

    compiled = torch.compile(module.eval(), backend="tensorwright")
    with torch.no_grad():
        results = compiled(tensor)

Dynamo hands over a graph at a time.  It is traced to operators of ATen; those that we have are
compiled, and PyTorch runs the others, named with the reason by the logger "tensorwright.torch".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from tensorwright.base import ModelError, UnsupportedError
from tensorwright.graph.imports import aten
from tensorwright.integrations.pytorch import division, fx_record
from tensorwright.integrations.pytorch.parts import LOG, Options, Part, ShapedPart, can_hold, usage

torch._dynamo.config.allow_rnn = True  # else Dynamo leaves recurrent layers to PyTorch, unasked
_MOST_TRIES = 64

Called: TypeAlias = Any  # what Dynamo calls with the arguments of the graph
Refusal: TypeAlias = UnsupportedError | ModelError


def tensorwright_backend(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Called:
    """What torch.compile calls with each graph, and arguments like those of the first call.

    mode      "max-autotune" searches for five minutes
    options   the fields of `Options`

    Raises:  UsageError for unknown options, and for gradients with the option `strict`;
             UnsupportedError for what PyTorch would have to run, with `strict` or fullgraph.
    """
    chosen = Options.read(mode, options)
    reasons = _foreign(example_inputs)
    has_gradients = _asks_for_gradients(example_inputs)
    if _is_full_graph() and not has_gradients:
        chosen = replace(chosen, strict=True)
    if reasons:
        return _left_to_torch(module, reasons, chosen)
    try:
        if has_gradients:
            return _with_gradients(module, example_inputs, chosen)
        traced = division.aten_graph(module)
        return _Division(module, traced, tuple(example_inputs), chosen).run()
    except division.UntraceableError as error:
        return _left_to_torch(module, {"graph": f"it cannot be traced: {error}"}, chosen)


def reset() -> None:
    """torch._dynamo.reset() calls it; what was compiled belongs to the graphs that Dynamo drops."""
    _FALLBACKS.clear()


tensorwright_backend.reset = reset  # type: ignore[attr-defined]
_FALLBACKS: dict[str, str] = {}


def fallbacks() -> dict[str, str]:
    """The operators that PyTorch has run since the last reset, and why."""
    return dict(_FALLBACKS)


def _asks_for_gradients(examples: Sequence[Any]) -> bool:
    """Whether results of a graph would have gradients."""
    return torch.is_grad_enabled() and any(
        isinstance(each, torch.Tensor) and each.requires_grad for each in examples
    )


def _with_gradients(module: fx.GraphModule, examples: Sequence[Any], options: Options) -> Called:
    """A graph whose forward program is compiled; PyTorch's own kernels run the backward program.

    AOTAutograd splits the two. The forward program returns what the backward one reads, too, and
    parameters are inputs of it: each step of a training changes them.
    """
    reason = "PyTorch's own kernels compute gradients"
    if options.strict:
        remedy = "call the compiled module under torch.no_grad() or torch.inference_mode()"
        raise usage("option 'strict'", reason, remedy)
    if "gradients" not in _FALLBACKS:
        LOG.warning("%s; without them, call the module under torch.no_grad()", reason)
    _FALLBACKS["gradients"] = reason

    def forward(graph: fx.GraphModule, _: Sequence[Any]) -> Called:
        given = tuple(node.meta["val"] for node in division.placeholders(graph.graph))
        return make_boxed_func(_Division(graph, graph, given, options, logging.INFO).run())

    def backward(graph: fx.GraphModule, _: Sequence[Any]) -> Called:
        return make_boxed_func(graph.forward)

    return aot_autograd(fw_compiler=forward, bw_compiler=backward)(module, examples)


def _foreign(examples: Sequence[Any]) -> dict[str, str]:
    """The inputs for which a graph runs in PyTorch, and why; none where it is compiled."""
    reasons = {}
    for each in examples:
        if not isinstance(each, torch.Tensor):
            continue
        if is_traceable_wrapper_subclass(each):  # its class decides what operators do with it
            reasons[f"an input of the class {type(each).__name__}"] = "it is not a plain tensor"
        elif each.device.type != "cpu":
            reasons[f"an input on {each.device}"] = "it is not in the memory of the processor"
        elif each.layout is not torch.strided:
            reasons[f"an input laid out as {each.layout}"] = "it is not dense"
    return reasons


def _is_full_graph() -> bool:
    """Whether the caller asked for fullgraph=True."""
    try:
        translator = torch._dynamo.symbolic_convert.InstructionTranslator.current_tx()
    except (AttributeError, RuntimeError):
        return False
    return bool(getattr(translator, "one_graph", False))


def _left_to_torch(
    module: fx.GraphModule,
    reasons: Mapping[str, str],
    options: Options,
    level: int = logging.WARNING,
) -> Called:
    """Note what PyTorch runs."""
    listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    if options.strict:
        raise UnsupportedError(
            stage="torch.compile",
            where="graph",
            reason=f"PyTorch would have to run {listed}",
            remedy="leave fullgraph out, and PyTorch runs these operators",
            operator=next(iter(reasons)),
        )
    if reasons.keys() - _FALLBACKS.keys():
        LOG.log(level, "PyTorch runs %s", listed)
    _FALLBACKS.update(reasons)
    return module.forward


class _Division:
    """Divides a graph between executables and PyTorch; lives inside one call of the backend."""

    def __init__(
        self,
        source: fx.GraphModule,
        traced: fx.GraphModule,
        examples: tuple[Any, ...],
        options: Options,
        level: int = logging.WARNING,
    ) -> None:
        self.source, self.examples, self.options = source, examples, options
        self.level = level  # of messages about what PyTorch runs
        self.refused: dict[fx.Node, Refusal] = {}
        self.use(traced)

    def use(self, module: fx.GraphModule) -> None:
        """Divide this graph."""
        self.module = module
        self.graph = module.graph
        self.placeholders = division.placeholders(self.graph)
        self.symbols = frozenset(
            str(extent)
            for node in self.placeholders
            if isinstance(node.meta["val"], torch.Tensor)
            for extent in node.meta["val"].shape
        )
        held = [
            node
            for node, example in zip(self.placeholders, self.examples, strict=True)
            if not isinstance(example, FakeTensor)
            and (
                getattr(example, "_dynamo_static_input_type", None) is not None
                or isinstance(example, torch.nn.Parameter)
            )
        ]
        values = dict(zip(self.placeholders, self.examples, strict=True))
        self.held = {node.name for node in held if can_hold(values[node])}

    def run(self) -> Called:
        """What computes the graph."""
        shared = division.shared_results(self.graph)
        results = division.results_of(self.graph)
        is_plain = not shared and all(
            isinstance(each, fx.Node) and each.op != "placeholder" and not division.is_size(each)
            for each in results
        )
        if is_plain and results:
            whole = division.PartNodes(tuple(self.graph.nodes), self.placeholders, results)
            record = self.record(whole)
            if self.refusal(record) is None:
                return self.compiled(record, self.examples)
        if division.returns_what_it_writes(self.graph):
            reasons = {"graph": "it returns an input that it writes into"}
            return self.left_to_torch(reasons)
        if any(map(division.writes, self.graph.nodes)):
            self.use(division.functional_graph(self.module))
            shared = division.shared_results(self.graph)
        return self.divided(shared)

    def divided(self, shared: frozenset[fx.Node]) -> Called:
        """A graph of parts, and of what PyTorch runs."""
        writing = frozenset(node for node in self.graph.nodes if division.writes(node))
        for _ in range(_MOST_TRIES):
            in_torch = shared | writing | self.refused.keys()
            parts = division.divide(self.graph, in_torch, self.symbols)
            records = [self.record(part) for part in parts]
            noted = [self.note(part, record) for part, record in zip(parts, records, strict=True)]
            if not any(noted):
                break
        else:
            return self.left_to_torch({"graph": "too much of it is unknown"})
        reasons = {_operator(node): each.reason for node, each in self.refused.items()}
        reasons |= {_operator(node): "it writes into an input" for node in writing}
        if reasons:
            self.left_to_torch(reasons)
        if not parts:
            return self.source.forward
        levels = division.levels_of(self.graph, in_torch, self.symbols)
        in_turn = frozenset().union(*map(division.storages, writing))
        written = [
            at for at, each in enumerate(self.placeholders) if division.storages(each) & in_turn
        ]
        examples = dict(zip(self.placeholders, self.examples, strict=True))
        compiled = [
            self.compiled(record, [examples.get(each) for each in part.inputs])
            for part, record in zip(parts, records, strict=True)
        ]
        call = division.joined(self.module, levels, parts, compiled).forward
        return self.apart(call, written) if written else call

    def apart(self, call: Called, written: Sequence[int]) -> Called:
        """A call whose inputs must not share memory with those that it writes into.

        The trace knows each input as a tensor of its own: only PyTorch sees a write through another
        one.
        """

        def checked(*arguments: Any) -> Any:
            if any(
                fx_record.overlap(arguments[at], arguments[:at] + arguments[at + 1 :])
                for at in written
            ):
                reasons = {"inputs that share memory": "the graph writes into one of them"}
                return self.left_to_torch(reasons)(*arguments)
            return call(*arguments)

        return checked

    def left_to_torch(self, reasons: Mapping[str, str]) -> Called:
        """The graph as PyTorch runs it; the reasons are noted."""
        return _left_to_torch(self.source, reasons, self.options, self.level)

    def note(self, part: division.PartNodes, record: aten.ExportedGraph) -> bool:
        """Whether a node of a part has to be left to PyTorch; it is noted."""
        refusal = self.refusal(record)
        if refusal is None:
            return False
        by_label = {node.label: node.name for node in record.nodes}
        name = by_label.get(refusal.where)
        chosen = [node for node in part.nodes if node.name == name] or part.nodes
        self.refused.update(dict.fromkeys(chosen, refusal))
        return True

    def refusal(self, record: aten.ExportedGraph) -> Refusal | None:
        """Why a record cannot be compiled; None where it can, if need be for each shape."""
        try:
            aten.load_exported(record)
        except (UnsupportedError, ModelError) as error:
            if not any(map(_is_open, record.inputs)):
                return error
            try:
                aten.load_exported(_at(record, self.hints()))
            except (UnsupportedError, ModelError) as refusal:
                return refusal
        return None

    def hints(self) -> dict[str, int]:
        """The symbols' values in the first call."""
        sizes: dict[str, int] = {}
        for node, example in zip(self.placeholders, self.examples, strict=True):
            fake = node.meta["val"]
            if isinstance(example, torch.Tensor) and isinstance(fake, torch.Tensor):
                numbers = (n if isinstance(n, int) else n.node.hint for n in example.shape)
                sizes |= dict(zip(map(str, fake.shape), numbers, strict=True))
        return sizes

    # -- records

    def record(self, part: division.PartNodes) -> aten.ExportedGraph:
        """A part as a record; parameters have no value in it."""
        names = fx_record.FxNames(self.module)
        inputs = [self.input(node) for node in part.inputs]
        inputs += [self.attribute(n) for n in part.nodes if n.op == "get_attr"]
        nodes = fx_record.nodes_of(part.nodes, names)
        outputs = tuple(fx_record.argument_of(each, names) for each in part.outputs)
        ranges = {symbol: (1, None) for symbol in self.symbols if not symbol.isdecimal()}
        return aten.ExportedGraph("graph", tuple(inputs), nodes, outputs, ranges, label="graph")

    def input(self, node: fx.Node) -> aten.Input:
        value = node.meta.get("val")
        if node.op == "get_attr":
            return self.attribute(node)
        if isinstance(value, torch.Tensor):
            return aten.Input(node.name, fx_record.meta_of(value))
        if division.follows_from(node, self.symbols):
            return aten.Input(node.name, symbol=str(value))
        kinds = ((torch.SymBool, "bool"), (torch.SymFloat, "float64"), (torch.SymInt, "int64"))
        dtype = next(name for kind, name in kinds if isinstance(value, kind))
        return aten.Input(node.name, aten.TensorMeta(aten.ElementType(dtype), ()))

    def attribute(self, node: fx.Node) -> aten.Input:
        """A tensor that the graph holds."""
        held = getattr(self.module, str(node.target))
        real = getattr(held, "constant", None)
        tensor = held if real is None else real
        if not isinstance(tensor, torch.Tensor):
            return aten.Input(node.name)
        array = fx_record.array_of(tensor, node.name)
        return aten.Input(node.name, fx_record.meta_of(tensor), array, node.name)

    # -- compiling

    def compiled(self, record: aten.ExportedGraph, examples: Sequence[Any]) -> Called:
        """What computes a record: one executable for all sizes, or one for each shape."""
        held = [each.name for each in record.inputs if each.name in self.held]

        def make(record: aten.ExportedGraph, examples: Sequence[Any]) -> Part:
            compile_record, frozen = self.options.compile, self.options.freeze
            return Part(record, held, compile_record, examples, is_frozen=frozen)

        def make_at(examples: Sequence[Any]) -> Part:
            return make(_at(record, _values_of(record, examples)), examples)

        if not any(map(_is_open, record.inputs)):
            return make(record, examples)
        try:
            return make(record, examples)
        except (UnsupportedError, ModelError) as error:
            LOG.info("each shape is compiled by itself: %s", error)
            return ShapedPart(make_at)


def _operator(node: fx.Node) -> str:
    return str(node.target).removesuffix(".default")


def _is_open(given: aten.Input) -> bool:
    """Whether the shape of an input has symbols."""
    return given.meta is not None and any(isinstance(n, str) for n in given.meta.sizes)


def _values_of(record: aten.ExportedGraph, arguments: Sequence[Any]) -> dict[str, int]:
    """What the expressions of sizes are in a call."""
    return {
        extent: number
        for given, argument in zip(record.inputs, arguments, strict=False)
        if given.meta is not None and isinstance(argument, torch.Tensor)
        for extent, number in zip(given.meta.sizes, argument.shape, strict=True)
        if isinstance(extent, str)
    }


def _at(record: aten.ExportedGraph, values: Mapping[str, int]) -> aten.ExportedGraph:
    """A record for some values of its symbols."""

    def fixed(given: aten.Input) -> aten.Input:
        if given.symbol in values:
            return replace(given, symbol="", constant=values[given.symbol])
        if given.meta is None:
            return given
        sizes = tuple(values.get(n, n) if isinstance(n, str) else n for n in given.meta.sizes)
        return replace(given, meta=replace(given.meta, sizes=sizes))

    return replace(record, inputs=tuple(map(fixed, record.inputs)))
