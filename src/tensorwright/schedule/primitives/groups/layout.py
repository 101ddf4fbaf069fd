"""Choose where the elements of a shared tensor lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.memory_layout import SPANS, LayoutKind, MemoryLayout, has_amount
from tensorwright.schedule.primitive import Primitive, need_stage, refuse
from tensorwright.schedule.state import ScheduleState


@dataclass(frozen=True, slots=True)
class Layout(Primitive):
    """Lay a tensor out in shared memory so that threads ask different banks.

    Rewrite:  shared P: address of P[i, j] = i*n + j
              ->  padded, amount p:  i*(n + p) + j
                  xor, amount b:     the chunks of 16 bytes of a row of b bytes change places by i
    Requires: the stage is not an output; plain has the amount 0, padded at least 1, xor 32, 64 or
    128. Only shared memory is laid out so: elsewhere the step has no effect.
    Source:   NVIDIA CUTLASS 3 (CuTe), Swizzle; TVM's storage_align for the padding.
    """

    stage: str
    kind: LayoutKind
    amount: int = 0

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where there is no such layout."""
        need_stage(self, state, self.stage)
        if self.stage in state.outputs:
            raise refuse(self, state, f"{self.stage} is an output: its memory is the caller's")
        # Theorem: an address is a bijection of the indices, and nothing else of the program reads
        # addresses.
        if not has_amount(self.kind, self.amount):
            remedy = f"plain 0, padded 1 or more, xor one of {', '.join(map(str, SPANS))}"
            raise refuse(self, state, f"{self.kind.value} has no amount {self.amount}", remedy)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the layout noted."""
        layout = MemoryLayout(self.kind, self.amount)
        return state.with_stage(replace(state.stage(self.stage), layout=layout))
