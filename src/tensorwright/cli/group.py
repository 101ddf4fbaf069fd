"""The program `tensorwright`: it imports the called command, and prints errors as text.

A new command needs a module with an object `command`, and a line in the list here. The package
tensorwright-lab has further commands, which are listed if it is installed.
"""

from __future__ import annotations

import importlib
import shlex
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click

from tensorwright import base
from tensorwright.cli import INTERRUPTED
from tensorwright.version import __version__


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its name, and its line in the list of commands.

    goes_on   whether the same command continues after an interrupt
    package   the package that has the command's module
    shared    that module, if it has several commands: objects with their names
    """

    name: str
    summary: str
    goes_on: bool = False
    package: str = "tensorwright.cli"
    shared: str = ""

    def load(self) -> click.Command:
        """Import the command, when it is called."""
        module = importlib.import_module(f"{self.package}.{self.shared or self.name}")
        command: click.Command = getattr(module, self.name if self.shared else "command")
        return command


COMMANDS = (
    Entry("optimize", "Tune on this machine, compile with the best schedules, save.", goes_on=True),
    Entry(
        "tune",
        "Tune models and tensor expressions; keep the measurements only.",
        goes_on=True,
    ),
    Entry("compile", "Compile with schedules on record, or by prediction; save."),
    Entry("run", "Run an executable, a model or a tensor expression."),
    Entry("generate", "Continue a text, or ids, with a language model."),
    Entry("profile", "Say where the time goes, kernel by kernel, and what limits it."),
    Entry("report", "Write one HTML file: what was found, where the time goes, and why."),
    Entry("inspect", "Show what becomes of a program: graph, layouts, workloads, code."),
    Entry("rewrite", "Write a better ONNX model: proved substitutions of its operators."),
    Entry("quantize", "Write an ONNX model with numbers of few bits, and say what that costs."),
    Entry("records", "List, export, import, prune and delete measurements."),
    Entry("cache", "Show what is kept on the disk, and clear it."),
    Entry("rules", "Prove, refute and explain substitutions of operator graphs."),
    Entry(
        "farm",
        "Use many machines: start a scheduler, make keys, see what the workers do.",
        shared="farm",
    ),
    Entry("worker", "Build and measure for others: a worker of a farm.", shared="farm"),
    Entry(
        "operators",
        "List the operators of graphs, with their inputs and attributes.",
        shared="listings",
    ),
    Entry("doctor", "Say what this machine offers, and what is missing."),
    Entry("knobs", "List the settings.", shared="listings"),
    Entry("explain", "Say what a kind of error means, and what to do.", shared="listings"),
)
OF_LABORATORY = (
    Entry("bench", "Compare with other runtimes: same answers? how fast?", package=base.LABORATORY),
    Entry(
        "pretrain",
        "Train the model that chooses schedules without measurements.",
        package=base.LABORATORY,
    ),
    Entry(
        "demo", "Tune a small network and compare it with ONNX Runtime.", package=base.LABORATORY
    ),
)


def commands() -> tuple[Entry, ...]:
    """All commands, with those of the laboratory if it is installed."""
    return (*COMMANDS, *OF_LABORATORY) if base.has_laboratory() else COMMANDS


_REMEDY = "  try: "
_COMMAND = f"{_REMEDY}tensorwright "


def echo_prose(text: str, *, err: bool = False) -> None:
    """Print lines of prose, wrapped if the stream is a terminal."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = wrap_prose(text, shutil.get_terminal_size().columns)
    click.echo(text, err=err)


def wrap_prose(text: str, columns: int) -> str:
    """Wrap each line of prose; continued lines are indented.

    Indented lines stay as they are, because they are drawings or commands to copy. A remedy in
    words is indented, too, but it is wrapped.
    """
    return "\n".join(_wrapped(line, columns) for line in text.splitlines())


def _wrapped(line: str, columns: int) -> str:
    is_remedy = line.startswith(_REMEDY) and not line.startswith(_COMMAND)
    if line.startswith(" ") and not is_remedy:
        return line
    return textwrap.fill(
        line,
        columns,
        subsequent_indent=" " * (len(_REMEDY) if is_remedy else 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


ARGUMENTS = "tensorwright.arguments"
"""The key of the whole command line in the context's `meta`."""


class LazyGroup(click.Group):
    """Commands that are imported when they are called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command line, so that a command can print it."""
        ctx.meta[ARGUMENTS] = tuple(args)
        with _reporting_misuse(ctx):
            return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the registry."""
        return [entry.name for entry in commands()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of a command and return the command; None for an unknown name."""
        for entry in commands():
            if entry.name == name:
                return entry.load()
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command as click does, but suggest the nearest command for an unknown name."""
        names = self.list_commands(ctx)
        if args[:1] and args[0] in {entry.name for entry in OF_LABORATORY}:
            base.require_laboratory(f"command {args[0]}")
        if args and not args[0].startswith("-") and args[0] not in names:
            hint = base.did_you_mean(args[0], names, "one of " + ", ".join(names))
            ctx.fail(f"no such command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.summary) for entry in commands()])

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error becomes a text on the error stream and an exit code."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            for name, variable in base.knobs.misspelt_variables().items():
                echo_prose(f"warning: {name} sets nothing; did you mean {variable}?", err=True)
            try:
                with _reporting_misuse(ctx):
                    return super().invoke(ctx)
            except base.TensorwrightError as error:
                _report(error)
                ctx.exit(error.exit_code)
            except KeyboardInterrupt:
                click.echo(_interrupted_text(ctx), err=True)
                ctx.exit(INTERRUPTED)
            except MemoryError:
                lack = base.MachineError(
                    stage="memory",
                    where="this process",
                    reason="there is not enough memory",
                    remedy="use a smaller batch, or a machine with more memory",
                )
                _report(lack)
                ctx.exit(lack.exit_code)
            except _CLICK_ERRORS:
                raise
            except Exception as error:  # noqa: BLE001 - an unexpected error is printed
                _report(_unexpected(error))
                ctx.exit(base.InternalError.exit_code)


def same_command(*more: str) -> str:
    """The command line of this process, ready to copy, with more words at its end."""
    words = (*click.get_current_context().meta.get(ARGUMENTS, ()), *more)
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return shlex.join([sys.executable, "-m", "tensorwright", *words])
    return shlex.join(["tensorwright", *words])


def end_interrupted(resume_text: str) -> NoReturn:
    """Print how to continue, and end with the exit code of Ctrl-C."""
    click.echo(f"{resume_text}\n  {same_command()}", err=True)
    click.get_current_context().exit(INTERRUPTED)


def _interrupted_text(ctx: click.Context) -> str:
    """The message after Ctrl-C; it does not need the command's module to be imported."""
    name = ctx.meta.get(ARGUMENTS, ())[:1]
    if any(entry.goes_on and (entry.name,) == name for entry in commands()):
        return f"Interrupted; the same command continues:\n  {same_command()}"
    return "Interrupted."


@contextmanager
def _reporting_misuse(ctx: click.Context) -> Iterator[None]:
    """Report what click refuses as a `UsageError`; but a group without a command shows its help."""
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, _HELP):
            raise
        command = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip()
        command = error.ctx.command_path if error.ctx else command
        text = error.format_message().rstrip(".")
        refusal = base.UsageError(
            stage="cli",
            where=command,
            reason=text[:1].lower() + text[1:],
            remedy=f"{command} --help",
        )
        _report(refusal)
        ctx.exit(refusal.exit_code)


_HELP = getattr(click.exceptions, "NoArgsIsHelpError", ())  # click 8.1 does not have it
_CLICK_ERRORS = (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line, without its position in the sources."""
    echo_prose(f"warning: {message}", err=True)


def _report(error: base.TensorwrightError) -> None:
    kind = type(error).__name__
    page = f"docs/errors.md#{error.section.lower()}-{error.exit_code}"
    told = f"{kind}: {error.for_command()}"
    echo_prose(f"{told}\n  read on: tensorwright explain {kind} ({page})", err=True)
    if not isinstance(error, base.InternalError):
        return
    if base.knobs.LOG.get() == "debug":
        traceback.print_exc()
    click.echo(
        "This is a fault of tensorwright: please report it, with the command line and the files\n"
        "that TENSORWRIGHT_DUMP=all TENSORWRIGHT_DUMP_DIR=dump writes; TENSORWRIGHT_LOG=debug\n"
        "shows where it happened.",
        err=True,
    )


def _unexpected(error: Exception) -> base.InternalError:
    """An internal error that says which unexpected exception occurred, and in which line."""
    reason = f"{type(error).__name__}: {error}"
    return base.InternalError(stage="cli", where=base.line_of(error), reason=reason)


@click.group(
    name="tensorwright", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="tensorwright", message="%(prog)s %(version)s")
def program() -> None:
    """A learning tensor compiler: from a trained network to tuned machine code.

    MODEL is a file of ONNX, GGUF or PyTorch (.pt2). Where the package tensorwright-lab is
    installed, it may be light:NAME (a network of the onnx package), zoo:NAME (of a paper) or
    wild:NAME (as PyTorch exports it), with random weights.

    The exit status gives the kind of an error: 2 usage, 3 model file, 4 unsupported operator, 5
    input, 6 schedule, 7 record store, 8 output, 9 machine, 70 a fault of tensorwright, 130
    interrupted.
    """


def main() -> None:
    """Run the command line of this process."""
    program(prog_name="tensorwright", args=sys.argv[1:])
