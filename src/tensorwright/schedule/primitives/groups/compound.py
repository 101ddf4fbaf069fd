"""Steps that stand for several others: one line of a trace instead of many."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from tensorwright.base import ScheduleError
from tensorwright.schedule.primitive import Primitive, applied
from tensorwright.schedule.state import ScheduleState


class Compound(Primitive):
    """A step that does others in order.

    Theorem: each of them keeps the meaning, so all of them do.
    """

    __slots__ = ()

    @abstractmethod
    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """The steps for a state; the stages and loops that they name are those of the state."""

    def need(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the steps cannot be named."""

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where one of the steps is illegal, in the name of this one."""
        self.need(state)
        now = state
        for step in self.steps(state):
            try:
                step.check(now)
            except ScheduleError as error:
                told = {"step": str(self), "reason": f"{step}: {error.reason}"}
                raise ScheduleError(**{**dict(error.fields), **told}) from None
            now = applied(step, now)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state after all of them."""
        for step in self.steps(state):
            state = applied(step, state)
        return state
