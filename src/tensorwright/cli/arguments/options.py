"""The options that several commands share, and the functions that read their texts.

This module does not import onnx, the compiler or read models, so that a command that only runs an
executable starts fast: `programs.py` compiles programs, and is imported when it is asked to.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

import click
from click.core import ParameterSource

from tensorwright import base
from tensorwright.compile_options import CompileArguments
from tensorwright.runtime import Executable, default_cache, load, named_target


class ProgramKind(StrEnum):
    """The kinds of programs, with their names in messages."""

    EXECUTABLE = "an executable of tensorwright"
    EXPRESSION = "a tensor expression"
    MODEL = "a model"


def kind_of(text: str) -> ProgramKind:
    """The kind of an argument: the content of a file decides, not its suffix."""
    if base.kind_of_file(text) is base.EXECUTABLE:
        return ProgramKind.EXECUTABLE
    return ProgramKind.EXPRESSION if is_reference(text) else ProgramKind.MODEL


def is_reference(text: str) -> bool:
    """Whether an argument is MODULE:NAME, and not a file or a network of a suite."""
    kind, name = split(text)
    module, colon, attribute = name.rpartition(":")
    is_drive = len(module) == 1  # as in C:\\model.onnx
    return (
        not kind and bool(colon and module and attribute) and not (is_drive or Path(text).exists())
    )


def split(model: str) -> tuple[str, str]:
    """Split a MODEL argument into suite and name; the suite is "" for a file."""
    kind, _, name = model.partition(":")
    if kind in base.SUITE_LOADERS and not Path(model).exists():
        return kind, name
    return "", model


def refuse_other_than_model(text: str) -> None:
    """Refuse an argument that is not a model, for a command that needs a model."""
    name = shlex.quote(text)
    kind = kind_of(text)
    if kind is ProgramKind.EXECUTABLE:
        raise _refusal(
            f"file {text}",
            f"it is {kind}, compiled already; a model is needed",
            "give the model from which it was compiled, or use it as it is:\n"
            f"  tensorwright run {name} --input random\n"
            f"  tensorwright profile {name}",
        )
    if kind is ProgramKind.EXPRESSION:
        raise _refusal(
            text,
            f"it names {kind}; a model is needed, a network of operators",
            "give a model, or use the expression with another command:\n"
            f"  tensorwright tune {name}\n"
            f"  tensorwright run {name} --input random",
        )
    if Path(text).suffix == ".py" and Path(text).is_file():
        raise _refusal(
            f"file {text}",
            "it is a Python file, not a model",
            f"name a tensor expression in it:\n  {text}:NAME",
        )


def _refusal(where: str, reason: str, remedy: str) -> base.UsageError:
    return base.UsageError(stage="cli", where=where, reason=reason, remedy=remedy)


Command = Callable[..., Any]

THREADS = click.IntRange(min=1, max=1024)
_LARGEST_EXTENT = (1 << 31) - 1
_SHAPE = re.compile(r"\s*([^\s\[\],;][^\[\],;]*?)\s*[:=]\s*(\[[\d\s,x]*\]|\d+)\s*(?:[,;]|$)")


def read_shapes(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> dict[str, tuple[int, ...] | int] | None:
    """Read "x:[1,3,224,224],N:8": the shapes of inputs, and the extents of open dimensions."""
    if text is None:
        return None
    shapes: dict[str, tuple[int, ...] | int] = {}
    position = 0
    while position < len(text):
        match = _SHAPE.match(text, position)
        if match is None:
            raise click.BadParameter(f'{text!r} is not of the form "x:[1,3,224,224]"', ctx, param)
        name, extents = match.groups()
        numbers = tuple(int(digits) for digits in re.findall(r"\d+", extents))
        if max(numbers, default=0) > _LARGEST_EXTENT:
            raise click.BadParameter(f"an extent of {name} is above {_LARGEST_EXTENT}", ctx, param)
        shapes[name] = numbers if extents.startswith("[") else numbers[0]
        position = match.end()
    return shapes


def read_sizes(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> dict[str, str] | None:
    """Read "batch=1..64,sequence=8..512 by 8": the values that each named size may have."""
    if text is None:
        return None
    sizes: dict[str, str] = {}
    for part in text.split(","):
        name, equals, bounds = (piece.strip() for piece in part.partition("="))
        if not (name and equals and bounds):
            raise click.BadParameter(f'{part!r} is not of the form "batch=1..64"', ctx, param)
        if name in sizes:
            raise click.BadParameter(f"{name} is given twice", ctx, param)
        sizes[name] = bounds
    return sizes


def read_numbers(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> dict[str, tuple[int, ...]]:
    """Read "batch=1,sequence=32,128": one or several numbers for each name."""
    numbers: dict[str, tuple[int, ...]] = {}
    name = ""
    for part in text.split(",") if text else ():
        before, equals, digits = (piece.strip() for piece in part.rpartition("="))
        if equals:
            name = before
            if name in numbers:
                raise click.BadParameter(f"{name} is given twice", ctx, param)
        if not name:
            raise click.BadParameter(f'{part!r} is not of the form "batch=1"', ctx, param)
        if not digits.isdecimal():
            raise click.BadParameter(f"{name}={digits} is not a number", ctx, param)
        numbers[name] = (*numbers.get(name, ()), int(digits))
    return numbers


def read_values(ctx: click.Context, param: click.Parameter, text: str | None) -> dict[str, int]:
    """Read "batch=1,sequence=128": one number for each name."""
    numbers = read_numbers(ctx, param, text)
    for name, several in numbers.items():
        if len(several) > 1:
            reason = f"{name} has several numbers, and a run has one size"
            raise click.BadParameter(reason, ctx, param)
    return {name: number for name, (number,) in numbers.items()}


def read_points(
    ctx: click.Context, param: click.Parameter, texts: Sequence[str]
) -> tuple[dict[str, tuple[int, ...]], ...] | None:
    """Read each text as `read_numbers` does; None if there is no text."""
    return tuple(read_numbers(ctx, param, text) for text in texts) or None


class Minutes(click.FloatRange):
    """The type of an option: a finite number of minutes, 0 or more."""

    name = "minutes"

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a text as click does, but refuse "nan" and "inf"."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number of minutes.", param, ctx)
        return number


def refuse_given(names: Iterable[str], because: str) -> None:
    """Refuse options of the running command that do not apply to its argument.

    names     parameters of the command's function
    because   why they do not apply: "m.tw is an executable, which is already compiled"
    """
    for name, option in given_options().items():
        if name in names:
            raise base.UsageError(
                stage="cli",
                where=f"option {option}",
                reason=f"it does not apply here: {because}",
                remedy="leave it out",
            )


def given_options() -> dict[str, str]:
    """The parameters of the running command that its command line gives, with their options."""
    context = click.get_current_context()
    return {
        parameter.name: max((*parameter.opts, *parameter.secondary_opts), key=len)
        for parameter in context.command.params
        if parameter.name
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


model_argument = click.argument("model", metavar="MODEL")
"""Add MODEL: a path, light:NAME, zoo:NAME or wild:NAME."""
program_argument = click.argument("program", metavar="MODEL|MODULE:EXPR")
"""Add PROGRAM: a MODEL, or the user's tensor expression."""
output_option = click.option(
    "-o", "--output", "output", required=True, metavar="OUT", help="The file to write."
)
"""Add -o OUT: the file to write."""


target_option = click.option(
    "--target",
    callback=lambda ctx, param, name: base.cpu_target(name or base.knobs.TARGET.get()),
    help="The machine to compile for; by default this one.",
)
"""Add --target, as a `CpuTarget`, for a command that supports only processors."""
at_option = click.option(
    "--at",
    callback=read_values,
    metavar='"batch=1"',
    help="Values of open sizes, for random inputs; by default 1 for a batch, and a number "
    "between the bounds for others.",
)
"""Add --at for a command that takes one value of each size."""
points_option = click.option(
    "--at",
    multiple=True,
    callback=read_points,
    metavar='"batch=1,sequence=1,32,128"',
    help="The values of open sizes, in all combinations; may be repeated. By default a few "
    "that the bounds suggest.",
)
"""Add --at for a command that takes several values of each size."""
constants_option = click.option(
    "--constants",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Values of the constants of a tensor expression, by name.",
)
"""Add --constants, as a `Path`."""
Reader = Callable[[click.Context, click.Parameter, Any], Any]


def record_options(
    record: type[Any], name: str, readers: Mapping[str, Reader] | None = None
) -> Callable[[Command], Command]:
    """Add the options that the fields of a record declare; the command gets the record by a name.

    A field whose default is another record with options stands for these.
    readers   read the texts of some fields
    """
    declared = tuple(_declared(record))

    def add(function: Command) -> Command:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            values = {each.name: kwargs.pop(_parameter(each)) for each in declared}
            return function(*args, **{name: _made(record, values)}, **kwargs)

        command: Command = wrapped
        for field in reversed(declared):
            reader = {**_READERS, **(readers or {})}.get(field.name)
            command = _option_of(field, reader)(command)
        return command

    return add


def _declared(record: type[Any]) -> Iterator[Field[Any]]:
    for each in fields(record):
        if "text" in each.metadata:
            yield each
        elif is_dataclass(each.default):
            yield from _declared(type(each.default))


def _made(record: type[Any], values: Mapping[str, Any]) -> Any:
    """The record of the values of its options; None stands for the default."""
    given = {}
    for each in fields(record):
        if is_dataclass(each.default) and any(_declared(type(each.default))):
            given[each.name] = _made(type(each.default), values)
        elif values.get(each.name) is not None and "text" in each.metadata:
            given[each.name] = values[each.name]
    return record(**given)


def _parameter(field: Field[Any]) -> str:
    """The name of a field's option among the parameters of a command."""
    return str(field.metadata.get("spelling", field.name))


def _option_of(field: Field[Any], reader: Reader | None = None) -> Callable[[Command], Command]:
    """The option of a command that a field declares."""
    facts, default = field.metadata, field.default or None
    spelling = f"--{_parameter(field).replace('_', '-')}"
    if isinstance(field.default, StrEnum):
        default = field.default.value
    elif field.default is True:
        spelling = f"{spelling}/--no-{spelling.removeprefix('--')}"
    return click.option(
        spelling,
        type=_kind_of(field),
        default=default,
        is_flag=isinstance(field.default, bool),
        multiple=field.default == (),
        show_default=default is not None,
        callback=reader,
        metavar=facts.get("metavar"),
        help=facts["text"],
    )


def _kind_of(field: Field[Any]) -> click.ParamType[Any] | None:
    """The type of the texts of a field's option; click's usual one if None."""
    facts = field.metadata
    if facts.get("unit") == "minutes":
        return Minutes()
    if "least" in facts:
        ranges = click.FloatRange if isinstance(facts["least"], float) else click.IntRange
        return ranges(min=facts["least"], max=facts.get("most"))
    if "words" in facts:
        return click.Choice(facts["words"])
    if isinstance(field.default, StrEnum):
        return click.Choice([each.value for each in type(field.default)])
    if "kind" in facts:
        return click.Path(path_type=Path) if facts["kind"] is Path else click.FLOAT
    return click.Path(dir_okay=False) if facts.get("metavar") == "FILE" else None


_READERS: Mapping[str, Reader] = {
    "target": lambda ctx, param, name: named_target(name or base.knobs.TARGET.get()),
    "input_shapes": read_shapes,
    "sizes": read_sizes,
    "seed": lambda ctx, param, seed: base.knobs.SEED.get() if seed is None else seed,
}


@dataclass(frozen=True, kw_only=True)
class Compilation(CompileArguments):
    """The values of the options by which a command compiles programs."""

    seed: int = base.option(0, "Seed of every random choice.", least=0, most=(1 << 63) - 1)

    @property
    def records_path(self) -> Path | None:
        """The file of the record store; None for the user's."""
        return None if self.records is None else Path(cast(Path, self.records))


any_target_option, records_option, shapes_option, sizes_option, seed_option = (
    _option_of(field, _READERS.get(field.name))
    for field in base.options_of(Compilation)
    if field.name not in ("threads", "precision", "keep")
)
"""Each option by itself, for commands that do not take all of them."""

_COMPILING = "tensorwright.cli.arguments.programs"


def compile_options(
    function: Command,
    record: type[Compilation] = Compilation,
    readers: Mapping[str, Reader] | None = None,
) -> Command:
    """Add the options of a record; the command gets it as the argument `how`."""

    @functools.wraps(function)
    def given(*arguments: Any, **more: Any) -> Any:
        if base.knobs.KERNEL_CACHE.get():
            default_cache().is_usable()  # warns of an unusable folder before the work
        return function(*arguments, **more)

    return record_options(record, "how", readers)(given)


def open_program(text: str, how: Compilation, constants: Path | None, *, draws: bool) -> Executable:
    """Load an executable; compile a model or a tensor expression with the schedules on record.

    constants   the file with the constants of an expression
    draws       whether constants without a value get random values
    Raises:     UsageError for options that do not apply to this kind of program.
    """
    if kind_of(text) is ProgramKind.EXECUTABLE:
        refuse_given(
            ("target", "records", "input_shapes", "sizes", "precision", "keep", "constants"),
            because=f"{text} is {ProgramKind.EXECUTABLE}, and already compiled",
        )
        return load(text, how.threads)
    compiled: Executable = importlib.import_module(_COMPILING).compile_any(
        text, how, constants, draws=draws
    )
    return compiled
