"""Operators whose second input is a number that is an attribute to us: triangles, running sums."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tensorwright.graph.onnx_import.call import Call, Results, Table
from tensorwright.graph.onnx_import.counterparts import WITH_NUMBER, Counterpart


def _with_number(counterpart: Counterpart, call: Call) -> Results:
    name, default = counterpart.number
    value = default if isinstance(default, int) and not call.has(1) else call.index(1, name)
    alone = replace(call, operands=call.operands[:1])
    return counterpart.convert(alone, **{name: value})


GENERATION: Table = tuple((each.theirs, partial(_with_number, each)) for each in WITH_NUMBER)
