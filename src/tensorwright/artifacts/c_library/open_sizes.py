"""Named sizes in a C library: a struct of them, their bounds, and formulas as C.

    Formula("512*(batch)")    (512LL * sizes->batch)

The plan of a library has a greatest number for each size, so `NAME_load` reserves memory once, for
the greatest sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from tensorwright import base
from tensorwright.codegen.c import c_name
from tensorwright.runtime import Plan, PlanSize, TensorSpec

_OF_CPP = frozenset(
    """alignas alignof and bitand bitor bool catch class compl concept constexpr decltype delete
    explicit export false friend mutable namespace new noexcept not nullptr operator or private
    protected public requires template this throw true try typeid typename using virtual wchar_t
    xor""".split()
)
"""Keywords of C++ that C lacks: they name no fields, because C++ programs include the header."""


def bounded(sizes: tuple[PlanSize, ...]) -> tuple[PlanSize, ...]:
    """Return the sizes.  Raises: UnsupportedError for a size without a greatest number."""
    for size in sizes:
        if size.most is None:
            raise base.UnsupportedError(
                stage="compile",
                where=f"size {size.name}",
                reason="it has no greatest number, and a C library reserves its memory once",
                remedy=base.sizes_advice(
                    {size.name: f"{size.least}..MOST"}, "say how large it may be: "
                ),
            )
    return sizes


def example_sizes(sizes: tuple[PlanSize, ...]) -> tuple[dict[str, int], ...]:
    """Values of bounded sizes for examples: the least, middle and typical ones, equal ones once.

    Typical sizes are smaller than the greatest ones, so the files of the examples stay small.
    """
    least = {size.name: size.least for size in sizes}
    middle = {size.name: _middle(size) for size in sizes}
    larger = {size.name: size.bounds.typical for size in sizes}
    return tuple(
        values
        for number, values in enumerate((least, middle, larger))
        if values not in (least, middle, larger)[:number]
    )


def _middle(size: PlanSize) -> int:
    assert size.most is not None, "they are bounded"
    middle = math.isqrt(size.least * size.most)
    return max(size.least, middle - middle % size.divisor)


@dataclass(frozen=True, slots=True)
class SizeFields:
    """Named sizes as fields of the struct `sizes`, in order: (size, field)."""

    fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, sizes: Sequence[PlanSize]) -> SizeFields:
        """A field for each size, named after it."""
        fields: dict[str, str] = {}
        for size in sizes:
            field = c_name(size.name)
            if field in _OF_CPP:
                field = f"t_{field}"
            while field in fields.values():
                field += "_"
            fields[size.name] = field
        return cls(tuple(fields.items()))

    def amount(self, amount: base.Amount) -> str:
        """An amount as a C expression."""
        if isinstance(amount, int):
            return str(amount)
        members = {name: f"sizes->{field}" for name, field in self.fields}
        return base.read_size(amount.text, members.get, _OPERATIONS)


def _call(function: str) -> Callable[[str, str], str]:
    return lambda left, right: f"{function}({left}, {right})"


_OPERATIONS: base.SizeOperations[str] = base.SizeOperations(
    lambda number: f"{number}LL",
    {
        "+": lambda left, right: f"({left} + {right})",
        "-": lambda left, right: f"({left} - {right})",
        "*": lambda left, right: f"({left} * {right})",
        "//": _call("floor_quotient"),
        "/": lambda left, right: f"({left} / {right})",
        "%": _call("floor_remainder"),
        "min": _call("least_of"),
        "max": _call("greatest_of"),
    },
)

_HELPERS = {
    "floor_quotient": "a / b - (a % b < 0)",
    "floor_remainder": "a % b < 0 ? a % b + b : a % b",
    "least_of": "a < b ? a : b",
    "greatest_of": "a > b ? a : b",
}
"""C functions that formulas call; the divisors are positive."""


def formula_functions(text: str) -> str:
    """C code of the functions that a text calls; compilers would warn of unused ones."""
    return "".join(
        f"static long long {function}(long long a, long long b) {{\n    return {result};\n}}\n\n"
        for function, result in _HELPERS.items()
        if f"{function}(" in text
    )


def filled(name: str, values: Mapping[str, object]) -> str:
    """A file of the folder `templates`, with a text for each name in it."""
    path = Path(__file__).parent / "templates" / name
    return Template(path.read_text()).substitute(values)


_CODES = """\
    ${NAME}_BAD_SIZE = 6, /* a size is outside its bounds */
    ${NAME}_TOO_LITTLE_ROOM = 7 /* an output has more bytes than the caller has room for */
"""
_MESSAGES = """\
    case ${NAME}_BAD_SIZE: return "a size is outside its bounds: $bounds";
    case ${NAME}_TOO_LITTLE_ROOM: return "an output has more bytes than there is room for";
"""
_CHECKS = """\
    if (is_outside(sizes)) return ${NAME}_BAD_SIZE;
    for (int n = 0; n < ${NAME}_OUTPUTS; n++)
        if (output_bytes[n] < ${name}_output_bytes(n, sizes)) return ${NAME}_TOO_LITTLE_ROOM;
"""
_TEXTS = {
    "example_sizes": "       ${name}_sizes sizes = {$typical};\n",
    "sizes_given": "&sizes, ",
    "room_given": "output_bytes, ",
    "comma": ",",
    "size_codes": _CODES,
    "shape_note": "/* An extent that depends on sizes is -1; size_bytes is for the greatest. */\n",
    "run_notes": "\n   output_bytes[n] is how many bytes there are at outputs[n]: at least\n"
    "   ${name}_output_bytes(n, sizes).",
    "run_parameters": "${name}_model *model, const ${name}_sizes *sizes,\n"
    "    const void *const inputs[], void *const outputs[], const size_t output_bytes[],\n"
    "    int threads",
    "size_messages": _MESSAGES,
    "size_arguments": "!sizes || !output_bytes\n        || ",
    "size_checks": _CHECKS,
}
_WITHOUT_SIZES = "{}_model *model, const void *const inputs[], void *const outputs[], int threads"


def size_texts(
    plan: Plan, name: str, steps: str, examples: Sequence[Mapping[str, int]]
) -> dict[str, object]:
    """The texts that named sizes add to the templates; they are empty if the plan has none.

    steps   the C text of the plan's steps, which may call functions of formulas, too
    """
    if not plan.sizes:
        names = (*_TEXTS, "size_declarations", "size_functions")
        return {**dict.fromkeys(names, ""), "run_parameters": _WITHOUT_SIZES.format(name)}
    fields = SizeFields.of(plan.sizes)
    pairs = [(size, field) for size, (_, field) in zip(plan.sizes, fields.fields, strict=True)]
    values: dict[str, object] = {
        "name": name,
        "NAME": name.upper(),
        "bounds": ", ".join(map(str, plan.sizes)),
        "typical": ", ".join(f".{field} = {_middle(size)}" for size, field in pairs),
        "fields": "".join(f"    long long {field}; /* {size} */\n" for size, field in pairs),
        "megabytes": max(1, round(plan.arena_bytes / 1e6)),
        "outside": "\n        || ".join(_outside(size, field) for size, field in pairs),
        "inputs": _cases(plan.inputs, fields),
        "outputs": _cases(plan.outputs, fields),
    }
    text = f"{steps}{values['inputs']}{values['outputs']}"
    values["helpers"] = formula_functions(text)
    return {
        **{key: Template(each).substitute(values) for key, each in _TEXTS.items()},
        "size_declarations": filled("sizes.h", values),
        "size_functions": filled("sizes.c", values),
        "size_words": " ".join(field for _, field in pairs),
        "size_rows": "".join(
            f"    {{{', '.join(str(example[size.name]) for size, _ in pairs)}}},\n"
            for example in examples
        ),
        "size_format": ", ".join(f"{field} = %lld" for _, field in pairs),
        "size_fields": ", ".join(f"sizes->{field}" for _, field in pairs),
        "size_numbers": ", ".join(f"atoll(arguments[{3 + n}])" for n in range(len(pairs))),
        "size_count": len(pairs),
    }


def _outside(size: PlanSize, field: str) -> str:
    """A C condition: the value of a size is outside its bounds."""
    member = f"sizes->{field}"
    steps = f" || {member} % {size.divisor} != 0" if size.divisor > 1 else ""
    return f"{member} < {size.least} || {member} > {size.most}{steps}"


def _cases(specs: tuple[TensorSpec, ...], fields: SizeFields) -> str:
    """C code that sets the extents and bytes of tensor `n`; empty if all shapes are numbers."""
    cases = []
    for number, spec in enumerate(specs):
        extents = [
            f"        tensor->shape[{axis}] = {fields.amount(extent)};\n"
            for axis, extent in enumerate(spec.shape)
            if not isinstance(extent, int)
        ]
        if extents:
            size_bytes = fields.amount(
                base.product_of_amounts((*spec.shape, spec.dtype.size_bytes))
            )
            cases.append(
                f"    case {number}:\n{''.join(extents)}"
                f"        tensor->size_bytes = (size_t){size_bytes};\n        break;\n"
            )
    return f"    switch (n) {{\n{''.join(cases)}    }}\n" if cases else ""
