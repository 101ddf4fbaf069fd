"""The tuning database: every measurement, as readable data.

Read record.py first (what a record is), then store.py: a store in a file of SQLite, and one in
memory. JSON lines are for exchange.
"""

from tensorwright.records.lines import WorkloadText, read_workload, workload_data
from tensorwright.records.networks import (
    NetworkChoice, forget_workloads, keep_fact, kept_fact, load_choice, load_last_choice,
    load_rewriting, load_thread_limits, load_tuned_sizes, save_choice, save_rewriting,
    save_tuned_sizes,
)
from tensorwright.records.opening import (
    Records, best_record, default_path, is_store, open_store, opened,
)
from tensorwright.records.record import (
    TOOL_VERSION, Record, SavedSession, Setting, Status, is_current, record_tool, session_id,
    to_line, with_times,
)
from tensorwright.records.store import (
    MemoryStore, RecordStore, WatchedStore, answers_alike, rank,
)
