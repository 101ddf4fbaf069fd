"""`tensorwright records`: what has been measured, and what to do with it."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import click

from tensorwright.base import RecordError, Target, UsageError
from tensorwright.cli.arguments.options import records_option, target_option
from tensorwright.cli.foreign_logs import COLUMNS, export_log, import_log, workloads_of
from tensorwright.cli.summary import format_ms
from tensorwright.peers import print_table
from tensorwright.records import (
    Record,
    RecordStore,
    Status,
    default_path,
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
    help="Programs that lines in the form of AutoTVM are about.",
)

Setting = tuple[str, str, str, int]
"""Workload, target, hardware, threads."""


@click.group()
def command() -> None:
    """List, export, import and prune what has been measured."""


def read_date(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """A day as it is written in records; None where none is given."""
    try:
        return None if text is None else date.fromisoformat(text).isoformat()
    except ValueError:
        raise click.BadParameter(f"{text!r} is no date like 2026-01-31.", ctx, param) from None


@command.command("list")
@records_option
def list_(records: Path | None) -> None:
    """One line for each workload and machine: how many records, how many failed, the best time, and
    the tensorwright that measured it: its version and a digest of its sources.

    Example: tensorwright records list
    """
    with _open(records) as opened:
        counts: Counter[Setting] = Counter()
        failed: Counter[Setting] = Counter()
        for record in opened.query():
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
        click.echo(f"{_OLDER} by other sources than these, {record_tool()}: a search tries them")
        click.echo("  first and measures them anew")
    click.echo(f"{sum(counts.values())} records of {len(counts)} workloads in {_path(records)}")


@command.command()
@click.argument("workload", required=False, metavar="[KEY|NAME]")
@records_option
@click.option("--all", "show_all", is_flag=True, help="All standing records, not the best alone.")
def best(workload: str | None, records: Path | None, show_all: bool) -> None:
    """Show the fastest schedule of each workload, or of one.

    Example: tensorwright records best softmax
    """
    with _open(records) as opened:
        settings = dict.fromkeys(
            _setting(record)
            for record in opened.query(status=Status.OK)
            if workload is None or _is_meant(opened, record.workload, workload)
        )
        if workload is not None and not settings:
            raise UsageError(
                stage="records",
                where=f"workload {workload}",
                reason=f"{_path(records)} holds no good record of it",
                remedy="tensorwright records list",
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
@_programs_option
@target_option
@records_option
def export(
    file: Path, written: str, programs: tuple[str, ...], target: Target, records: Path | None
) -> None:
    """Write all records as JSON lines, for another machine or another person.

    As lines of AutoTVM only those of programs that --of names are written.

    Example: tensorwright records export records.jsonl
    """
    with _open(records) as opened:
        if written == LogFormat.AUTOTVM.value:
            if not programs:
                raise click.UsageError("--format autotvm needs programs: --of MODEL")
            count = export_log(file, opened, target, workloads_of(programs, target))
            click.echo(f"{count} lines written to {file}")
            return
        click.echo(f"{opened.export_jsonl(file)} records written to {file}")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@_programs_option
@target_option
@records_option
def import_(file: Path, programs: tuple[str, ...], target: Target, records: Path | None) -> None:
    """Add the records of a file that export wrote: all of them, or, on an error, none.

    A log of AutoTVM (version 0.2) or Ansor is listed line by line. Lines whose knobs a template
    has become schedules that a search tries first; it measures them itself.

    Example: tensorwright records import records.jsonl
    """
    written_by = format_of(file)
    with open_store(records) as opened:
        if written_by is not LogFormat.OWN:
            known = workloads_of(programs, target)
            rows = import_log(file, written_by, opened, target, known)
            print_table(COLUMNS, rows)
            seeds = sum(row[-1].startswith("seed of") for row in rows)
            click.echo(f"{len(rows)} lines, {seeds} of them seeds in {_path(records)}")
            return
        click.echo(f"{opened.import_jsonl(file)} new records in {_path(records)}")


@command.command()
@click.option(
    "--keep", type=click.IntRange(min=1, max=_MOST_KEPT), default=20, help="So many of each; 20."
)
@click.option(
    "--failures-before",
    callback=read_date,
    metavar="YYYY-MM-DD",
    help="Remove failures older than this.",
)
@records_option
def prune(keep: int, failures_before: str | None, records: Path | None) -> None:
    """Keep the best records of each workload and machine, and remove the others.

    Example: tensorwright records prune --keep 10
    """
    with _open(records) as opened:
        removed = opened.prune(keep, failures_before)
        click.echo(f"{removed} records removed, {opened.count()} kept in {_path(records)}")


def _open(records: Path | None) -> RecordStore:
    """A store that is read: the user's own may be missing, one that is named may not."""
    if records is not None and not records.exists():
        raise RecordError(
            stage="records",
            where=f"file {records}",
            reason="there is no such file",
            remedy="check the path",
        )
    return open_store(records, create=False)


def _made_by(best: Record | None) -> str:
    """The version and sources that measured a record, marked where those are not the present."""
    if best is None:
        return "-"
    return best.tool_version if is_current(best) else f"{best.tool_version} {_OLDER}"


def _setting(record: Record) -> Setting:
    return record.workload, record.target, record.hardware, record.threads


def _name(store: RecordStore, workload: str) -> str:
    """The name in the text of a workload; "-" where the store has no text."""
    words = (store.workload_text(workload) or "").split(maxsplit=2)
    return words[1] if len(words) > 1 else "-"


def _is_meant(store: RecordStore, workload: str, wanted: str) -> bool:
    return workload.startswith(wanted) or _name(store, workload) == wanted


def _path(records: Path | None) -> Path:
    return records or default_path()
