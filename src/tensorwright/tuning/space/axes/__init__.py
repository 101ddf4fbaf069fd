"""The roles of a computation's axes, and the sizes of their tiles."""
