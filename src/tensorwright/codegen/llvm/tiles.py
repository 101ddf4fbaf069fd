"""Products of matrices by AMX: eight tiles, each of up to 16 rows of 64 bytes.

    ldtilecfg                          at the outermost loop around products, in each thread
      tileloadd 0..3, sums             before the outermost loop that adds to the same sums;
                                       or tilezero 0..3, if they begin there
        for k:
          tileloadd 4..7, operands
          tdpbf16ps 0, 4, 6            and so on
      tilestored sums, 0..3
    tilerelease

Tiles 4 and 5 hold rows of data, 6 and 7 weights; each is loaded once for the products side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tensorwright import base, loop
from tensorwright.codegen.analysis import element_count
from tensorwright.codegen.llvm.text import Function
from tensorwright.expr import Const, Index

INSTRUCTIONS: Mapping[str, str] = {
    "tile_bf16": "tdpbf16ps",
    "tile_f16": "tdpfp16ps",
    "tile_i8i8_i32": "tdpbssd",
    "tile_i8u8_i32": "tdpbsud",
    "tile_u8i8_i32": "tdpbusd",
    "tile_u8u8_i32": "tdpbuud",
}
MOST_SUMS = 4
_TILES, _GROUP_BYTES = 8, 4
_DATA, _WEIGHTS = 4, 6  # the first tiles of each
_PALETTE, _WIDTHS, _HEIGHTS = 0, 16, 48  # bytes of a configuration

Position = tuple[str, Index]
"""A buffer, and which element of it."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand in memory: its first element, the address, and the bytes from row to row."""

    position: Position
    address: str
    step: str


def matrices_of(call: loop.Call, target: base.CpuTarget) -> base.ShortProduct | None:
    """The instruction of tiles that a target has for a call; None for other calls."""
    product = base.short_product(call.intrinsic)
    if product is None or not product.is_matrix:
        return None
    return product if set(product.features) <= set(target.instructions) else None


def all_matrices(statement: loop.Stmt, target: base.CpuTarget) -> frozenset[base.ShortProduct]:
    """Such instructions inside a statement."""
    calls = (each for each in loop.walk(statement) if isinstance(each, loop.Call))
    products = (matrices_of(call, target) for call in calls)
    return frozenset(each for each in products if each is not None)


def cleared_buffer(statement: loop.Stmt) -> loop.Buffer | None:
    """The buffer of which loops set all elements to 0; None for other statements."""
    count = 1
    while isinstance(statement, loop.For) and isinstance(statement.extent, int):
        count *= statement.extent
        statement = statement.body
    match statement:
        case loop.Store(buffer, _, Const(value)) if value == 0 and element_count(buffer) == count:
            return buffer
    return None


def row_step(product: base.ShortProduct) -> str:
    """The bytes from row to row of sums and of weights, which lie one after another."""
    return str(_GROUP_BYTES * product.columns)


def instruction_of(product: base.ShortProduct) -> str:
    """What multiplies matrices of any shape of an instruction."""
    return next(text for name, text in INSTRUCTIONS.items() if product.intrinsic.startswith(name))


@dataclass(slots=True)
class Tiles:
    """What the tiles of a function hold while it is written; mutable."""

    function: Function
    is_configured: bool = False
    begin_zero: bool = False  # the next sums that are held
    sums: dict[Position, int] = field(default_factory=dict)
    operands: dict[int, Position] = field(default_factory=dict)

    @contextmanager
    def configured(self, product: base.ShortProduct) -> Iterator[None]:
        """Configure the tiles of a thread around what is written inside, unless they are."""
        if self.is_configured:
            yield
            return
        numbers = bytearray(64)
        numbers[_PALETTE] = 1
        rows = [product.rows] * _WEIGHTS + [product.groups] * (_TILES - _WEIGHTS)
        for number, height in enumerate(rows):
            is_data = _DATA <= number < _WEIGHTS
            numbers[_WIDTHS + 2 * number] = _GROUP_BYTES * (
                product.groups if is_data else product.columns
            )
            numbers[_HEIGHTS + number] = height
        memory = self.function.alloca("<64 x i8>", 64)
        listed = ", ".join(f"i8 {number}" for number in numbers)
        self.function.effect(f"store <64 x i8> <{listed}>, ptr {memory}, align 64")
        self._do("ldtilecfg", ("ptr", memory))
        self.is_configured = True
        yield
        self.is_configured = False
        self._do("tilerelease")

    @contextmanager
    def holding(self, sums: tuple[Matrix, ...]) -> Iterator[None]:
        """Keep sums in tiles while what is written inside adds to them."""
        for number, each in enumerate(sums):
            if self.begin_zero:
                self._do("tilezero", ("i8 immarg", str(number)))
            else:
                self._move("tileloadd64", number, each)
        self.begin_zero = False
        self.sums = {each.position: number for number, each in enumerate(sums)}
        yield
        self.sums = {}
        for number, each in enumerate(sums):
            self._move("tilestored64", number, each)

    def forget(self) -> None:
        """Load operands again: other code may come here, or change them."""
        self.operands.clear()

    def multiply(self, instruction: str, sums: Matrix, data: Matrix, weights: Matrix) -> None:
        """Add a product of matrices to sums, which are in a tile or in memory."""
        held = self.sums.get(sums.position)
        if held is None:
            self.forget()
            self._move("tileloadd64", 0, sums)
        numbers = held or 0, self._loaded(_DATA, data), self._loaded(_WEIGHTS, weights)
        self._do(instruction, *(("i8 immarg", str(number)) for number in numbers))
        if held is None:
            self._move("tilestored64", 0, sums)
            self.forget()

    def _loaded(self, first: int, operand: Matrix) -> int:
        """The tile that holds an operand: one of two, of which that loaded earlier is replaced."""
        pair = first, first + 1
        for number in pair:
            if self.operands.get(number) == operand.position:
                return number
        order = list(self.operands)
        number = min(pair, key=lambda each: order.index(each) if each in order else -1)
        self.operands.pop(number, None)
        self.operands[number] = operand.position
        self._move("tileloadd64", number, operand)
        return number

    def _move(self, instruction: str, number: int, matrix: Matrix) -> None:
        arguments = ("i8 immarg", str(number)), ("ptr", matrix.address), ("i64", matrix.step)
        self._do(instruction, *arguments)

    def _do(self, instruction: str, *arguments: tuple[str, str]) -> None:
        name = f"llvm.x86.{instruction}"
        self.function.effect(self.function.call_text("void", name, *arguments))
