"""Search for fast schedules, measured on this machine.

Read `space/` first (the schedules to try), then `strategies/` (what proposes them), `measuring/`
(how a candidate gets its times), and `session/` (what connects them). A new strategy or scheduler
is one file that keeps the protocol, given to a session as an argument. The names are those of the
folders inside: `from tensorwright.tuning.session import tune`.
"""

from tensorwright.tuning.task import Task
