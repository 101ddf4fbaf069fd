"""`tensorwright bench ops`: single operators and subgraphs, tuned, against the best of others."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import click

from tensorwright.base import CpuTarget, TensorwrightError, knobs, make_folder, now_utc
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.output import check_writable
from tensorwright.machine import detect_hardware
from tensorwright.records import Record, RecordStore, Setting, Status, opened
from tensorwright.schedule import format_trace
from tensorwright.tuning import Task
from tensorwright.tuning.selection import Chooser
from tensorwright.tuning.session import Options, tune
from tensorwright_lab.bench.machine import Ceiling, describe_machine, measure_ceiling, threads_of
from tensorwright_lab.bench.options import check_resume, of_builds, read_names, same_build_option
from tensorwright_lab.comparison import (
    METASCHEDULE,
    OpPlan,
    OpRow,
    Rival,
    RivalPlan,
    choose_copies,
    compare_case,
    needed_flops,
    print_op_rows,
    read_op_rows,
    require_peer,
    this_build,
    write_op_rows,
)
from tensorwright_lab.competitors import read_curve, seconds_to_reach
from tensorwright_lab.rows import machine_options
from tensorwright_lab.zoo import OperatorCase, OperatorProgram, find_cases, operator_program

SUITES = ("ansor",)
PEERS = ("onnxruntime", "openvino", "pytorch")
_MOST_GFLOP = 6.0


@dataclass(frozen=True, slots=True)
class TuneBudget:
    """Trials of a case, those on record among them; 0 for no tuning.

    rivals  names of the cases and families that MetaSchedule tunes, with so many trials
    """

    trials: int
    seed: int
    rivals: tuple[str, ...] = ()
    rival_trials: int = 0


@click.command("ops")
@click.option("--suite", type=click.Choice(SUITES), default="ansor", help="Which operators.")
@click.option("--cases", callback=read_names, metavar="C2D.2,GMM", help="Only these; else all.")
@click.option(
    "--batch", type=click.Choice(["1", "16"]), default="1", help="Images or matrices at once."
)
@click.option("--trials", type=click.IntRange(min=1), default=300, help="Most trials of a case.")
@click.option("--tune/--no-tune", "should_tune", default=True, help="Search, or what is on record.")
@click.option(
    "--peers",
    callback=read_names,
    metavar="A,B",
    help=f"Of {', '.join(PEERS)}; else all there are.",
)
@click.option(
    "--metaschedule",
    "rivals",
    callback=read_names,
    metavar="C2D.4,...",
    help="Let TVM's MetaSchedule tune these, too.",
)
@click.option(
    "--metaschedule-trials",
    "rival_trials",
    type=click.IntRange(min=1),
    help="Most trials of MetaSchedule; as many as of ours if not given.",
)
@click.option("--rounds", type=click.IntRange(min=1), default=7, help="Turns of each runtime.")
@click.option("--json", "json_path", metavar="FILE", help="Write the rows to a file, too.")
@click.option("--resume", is_flag=True, help="Keep the finished cases of that file.")
@same_build_option
@options.records_option
@machine_options
@options.seed_option
def command(
    suite: str,
    cases: tuple[str, ...],
    batch: str,
    trials: int,
    should_tune: bool,
    peers: tuple[str, ...],
    rivals: tuple[str, ...],
    rival_trials: int | None,
    rounds: int,
    json_path: str | None,
    resume: bool,
    same_build: bool,
    records: Path | None,
    target: CpuTarget,
    threads: int | None,
    seed: int,
) -> None:
    """Tune operators, check them against the reference, and time them against the best of others.

    Peers have constant weights and every form of an operator that may be their fastest. Short cases
    run as independent copies that last a millisecond. Of batch 16, cases up to 6 GFLOP are run.
    What answers wrongly has no time; exits with 1 where that, or any other failure, is ours.

    Example: tensorwright bench ops --suite ansor --cases C2D,GMM.3 --trials 100 --json ops.json
    """
    check_resume(resume, json_path)
    if not should_tune:
        options.refuse_given(("trials",), because="--no-tune measures no candidate")
    if not rivals:
        options.refuse_given(("rival_trials",), because="--metaschedule names no case")
    check_writable(json_path, records)
    find_cases(rivals, int(batch))  # refuse an unknown name now
    chosen = find_cases(cases, int(batch))
    chosen = tuple(case for case in chosen if case.batch == 1 or case.gflop <= _MOST_GFLOP)
    count = threads_of(threads)
    plan = OpPlan(target, count, peers or available_peers(), rounds, seed=seed)
    for peer in plan.peers:
        require_peer(peer)
    if rivals:
        require_peer("tvm")
    done = list(read_op_rows(json_path)) if resume and json_path is not None else []
    rows = of_builds([row for row in done if not row.our_failure], same_build)
    ceiling = Ceiling(count, max((row.peak * 1e9 for row in rows), default=0.0), 0.0)
    started = now_utc()
    theirs = trials if rival_trials is None else rival_trials
    budget = TuneBudget(trials if should_tune else 0, plan.seed, rivals, theirs)
    with opened(records, create=should_tune) as store:
        for case in chosen:
            if any((row.case, row.batch) == (case.name, case.batch) for row in rows):
                continue
            ceiling = measure_ceiling(target, count, ceiling)
            rows.append(bench_case(case, plan, ceiling, budget, store))
            rows = [replace(row, peak=ceiling.peak / 1e9) for row in rows]
            _note(rows[-1])
            if json_path is not None:
                about = describe_machine(target, ceiling) | {"started": started}
                write_op_rows(json_path, {**about, **describe_plan(suite, plan, budget)}, rows)
    print_op_rows(rows)
    if any(row.our_failure for row in rows):
        sys.exit(1)


def available_peers() -> tuple[str, ...]:
    """Those of the usual runtimes that are installed."""
    available = []
    for name in PEERS:
        with suppress(TensorwrightError):
            require_peer(name)
            available.append(name)
    return tuple(available)


def describe_plan(suite: str, plan: OpPlan, budget: TuneBudget) -> dict[str, object]:
    """How the cases were measured, for JSON."""
    return {
        "suite": suite,
        "peers": list(plan.peers),
        "rounds": plan.rounds,
        "trials": budget.trials,
        "metaschedule_trials": budget.rival_trials,
        "seed": plan.seed,
    }


def bench_case(
    case: OperatorCase, plan: OpPlan, ceiling: Ceiling, budget: TuneBudget, store: RecordStore
) -> OpRow:
    """The row of one case; a failure is part of the row."""
    program = operator_program(case)
    row = OpRow(
        case=case.name,
        batch=case.batch,
        is_subgraph=case.is_subgraph,
        shape=tuple(number for _, number in case.fields),
        gflop=case.gflop,
        needed_gflop=needed_flops(program) / 1e9,
        peak=ceiling.peak / 1e9,
        threads=plan.threads,
        copies=choose_copies(program, ceiling.peak, ceiling.bandwidth),
        build=this_build(),
    )
    started = now_utc()
    try:
        tune_s = tune_case(program, plan, budget, store) if budget.trials else 0.0
        scheduled = Chooser(Setting(plan.target, plan.threads), store).choose(program.workload)
        row = replace(
            row,
            tune_s=tune_s,
            trials=count_trials(program, plan, store),
            is_tuned=scheduled.is_tuned,
            trace=format_trace(scheduled.trace),
        )
        rival = plan_rival(case, plan, budget)
        times = compare_case(program, row.trace, row.copies, plan, rival)
    except TensorwrightError as error:
        return replace(row, failure=f"{type(error).__name__}: {error}")
    row = replace(row, times=times)
    if rival is None or any(time.peer == METASCHEDULE and time.failure for time in times):
        return row
    curve = read_curve(rival.folder)
    best_s = min((point.best_s for point in curve), default=math.inf)
    if math.isinf(best_s):
        return row
    found_s = seconds_to_reach(curve, best_s) or 0.0
    reached_s = reach_time(program, plan, store, started, best_s) if tune_s else None
    return replace(row, rival=Rival(curve[-1].trials, best_s, found_s, reached_s))


def plan_rival(case: OperatorCase, plan: OpPlan, budget: TuneBudget) -> RivalPlan | None:
    """MetaSchedule's part in a case; it goes on with what its folder in the knob `home` has."""
    if not {case.family, case.name} & set(budget.rivals):
        return None
    name = f"{case.name}-batch{case.batch}-threads{plan.threads}-seed{plan.seed}"
    if plan.target.name != "native":
        name += f"-{plan.target.name}"
    folder = make_folder(Path(knobs.HOME.get()) / "metaschedule" / name)
    return RivalPlan(budget.rival_trials, folder)


def reach_time(
    program: OperatorProgram, plan: OpPlan, store: RecordStore, started: str, time_s: float
) -> float | None:
    """Seconds from the start of our search to its first schedule that takes at most `time_s`."""
    times = [
        record.when
        for record in case_records(program, plan, store)
        if record.when >= started and record.status is Status.OK and record.median_s <= time_s
    ]
    if not times:
        return None
    return (datetime.fromisoformat(min(times)) - datetime.fromisoformat(started)).total_seconds()


def tune_case(
    program: OperatorProgram, plan: OpPlan, budget: TuneBudget, store: RecordStore
) -> float:
    """Search until the budget's trials are on record; the seconds that it took."""
    rest = budget.trials - count_trials(program, plan, store)
    if rest <= 0:
        return 0.0
    start = time.monotonic()
    tune(
        [Task(program.workload)],
        Setting(plan.target, plan.threads),
        store,
        Options(trials=rest, seed=budget.seed, should_resume=False),
        name=f"ansor:{program.case.name}",
    )
    return time.monotonic() - start


def count_trials(program: OperatorProgram, plan: OpPlan, store: RecordStore) -> int:
    """How many schedules of a case are on record, failed ones included."""
    return len({record.trace for record in case_records(program, plan, store)})


def case_records(program: OperatorProgram, plan: OpPlan, store: RecordStore) -> Iterator[Record]:
    """The records of a case, for this machine and as many threads."""
    return store.query(
        workload=program.workload.key,
        target=plan.target.key,
        hardware=detect_hardware().fingerprint,
        threads=plan.threads,
    )


def _note(row: OpRow) -> None:
    """Say at once how a case did: the table comes at the end."""
    if row.ratio is None:
        failures = [row.failure, *(time.failure for time in row.times)]
        text = next((each.splitlines()[0] for each in failures if each), "not compared")
    else:
        text = f"{row.gflops(row.ours):.1f} GFLOP/s, {row.ratio:.2f} times the best peer"
    click.echo(f"{row.case} batch {row.batch}: {text}", err=True)
