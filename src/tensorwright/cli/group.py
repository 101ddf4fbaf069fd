"""The program `tensorwright`: it imports the called command, and prints errors as text."""

from __future__ import annotations

import importlib
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from tensorwright.base import (
    InternalError,
    MachineError,
    TensorwrightError,
    UsageError,
    did_you_mean,
    knobs,
    line_of,
    require_laboratory,
)
from tensorwright.cli import INTERRUPTED
from tensorwright.cli.printing.wrapping import echo_prose
from tensorwright.cli.registry import OF_LABORATORY, commands
from tensorwright.version import __version__

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
                command: click.Command = importlib.import_module(entry.module).command
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command as click does, but suggest the nearest command for an unknown name."""
        names = self.list_commands(ctx)
        if args[:1] and args[0] in {entry.name for entry in OF_LABORATORY}:
            require_laboratory(f"command {args[0]}")
        if args and not args[0].startswith("-") and args[0] not in names:
            hint = did_you_mean(args[0], names, "one of " + ", ".join(names))
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
            for name, variable in knobs.misspelt_variables().items():
                echo_prose(f"warning: {name} sets nothing; did you mean {variable}?", err=True)
            try:
                with _reporting_misuse(ctx):
                    return super().invoke(ctx)
            except TensorwrightError as error:
                _report(error)
                ctx.exit(error.exit_code)
            except KeyboardInterrupt:
                click.echo(_interrupted_text(ctx), err=True)
                ctx.exit(INTERRUPTED)
            except MemoryError:
                lack = MachineError(
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
                ctx.exit(InternalError.exit_code)


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
        refusal = UsageError(
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


def _report(error: TensorwrightError) -> None:
    kind = type(error).__name__
    page = f"docs/errors.md#{error.section.lower()}-{error.exit_code}"
    told = f"{kind}: {error.for_command()}"
    echo_prose(f"{told}\n  read on: tensorwright explain {kind} ({page})", err=True)
    if not isinstance(error, InternalError):
        return
    if knobs.LOG.get() == "debug":
        traceback.print_exc()
    click.echo(
        "This is a fault of tensorwright: please report it, with the command line and the files\n"
        "that TENSORWRIGHT_DUMP=all TENSORWRIGHT_DUMP_DIR=dump writes; TENSORWRIGHT_LOG=debug\n"
        "shows where it happened.",
        err=True,
    )


def _unexpected(error: Exception) -> InternalError:
    """An internal error that says which unexpected exception occurred, and in which line."""
    reason = f"{type(error).__name__}: {error}"
    return InternalError(stage="cli", where=line_of(error), reason=reason)


@click.group(
    name="tensorwright", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="tensorwright", message="%(prog)s %(version)s")
def program() -> None:
    """A learning tensor compiler: from a trained network to tuned machine code.

    MODEL is a file of ONNX or PyTorch (.pt2). Where the package tensorwright-lab is installed, it
    may be light:NAME (a network of the onnx package), zoo:NAME (of a paper) or wild:NAME (as
    PyTorch exports it), with random weights.

    The exit status gives the kind of an error: 2 usage, 3 model file, 4 unsupported operator, 5
    input, 6 schedule, 7 record store, 8 output, 9 machine, 70 a fault of tensorwright, 130
    interrupted.
    """


def main() -> None:
    """Run the command line of this process."""
    program(prog_name="tensorwright", args=sys.argv[1:])
