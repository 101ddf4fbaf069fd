"""`tensorwright rewrite`: rewrite a model to a faster one of standard operators."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click

from tensorwright.base import UsageError, options_of, write_atomically
from tensorwright.cli import INTERRUPTED
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.models import read_graph
from tensorwright.cli.arguments.output import check_writable
from tensorwright.drivers.rewrite import RewriteOptions, Rewritten, check_certificate, rewrite
from tensorwright.farm import LocalFarm
from tensorwright.graph import Graph, simplify
from tensorwright.graph.drawing import difference_dot, difference_text
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.rewriting import networks, parse_rule, rule_text
from tensorwright.rewriting.prove import Proved, prove_all
from tensorwright.tuning.session import Interrupt

_PROGRAM = "dot"
_LIMIT_S = 120.0
_PROVERS = 2


def _read_picture(ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    """Read the name of a picture, which must end in .svg."""
    if name is not None and Path(name).suffix.lower() != ".svg":
        raise click.BadParameter("a picture is an SVG file: name it FILE.svg", ctx, param)
    return None if name is None else Path(name)


@click.command()
@options.model_argument
@click.argument("result", metavar="[RESULT]", required=False)
@click.option(
    "-o", "--output", metavar="OUT", help="The file to write, with a certificate beside it."
)
@click.option(
    "--check",
    metavar="CERTIFICATE",
    help="Check that RESULT computes the same as MODEL: prove the rules, replay the steps.",
)
@options.record_options(RewriteOptions, "wanted")
@click.option(
    "--explain", is_flag=True, help="Show each step: which rule was applied to which terms."
)
@click.option(
    "--picture",
    callback=_read_picture,
    metavar="FILE.svg",
    help="Draw both graphs with Graphviz, differences in colour; as text if it is missing.",
)
@options.seed_option
def command(
    model: str,
    result: str | None,
    output: str | None,
    check: str | None,
    wanted: RewriteOptions,
    explain: bool,
    picture: Path | None,
    seed: int,
) -> None:
    """Write an ONNX model that computes the same faster, rewritten by proved rules.

    Candidates are priced as programs of this compiler, and the best few are run. Names, shapes and
    order of inputs and outputs stay; weights are folded. If nothing faster is found, the simplified
    model is written. --check does not search; it exits with 1 if the certificate does not hold.
    --explain shows each step with its rule and the values of its variables; --picture draws both
    graphs.

    Example: tensorwright rewrite model.onnx -o better.onnx --explain
             tensorwright rewrite --check better.certificate.json model.onnx better.onnx
    """
    reads = (model, result, check, *wanted.rules)
    if picture is not None:
        for drawn in (picture, picture.with_suffix(".txt")):
            check_writable(drawn, *reads)
    if check is not None:
        if result is None or output is not None:
            raise click.UsageError("--check needs MODEL and RESULT, and does not write.")
        unused = {each.name for each in options_of(RewriteOptions)} - {"input_shapes", "sizes"}
        options.refuse_given(
            unused,
            because="--check does not search, and proves the rules of the certificate",
        )
        source = read_graph(model, wanted.input_shapes, seed, wanted.bounds, is_open=True)
        better = read_graph(result, is_open=True)
        certificate = _check(check, source, better)
        _show(certificate, simplify(source), simplify(better), explain, picture)
        return
    if output is None or result is not None:
        raise click.UsageError("give -o OUT, or --check CERTIFICATE with MODEL and RESULT.")
    if wanted.trust and not wanted.rules:
        raise click.UsageError("--trust applies to the files of --rules: name one.")
    beside = Path(output).with_suffix(".certificate.json")
    for written in (output, beside, f"{output}.data"):
        check_writable(written, *reads)
    graph = read_graph(model, wanted.input_shapes, seed, wanted.bounds, is_open=True)
    wish = Interrupt()
    with wish.on_ctrl_c():
        rewritten = rewrite(graph, replace(wanted, should_stop=lambda: wish.is_set))
    save_onnx(rewritten.graph, output)
    write_atomically(beside, (rewritten.certificate or networks.NO_STEPS).to_json())
    for line in _report(output, rewritten):
        click.echo(line)
    _show(rewritten.certificate, rewritten.source, rewritten.graph, explain, picture)
    if wish.is_set:
        click.echo("stopped; the best so far is written", err=True)
        sys.exit(INTERRUPTED)


def _show(
    certificate: networks.Certificate | None,
    source: Graph,
    better: Graph,
    explain: bool,
    picture: Path | None,
) -> None:
    """Print the steps in words, and draw both graphs, as the options say."""
    if explain and certificate is not None and certificate != networks.NO_STEPS:
        click.echo(str(networks.explain_certificate(certificate, source)))
    if picture is not None:
        click.echo(_write_picture(picture, source, better))


def _check(name: str, source: Graph, result: Graph) -> networks.Certificate:
    """Prove the rules of a certificate and replay its steps; exit with 1 if that fails."""
    certificate = networks.read_certificate(Path(name))
    rules = [parse_rule(line) for line in certificate.rules.values()]
    with LocalFarm(_PROVERS) as farm:
        outcomes = dict(prove_all(rules, farm))
    proved = {rule_text(rules[at]) for at, each in outcomes.items() if isinstance(each, Proved)}
    try:
        check_certificate(certificate, source, result, lambda rule: rule_text(rule) in proved)
    except UsageError as error:
        click.echo(f"{name} does not hold: {error.for_command().message()}")
        sys.exit(1)
    steps = len(certificate.steps)
    click.echo(f"{name} holds: {len(rules)} rules proved, {steps} steps replayed")
    return certificate


def _report(output: str, rewritten: Rewritten) -> list[str]:
    """The lines that say what was done, and what it gains."""
    searched = (
        f"searched {rewritten.seconds:.1f} s: {rewritten.nodes} nodes of the e-graph, "
        f"{rewritten.graphs} graphs by backtracking ({rewritten.stop_text})"
    )
    nodes, trial = f"{len(rewritten.source.nodes)} operators", rewritten.trial
    if not rewritten.is_changed:
        reason = "nothing faster was found"
        if trial is not None:
            reason = (
                f"the best of the others takes {trial.after_s / trial.before_s:.2f} of its time"
            )
        return [f"{output}: {nodes}, not changed: {reason}", f"  {searched}"]
    gain = f"expected to be {rewritten.before_s / rewritten.after_s:.2f} times as fast"
    if trial is not None:
        gain = f"{trial.before_s / trial.after_s:.2f} times as fast as before, measured in turns"
    lines = [f"{output}: {nodes} became {len(rewritten.graph.nodes)}, {gain}", f"  {searched}"]
    return lines + [f"  {name}: {count}" for name, count in rewritten.rules.items()]


def _write_picture(path: Path, before: Graph, after: Graph) -> str:
    """Draw two graphs, or write them as a text file of the same name.

    Return a line that says what was written.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        reason = f"Graphviz's {_PROGRAM} is not installed"
    else:
        drawn = _drawn(program, difference_dot(before, after))
        if isinstance(drawn, bytes):
            write_atomically(path, drawn)
            return f"{path}: both graphs, differences in colour"
        reason = drawn
    text = path.with_suffix(".txt")
    write_atomically(text, difference_text(before, after))
    return f"{text}: both graphs as text, without a picture: {reason}"


def _drawn(program: str, source: str) -> bytes | str:
    """The picture, or the reason why there is none."""
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=source.encode(),
            capture_output=True,
            check=False,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"{_PROGRAM} took more than {_LIMIT_S:g} s"
    except OSError as error:
        return f"{_PROGRAM} does not run: {error.strerror}"
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return f"{_PROGRAM} failed: {lines[0] if lines else f'status {done.returncode}'}"
    return done.stdout
