"""Loop nests. Read `ir.py` first: the IR with its grammar and semantics."""

from tensorwright.loop.ir import (
    Allocate,
    Block,
    Buffer,
    Call,
    For,
    ForKind,
    If,
    LoopProgram,
    Packing,
    Parameter,
    Prefetch,
    Role,
    Scope,
    Stmt,
    Store,
    Window,
    block,
)
from tensorwright.loop.lower import lower

__all__ = [
    "Allocate",
    "Block",
    "Buffer",
    "Call",
    "For",
    "ForKind",
    "If",
    "LoopProgram",
    "Packing",
    "Parameter",
    "Prefetch",
    "Role",
    "Scope",
    "Stmt",
    "Store",
    "Window",
    "block",
    "lower",
]
