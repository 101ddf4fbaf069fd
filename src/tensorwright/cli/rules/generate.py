"""`tensorwright rules generate`: candidate rules of a preset, with the pruning table."""

from __future__ import annotations

from pathlib import Path

import click

from tensorwright.base import write_atomically
from tensorwright.cli.options import seed_of, seed_option
from tensorwright.cli.output import check_writable
from tensorwright.peers import print_table
from tensorwright.rewrite import rule_text
from tensorwright.rewrite.generate import PRESET_NAMES, Generated, generate_rules


@click.command("generate")
@click.option("--preset", type=click.Choice(PRESET_NAMES), default="taso")
@click.option("--max-ops", type=click.IntRange(1, 4), default=3, help="Operators on a side; 3.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The file to write."
)
@seed_option
def command(preset: str, max_ops: int, output: Path, seed: int | None) -> None:
    """Enumerate operator graphs, and write what is equal as candidate rules, one a line.

    Example: tensorwright rules generate --preset taso --max-ops 2 -o candidates.rules
    """
    check_writable(str(output))
    found = generate_rules(preset, max_ops, seed_of(seed), click.echo)
    head = f"# candidates of preset {preset}, up to {max_ops} operators\n"
    write_atomically(output, head + "".join(f"{rule_text(rule)}\n" for rule in found.rules))
    _report(found)
    click.echo(f"{len(found.rules)} candidate rules written to {output}")


def _report(found: Generated) -> None:
    cells = [(stage.name, f"{stage.count:,}", f"{stage.time_s:.2f}") for stage in found.stages]
    print_table(("step", "left", "seconds"), cells)
    click.echo(f"{found.graphs:,.0f} graphs represented, peak {found.peak_bytes / 1e9:.2f} GB")
