"""Bind the decisions of a program to numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tensorwright.base import InternalError
from tensorwright.expr import Decision, Index, decisions_of, substitute, substitute_condition
from tensorwright.loop.ir import Allocate, Buffer, LoopProgram, Packing, Parameter
from tensorwright.loop.passes.simplify import simplify_loops
from tensorwright.loop.traversal import substitute_statement, walk


def bind_decisions(program: LoopProgram, decisions: Mapping[Decision, int]) -> LoopProgram:
    """Replace decisions by their values everywhere and simplify.

    Rewrite:  for i_o in 0..128/?t: for i_i in 0..?t: S      with ?t = 32
                  ->  for i_o in 0..4: for i_i in 0..32: S
    Raises:   InternalError for a value that is not positive, or where a division that the program
              calls exact leaves a remainder.
    """
    for decision, value in decisions.items():
        if value < 1:
            _fail(program, f"{decision} = {value}, and a decision is positive")
    try:
        bound = _substituted(program, decisions)
    except ValueError as error:
        _fail(program, f"{error}, and the program needs an exact division")
    return simplify_loops(bound)


def _fail(program: LoopProgram, reason: str) -> None:
    raise InternalError(stage="loop", where=program.name, reason=reason) from None


def _substituted(program: LoopProgram, values: Mapping[Decision, int]) -> LoopProgram:
    buffers: dict[Buffer, Buffer] = {}
    for buffer in _buffers(program):
        if decisions_of(*buffer.shape):
            buffers[buffer] = replace(
                buffer, shape=tuple(substitute(extent, values) for extent in buffer.shape)
            )
    parameters = tuple(
        Parameter(
            buffers.get(p.buffer, p.buffer),
            p.role,
            None if p.packing is None else _packing(p.packing, values),
            p.source,
        )
        for p in program.parameters
    )
    body = substitute_statement(program.body, values, buffers)
    return LoopProgram(program.name, parameters, body)


def _buffers(program: LoopProgram) -> Iterable[Buffer]:
    yield from (parameter.buffer for parameter in program.parameters)
    yield from (part.buffer for part in walk(program.body) if isinstance(part, Allocate))


def _packing(packing: Packing, values: Mapping[Decision, int]) -> Packing:
    def bind(index: Index) -> Index:
        return substitute(index, values)

    return Packing(
        tuple((var, bind(extent)) for var, extent in packing.axes),
        tuple(bind(index) for index in packing.indices),
        substitute_condition(packing.valid, values),
        tuple(bind(extent) for extent in packing.source_shape),
        packing.derivation,
    )
