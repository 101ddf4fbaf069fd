"""`tensorwright bench rewrite`: networks before and after the search for a faster graph."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from tensorwright.base import CpuTarget
from tensorwright.cli.arguments.models import check_model
from tensorwright.cli.arguments.options import (
    Minutes,
    records_option,
    refuse_given,
    seed_option,
    shapes_option,
)
from tensorwright.cli.arguments.output import check_writable
from tensorwright.compile_options import Shapes
from tensorwright.rewriting.candidates import CostKind, SearchKind
from tensorwright_lab.bench import options
from tensorwright_lab.bench.machine import describe_machine, measure_ceiling, threads_of
from tensorwright_lab.bench.rewriting.rows import (
    RewriteRow,
    print_rewrite,
    read_rewrite,
    write_rewrite,
)
from tensorwright_lab.bench.rewriting.runs import (
    DEFAULT_PEERS,
    SIZES,
    GrowthRow,
    Plan,
    bench_rewriting,
    growth_row,
    in_own_process,
    print_growth,
    search_repeated,
)
from tensorwright_lab.rows import machine_options, row_name, write_objects
from tensorwright_lab.suites import REWRITING, SUITES, suite

_SAME_RUN = (
    "target",
    "threads",
    "fingerprint",
    "rounds",
    "seed",
    "seconds",
    "exact",
    "search",
    "cost",
    "measures",
    "nodes",
    "tuned",
    "minutes",
    "peers",
)
_MOST_SECONDS = 86_400


@click.command("rewrite")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--suite", "suites", type=click.Choice(SUITES), multiple=True, help="A whole suite.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, max=_MOST_SECONDS),
    help="Of each search; by the size of the network, with --growth no limit if not given.",
)
@click.option("--exact", is_flag=True, help="As for `rewrite`.")
@click.option(
    "--search",
    type=click.Choice([kind.value for kind in SearchKind]),
    default=SearchKind.BOTH.value,
    help="As for `rewrite`.",
)
@click.option(
    "--cost",
    type=click.Choice([kind.value for kind in CostKind]),
    default=CostKind.PROGRAMS.value,
    help="As for `rewrite`.",
)
@click.option("--measure/--no-measure", default=True, help="As for `rewrite`.")
@click.option(
    "--rounds", type=click.IntRange(min=0), default=11, help="Turns of each; 0 only checks."
)
@click.option("--tuned/--untuned", default=False, help="Use what is on record, or nothing of it.")
@click.option(
    "--minutes", type=Minutes(), help="Tune both networks of one that changed, each so long."
)
@options.peers_option("onnxruntime if not given")
@click.option("--growth", is_flag=True, help="Search repeated blocks, ever more of them.")
@click.option(
    "--size",
    "sizes",
    type=click.IntRange(min=1),
    multiple=True,
    help="About so many operators for --growth; may be repeated.",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Of an e-graph, after which no rule is tried; 20000 if not given.",
)
@records_option
@machine_options
@seed_option
@shapes_option
@click.option("--json", "json_path", metavar="FILE", help="Write the rows to a file, too.")
@click.option("--resume", is_flag=True, help="Keep the finished models of that file.")
@options.same_build_option
def command(
    models: tuple[str, ...],
    suites: tuple[str, ...],
    seconds: float | None,
    exact: bool,
    search: str,
    cost: str,
    measure: bool,
    rounds: int,
    tuned: bool,
    minutes: float | None,
    peers: tuple[str, ...],
    growth: bool,
    sizes: tuple[int, ...],
    nodes: int | None,
    records: Path | None,
    target: CpuTarget,
    threads: int | None,
    seed: int,
    input_shapes: Shapes | None,
    json_path: str | None,
    resume: bool,
    same_build: bool,
) -> None:
    """Rewrite networks, and compare each with what it was: by both cost models and measured.

    Without MODEL: the networks of TASO and TENSAT. Each search has a process of its own, whose
    memory is told. Both networks are then compiled and timed in turns in one process, and so are
    they in each peer, the first as it came. With --growth networks of repeated blocks are
    searched, ever larger ones, and nothing is run. What computes a wrong answer has no time; exits
    with 1 where the answer is ours, or that of a network as we have rewritten it.

    Example: tensorwright bench rewrite zoo:squeezenet --rounds 5 --json rows.json
    """
    if growth and (models or suites or resume):
        raise click.UsageError("--growth has networks of its own: no MODEL, --suite, --resume.")
    if growth and (peers or minutes):
        raise click.UsageError("--growth runs nothing: no --peers, --minutes.")
    if sizes and not growth:
        raise click.UsageError("--size is for --growth.")
    if growth:
        unused = ("rounds", "tuned", "records", "input_shapes")
        refuse_given(unused, because="--growth searches networks of its own, and runs nothing")
    options.check_resume(resume, json_path)
    check_writable(json_path, *models, records)
    usual_s = _MOST_SECONDS if growth else None
    plan = Plan(
        target,
        threads_of(threads),
        seed,
        usual_s if seconds is None else seconds,
        rounds,
        exact,
        tuned or bool(minutes),
        records,
        input_shapes,
        search,
        cost,
        measure,
        nodes,
        minutes,
        peers or DEFAULT_PEERS,
    )
    if growth:
        _grow(sorted(set(sizes)) or list(SIZES), plan, json_path)
        return
    chosen = suites or (() if models else (REWRITING,))
    names = tuple(dict.fromkeys((*models, *(each for name in chosen for each in suite(name)))))
    for name in names:
        check_model(name)
    _compare(names, plan, json_path, resume, same_build)


def _head(plan: Plan) -> dict[str, object]:
    return {
        **describe_machine(plan.target, measure_ceiling(plan.target, plan.threads)),
        "peers": list(plan.peers),
        "seed": plan.seed,
        "seconds": plan.seconds,
        "rounds": plan.rounds,
        "exact": plan.is_exact,
        "search": plan.search,
        "cost": plan.cost,
        "measures": plan.measures,
        "nodes": plan.nodes,
        "tuned": plan.is_tuned,
        "minutes": plan.minutes,
    }


def _compare(
    names: tuple[str, ...], plan: Plan, path: str | None, resume: bool, same_build: bool
) -> None:
    """A row for each network, kept as soon as it is there."""
    head = _head(plan) if path is not None else {}
    rows = _kept_rows(path, head, same_build) if resume and path is not None else []
    done = {row.model for row in rows}
    left = [name for name in names if row_name(name) not in done]
    start = time.monotonic()
    for number, name in enumerate(left, 1):
        rows.append(bench_rewriting(name, plan))
        _note(rows[-1], len(left) - number, (time.monotonic() - start) / number)
        if path is not None:
            write_rewrite(path, rows, head)
    print_rewrite(rows)
    if any(row.is_wrong for row in rows):
        sys.exit(1)


def _kept_rows(path: str, head: Mapping[str, object], same_build: bool) -> list[RewriteRow]:
    """The rows of an earlier run without a failure, of this build alone if so asked.

    Raises:  UsageError if that was not this machine and way of measuring.
    """
    before, rows = read_rewrite(path)
    options.check_same_run(path, before, head, _SAME_RUN)
    good = [row for row in rows if not (row.failure or row.ours.failure or row.is_wrong)]
    return options.of_builds(good, same_build)


def _note(row: RewriteRow, left: int, each_s: float) -> None:
    """Say at once what became of a network, and how long the rest takes if it is like those."""
    told = row.failure.splitlines()[0] if row.failure else ""
    if row.searched is not None:
        searched = row.searched
        became = f"became {searched.nodes_after}" if searched.is_changed else "stay as they are"
        told = f"{searched.nodes_before} operators {became}, {searched.search_s:.1f} s"
        if searched.is_changed and row.ours.gain is not None:
            told += f", measured {row.ours.gain:.2f} times as fast"
        told += f", {row.failure.splitlines()[0]}" if row.failure else ""
    rest = f"; {left} left, {left * each_s / 60:.0f} minutes" if left else ""
    click.echo(f"{row.model}: {told}{rest}", err=True)


def _grow(sizes: list[int], plan: Plan, path: str | None) -> None:
    head = _head(plan) if path is not None else {}
    rows: list[GrowthRow] = []
    for size in sizes:
        searched = in_own_process(search_repeated, size, plan)
        rows.append(growth_row(searched, rows[-1] if rows else None))
        click.echo(f"{rows[-1].operators} operators: {rows[-1].search_s:.2f} s", err=True)
        if path is not None:
            write_objects(path, head, [asdict(row) for row in rows])
    print_growth(rows)
