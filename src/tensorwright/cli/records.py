"""`tensorwright records`: list, export, import and remove measurements."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import click

from tensorwright.base import RecordError, Target, UsageError, did_you_mean
from tensorwright.cli.arguments.options import any_target_option, records_option, refuse_given
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.foreign_logs import COLUMNS, export_log, import_log, workloads_of
from tensorwright.cli.group import same_command
from tensorwright.cli.printing import format_ms, print_table
from tensorwright.records import (
    Record,
    RecordStore,
    Status,
    default_path,
    forget_workloads,
    is_current,
    open_store,
    record_tool,
)
from tensorwright.records.logs import LogFormat, format_of

_MOST_KEPT = 1_000_000
_OLDER = "*"

_programs_option = click.option(
    "--of",
    "programs",
    multiple=True,
    metavar="MODEL|MODULE:EXPR",
    help="The programs of lines in the form of AutoTVM.",
)

Setting = tuple[str, str, str, int]
"""Workload, target, hardware, threads."""


@click.group()
def command() -> None:
    """List, export, import, prune and delete measurements."""


_workload_option = click.option(
    "--workload",
    "wanted",
    metavar="KEY|NAME",
    help="Only this workload; you may shorten a key.",
)
_yes_option = click.option("--yes", is_flag=True, help="Remove without asking.")


def read_date(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Read a day and write it as records do; None if no text is given."""
    try:
        return None if text is None else date.fromisoformat(text).isoformat()
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a date like 2026-01-31.", ctx, param) from None


@command.command("list")
@_workload_option
@records_option
def list_(wanted: str | None, records: Path | None) -> None:
    """Print one line for each workload and machine: how many records, how many failed, the best
    time, and the tensorwright that measured it (its version and a digest of its sources).

    Example: tensorwright records list
    """
    with _open(records) as opened:
        counts: Counter[Setting] = Counter()
        failed: Counter[Setting] = Counter()
        keys = _meant(opened, wanted, records)
        for record in opened.query():
            if record.workload not in keys:
                continue
            counts[_setting(record)] += 1
            failed[_setting(record)] += not record.status.is_timed
        cells = []
        is_older = False
        for setting, count in counts.items():
            workload, target, hardware, threads = setting
            best = opened.best(workload=workload, target=target, hardware=hardware, threads=threads)
            best_ms = format_ms(best.median_s) if best is not None else "-"
            made_by = _made_by(best)
            is_older = is_older or made_by.endswith(_OLDER)
            name = _name(opened, workload)
            numbers = (str(threads), str(count), str(failed[setting]), best_ms)
            cells.append((name, workload, hardware, *numbers, made_by))
    columns = ("workload", "key", "hardware", "threads", "records", "failed", "best ms", "made by")
    print_table(columns, cells)
    if is_older:
        click.echo(f"{_OLDER} measured by other sources than these, {record_tool()}:")
        click.echo("  a search tries these schedules first and measures them again")
    click.echo(f"{sum(counts.values())} records of {len(counts)} workloads in {_path(records)}")


@command.command()
@click.argument("workload", required=False, metavar="[KEY|NAME]")
@records_option
@click.option("--all", "show_all", is_flag=True, help="All valid records, not only the best.")
def best(workload: str | None, records: Path | None, show_all: bool) -> None:
    """Show the fastest schedule of each workload, or of one.

    Example: tensorwright records best softmax
    """
    with _open(records) as opened:
        keys = _meant(opened, workload, records)
        settings = dict.fromkeys(
            _setting(record) for record in opened.query(status=Status.OK) if record.workload in keys
        )
        for key, target, hardware, threads in settings:
            best_ones = opened.top(
                _MOST_KEPT if show_all else 1,
                workload=key,
                target=target,
                hardware=hardware,
                threads=threads,
            )
            click.echo(f"workload {_name(opened, key)} {key}, {hardware}, {threads} threads")
            for record in best_ones:
                click.echo(f"  {format_ms(record.median_s)} ms, {record.when}")
                click.echo("".join(f"    {line}\n" for line in record.trace.splitlines()), nl=False)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "written",
    type=click.Choice([LogFormat.OWN.value, LogFormat.AUTOTVM.value]),
    default=LogFormat.OWN.value,
    help="autotvm: schedules of templates, as lines of AutoTVM's logs; tensorwright.",
)
@_workload_option
@_programs_option
@any_target_option
@records_option
def export(
    file: Path,
    written: str,
    wanted: str | None,
    programs: tuple[str, ...],
    target: Target,
    records: Path | None,
) -> None:
    """Write records as JSON lines, for another machine or another person.

    In the form of AutoTVM, only records of the programs of --of are written.

    Example: tensorwright records export records.jsonl
    """
    is_foreign = written == LogFormat.AUTOTVM.value
    if is_foreign and not programs:
        raise click.UsageError("--format autotvm needs programs: --of MODEL")
    if is_foreign:
        refuse_given(("wanted",), because="--of selects the programs whose records are written")
    else:
        refuse_given(("programs", "target"), because="it applies to --format autotvm")
    check_writable(file, _path(records), *programs)
    with _open(records) as opened:
        if is_foreign:
            count = export_log(file, opened, target, workloads_of(programs, target))
            click.echo(f"{count} lines written to {file}")
            return
        count = opened.export_jsonl(file, _meant(opened, wanted, records))
        click.echo(f"{count} records written to {file}")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@_programs_option
@any_target_option
@records_option
def import_(file: Path, programs: tuple[str, ...], target: Target, records: Path | None) -> None:
    """Add the records of a file that export wrote: all of them, or none if there is an error.

    The lines of a log of AutoTVM (version 0.2) or Ansor are listed. A line whose knobs a template
    has becomes a schedule that a search tries first, and measures itself.

    Example: tensorwright records import records.jsonl
    """
    written_by = format_of(file)
    if written_by is LogFormat.OWN:
        refuse_given(("programs", "target"), because=f"{file} is not a log of AutoTVM or Ansor")
    with open_store(records) as opened:
        if written_by is not LogFormat.OWN:
            workloads = workloads_of(programs, target)
            rows = import_log(file, written_by, opened, target, workloads)
            print_table(COLUMNS, rows)
            seeds = sum(row[-1].startswith("seed of") for row in rows)
            click.echo(f"{len(rows)} lines, {seeds} of them seeds in {_path(records)}")
            return
        click.echo(f"{opened.import_jsonl(file)} new records in {_path(records)}")


@command.command()
@click.option(
    "--keep",
    type=click.IntRange(min=1, max=_MOST_KEPT),
    default=20,
    help="How many records of each workload and machine stay; by default 20.",
)
@click.option(
    "--failures-before",
    callback=read_date,
    metavar="YYYY-MM-DD",
    help="Remove failures older than this.",
)
@_workload_option
@_yes_option
@records_option
def prune(
    keep: int,
    failures_before: str | None,
    wanted: str | None,
    yes: bool,
    records: Path | None,
) -> None:
    """Keep the best records of each workload and machine, and remove the others.

    The command lists what it would remove, and asks.

    Example: tensorwright records prune --keep 10
    """
    with _open(records) as opened:
        keys = _meant(opened, wanted, records)
        surplus = opened.surplus(keep, failures_before)
        _remove(opened, [each for each in surplus if each.workload in keys], yes, records)


@command.command()
@click.option(
    "--workload",
    "wanted",
    required=True,
    metavar="KEY|NAME",
    help="The workload whose records are removed.",
)
@_yes_option
@records_option
def delete(wanted: str, yes: bool, records: Path | None) -> None:
    """Remove all records of a workload, so that it counts as never measured.

    The command lists what it would remove, and asks.

    Example: tensorwright records delete --workload 86cd0aa1
    """
    with _open(records) as opened:
        keys = _meant(opened, wanted, records)
        if _remove(
            opened, [each for each in opened.query() if each.workload in keys], yes, records
        ):
            forget_workloads(opened, keys)


def _remove(
    store: RecordStore, records: Sequence[Record], is_agreed: bool, path: Path | None
) -> bool:
    """List these records, ask whether to remove them, and remove them; return whether it was done.

    Raises:  UsageError if there is no terminal to ask at.
    """
    if not records:
        click.echo(f"nothing to remove; {store.count()} records stay in {_path(path)}")
        return False
    counts = Counter(record.workload for record in records)
    cells = [
        (_name(store, key), key, str(count), str(store.count(workload=key) - count))
        for key, count in counts.items()
    ]
    print_table(("workload", "key", "removed", "kept"), cells)
    if not is_agreed:
        if not sys.stdin.isatty():
            raise UsageError(
                stage="records",
                where=f"{len(records)} records of {_path(path)}",
                reason="they are removed only after a yes, and there is no terminal to ask at",
                remedy=f"agree on the command line:\n  {same_command('--yes')}",
            )
        if not click.confirm(f"remove {len(records)} records of {_path(path)}?"):
            click.echo("nothing was removed")
            return False
    removed = store.remove(records)
    click.echo(f"{removed} records removed, {store.count()} kept in {_path(path)}")
    return True


def _open(records: Path | None) -> RecordStore:
    """Open a store for reading; the default store may be missing, a named one may not."""
    if records is not None and not records.exists():
        raise RecordError(
            stage="records",
            where=f"file {records}",
            reason="there is no such file",
            remedy="check the path",
        )
    return open_store(records, create=False)


def _made_by(best: Record | None) -> str:
    """The version and sources that measured a record, with a mark if these sources differ."""
    if best is None:
        return "-"
    return best.tool_version if is_current(best) else f"{best.tool_version} {_OLDER}"


def _setting(record: Record) -> Setting:
    return record.workload, record.target, record.hardware, record.threads


def _name(store: RecordStore, workload: str) -> str:
    """The name of a workload, from its text; "-" if the store does not have the text."""
    words = (store.workload_text(workload) or "").split(maxsplit=2)
    return words[1] if len(words) > 1 else "-"


def _meant(store: RecordStore, wanted: str | None, path: Path | None) -> frozenset[str]:
    """The keys of the recorded workloads that an argument means.

    wanted   a name, or the beginning of a key; None for all workloads
    """
    keys = store.workloads()
    if wanted is None:
        return frozenset(keys)
    chosen = frozenset(key for key in keys if key.startswith(wanted) or _name(store, key) == wanted)
    if not chosen:
        raise UsageError(
            stage="records",
            where=f"workload {wanted}",
            reason=f"{_path(path)} has no record of it",
            remedy=did_you_mean(
                wanted,
                [_name(store, key) for key in keys],
                "list the records:\n  tensorwright records list",
            ),
        )
    return chosen


def _path(records: Path | None) -> Path:
    return records or default_path()
