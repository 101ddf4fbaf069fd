"""Facts about whole networks, kept as sessions of a record store: choices, graphs, sizes."""

from tensorwright.records.networks.choice import (
    NetworkChoice,
    forget_workloads,
    load_choice,
    load_last_choice,
    load_thread_limits,
    save_choice,
)
from tensorwright.records.networks.rewriting import load_rewriting, save_rewriting
from tensorwright.records.networks.sizes import load_tuned_sizes, save_tuned_sizes

__all__ = [
    "NetworkChoice",
    "forget_workloads",
    "load_choice",
    "load_last_choice",
    "load_rewriting",
    "load_thread_limits",
    "load_tuned_sizes",
    "save_choice",
    "save_rewriting",
    "save_tuned_sizes",
]
