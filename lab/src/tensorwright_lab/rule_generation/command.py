"""`tensorwright rules generate`: the rules of a preset, with the pruning table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tensorwright.base import write_atomically
from tensorwright.cli.arguments.machine import OpenFarm, farm_options
from tensorwright.cli.arguments.options import seed_option
from tensorwright.cli.arguments.output import check_writable
from tensorwright.rewriting import rule_text
from tensorwright_lab.rule_generation import (
    PRESET_NAMES,
    WHOLE_LEVELS,
    Generated,
    generate_rules,
    plan_rules,
    remove_work,
)
from tensorwright_lab.rule_generation.writing import (
    print_plan,
    print_stages,
    write_selected,
    write_shipped,
)


@click.command("generate")
@click.option("--preset", type=click.Choice(PRESET_NAMES), default="taso")
@click.option("--max-ops", type=click.IntRange(1, 5), default=3, help="Operators on a side; 3.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write.")
@farm_options
@click.option("--candidates", "is_raw", is_flag=True, help="Write candidates; prove nothing.")
@click.option(
    "--shipped", is_flag=True, help="Write the rules that ship with tensorwright; no preset."
)
@click.option(
    "--work-folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keeps the results until the file is written; by default OUTPUT.work.",
)
@click.option(
    "--plan", "is_plan", is_flag=True, help="Say what the enumeration takes; enumerate nothing."
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help=f"After level {WHOLE_LEVELS}, try only one of N first arguments of each operator.",
)
@seed_option
def generate_command(
    preset: str,
    max_ops: int,
    output: Path | None,
    open_farm: OpenFarm,
    is_raw: bool,
    shipped: bool,
    work_folder: Path | None,
    is_plan: bool,
    sample: int,
    seed: int,
) -> None:
    """Enumerate operator graphs, prove which are equal, and write rules that no other implies.

    Example: tensorwright rules generate --preset taso --max-ops 2 -o new.rules
    """
    if sample > 1 and (is_plan or shipped or max_ops <= WHOLE_LEVELS):
        raise click.UsageError("--sample goes with --max-ops 4 or 5, without --plan or --shipped.")
    if is_plan:
        with open_farm() as farm:
            for part, costs in plan_rules(preset, max_ops, seed, click.echo, farm=farm).items():
                click.echo(f"{part}:")
                print_plan(costs)
        return
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output'.")
    check_writable(output)
    with open_farm() as farm:
        if shipped:
            write_shipped(output, seed, farm)
            return
        work = work_folder or output.with_name(f"{output.name}.work")
        with _kept_on_interrupt(work):
            generated = generate_rules(
                preset, max_ops, seed, click.echo, farm=farm, work=work, sample=sample
            )
        _print_graphs(generated)
        origin = f"{preset}, up to {max_ops} operators"
        origin += f", a sample of one in {sample}" if sample > 1 else ""
        if is_raw:
            _write_candidates(generated, origin, output)
        else:
            write_selected(generated, origin, output, farm)
        remove_work(work, preset)


@contextmanager
def _kept_on_interrupt(work: Path) -> Iterator[None]:
    """Say after Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"The results so far are kept in {work}: the same command continues.")
        raise


def _print_graphs(generated: Generated) -> None:
    graphs = (
        f"{generated.graphs:,.0f} graphs represented, {generated.two_outputs:,.0f} with two outputs"
    )
    memory = f"peak {generated.peak_bytes / 1e9:.2f} GB"
    if generated.worker_bytes:
        memory += f", {generated.worker_bytes / 1e9:.2f} GB in a worker"
    click.echo(f"{graphs}; {memory}")


def _write_candidates(generated: Generated, origin: str, output: Path) -> None:
    head = f"# candidates of {origin}\n"
    write_atomically(output, head + "".join(f"{rule_text(rule)}\n" for rule in generated.rules))
    print_stages(generated.stages)
    click.echo(f"{len(generated.rules)} candidate rules written to {output}")
