"""What the drivers of cards share: loaded functions, and the check that a launch is a grid."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import Grid, InternalError, Launch


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LoadedFunctions:
    """The functions of loaded code, by addresses or by numbers that stand for them."""

    addresses: dict[str, int]

    def address(self, symbol: str) -> int:
        """The address of a function."""
        return self.addresses[symbol]


def grid_of(launch: Launch) -> Grid:
    """The launch as a grid.  Raises: InternalError for a launch on threads of a processor."""
    if not isinstance(launch, Grid):
        raise InternalError(stage="runtime", where=f"launch {launch}", reason="cards launch grids")
    return launch
